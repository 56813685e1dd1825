# Everything from nothing: each target makes .venv and installs what it needs, once.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

.PHONY: help demo install test lint bench clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 12

demo: install ## show attention on a sentence, step by step
	@$(BIN)/regard explain "The cat sat on the mat." --mask causal

install: $(VENV)/.installed ## make .venv with regard in it

test: $(VENV)/.tools ## run all tests
	$(BIN)/python -m pytest

lint: $(VENV)/.tools ## check style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(VENV)/.tools ## measure regard against torch; prints tables, writes benchmarks/results/
	$(BIN)/python benchmarks/attention.py
	$(BIN)/python benchmarks/nn.py

clean: ## remove .venv and caches
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist

# torch comes first and by its pinned version: a plain "torch" can pull gigabytes of CUDA packages.
$(VENV)/.installed: pyproject.toml constraints.txt
	@test -x $(BIN)/python || { echo "making $(VENV) …"; $(PYTHON) -m venv $(VENV); }
	@echo "installing regard (torch takes a minute the first time) …"
	@$(PIP) $$(grep '^torch==' constraints.txt)
	@$(PIP) --editable .
	@touch $@

$(VENV)/.tools: $(VENV)/.installed
	@echo "installing what tests, checks and benchmarks need …"
	@$(PIP) --editable ".[test,lint,bench]"
	@touch $@
