# Each target sets up what it needs in .venv; a fresh machine needs Python 3.11 or newer and nothing else.
#   make serve ARGS='--port 9000'      PYTHON=/path/to/python3 chooses the interpreter for a new .venv

.DEFAULT_GOAL := help
.PHONY: help setup serve demo test stories check check-install bench fuzz clean

VENV := .venv
PY := $(VENV)/bin/python
STAMP := $(VENV)/.installed
PYTHON :=
ATHERIS := atheris==3.0.0
CANDIDATES := $(or $(PYTHON),python3.14 python3.13 python3.12 python3.11 python3)
ARGS :=
PYTEST = $(PY) -m pytest --numprocesses auto --dist loadfile

help:  ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/make \1	\2/p' Makefile | expand -t 20

setup: $(STAMP)  ## make .venv and install into it; every other target does so by itself

serve: $(STAMP)  ## run the proxy on http://127.0.0.1:8080 until Ctrl-C
	@exec $(VENV)/bin/wholefeed serve $(ARGS)

demo: $(STAMP)  ## a sample publisher, the proxy, and what a reader gets; works offline
	@exec $(PY) -m demo $(ARGS)

test: $(STAMP)  ## the tests, on all cores
	@$(PYTEST) $(ARGS)

stories: $(STAMP)  ## made-up publishers held against a model of the rules: ARGS='--stories 1000 --seed 1'
	@$(PY) -m tests.model $(ARGS)

check: $(STAMP)  ## what CI runs: linter, formatter, types, layers, then the tests
	$(PY) -m ruff check
	$(PY) -m ruff format --check
	$(PY) -m mypy
	$(VENV)/bin/lint-imports
	$(PYTEST)

check-install: $(STAMP)  ## install the wheel beside proxy.py and run both; needs a package index
	@$(PY) -m pytest --install tests/test_packaging.py

bench: $(STAMP)  ## the benchmarks that README and docs quote
	@for file in benchmarks/[a-z]*.py; do \
	    name=$$(basename "$$file" .py); \
	    echo "== python -m benchmarks.$$name"; \
	    $(PY) -m "benchmarks.$$name" || exit 1; \
	done

fuzz: $(STAMP)  ## one fuzz harness: ARGS='parser --seconds 60' (docs/fuzzing.md)
	@$(PY) -c 'import atheris' 2>/dev/null \
	    || $(PY) -m pip install --quiet --disable-pip-version-check $(ATHERIS)
	@$(PY) -m fuzz $(ARGS)

clean:  ## remove .venv, caches and built files; never a database
	rm -rf $(VENV) dist .coverage .hypothesis .mypy_cache .pytest_cache .ruff_cache .import_linter_cache
	find proxy tests benchmarks demo fuzz -name __pycache__ -type d -prune -exec rm -rf {} +

$(PY):
	@for name in $(CANDIDATES); do \
	    if "$$name" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
	        echo "setting up $(VENV) with $$("$$name" --version)"; \
	        exec "$$name" -m venv --clear $(VENV); \
	    fi; \
	done; \
	echo "wholefeed needs Python 3.11 or newer with its venv module; none of these is one: $(CANDIDATES)" >&2; \
	echo "Debian, Ubuntu: apt install python3-venv; or name one: make PYTHON=/path/to/python3" >&2; \
	exit 1

$(STAMP): pyproject.toml constraints.txt | $(PY)
	@$(PY) -m pip --version >/dev/null 2>&1 || $(PY) -m ensurepip --upgrade >/dev/null
	@echo "installing what constraints.txt names into $(VENV)"
	@$(PY) -m pip install --quiet --disable-pip-version-check --upgrade -c constraints.txt pip
	@$(PY) -m pip install --quiet --disable-pip-version-check \
	    -c constraints.txt --build-constraint constraints.txt --editable . --group dev
	@touch $(STAMP)
