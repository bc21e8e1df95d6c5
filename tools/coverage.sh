#!/bin/sh
# usage: tools/coverage.sh [PYTEST ARGUMENTS]   what the tests of `make test` cover, of Python and of C.
# In build/coverage, a copy with a .venv of its own: the C library is built with gcov there, and slower.
# PEERS=no leaves PyTorch, Keras and ONNX out, and with them the tests that compare with these: importing and
# exporting, and much of the layers, are then not covered.
# Fails below 90% of Python's lines and branches or 85% of C's lines.
set -eu
cd "$(dirname "$0")/.."
copy=build/coverage
mkdir -p "$copy"
git ls-files | while read -r name; do [ ! -e "$name" ] || echo "$name"; done >build/tracked
tar cf - --files-from=build/tracked | tar xpf - -C "$copy"
cd "$copy"
# a repository of its own: tests ask git which files there are
git init --quiet
git add --all
CC=gcc DTCONV_CFLAGS="--coverage -O1" sh tools/venv.sh test coverage
for peer in ${PEERS:-torch keras scipy onnx onnxruntime}; do
    [ "$peer" = no ] || .venv/bin/python -m pip install --quiet --disable-pip-version-check "$peer" ||
        echo "$peer cannot be had here"
done
export KERAS_BACKEND=torch
find build -name '*.gcda' -exec rm -f {} +
.venv/bin/python -m coverage erase
failed=0
.venv/bin/python -m coverage run -m pytest -m "not slow" "$@" || failed=1
.venv/bin/python -m coverage combine --quiet
.venv/bin/python -m coverage report --fail-under=90 || failed=1
# loops of kernels are run so often that gcovr takes the count for an error
.venv/bin/python -m gcovr --root . --filter cext/ --object-directory build --merge-mode-functions separate \
    --gcov-ignore-parse-errors suspicious_hits.warn_once_per_file --print-summary --fail-under-line 85 build || failed=1
exit $failed
