# Each target sets up what it needs in .venv; a fresh machine needs Python 3.11 or newer and nothing else.
# serve and demo install what runs; the rest adds the tests, the linters and the types, which are four times as large.
#   make serve ARGS='--port 9000'      PYTHON=/path/to/python3 chooses the interpreter for a new .venv
#   make serve EXTRAS=postgres         adds PostgreSQL's driver to .venv, for good

# A start takes a third longer where every module is compiled anew; the tests start hundreds of processes.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup serve demo test screenshots stories check check-install check-deploy coverage bench benchmarks fuzz \
    dist check-wheel sbom image deb check-deb check-tag announce docs clean

VENV := .venv
PY := $(VENV)/bin/python
RUNS := $(VENV)/.runs
DEVELOPS := $(VENV)/.develops
DOCUMENTS := $(VENV)/.documents
ARCHIVE := $(VENV)/pywb/.installed
PIP_LOG := $(VENV)/pip.log
ARCHIVE_LOG := $(VENV)/pywb-pip.log
BORROWED := $(VENV)/.borrowed-pip
TOOLS := $(VENV)/release/.installed
WHEEL := $(VENV)/wheel
PYTHON :=
ATHERIS := atheris==3.0.0
CANDIDATES := $(or $(PYTHON),python3.14 python3.13 python3.12 python3.11 python3)
ARGS :=
EXTRAS :=
$(if $(filter-out postgres uvloop,$(EXTRAS)),$(error expected EXTRAS=postgres, got $(EXTRAS)))
# Where `make image` pushes to, e.g. ghcr.io/owner/wholefeed; else it stays on this machine.
PUSH :=
TAG :=
VERSION = $(shell sed -n 's/^__version__ = "\(.*\)"/\1/p' proxy/wholefeed/__init__.py)
# Two more than there are cores: tests wait for processes, sockets and clocks half of their time.
WORKERS = $(shell expr $$(getconf _NPROCESSORS_ONLN) + 2)
PYTEST = $(PY) -m pytest --numprocesses $(WORKERS) --dist loadfile --no-loadscope-reorder
# They send megabytes, or thousands of documents, through lines that others reach: counting each line of theirs
# would double the time of the whole suite.
UNMEASURED := $(addprefix tests/,core/parse/test_corpus.py core/compose/test_corpus.py core/parse/test_expat.py \
    end_to_end/test_corpus.py faults/test_documents.py faults/test_memory.py test_fuzz.py test_model.py)

help:  ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/make \1	\2/p' Makefile | expand -t 20

setup: $(DEVELOPS) $(ARCHIVE)  ## make .venv and install all of it; every other target does so by itself, as far as it needs

serve: $(RUNS) $(addprefix $(VENV)/.extra-,$(EXTRAS))  ## run the proxy on http://127.0.0.1:8080 until Ctrl-C
	@STARTED_BY='make serve' exec $(VENV)/bin/wholefeed serve $(ARGS)

demo: $(RUNS)  ## a sample publisher, the proxy, and what a reader gets; works offline
	@exec $(PY) -m demo $(ARGS)

test: $(DEVELOPS)  ## the tests, on all cores
	@$(PYTEST) $(ARGS)

screenshots: $(DEVELOPS)  ## the pictures of README, taken of the sample publisher's feeds; needs chromium
	@$(PY) -m demo.screenshots docs/images

stories: $(DEVELOPS)  ## made-up publishers held against a model of the rules: ARGS='--stories 1000 --seed 1'
	@$(PY) -m tests.model $(ARGS)

# In a fresh clone all tests are compiled once first, not by each process of the run: 6 s of the processor each.
check: $(DEVELOPS)  ## what CI runs: linter, formatter, types, layers, then the tests
	$(PY) -m ruff check
	$(PY) -m ruff format --check
	$(PY) -m mypy
	$(VENV)/bin/lint-imports
	@test -d tests/__pycache__ || $(PY) -m pytest --collect-only -qq >/dev/null 2>&1 || true
	$(PYTEST)

coverage: $(DEVELOPS)  ## the tests but the longest, and which branches they do not reach
	@$(PYTEST) --cov --cov-report=term-missing:skip-covered $(addprefix --ignore=,$(UNMEASURED)) $(ARGS)

check-install: $(DEVELOPS)  ## install the wheel beside proxy.py and run both; needs a package index
	@$(PY) -m pytest --install tests/test_packaging.py

check-deploy: $(DEVELOPS)  ## restore backups of PostgreSQL, and stop replicas behind a real Caddy; needs both installed
	@$(PY) -m pytest --deploy tests/deploy

