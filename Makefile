# Every target makes what it needs on a machine that has only python3 and make.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
DEMO := $(VENV)/.installed

.PHONY: help demo install test test-all lint format bench benchmarks attacks mutants docs plugin browser recording screenshots clean

help:
	@echo "make demo      set up and play two agents with one memory, on a throw-away database"
	@echo "make install   the command bethink for you alone: by uv, by pipx, or in ~/.local"
	@echo "make test      set up and run the tests"
	@echo "make test-all  the tests on Python 3.11, 3.12 and 3.13, where installed"
	@echo "make lint      ruff and mypy"
	@echo "make bench     quality on evaluation sets: make bench SETS='DIR DIR' (default ../shared/bench/*)"
	@echo "make benchmarks  Bethink and its peers on all tasks, and docs/benchmarks.md; QUICK=1 for a small sample"
	@echo "make attacks   thousands of generated attacks on a user's decisions, and their rates"
	@echo "make mutants   break each guard in a copy of the tree, and see that a test notices"
	@echo "make docs      generate docs/reference anew"
	@echo "make recording  the demo as an asciinema cast and an SVG into docs/images"
	@echo "make screenshots  pictures of every web page into docs/images"
	@echo "make plugin    render skills, hooks and the version into plugins/"

CHECK_PYTHON = $(PYTHON) -c 'import sys; sys.exit("Bethink needs Python 3.11 or newer; this is " + sys.version.split()[0]) if sys.version_info < (3, 11) else None'

$(READY): pyproject.toml
	@$(CHECK_PYTHON)
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@

# The product alone, without the tools of a contributor.
$(DEMO): pyproject.toml
	@$(CHECK_PYTHON)
	@if [ ! -x $(BIN)/bethink ]; then $(PYTHON) -m venv $(VENV) && \
	  $(BIN)/python -m pip install --quiet --disable-pip-version-check -e .; fi
	@touch $@

demo: $(DEMO)
	$(BIN)/bethink demo

# Many systems refuse `pip install` outside of a virtual environment.
PROGRAM := $(HOME)/.local/lib/bethink
install:
	@$(CHECK_PYTHON)
	@if command -v uv >/dev/null 2>&1; then uv tool install --quiet --force '.[all]'; \
	elif command -v pipx >/dev/null 2>&1; then pipx install --quiet --force '.[all]'; \
	else $(PYTHON) -m venv "$(PROGRAM)" && \
	  "$(PROGRAM)/bin/python" -m pip install --quiet --disable-pip-version-check --upgrade '.[all]' && \
	  mkdir -p "$(HOME)/.local/bin" && ln -sf "$(PROGRAM)/bin/bethink" "$(HOME)/.local/bin/bethink"; fi
	@PATH="$$PATH:$(HOME)/.local/bin"; bethink model pull --quiet >/dev/null || \
	  echo "The embedding model was not downloaded; the first command that needs it tries again."
	@if command -v bethink >/dev/null 2>&1; then bethink --version; \
	else echo "Installed. Add it to your PATH, and to the start-up file of your shell:"; \
	  echo "  export PATH=\"$(HOME)/.local/bin:\$$PATH\""; fi

# JOBS=0 runs the tests in one process, as plain pytest does.
JOBS ?= auto
test: $(READY) browser
	$(BIN)/python -m pytest --numprocesses $(JOBS) --maxprocesses 4 --dist worksteal

# The pages are tested in a real Chromium: the system's own, or the one that CHROMIUM names.
browser:
	@if [ -n "$$CHROMIUM" ]; then exit 0; fi; \
	for name in chromium chromium-browser google-chrome; do command -v $$name >/dev/null 2>&1 && exit 0; done; \
	if [ "$$(id -u)" != 0 ] || ! command -v apt-get >/dev/null 2>&1; then \
	  echo "The tests of the web page need Chromium: install the package chromium, or name a browser in CHROMIUM." >&2; exit 1; \
	fi; \
	apt-get update -qq && \
	DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium fonts-liberation >/dev/null

recording: $(READY)
	FORCE_COLOR=1 $(BIN)/python bench/recording.py

screenshots: $(READY) browser
	$(BIN)/python bench/screens.py

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
	$(BIN)/bethink bench $(SETS) --mode hybrid,vector,keyword

# Resumable: what was measured in this clone is not measured again, unless AGAIN=1. What fails is said in the page and does not stop it.
# A small sample goes elsewhere and makes no page. DATA names the folder of the evaluation sets.
MEASURE := bench/suite/run measure $(if $(DATA),--data $(DATA)) $(if $(AGAIN),--again)
benchmarks:
ifdef QUICK
	-nice $(PYTHON) $(MEASURE) --quick --jobs 2 --results .venv-suite/quick $(PEERS)
	$(PYTHON) bench/suite/run table --results .venv-suite/quick
else
	-$(PYTHON) bench/suite/run fetch $(if $(DATA),--data $(DATA))
	-nice $(PYTHON) $(MEASURE) $(PEERS)
	$(PYTHON) bench/suite/run page
endif

attacks: $(READY)
	$(BIN)/python bench/attacks.py $(if $(ROUNDS),--rounds $(ROUNDS)) $(if $(SEED),--seed $(SEED))

mutants: $(READY)
	$(BIN)/python bench/mutants.py

docs: $(READY)
	$(BIN)/python docs/generate.py

plugin: $(READY)
	$(BIN)/python plugins/render.py

clean:
	rm -rf $(VENV) .venv-* .pytest_cache .mypy_cache .ruff_cache .hypothesis
