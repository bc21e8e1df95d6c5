# make demo    trains a CNN on handwritten digits         make test    the whole test suite
# make lint    style and types                            make format  puts files into the style that lint asks for
# make build   compiles after a change of C or Cython     make clean   removes what these made
# make docs    builds the site in build/docs             make docs-serve   builds it and serves it here
# Every target sets up .venv by itself.  PYTHON=... and CC=... choose the interpreter and the compiler.

export PYTHON CC
BIN := .venv/bin
SOURCES := $(shell find cext pydtconv -name '*.c' -not -path 'pydtconv/*' -o -name '*.h' -o -name '*.pyx' -o -name '*.pxd')
C_FILES = $$(git ls-files '*.c' '*.h')
CYTHON_FILES = $$(git ls-files '*.pyx' '*.pxd')

.PHONY: demo test lint format build docs docs-serve clean

demo: .venv/demo
	@$(BIN)/pydtconv demo

# threads that wait asleep do not slow down a machine that others use too
test: .venv/test
	@OMP_WAIT_POLICY=$${OMP_WAIT_POLICY:-passive} $(BIN)/python -m pytest $(ARGS)

lint: .venv/dev
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/cython-lint $(CYTHON_FILES)
	$(BIN)/clang-format --dry-run -Werror $(C_FILES)
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache --no-logo

format: .venv/dev
	$(BIN)/ruff check --fix
	$(BIN)/ruff format
	$(BIN)/clang-format -i $(C_FILES)

build: .venv/test
	@DTCONV_LEVELS=$${DTCONV_LEVELS:-native} $(BIN)/python setup.py -q build_ext --inplace

# an installation with one extra; made again when what is compiled or installed has changed
.venv/demo .venv/test .venv/dev .venv/docs: .venv/%: pyproject.toml setup.py tools/venv.sh tools/libdtconv.py $(SOURCES)
	@sh tools/venv.sh $*
	@touch $@

# the site in build/docs; warnings are errors
docs: .venv/docs
	@$(BIN)/python docs/drawings.py >/dev/null
	@$(BIN)/python -m sphinx --quiet --fail-on-warning --keep-going -b html docs build/docs
	@echo "build/docs/index.html"

docs-serve: docs
	@echo "http://localhost:$${PORT:-8000}   (Ctrl-C ends it)"
	@$(BIN)/python -m http.server --bind localhost --directory build/docs $${PORT:-8000}

clean:
	rm -rf .venv build dist *.egg-info pydtconv/_ext/lib pydtconv/_ext/*.so pydtconv/_ext/*.dylib
	rm -f pydtconv/_ext/*.c
	find . -name __pycache__ -prune -exec rm -rf {} +