bench: $(DEVELOPS)  ## the table of docs/performance.md: ARGS='--full --tree 0.1=../wholefeed-0.1 --tree now=.'
	@$(PY) -m benchmarks.table $(ARGS)

benchmarks: $(DEVELOPS)  ## all benchmarks but that table, at full size
	@for file in benchmarks/[a-z]*.py; do \
	    name=$$(basename "$$file" .py); \
	    test "$$name" != table || continue; \
	    echo "== python -m benchmarks.$$name"; \
	    $(PY) -m "benchmarks.$$name" || exit 1; \
	done

fuzz: $(DEVELOPS)  ## one fuzz harness: ARGS='parser --seconds 60' (docs/fuzzing.md)
	@$(PY) -c 'import atheris' 2>/dev/null \
	    || $(PY) -m pip install --quiet --disable-pip-version-check $(ATHERIS)
	@$(PY) -m fuzz $(ARGS)

# Whoever reads the site may be offline, and nobody else learns what is read: a page that would load anything from
# elsewhere is an error.
docs: $(DOCUMENTS)  ## README and docs/ as a site, in site/html; needs a web server to be read, and no network
	@rm -rf site
	@mkdir -p site/source
	@tar -cf - --exclude=deploy/secrets *.md LICENSE config.example.toml docs deploy | tar -xf - -C site/source
	@NO_MKDOCS_2_WARNING=1 $(PY) -m mkdocs build --strict --quiet
	@if grep -rnE --include='*.html' --include='*.css' \
	    '<(script|link|img|iframe|audio|video|source)[^>]* (src|href|srcset)="?(https?:)?//|(@import |url\()["'"'"']?(https?:)?//' \
	    site/html; then echo 'the site would load this from elsewhere' >&2; exit 1; fi
	@echo 'site/html is there; $(PY) -m http.server --bind 127.0.0.1 --directory site/html serves it'

dist: $(TOOLS)  ## the sdist and the wheel of what is committed, in dist/, checked, and the wheel tried
	@release/dist $(VENV)/release/bin/python
	@release/check-wheel $(PY) $(WHEEL)

check-wheel:  ## try the wheel of dist/ in a fresh environment: PYTHON=python3.13
	@release/check-wheel $(or $(PYTHON),python3) $(WHEEL)

sbom: dist  ## dist/*.cdx.json: all that the wheel is installed with, as CycloneDX
	@$(VENV)/release/bin/cyclonedx-py environment --output-reproducible --pyproject pyproject.toml \
	    --output-file dist/wholefeed-$(VERSION).cdx.json $(WHEEL)/bin/python

image:  ## the container's image, by docker, podman or buildah: PUSH=ghcr.io/owner/name for amd64 and arm64
	@release/image $(VERSION) $(PUSH)

deb: $(RUNS)  ## a Debian package for this machine's Debian, in dist/; needs dpkg-dev
	@release/deb $(PY) dist $(REVISION)

check-deb: $(DEVELOPS)  ## install, serve, upgrade and purge that on a bare Debian; needs root, debootstrap and a network
	@$(PY) -m pytest --deploy tests/deploy/test_debian.py

check-tag:  ## whether TAG=vX.Y.Z is of this version, and CHANGELOG tells of it
	@test "$(TAG)" = "v$(VERSION)" || { echo "expected TAG=v$(VERSION), got TAG=$(TAG)" >&2; exit 1; }
	@grep -q '^## \[$(VERSION)\] - ' CHANGELOG.md || { echo "CHANGELOG.md lacks ## [$(VERSION)]" >&2; exit 1; }

