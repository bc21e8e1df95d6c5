#!/bin/sh
# memory.sh [TESTS...]: tests and training under AddressSanitizer and UndefinedBehaviorSanitizer, on one thread and on
# two, at each level of the C library.  The library and the bindings are built with both, in build/memory.
# CC: a GCC.  DTCONV_LEVELS: levels to build, with commas (default: "generic" and this CPU's).  PYDTCONV_LEVEL: only one
# of them.  THREADS="1 2".  NETWORKS="vgg16 ..." (default: all four; "none").
set -eu
cd "$(dirname "$0")/../.."
tree=$PWD/build/memory python=$PWD/.venv/bin/python
export CC="${CC:-gcc}"
if [ -z "${DTCONV_LEVELS:-}" ]; then
    native=$(cd tools && "$python" -c "import libdtconv; print(libdtconv.native_level())")
    DTCONV_LEVELS=generic,$native
    [ "$native" != generic ] || DTCONV_LEVELS=generic
fi
export DTCONV_LEVELS
mkdir -p "$tree"
# times are kept, so that a second build compiles what has changed only
git ls-files -z --cached --others --exclude-standard | tar -cf - --null --files-from=- | tar -xpf - -C "$tree"
cd "$tree"
# -O1 comes after the C library's own level: it compiles faster
checks="-fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer -g1"
# the bindings are Cython's C: of its own undefined behaviour we can mend none
DTCONV_CFLAGS="$checks -O1" CFLAGS="-fsanitize=address -fno-omit-frame-pointer -g1 -O1" \
    "$python" setup.py -q build_ext --inplace
preload="$($CC -print-file-name=libasan.so) $($CC -print-file-name=libubsan.so)"
# leaks: Python itself ends with memory that it still holds
export ASAN_OPTIONS="detect_leaks=0:abort_on_error=1:${ASAN_OPTIONS:-}" UBSAN_OPTIONS="print_stacktrace=1"
# a malloc of its own would hide from the sanitizer where each object ends
export PYTHONMALLOC=malloc PYTHONPATH="$tree" OMP_WAIT_POLICY=passive OPENBLAS_NUM_THREADS=1

# left out: a test of small stacks, as the sanitizer's frames are larger than those that are shipped; tests of how much
# memory a process takes, as the sanitizer's own is among it; one that measures the speed of products
stacks=tests/ext/test_math.py::test_small_stacks_of_threads_suffice
sizes=tests/graph/test_memory.py
speed=tests/conv/test_calibration.py::test_a_machine_that_others_use_is_refused
checked() { LD_PRELOAD=$preload "$python" "$@"; }
# what a sanitizer says goes to the terminal, not to what pytest captures and loses when the process ends
tested() {
    checked -m pytest -q -x -p no:cacheprovider -m "not slow" --capture=sys --deselect $stacks --deselect $speed \
        --ignore $sizes "$@"
}

for level in $(echo "${PYDTCONV_LEVEL:-$DTCONV_LEVELS}" | tr , ' '); do
    export PYDTCONV_LEVEL="$level"
    if ! checked -c "import pydtconv._ext.runtime as r; assert r.level() == '$level'"; then
        echo "memory.sh: level $level cannot be loaded" >&2
        exit 1
    fi
    for threads in ${THREADS:-1 2}; do
        export PYDTCONV_NUM_THREADS="$threads"
        echo "memory.sh: $level, threads: $threads"
        [ "${NETWORKS:-}" = none ] || checked tools/sanitize/train.py ${NETWORKS:-}
        if [ $# -gt 0 ]; then
            tested "$@"
        else
            tested tests/conv tests/gemm tests/ops tests/ext tests/graph tests/test_fft.py
        fi
    done
done
