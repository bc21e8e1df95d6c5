# make demo    trains a CNN on handwritten digits         make test    the tests that take no time
# make test-all  all tests, those marked slow too         make coverage  what make test covers, of Python and of C
# make wheel   a wheel in dist/ that needs no compiler
# make lint    style and types                            make format  puts files into the style that lint asks for
# make fuzz    random and damaged inputs, SECONDS=60
# make build   compiles after a change of C or Cython     make clean   removes what these made
# make docs    builds the site in build/docs             make docs-serve   builds it and serves it here
# make docs-look   looks at every page of it in a headless Chromium: narrow and wide, light and dark
# make sanitize    the C library under sanitizers: memory, undefined behaviour (make memory), races (make races)
# make sanitize-c  the part of it that needs no Python, in two minutes
# make lowest  tests with the lowest versions of what pyproject.toml asks for
# make emulated    tests with AVX-512, its BF16 and AMX emulated, on a CPU that has AVX2 alone; TESTS="tests/gemm" some of them
# make soak HOURS=2    trainings that are disturbed at random moments, and what they leave behind
# Every target sets up .venv by itself.  PYTHON=... and CC=... choose the interpreter and the compiler.

export PYTHON CC
# tests and set-up start hundreds of processes: each would compile all modules anew where Python may not keep them
export PYTHONDONTWRITEBYTECODE :=
BIN := .venv/bin
SOURCES := $(shell find cext pydtconv -name '*.c' -not -path 'pydtconv/*' -o -name '*.h' -o -name '*.pyx' -o -name '*.pxd')
C_FILES = $$(git ls-files '*.c' '*.h')
CYTHON_FILES = $$(git ls-files '*.pyx' '*.pxd')

.PHONY: demo test test-all coverage wheel lint format build docs docs-serve docs-look clean
.PHONY: sanitize sanitize-c memory races soak fuzz lowest emulated

demo: .venv/demo
	@$(BIN)/pydtconv demo

# threads that wait asleep do not slow down a machine that others use too
# one process of tests per core, each with its files; ARGS="tests/conv -x -n 0" runs a part in one process
test test-all coverage lowest: export OMP_WAIT_POLICY ?= passive
test test-all coverage lowest: export OPENBLAS_NUM_THREADS ?= 1
test test-all coverage lowest: export OMP_NUM_THREADS ?= 1
test: .venv/test
	@$(BIN)/python -m pytest -m "not slow" -n auto --dist loadfile --no-loadscope-reorder $(ARGS)

test-all: .venv/test-all
	@$(BIN)/python -m pytest -n auto --dist loadfile --no-loadscope-reorder $(ARGS)

lowest: .venv/test
	@sh tools/lowest.sh -n auto --dist loadfile $(ARGS)

coverage:
	@sh tools/coverage.sh -n auto --dist loadfile --no-loadscope-reorder $(ARGS)

# a wheel in dist/ for any Linux of its platform tag, with all levels of the C library
wheel: .venv/wheel
	@BIN=$(BIN) sh tools/wheel.sh dist

# training that is killed, interrupted, stopped and starved of disk at random moments, and must not notice
soak: .venv/test
	@$(BIN)/python -m tests.soak --minutes $$(echo "$${HOURS:-2}" | awk '{ print $$1 * 60 }')

# random and damaged inputs; what fails is kept in build/fuzz, ARGS="files --seed 1 --runs 1" runs one seed again
fuzz: .venv/test
	@OMP_WAIT_POLICY=$${OMP_WAIT_POLICY:-passive} $(BIN)/python -m tests.fuzz $(ARGS) --seconds $${SECONDS:-60}

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

sanitize: memory races

memory: .venv/test
	@tools/sanitize/memory.sh $(TESTS)

races: .venv/test
	@tools/sanitize/races.sh
	@tools/sanitize/threads.sh

sanitize-c:
	@tools/sanitize/races.sh
	@SANITIZER=address,undefined LEVEL=native tools/sanitize/races.sh

# what the library has for AVX-512, and for AMX, where no processor has them
emulated: export OMP_WAIT_POLICY ?= passive
emulated: export OMP_NUM_THREADS ?= 1
emulated: .venv/test
	@$(BIN)/python tools/emulate/build.py
	@cd build/emulated && for amx in "" 1; do \
		DTCONV_EMULATED_AMX=$$amx $(CURDIR)/$(BIN)/python -m pytest -m "not slow" -n auto --dist loadfile -p no:cacheprovider \
			$${TESTS:-tests/ext tests/gemm tests/conv tests/kernels tests/ops} $(ARGS) || exit 1; done

# an installation with one extra; made again when what is compiled or installed has changed
.venv/demo .venv/test .venv/dev .venv/docs .venv/wheel .venv/browser: .venv/%: pyproject.toml setup.py tools/venv.sh tools/libdtconv.py $(SOURCES)
	@sh tools/venv.sh $*
	@touch $@

# all that some test needs, but for PyTorch, Keras and a browser
.venv/test-all: pyproject.toml setup.py tools/venv.sh tools/libdtconv.py $(SOURCES)
	@sh tools/venv.sh test docs notebooks
	@touch .venv/test .venv/docs $@

# the site in build/docs; warnings are errors
docs: .venv/docs
	@$(BIN)/python docs/drawings.py >/dev/null
	@$(BIN)/python -m sphinx --quiet --fail-on-warning --keep-going -b html docs build/docs
	@echo "build/docs/index.html"

docs-serve: docs
	@echo "http://localhost:$${PORT:-8000}   (Ctrl-C ends it)"
	@$(BIN)/python -m http.server --bind localhost --directory build/docs $${PORT:-8000}

# skipped, with the reason, where there is no Chromium; PYDTCONV_SCREENSHOTS=folder keeps a picture of each page
docs-look: docs .venv/test .venv/browser
	@PYDTCONV_SITE=$(CURDIR)/build/docs $(BIN)/python -m pytest tests/test_site.py -rs

clean:
	rm -rf .venv build dist *.egg-info pydtconv/_ext/lib pydtconv/_ext/*.so pydtconv/_ext/*.dylib
	rm -f pydtconv/_ext/*.c
	find . -name __pycache__ -prune -exec rm -rf {} +