announce: check-tag  ## make the forge's release of TAG=vX.Y.Z out of what CHANGELOG says and dist/; needs gh and its token
	@sed -n '/^## \[$(VERSION)\]/,/^## \[/{/^## \[/!p;}' CHANGELOG.md \
	    | gh release create "$(TAG)" --verify-tag --title "wholefeed $(VERSION)" --notes-file - dist/*

clean:  ## remove .venv, caches and built files; never a database
	rm -rf $(VENV) dist site .coverage .coverage.* .hypothesis .mypy_cache .pytest_cache .ruff_cache .import_linter_cache
	find proxy tests benchmarks demo fuzz -name __pycache__ -type d -prune -exec rm -rf {} +

# A python3 of Debian without python3-venv has no ensurepip. A virtualenv does as well, and so does a pip that is
# installed beside it: `pip --python` installs into an environment that has none.
$(PY):
	@for name in $(CANDIDATES); do \
	    if "$$name" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
	        echo "setting up $(VENV) with $$("$$name" --version)"; \
	        exec "$$name" -m venv --clear $(VENV); \
	    fi; \
	done; \
	for name in $(CANDIDATES); do \
	    "$$name" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || continue; \
	    for virtualenv in "$$name -m virtualenv" virtualenv; do \
	        $$virtualenv --version >/dev/null 2>&1 || continue; \
	        echo "setting up $(VENV) with $$("$$name" --version) and virtualenv"; \
	        $$virtualenv --quiet --clear --no-periodic-update --python "$$name" $(VENV) && exit 0; \
	    done; \
	    for pip in "$$name -m pip" pip3 pip; do \
	        $$pip --python "$$name" --version >/dev/null 2>&1 || continue; \
	        "$$name" -m venv --clear --without-pip $(VENV) 2>/dev/null || break; \
	        echo "setting up $(VENV) with $$("$$name" --version) and $$pip"; \
	        echo "$$pip" >$(BORROWED); \
	        exit 0; \
	    done; \
	done; \
	rm -rf $(VENV); \
	echo "wholefeed needs Python 3.11 or newer with its venv module; none of these is one: $(CANDIDATES)" >&2; \
	echo "Debian, Ubuntu: apt install python3-venv; or name one: make PYTHON=/path/to/python3" >&2; \
	exit 1

# pip's own words about a network that is not there fill a screen: they go to a file, and one line says what is wrong.
# Takes the arguments of `pip install`; the shell's variable `pip` is the command.
define PIP_INSTALL
$$pip --quiet --disable-pip-version-check --retries 2 --log $(PIP_LOG) install -c constraints.txt $(1) >/dev/null 2>&1 || { \
    if grep -qE 'connection broken|ConnectionError|ProxyError|ConnectTimeout|ReadTimeout' $(PIP_LOG); then \
        index=$$($$pip install --help | tr '\n' ' ' | sed -n 's/.*--index-url[^(]*(default *\([^ )]*\)).*/\1/p'); \
        echo "cannot reach $$index to install what wholefeed needs; pip's log: $(PIP_LOG)" >&2; \
    else \
        echo "pip could not install what wholefeed needs; its log: $(PIP_LOG)" >&2; \
    fi; \
    exit 1; \
}
endef

$(RUNS): pyproject.toml constraints.txt | $(PY)
	@echo "installing what runs into $(VENV)"
	@rm -f $(PIP_LOG); \
	pip="$(PY) -m pip"; \
	if test -e $(BORROWED); then pip="$$(cat $(BORROWED)) --python $(PY)"; \
	else $$pip --version >/dev/null 2>&1 || $(PY) -m ensurepip --upgrade >/dev/null; fi; \
	$(call PIP_INSTALL,--upgrade pip); \
	pip="$(PY) -m pip"; \
	$(call PIP_INSTALL,--build-constraint constraints.txt --editable '.[uvloop]')
	@touch $(RUNS)

$(VENV)/.extra-%: $(RUNS)
	@echo "installing the extra $* into $(VENV)"
	@pip="$(PY) -m pip"; \
	$(call PIP_INSTALL,--build-constraint constraints.txt --editable '.[$*]')
	@touch $@

$(DEVELOPS): $(RUNS)
	@echo "installing what tests and linters need into $(VENV)"
	@pip="$(PY) -m pip"; \
	$(call PIP_INSTALL,--no-compile --group dev --build-constraint constraints.txt --editable '.[postgres]')
	@touch $(DEVELOPS)

$(DOCUMENTS): $(RUNS)
	@echo "installing what builds the site into $(VENV)"
	@pip="$(PY) -m pip"; \
	$(call PIP_INSTALL,--group docs)
	@touch $(DOCUMENTS)

# What makes a release, in an environment of its own: the tests need none of it.
$(TOOLS): release/constraints.txt | $(PY)
	@echo "installing what makes a release"
	@rm -rf $(@D); $(PY) -m venv $(@D)
	@rm -f $(PIP_LOG); pip="$(@D)/bin/python -m pip"; \
	$(call PIP_INSTALL,-c release/constraints.txt hatchling twine cyclonedx-bom)
	@touch $@

# A web archive to run tests against, in an environment of its own: it needs other versions of what is in .venv.
# Without it those tests are skipped, so what goes wrong here is told and stops nothing.
$(ARCHIVE): tests/pywb-constraints.txt | $(PY)
	@echo "installing pywb, a web archive that tests run against"
	@rm -rf $(@D); \
	{ $(PY) -m venv $(@D) \
	    && $(@D)/bin/python -m pip --quiet --disable-pip-version-check --retries 2 --log $(ARCHIVE_LOG) \
	        install -c tests/pywb-constraints.txt pywb warcio setuptools && touch $@; } >/dev/null 2>&1 \
	|| { rm -rf $(@D); echo "pywb could not be installed, its tests are skipped; pip's log: $(ARCHIVE_LOG)" >&2; }
