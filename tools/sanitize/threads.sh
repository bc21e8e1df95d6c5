#!/bin/sh
# threads.sh: Python threads that train and predict at once, with a C library that is built with ThreadSanitizer, in
# build/threads.  The interpreter, NumPy and the bindings are as they are: what races in the C library is found.
# CC: a GCC, for which cext/common/team.c is the threads.  DTCONV_LEVELS: one level (default: this CPU's).
set -eu
cd "$(dirname "$0")/../.."
tree=$PWD/build/threads python=$PWD/.venv/bin/python
export CC="${CC:-gcc}" DTCONV_LEVELS="${DTCONV_LEVELS:-native}"
mkdir -p "$tree"
# times are kept, so that a second build compiles what has changed only
git ls-files -z --cached --others --exclude-standard | tar -cf - --null --files-from=- | tar -xpf - -C "$tree"
cp -p pydtconv/_ext/*.so "$tree/pydtconv/_ext/"
cd "$tree"
rm -rf pydtconv/_ext/lib
DTCONV_CFLAGS="-fsanitize=thread -O1 -g1 -DDTCONV_WORTH_A_THREAD=1" "$python" tools/libdtconv.py
preload=$($CC -print-file-name=libtsan.so)
export PYTHONPATH="$tree" OPENBLAS_NUM_THREADS=1 TSAN_OPTIONS="halt_on_error=1 ${TSAN_OPTIONS:-}"
for threads in ${THREADS:-1 2 3}; do
    LD_PRELOAD=$preload PYDTCONV_NUM_THREADS=$threads "$python" tools/sanitize/threads.py
done
