#!/bin/sh
# races.sh: the convolutions, products and kernels of layers of the C library under ThreadSanitizer, on threads that it understands.
# Then sizes.c, sizes that overflow: SEED, TRIALS.
# CC: a GCC, for which cext/common/team.c is the threads.  LEVEL: generic, x86-64-v3, x86-64-v4, x86-64-v4-bf16 or native (this CPU's;
# default: generic).  SANITIZER=address,undefined: the same program under these sanitizers.
set -eu
[ "$(uname)" = Linux ] || { echo "races.sh: the library's own threads are those of Linux: nothing is tested here"; exit 0; }
cd "$(dirname "$0")/../.."
CC=${CC:-gcc} sanitizer=${SANITIZER:-thread}
export CC
level_flags=$(cd tools && python3 -c '
import sys
import libdtconv
level = libdtconv.native_level() if sys.argv[1] == "native" else sys.argv[1]
print(*libdtconv.LEVEL_FLAGS[level])' "${LEVEL:-generic}")
flags="-std=gnu11 -O1 -g1 -fPIC -fno-math-errno -fsanitize=$sanitizer -DDTCONV_WORTH_A_THREAD=1 $level_flags -Icext/include"
[ "$sanitizer" = thread ] || flags="$flags -fno-sanitize-recover=all -fno-omit-frame-pointer"
# a folder for each compiler and flags
folder=build/races/$(printf '%s' "$CC $flags" | cksum | cut -d ' ' -f 1)
mkdir -p "$folder"
# files and what each is compiled for are those of the library, without float64, whose code is that of float32
python3 - "$folder" >"$folder/Makefile" <<'LIST'
import sys
from pathlib import Path

sys.path.insert(0, "tools")
import libdtconv

folder = sys.argv[1]
headers = " ".join(str(path.relative_to(libdtconv.ROOT)) for path in sorted(libdtconv.ROOT.glob("cext/**/*.h")))
rows = []
for path, suffix, defines in libdtconv.sources():
    source = path.relative_to(libdtconv.ROOT)
    if suffix != "_d" or "gemm" in source.parts or "ukr" in source.parts:
        target = f"{folder}/{source.parent.name}_{source.stem}{suffix}.o"
        rows.append(target)
        print(f"{target}: {source} {headers}\n\t$(COMPILE) {' '.join(defines)} -c $< -o $@")
print(f"{folder}/races: {' '.join(rows)} tools/sanitize/races.c tools/sanitize/races_nn.h")
print("\t$(LINK) $(filter-out %.h,$^) -o $@ -lm -pthread -ldl")
print(f"{folder}/sizes: {' '.join(rows)} tools/sanitize/sizes.c")
print("\t$(LINK) $^ -o $@ -lm -pthread -ldl")
LIST
make -s -f "$folder/Makefile" COMPILE="$CC $flags -fopenmp" LINK="$CC $flags" -j "${JOBS:-2}" "$folder/races" "$folder/sizes"
TSAN_OPTIONS="halt_on_error=1 ${TSAN_OPTIONS:-}" "$folder/races"
"$folder/sizes" "${SEED:-1}" "${TRIALS:-20000}"
echo "races.sh: -fsanitize=$sanitizer, ${LEVEL:-generic}: no finding"
