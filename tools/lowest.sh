#!/bin/sh
# usage: tools/lowest.sh   tests the package as .venv has it with the lowest versions of what pyproject.toml asks for.
# build/lowest is a virtual environment with them.  What needs no other version is not compiled a second time.
set -eu
cd "$(dirname "$0")/.."
folder=build/lowest
.venv/bin/python -c 'import sys; sys.exit(sys.version_info >= (3, 13))' ||
    { echo "pydtconv: the lowest versions have no wheels for Python 3.13 and newer: not tested"; exit 0; }
[ -x "$folder/bin/pip" ] || .venv/bin/python -m venv "$folder"
.venv/bin/python tools/requirements.py --lowest images onnx plot tensorboard >"$folder/requirements.txt"
"$folder/bin/python" -m pip install --quiet --disable-pip-version-check --no-compile --only-binary :all: \
    --requirement "$folder/requirements.txt" pytest pytest-xdist hypothesis
cp .venv/lib/python3*/site-packages/__editable__*pydtconv* "$folder"/lib/python3*/site-packages/
echo "pydtconv: tests with $(tr '\n' ' ' <"$folder/requirements.txt")"
# matplotlib's lowest version warns of what its own newest requirements will not have
"$folder/bin/python" -m pytest -m "not slow and not mpi" -W ignore::DeprecationWarning -p no:cacheprovider "$@" \
    tests/optimizers tests/saving tests/serialization tests/interchange tests/files tests/support tests/utils tests/callbacks tests/preprocessing
