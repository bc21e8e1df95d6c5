#!/bin/sh
# arm64.sh [TESTS...]: tests on arm64, by emulation, on Debian or Ubuntu.  The C library and the bindings are compiled by
# a cross compiler, a Python for arm64 comes from Debian's packages and NumPy from PyPI, all into build/arm64.
# Needs qemu-aarch64-static and aarch64-linux-gnu-gcc: apt-get install qemu-user-static gcc-aarch64-linux-gnu
# libc6-dev-arm64-cross.  EVERY=20: each 20th test only (default; 1: all).  BITS=only: nothing but the C library, whose
# passes must have the same bits on one to four threads; BITS=none: without it.
set -eu
cd "$(dirname "$0")/../.."
root=$PWD/build/arm64/root tree=$PWD/build/arm64/tree packages=$PWD/build/arm64/packages python=$PWD/.venv/bin/python
export CC=aarch64-linux-gnu-gcc DTCONV_LEVELS=generic
emulator=$(command -v qemu-aarch64-static || command -v qemu-aarch64) || { echo "arm64.sh: needs qemu-aarch64" >&2; exit 1; }
command -v $CC >/dev/null || { echo "arm64.sh: needs $CC" >&2; exit 1; }
mkdir -p "$root" "$tree" "$packages"

# times are kept, so that a second build compiles what has changed only
git ls-files -z --cached --others --exclude-standard | tar -cf - --null --files-from=- | tar -xpf - -C "$tree"
(cd "$tree" && "$python" tools/libdtconv.py)
[ "${BITS:-}" = none ] || tools/cross/bits.sh "$tree" "$emulator -L /usr/aarch64-linux-gnu"
[ "${BITS:-}" != only ] || exit 0

# Python for arm64, downloaded as packages and unpacked, not installed; apt's own state is not touched
if [ ! -x "$root/usr/bin/python3.11" ]; then
    mkdir -p "$packages/lists/partial" "$packages/archives/partial"
    : >"$packages/status"
    apt="apt-get -qq -y -o Dir::State=$packages -o Dir::State::status=$packages/status -o Dir::Cache=$packages
        -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o Debug::NoLocking=1 -o APT::Sandbox::User=root
        -o APT::Install-Recommends=false"
    $apt update
    $apt --download-only install python3.11-minimal libpython3.11-stdlib libpython3.11-dev libgomp1 libstdc++6
    for package in "$packages"/archives/*.deb; do
        case $package in
        */libc6-dev* | */libc-dev* | */linux-libc* | */dpkg* | */tar_*) ;;
        *) dpkg-deb -x "$package" "$root" ;;
        esac
    done
fi
if [ ! -d "$root/site/numpy" ]; then
    # shellcheck disable=SC2046
    "$python" -m pip install --quiet --target "$root/site" --only-binary=:all: --python-version 3.11 \
        $(printf -- '--platform %s_aarch64 ' manylinux2014 manylinux_2_17 manylinux_2_27 manylinux_2_28) \
        numpy blis h5py tqdm pytest hypothesis
fi

# the bindings: Cython's C of this machine
cp -u pydtconv/_ext/*.c "$tree/pydtconv/_ext/"
for source in "$tree"/pydtconv/_ext/*.c; do
    name=$(basename "$source" .c)
    target=$tree/pydtconv/_ext/$name.cpython-311-aarch64-linux-gnu.so
    libraries="-L$tree/pydtconv/_ext/lib/generic -ldtconv"
    case $name in cpu | _memoryview) libraries= ;; esac
    # shellcheck disable=SC2086
    [ "$target" -nt "$source" ] || $CC -shared -fPIC -O1 -g0 -w -I"$root/usr/include/python3.11" -I"$root/usr/include" \
        -I"$tree/cext/include" "$source" -o "$target" $libraries "-Wl,-rpath,\$ORIGIN/lib/generic"
done

# what tests start by sys.executable runs in the emulator, too
printf '#!/bin/sh\nexec "%s" -L "%s" "%s" "$@"\n' "$emulator" "$root" "$root/usr/bin/python3.11" >"$root/python"
chmod +x "$root/python"
export INTERPRETER="$root/python"

cd "$tree"
export PYTHONPATH="$root/site:$tree" PYTHONDONTWRITEBYTECODE=1 OPENBLAS_NUM_THREADS=1 OMP_WAIT_POLICY=passive
[ $# -gt 0 ] || set -- tests/gemm tests/conv tests/ops tests/ext/test_math.py tests/ext/test_bfloat16.py \
    tests/ext/test_optimizers.py tests/test_fft.py --ignore tests/ops/test_functions_against_keras.py \
    --ignore tests/ops/test_images_against_keras.py --ignore tests/ops/test_against_keras.py
# the emulator raises flags of floating-point numbers in NumPy's products that no arm64 does
exec "$INTERPRETER" -m pytest -q -p no:cacheprovider -p tools.cross.every \
    -m "not slow and not mpi" -W "ignore:.*encountered in matmul:RuntimeWarning" "$@"
