# Skysail's tasks. `make demo` and `make test` work on a fresh clone with only python3 present.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: setup demo test lint unit soak bench e2e bench-real clean

setup: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	@echo "setting up $(VENV); a minute or two the first time"
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev,cel,uvloop]'
	touch $@

demo: setup
	$(BIN)/skysail demo

test: lint unit

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

unit: setup
	$(BIN)/python tests/tools/fetch_kubectl.py
	$(BIN)/pytest -n 2 --dist worksteal

soak: setup
	SOAK_SEEDS=$(or $(SEEDS),200) $(BIN)/pytest -n 2 --dist worksteal

bench: setup
	$(BIN)/python -m bench

e2e: setup
	$(BIN)/python e2e/build.py
	$(BIN)/python tests/tools/fetch_kubectl.py
	SKYSAIL_SERVER=real $(BIN)/pytest -n 0 tests/conformance
	$(BIN)/pytest -n 0 -s e2e/suites

bench-real: setup
	$(BIN)/python e2e/build.py
	$(BIN)/python -m e2e.bench $(ARGS)

clean:
	rm -rf $(VENV) .cache build dist
