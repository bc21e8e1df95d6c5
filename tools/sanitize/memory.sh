#!/bin/sh
# memory.sh [TESTS...]: tests under AddressSanitizer and UndefinedBehaviorSanitizer, on one thread and on two, at each
# level of the C library.  The library and the bindings are built with both, in build/memory.
# CC: a GCC.  LEVELS: those to run, of DTCONV_LEVELS and "generic" (default: all that are built and this CPU can run).
set -eu
cd "$(dirname "$0")/../.."
tree=$PWD/build/memory python=$PWD/.venv/bin/python
CC=${CC:-gcc}
export CC
[ $# -gt 0 ] || set -- tests/conv tests/gemm tests/ops
mkdir -p "$tree"
# times are kept, so that a second build compiles what has changed only
git ls-files -z --cached --others --exclude-standard | tar -cf - --null --files-from=- | tar -xpf - -C "$tree"
cd "$tree"
checks="-fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer -g1"
# the bindings are Cython's C: of its own undefined behaviour we can mend none
DTCONV_CFLAGS="$checks -O1" CFLAGS="-fsanitize=address -fno-omit-frame-pointer -g1 -O1" \
    "$python" setup.py -q build_ext --inplace
preload="$($CC -print-file-name=libasan.so) $($CC -print-file-name=libubsan.so)"
# leaks: Python itself ends with memory that it still holds
export ASAN_OPTIONS="detect_leaks=0:abort_on_error=1:${ASAN_OPTIONS:-}" UBSAN_OPTIONS=print_stacktrace=1
export PYTHONPATH="$tree" OMP_WAIT_POLICY=passive PYTHONMALLOC=malloc
for level in ${LEVELS:-$(ls pydtconv/_ext/lib)}; do
    if ! LD_PRELOAD=$preload PYDTCONV_LEVEL=$level "$python" -c "import pydtconv._ext.runtime" 2>/dev/null; then
        echo "memory.sh: this CPU cannot run level $level" && continue
    fi
    for threads in 1 2; do
        echo "memory.sh: $level, threads: $threads"
        LD_PRELOAD=$preload PYDTCONV_LEVEL=$level PYDTCONV_NUM_THREADS=$threads \
            "$python" -m pytest -q -x -p no:cacheprovider -m "not slow" "$@"
    done
done
