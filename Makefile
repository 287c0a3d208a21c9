# Everything runs in .venv, made from this tree alone. `make` lists the targets.
PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin/python -m pipeline
READY := $(VENV)/.ready
# Two stamps: the package with all extras, and on top of it what the tests need (another 40 packages)
TESTS := $(VENV)/.tests
PIP := $(VENV)/bin/python -m pip install -q --disable-pip-version-check -c constraints.txt

LOGS ?= data/sample
AGENT ?= teacher
OUT ?= out
SIZE ?= full
# Logs of your own get a folder of their own, named after them, so that two sets of logs never mix
WORK := $(OUT)$(if $(filter-out data/sample,$(LOGS)),/$(notdir $(patsubst %/,%,$(firstword $(LOGS))))-$(shell printf %s '$(LOGS)' | cksum | cut -d' ' -f1))
ROWS := $(WORK)/rows
BUNDLE := $(WORK)/$(AGENT)
TRAIN ?=
EVALUATE ?= $(if $(filter data/sample,$(LOGS)),--probabilities data/sample/sample.probs.parquet)

.DEFAULT_GOAL := help
.PHONY: help setup check test test-web test-long test-wheel test-lowest bench docs pictures clean demo ingest train evaluate

help: ## List the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 14

demo: $(READY) ## The whole story on bundled data (SIZE=small: under a minute)
	$(RUN) demo --size $(SIZE) --out $(OUT)/demo

ingest: $(READY) ## Logs to rows: LOGS=... (default: the bundled sample)
	$(RUN) ingest $(LOGS) --out $(ROWS)

train: ingest $(BUNDLE)/manifest.json ## Rows to a bundle: AGENT=... TRAIN="--algorithm ..."

# What the bundle is trained with: written again, so that training runs again, when TRAIN is another than last time or
# the training was interrupted (then the bundle names the streets that it lacks)
$(BUNDLE).options: export OPTIONS = $(TRAIN)
$(BUNDLE).options: FORCE
	@echo "$$OPTIONS" | cmp -s - $@ && ! grep -qs '"missing":' $(BUNDLE)/manifest.json || echo "$$OPTIONS" > $@

FORCE:

$(BUNDLE)/manifest.json: $(ROWS)/manifest.json $(BUNDLE).options
	$(RUN) train --data $(ROWS) --agent $(AGENT) --out $(BUNDLE) $(TRAIN)

$(ROWS)/manifest.json:

evaluate: train $(BUNDLE).html ## Error tables and the page
	@cat $(BUNDLE).txt
	@echo "page: $(BUNDLE).html"

$(BUNDLE).html: $(BUNDLE)/manifest.json
	$(RUN) evaluate --data $(ROWS) $(BUNDLE) $(EVALUATE) > $(BUNDLE).txt
	$(RUN) report --data $(ROWS) $(BUNDLE) $(EVALUATE) --out $@

setup: $(TESTS) ## Make .venv with the pinned packages, those of the tests included

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; v = sys.version_info[:2]; sys.exit(not (3, 11) <= v <= (3, 13))' || { \
	  echo "error: $(PYTHON) is not Python 3.11, 3.12 or 3.13; name one that is: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(PIP) -e '.[all]'
	@touch $@

$(TESTS): $(READY)
	$(PIP) -e '.[all,test]'
	@touch $@

check: $(TESTS) ## Format, lint, types, import contract
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/ruff check .
	$(VENV)/bin/mypy
	$(VENV)/bin/lint-imports
	$(VENV)/bin/python -m tools.house --check

test: check ## All checks and tests (what CI runs)
	$(VENV)/bin/pytest -n 2 -m 'not long and not browser'

test-web: $(TESTS) ## The explorer in a real browser (Debian: chromium, chromium-driver)
	@command -v chromium chromedriver >/dev/null || echo "no browser here, so these tests are skipped: install the Debian packages chromium and chromium-driver"
	$(VENV)/bin/pytest -m browser -rs tests/web/test_web_browser.py

test-long: $(TESTS) ## The tests that take minutes (LONG="PATH...": only these)
	$(VENV)/bin/pytest -m long $(LONG)

test-wheel: $(TESTS) ## The wheel, outside of the clone, in what README shows
	$(VENV)/bin/pytest -m 'long or not long' tests/project/test_wheel.py

test-lowest: ## The tests with the lowest versions that pyproject.toml allows, in .venv-lowest
	$(PYTHON) -m venv .venv-lowest
	.venv-lowest/bin/python -m pip install -q --disable-pip-version-check -c constraints-lowest.txt -e '.[all,test]'
	.venv-lowest/bin/pytest -n 2 -m 'not long and not browser'

bench: $(TESTS) ## Measure this machine (docs/benchmarks.md)
	$(VENV)/bin/python -m benchmarks

docs: $(TESTS) ## Write the generated parts of docs/ again
	$(VENV)/bin/python tests/support/generated_docs.py

pictures: $(TESTS) ## Draw the pictures of the explorer in docs/ again (needs chromium)
	$(VENV)/bin/python tests/web/web_pictures.py

clean: ## Remove what was made (not .venv, not your cache folder)
	rm -rf out build .pytest_cache .mypy_cache .ruff_cache
