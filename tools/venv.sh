#!/bin/sh
# usage: tools/venv.sh EXTRA...   makes .venv and installs the package in it, editable, with the extras.
# Everything that could be missing on the machine is looked for first; each problem is one line that says what to do.
# PYTHON and CC, when set, are taken as they are.
set -eu
cd "$(dirname "$0")/.."

stop() {
    echo "pydtconv: $1" >&2
    exit 1
}

new_enough() {
    "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1
}

find_python() {
    for candidate in ${PYTHON:-python3 python3.14 python3.13 python3.12 python3.11 python}; do
        if new_enough "$candidate"; then
            python=$candidate
            return
        fi
    done
    found=$("${PYTHON:-python3}" --version 2>/dev/null || true)
    stop "Python 3.11 or newer is needed, found ${found:-none}: install python3.11 or newer, or name one by 'make PYTHON=/path/to/python'"
}

find_compiler() {
    for candidate in ${CC:-cc gcc clang}; do
        if command -v "$candidate" >/dev/null 2>&1; then
            CC=${CC:-$candidate}
            export CC
            return
        fi
    done
    stop "a C compiler is needed, found none of ${CC:-cc, gcc, clang}: install one (Debian, Ubuntu: apt install gcc; Fedora: dnf install gcc; macOS: xcode-select --install)"
}

check_python_parts() {
    "$python" -c 'import venv, ensurepip' >/dev/null 2>&1 ||
        stop "the venv module of $python is needed: install it (Debian, Ubuntu: apt install python3-venv)"
    "$python" -c 'import os, sys, sysconfig
sys.exit(not os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h")))' ||
        stop "the headers of $python (Python.h) are needed: install them (Debian, Ubuntu: apt install python3-dev; Fedora: dnf install python3-devel)"
}

check_compiler() {
    folder=$(mktemp -d)
    trap 'rm -rf "$folder"' EXIT
    printf '#include <stdio.h>\nint main(void) { return 0; }\n' >"$folder/probe.c"
    $CC "$folder/probe.c" -o "$folder/probe" >/dev/null 2>&1 ||
        stop "the C compiler '$CC' cannot build a program: install the C library's headers (Debian, Ubuntu: apt install libc6-dev)"
}

find_python
find_compiler
check_python_parts
check_compiler
if [ "${1:-}" = --check ]; then
    echo "python: $python, C compiler: $CC"
    exit 0
fi

# The C library is compiled while pip, Cython and what else the package needs arrive.  Only the level that this machine
# runs best is built, unless DTCONV_LEVELS says otherwise.
DTCONV_LEVELS=${DTCONV_LEVELS:-native}
export DTCONV_LEVELS
started=$(date +%s)

took() {
    echo "pydtconv: $1 after $(($(date +%s) - started)) s"
}

pip() {
    .venv/bin/python -m pip install --quiet --disable-pip-version-check "$@"
}

folder=$(mktemp -d)
background=
trap 'for job in $background; do kill "$job" 2>/dev/null || true; done; rm -rf "$folder"' EXIT
echo "pydtconv: builds the C library and .venv, in about a minute"
if [ ! -x .venv/bin/pip ]; then
    "$python" tools/libdtconv.py &
    background=$!
    library=$!
    "$python" -m venv .venv
fi
"$python" tools/requirements.py "$@" >"$folder/requirements.txt"
# modules are compiled to bytecode when they are first imported: most never are
# not at the same time as the rest, which looks at the version of setuptools while it is being replaced
pip --no-compile "setuptools>=77" "cython>=3.1"
pip --no-compile --requirement "$folder/requirements.txt" &
background="$background $!"
arriving=$!
.venv/bin/python setup.py -q build_ext --inplace
took "compiled"
wait "$arriving"
[ -z "${library:-}" ] || wait "$library"
background=
pip --no-build-isolation --no-deps --editable .
took "installed"
