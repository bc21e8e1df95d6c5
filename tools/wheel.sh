#!/bin/sh
# usage: BIN=.venv/bin tools/wheel.sh FOLDER [SDIST]   builds a wheel into the folder, from here or from an sdist.
# All levels of the C library are in it.  On Linux auditwheel checks which systems it runs on.
set -eu
BIN=$(cd "${BIN:-.venv/bin}" && pwd)
folder=$1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
unset DTCONV_LEVELS
mkdir -p "$folder"
"$BIN/python" -m pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation --wheel-dir "$scratch" "${2:-.}"
if [ "$(uname)" = Linux ]; then
    PATH="$BIN:$PATH" "$BIN/python" -m auditwheel --verbose repair --wheel-dir "$folder" "$scratch"/*.whl >"$scratch/log" 2>&1 ||
        { cat "$scratch/log"; exit 1; }
else
    cp "$scratch"/*.whl "$folder"
fi
ls "$folder"/*.whl
