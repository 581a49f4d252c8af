# Two commands do everything on a fresh machine:
#   make demo   the environment, the installation, the bundled example
#   make test   the environment, lint, types, tests
# `make check` takes two minutes: lint, types and the tests without torch; for between two edits.
# `make docs` builds the documentation into site/.
# With TORCH=2.15.0 either of them uses that torch, in an environment of its own beside the default.
# `make release` says whether this commit can be a version, and builds it.

PYTHON ?= python3
TORCH ?=
VENV := .venv$(if $(TORCH),-$(TORCH))
PINS := $(if $(TORCH),$(VENV)/constraints.txt,constraints.txt)
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
PYTEST = $(BIN)/python -m pytest -n $(JOBS) --dist loadfile
# One more than there are cores: the tests are made to run side by side, and a quarter of their time
# they wait for a child, a browser or a limit.
JOBS ?= $(shell $(PYTHON) -c "import os; print(len(os.sched_getaffinity(0)) + 1)")

# The versions of torch that a release is tested with: `make test TORCH=...` for each.
MATRIX ?= 2.11.0 2.12.0 2.13.0 2.14.0 2.15.0

# The commit that the tests passed at, where there is one and nothing was changed since.
NOTE_TESTED = if [ -z "$$(git status --porcelain 2>&1)" ]; then git rev-parse HEAD > $(VENV)/.tested; fi

# Tests start some thousand processes: without kept bytecode each would compile our modules anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo check test test-all docs lint format release system clean

demo: $(STAMP)
	$(BIN)/compilescope run examples/tour.py

check: $(STAMP) lint
	$(PYTEST) -q --quick

test: $(STAMP) system lint
	@rm -f $(VENV)/.tested
	$(PYTEST) -m "not slow"
	@$(NOTE_TESTED)

test-all: $(STAMP) system lint
	$(BIN)/python -m pip install --quiet -c $(PINS) -e ".[dev,models]"
	@rm -f $(VENV)/.tested
	$(PYTEST)
	@$(NOTE_TESTED)

# Whether this commit can be a version: tests, changelog, version. Builds it then; uploads nothing.
release: $(STAMP)
	$(BIN)/python -m pip install --quiet -c $(PINS) -e ".[dev,release]"
	$(BIN)/python .ci/release.py $(MATRIX)

docs: $(STAMP)
	$(BIN)/python -m pip install --quiet -c $(PINS) -e ".[docs]"
	$(BIN)/python docs/build.py

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

format: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# torch comes first and pinned: without the pin, pip would fetch gigabytes of CUDA.
$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade "pip>=23.2" "setuptools>=77" wheel
	$(if $(TORCH),echo "torch==$(TORCH)" > $(PINS))
	$(BIN)/python -m pip install --quiet -c $(PINS) torch
	$(BIN)/python -m pip install --quiet -c $(PINS) -e ".[dev]"
	@touch $(STAMP)

# Inductor needs a C++ compiler, the small compiler CMake as well, the tests of pages a browser, those
# of traces node (it runs Perfetto's own reader). Installed where we may; tests that need them say so otherwise.
system:
	@command -v c++ >/dev/null || command -v g++ >/dev/null || \
	  { [ "$$(id -u)" = 0 ] && apt-get update -qq && apt-get install -y -qq g++; } || \
	  echo "no C++ compiler: tests that need Inductor will be skipped"
	@command -v cmake >/dev/null || \
	  { [ "$$(id -u)" = 0 ] && apt-get update -qq && apt-get install -y -qq cmake make; } || \
	  echo "no CMake: tests of the small compiler will be skipped"
	@{ command -v chromium && command -v chromedriver; } >/dev/null || \
	  { [ "$$(id -u)" = 0 ] && apt-get update -qq && apt-get install -y -qq chromium chromium-driver; } || \
	  echo "no Chromium: tests that need a browser will be skipped"
	@command -v node >/dev/null || \
	  { [ "$$(id -u)" = 0 ] && apt-get update -qq && apt-get install -y -qq nodejs; } || \
	  echo "no node: tests that load a trace in Perfetto will be skipped"

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .import_linter_cache build dist
