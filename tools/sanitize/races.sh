#!/bin/sh
# races.sh: the convolutions, products and kernels of layers of the C library under ThreadSanitizer, on threads that it understands.
# CC: a GCC (team.c has the functions that its OpenMP pragmas become).  LEVEL_FLAGS: e.g. -mavx2 -mfma.
set -eu
cd "$(dirname "$0")/../.."
CC=${CC:-gcc} folder=build/races
mkdir -p "$folder"
flags="-std=gnu11 -O1 -g -fPIC -fno-math-errno -fsanitize=thread ${LEVEL_FLAGS:-} -Icext/include"
cat > "$folder/Makefile" <<MAKE
SOURCES := $(echo cext/common/runtime.c cext/gemm/*.c cext/conv/*.c cext/nn/*.c cext/ukr/*.c)
OBJECTS := \$(SOURCES:cext/%.c=$folder/%.o)
HEADERS := $(find cext -name '*.h' | tr '\n' ' ')
$folder/races: \$(OBJECTS) tools/sanitize/races.c tools/sanitize/team.c tools/sanitize/races_nn.h
	$CC $flags \$(filter-out %.h,\$^) -o \$@ -lm -pthread -ldl
$folder/%.o: cext/%.c \$(HEADERS)
	@mkdir -p \$(@D)
	$CC $flags -fopenmp -c \$< -o \$@
MAKE
make -s -f "$folder/Makefile" -j "${JOBS:-2}" "$folder/races"
TSAN_OPTIONS="halt_on_error=1 ${TSAN_OPTIONS:-}" "$folder/races"
