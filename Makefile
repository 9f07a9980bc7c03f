# Every target makes what it needs on a machine that has only python3 and make.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: help demo test test-all lint format bench docs clean

help:
	@echo "make demo      set up and show the product on a throw-away database"
	@echo "make test      set up and run the tests"
	@echo "make test-all  the tests on Python 3.11, 3.12 and 3.13, where installed"
	@echo "make lint      ruff and mypy"
	@echo "make bench     quality on evaluation sets: make bench SETS='DIR DIR' (default ../shared/bench/*)"
	@echo "make docs      generate docs/reference anew"

$(READY): pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit("Recollect needs Python 3.11 or newer; this is " + sys.version.split()[0]) if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@

demo: $(READY)
	$(BIN)/recollect demo

test: $(READY)
	$(BIN)/python -m pytest

test-all:
	@set -e; for version in 3.11 3.12 3.13; do \
	  if command -v python$$version >/dev/null 2>&1 && python$$version -c '' >/dev/null 2>&1; then \
	    echo "== Python $$version"; $(MAKE) --no-print-directory test PYTHON=python$$version VENV=.venv-$$version; \
	  else echo "== Python $$version is not installed here"; fi; done

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

SETS ?= $(wildcard ../shared/bench/*/)
bench: $(READY)
	$(BIN)/recollect bench $(SETS) --mode hybrid,vector,keyword

docs: $(READY)
	$(BIN)/python docs/generate.py

clean:
	rm -rf $(VENV) .venv-* .pytest_cache .mypy_cache .ruff_cache .hypothesis
