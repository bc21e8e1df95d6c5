#!/bin/sh
# musl.sh: the C library compiled against musl, as Alpine has it, and run: all passes of the convolutions and the
# kernels of layers have the same bits on one to four threads.  Needs musl-gcc: apt-get install musl-tools.  musl-gcc
# has no OpenMP: what its pragmas become is in tools/sanitize/team.c.
set -eu
cd "$(dirname "$0")/../.."
tree=$PWD/build/musl
export CC=musl-gcc DTCONV_LEVELS=${DTCONV_LEVELS:-generic}
command -v $CC >/dev/null || { echo "musl.sh: needs musl-gcc" >&2; exit 1; }
mkdir -p "$tree"
git ls-files -z --cached --others --exclude-standard | tar -cf - --null --files-from=- | tar -xpf - -C "$tree"
(cd "$tree" && "$PWD/../../.venv/bin/python" tools/libdtconv.py)
# the name under which GCC's OpenMP is asked for
$CC -std=gnu11 -O1 -shared -fPIC -Wl,-soname,libgomp.so.1 tools/sanitize/team.c \
    -o "$tree/pydtconv/_ext/lib/generic/libgomp.so.1"
# the C library asks for versions of GCC's functions, which team.c has not; musl's loader goes by their names alone
FLAGS=-Wl,--allow-shlib-undefined tools/cross/bits.sh "$tree" ""
