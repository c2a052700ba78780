# Everything a fresh machine with Python 3.11+ and make needs: `make demo`, `make test`.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
export PIP_DISABLE_PIP_VERSION_CHECK = 1
# Tests start hundreds of processes: none of them shall compile again what others have.
unexport PYTHONDONTWRITEBYTECODE

# What the tests run with, to the release, so that a new one of anything does not fail them by itself.
PINS   := tests/constraints.txt

.PHONY: demo test tests check lint types bench lock pins clean help

help:
	@echo "make demo   set up and show Dragoman at work"
	@echo "make check  set up, lint and type-check"
	@echo "make test   set up, lint, type-check and run every test"
	@echo "make bench  measure speed, as ratios within one run"
	@echo "make lock   pin what the image installs (deploy/requirements.txt) to what is newest"
	@echo "make pins   pin what the tests run with (tests/constraints.txt) to what is newest"

# The pip that Python brings may be years old: an old one takes twice as long to find what fits.
$(BIN)/pip:
	$(PYTHON) -m venv --upgrade-deps $(VENV)

$(BIN)/.base: pyproject.toml | $(BIN)/pip
	$(BIN)/pip install -qq -e ".[espeak]"
	@touch $@

# torch goes first and alone: a later request for it is then already satisfied. Nothing is compiled
# to bytecode on the way: most of it is never imported, and what is compiles itself then.
$(BIN)/.dev: pyproject.toml $(PINS) | $(BIN)/pip
	$(BIN)/pip install -q --no-compile torch==2.13.0 -c $(PINS)
	$(BIN)/pip install -qq --no-compile -c $(PINS) -e ".[espeak,train,dev]"
	@touch $(BIN)/.base $@

demo: $(BIN)/.base
	$(BIN)/dragoman demo
	$(BIN)/dragoman demo en-de
	$(BIN)/dragoman translate dragoman/talks/report.en.ogg --from en --to de --speak demo.de.wav
	@echo "demo.de.wav is the second one, interpreted aloud"

check: lint types

lint: $(BIN)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(BIN)/.dev
	$(BIN)/mypy

# Types are checked beside the tests: that takes one core for a minute.
test: lint
	$(MAKE) -j 2 types tests

# As many as there are cores that CI has: a third is no faster, and makes tests that wait wait longer.
tests: $(BIN)/.dev
	$(BIN)/pytest -n 2 --dist worksteal

bench: $(BIN)/.dev
	$(BIN)/python -m benchmarks

# Hashes are those of all files of a release, so that one lock serves every machine; what is pinned
# must be had as wheels on both kinds that the image is built for.
LOCK := deploy/requirements.txt
lock: $(BIN)/.base
	$(BIN)/pip install -q pip-tools
	rm -f $(LOCK)
	CUSTOM_COMPILE_COMMAND="make lock" $(BIN)/pip-compile -q --generate-hashes --allow-unsafe \
	  --strip-extras --no-emit-index-url --no-emit-find-links --build-deps-for wheel \
	  --extra serve -o $(LOCK) pyproject.toml
	for machine in x86_64 aarch64; do \
	  $(BIN)/pip download -q --no-deps --only-binary=:all: --require-hashes -r $(LOCK) -d build/$$machine \
	    --python-version 3.12 --platform manylinux_2_28_$$machine --platform manylinux2014_$$machine \
	    --platform manylinux_2_17_$$machine || exit 1; \
	done

# In a fresh environment; torch is pinned in pyproject.toml, whichever build of it a machine takes.
pins: clean
	: > $(PINS)
	$(MAKE) $(BIN)/.dev
	$(BIN)/pip freeze --exclude-editable | grep -v '^torch==' > $(PINS)

clean:
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
