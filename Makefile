# Two commands do everything on a machine with make, Python (>= 3.11) and its headers, and a C compiler:
# `make demo` and `make test`. Both compile loops that were edited.
PYTHON ?= python3
BIN := .venv/bin

PYTHON_OLDEST ?= python3.11

.PHONY: bench bench-quick compare demo test test-all suite test-oldest test-cpus test-mutants lint types browser clean

demo: .venv/demo .venv/loops
	@mkdir -p build
	$(BIN)/ravine demo --report build/demo.html --force

# One worker more than processors: tests of the command line and of pages wait for other processes.
WORKERS := $(shell echo $$(( $$(nproc 2>/dev/null || echo 2) + 1 )))
PYTEST := -m pytest --numprocesses $(WORKERS) --maxprocesses 5 --dist worksteal

# ruff and mypy run beside the tests.
test: .venv/dev .venv/loops browser
	@$(MAKE) --no-print-directory --jobs 3 lint types suite

suite: .venv/dev .venv/loops
	$(BIN)/python $(PYTEST)

# Everything, in at most twenty minutes: all tests, and the numerical ones as on other processors.
test-all: .venv/dev .venv/loops browser
	@$(MAKE) --no-print-directory --jobs 3 lint types suite PYTEST='$(PYTEST) -m ""'
	@$(MAKE) --no-print-directory test-cpus

# The suite with the oldest packages that pyproject.toml declares, on the oldest Python (PYTHON_OLDEST).
test-oldest: .venv-oldest/loops
	.venv-oldest/bin/python $(PYTEST)

# The numerical tests with the rounding of other processors; `make test` has a short form of it (tests/test_processors.py).
NUMERICAL := tests/data/test_standardization.py tests/data/test_microclusters.py tests/features/test_neighbors.py tests/index \
	tests/optimize tests/split tests/evidence/test_significance.py tests/features/test_kernels.py tests/estimators/test_partial_labels.py \
	tests/test_same_answer.py tests/test_units.py

test-cpus: .venv/dev .venv/loops
	$(BIN)/python -m tests.processors --numprocesses auto --dist worksteal -q $(NUMERICAL)

# Deliberate bugs, one at a time: reports those that no test sees. MUTANTS="--folder data" or "--only s11 t7" runs some.
test-mutants: .venv/dev .venv/loops
	$(BIN)/python -m tests.mutants.run $(MUTANTS)

# The report is tested in chromium: Debian's is installed where that is possible, and otherwise it is said plainly.
browser:
	@command -v chromium >/dev/null && command -v chromedriver >/dev/null || { \
	  [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && \
	  { apt-get install -y -qq --no-install-recommends chromium chromium-driver >/dev/null 2>&1 || \
	    { apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium chromium-driver; } >/dev/null 2>&1; }; } || \
	  echo "No chromium and chromedriver here: the tests of the report in a browser are left out."

lint: .venv/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: .venv/dev
	$(BIN)/mypy

.venv/pip:
	@command -v cc >/dev/null || { echo "There is no C compiler (cc); on Debian: apt install gcc" >&2; exit 1; }
	$(PYTHON) -m venv .venv
	@$(BIN)/python -c "import sysconfig, pathlib, sys; \
	  sys.exit(not pathlib.Path(sysconfig.get_path('include'), 'Python.h').exists())" || \
	  { echo "Python's headers are missing; on Debian: apt install python3-dev" >&2; rm -rf .venv; exit 1; }
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1" "setuptools>=77" "Cython>=3.1"
	touch $@

# without build isolation: the same Cython compiles again what is edited
.venv/demo: pyproject.toml setup.py | .venv/pip
	$(BIN)/python -m pip install --quiet --no-build-isolation --editable .
	touch $@ .venv/loops

.venv/dev: pyproject.toml setup.py | .venv/pip
	$(BIN)/python -m pip install --quiet --no-build-isolation --editable ".[all]" --group dev
	touch $@ .venv/demo .venv/loops

LOOPS := $(shell find src -name '*.pyx' -o -name '*.pxd' -o -name '*.h')

.venv/loops: $(LOOPS) | .venv/demo
	$(BIN)/python setup.py --quiet build_ext --inplace
	touch $@

.venv-oldest/dev: pyproject.toml tests/lower_bounds.py
	$(PYTHON_OLDEST) -m venv .venv-oldest
	.venv-oldest/bin/python -m pip install --quiet --upgrade "pip>=25.1" "setuptools>=77" "Cython>=3.1"
	.venv-oldest/bin/python tests/lower_bounds.py > .venv-oldest/constraints.txt
	.venv-oldest/bin/python -m pip install --quiet --no-build-isolation --editable ".[all]" --group dev -c .venv-oldest/constraints.txt
	touch $@

.venv-oldest/loops: $(LOOPS) .venv-oldest/dev
	.venv-oldest/bin/python setup.py --quiet build_ext --inplace
	touch $@

clean:
	rm -rf .venv .venv-oldest .mypy_cache .ruff_cache .pytest_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
	find src -name '*.so' -delete

# An environment of its own for the peer that needs an older numpy; benchmarks/speed.py runs it there.
.venv-peers:
	$(PYTHON) -m venv $@
	$@/bin/python -m pip install --quiet "numpy==1.26.*" "HiPart==1.1.0"

# Every table from this commit, as CSV files; a run that was ended goes on: make bench DATA=folder OUT=folder
bench: .venv/dev .venv/loops
	$(BIN)/python benchmarks/bench.py $(if $(DATA),--data $(DATA)) $(if $(OUT),--out $(OUT))
	$(if $(OUT),,$(BIN)/python benchmarks/bench.py --write)

# The small sets in a few minutes, compared with the figures in benchmarks/results.
bench-quick: .venv/dev .venv/loops
	$(BIN)/python benchmarks/bench.py --quick --out $(or $(OUT),build) $(if $(DATA),--data $(DATA))

# This tree beside commit 167f872, one table: quality, time, memory, size. make compare DATA=folder
compare: .venv/dev .venv/loops
	$(BIN)/python benchmarks/compare.py $(if $(DATA),--data $(DATA))

.PHONY: docs images dist

# The site, in build/docs/index.html; a warning is an error, and nothing is fetched.
docs: .venv/docs .venv/loops
	$(BIN)/python -m sphinx -W --keep-going -b html docs build/docs

# The pictures of the README and of the pages, which are committed.
images: .venv/dev .venv/loops browser
	$(BIN)/python docs/make_images.py

# Wheel and source archive in dist/, checked, and the wheel tried in an environment of its own.
dist: .venv/dist
	rm -rf dist
	$(BIN)/python -m build
	$(BIN)/python -m twine check --strict dist/*
	$(PYTHON) -m venv --clear build/try
	build/try/bin/python -m pip install --quiet dist/*.whl
	build/try/bin/ravine demo --report build/try/demo.html --force

.venv/docs: pyproject.toml | .venv/pip
	$(BIN)/python -m pip install --quiet --no-build-isolation --editable ".[all]" --group docs
	touch $@ .venv/demo .venv/loops

.venv/dist: pyproject.toml | .venv/pip
	$(BIN)/python -m pip install --quiet --group dist
	touch $@
