#!/bin/sh
# bits.sh FOLDER "COMMAND": compiles tools/sanitize/races.c with $CC against the C library's sources in FOLDER and runs it by
# COMMAND: all passes of the convolutions and the kernels of layers have the same bits on one to four threads.
set -eu
cd "$(dirname "$0")/../.."
folder=$1 program=$1/bits
# shellcheck disable=SC2086
[ "$program" -nt "$folder/pydtconv/_ext/lib/generic/libdtconv.so" ] ||
    $CC -std=gnu11 -O1 -Icext/include tools/sanitize/races.c -o "$program" \
        -L"$folder/pydtconv/_ext/lib/generic" -Wl,-rpath,"$folder/pydtconv/_ext/lib/generic" -ldtconv -lm -pthread
# shellcheck disable=SC2086
$2 "$program"
