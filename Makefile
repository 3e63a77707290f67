# What a newcomer, a developer and a CI machine type. `make` alone lists the targets.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
LITELLM := .venv-litellm
LITELLM_INSTALLED := $(LITELLM)/.installed

.DEFAULT_GOAL := help
.PHONY: help setup demo test lint types bench clean

help: ## list the targets
	@sed -nE 's/^([a-z]+):.*## (.*)/make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 16

setup: $(INSTALLED) ## make .venv with every dependency pinned and hash-checked

# Done once for each state of the lock file; a venv that a failed run left half-made has no stamp and is completed.
$(INSTALLED): requirements/dev.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "error: litehit needs Python 3.11 or newer, but '$(PYTHON)' is" \
	         "$$($(PYTHON) --version 2>&1 || true); run: make $(MAKECMDGOALS) PYTHON=python3.11" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' || \
	  { echo "error: '$(PYTHON)' cannot make virtual environments; on Debian or Ubuntu run: apt-get install python3-venv" >&2; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --disable-pip-version-check --quiet --require-hashes -r requirements/dev.lock
	$(BIN)/python -m pip install --disable-pip-version-check --quiet --no-deps --no-build-isolation --editable .
	@touch $@

# LiteLLM and what the tests need agree on no versions, so the tests of its callback run it in an environment of its own.
$(LITELLM_INSTALLED): requirements/litellm.lock | $(INSTALLED)
	test -x $(LITELLM)/bin/python || $(PYTHON) -m venv $(LITELLM)
	$(LITELLM)/bin/python -m pip install --disable-pip-version-check --quiet --require-hashes -r requirements/litellm.lock
	@touch $@

demo: setup ## from nothing to exact hit rates in one command; ONCE=1 ends by itself
	$(BIN)/python -m service.demo $(if $(ONCE),--once)

test: lint types $(LITELLM_INSTALLED) ## everything: ruff, mypy, pytest
	$(BIN)/python -m pytest $(PYTEST_ARGS)

lint: setup ## ruff, rules and format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: setup ## mypy --strict
	$(BIN)/mypy

bench: setup ## the figures of the README; pipeline needs Java and Maven
	$(BIN)/python -m benchmarks.core
	$(BIN)/python -m benchmarks.restore
	$(BIN)/python -m benchmarks.archive
	$(BIN)/python -m benchmarks.encoding
	$(BIN)/python -m benchmarks.parsing
	$(BIN)/python -m benchmarks.query
	$(BIN)/python -m benchmarks.replay
	$(BIN)/python -m benchmarks.replay_memory
	$(BIN)/python -m benchmarks.pipeline

clean: ## remove the environments, the demo and every cache
	rm -rf $(VENV) $(LITELLM) demo .mypy_cache .ruff_cache .pytest_cache .hypothesis
