#!/bin/sh
# musl.sh: the C library compiled against musl, as Alpine has it, and run: all passes of the convolutions and the
# kernels of layers have the same bits on one to four threads.  Needs musl-gcc: apt-get install musl-tools.
set -eu
cd "$(dirname "$0")/../.."
tree=$PWD/build/musl
export CC=musl-gcc DTCONV_LEVELS=${DTCONV_LEVELS:-generic}
command -v $CC >/dev/null || { echo "musl.sh: needs musl-gcc" >&2; exit 1; }
mkdir -p "$tree"
git ls-files -z --cached --others --exclude-standard | tar -cf - --null --files-from=- | tar -xpf - -C "$tree"
(cd "$tree" && "$PWD/../../.venv/bin/python" tools/libdtconv.py)
tools/cross/bits.sh "$tree" ""
