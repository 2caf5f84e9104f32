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
	SOAK_SEEDS=$(or $(SEEDS),200) $(BIN)/pytest -n 2 --dist worksteal --hypothesis-profile=soak

bench: setup
	$(BIN)/python -m bench

# SKEW="v1.34.4 v1.37.2" asks for other API servers, too; SEEDS, PODS and TRANSCRIPTS are those of docs/real-clusters.md.
e2e: setup
	$(BIN)/python e2e/build.py $(SKEW:%=--also %)
	$(BIN)/python tests/tools/fetch_kubectl.py
	SKYSAIL_SERVER=real $(BIN)/pytest -n 2 --dist loadfile --durations=5 tests/conformance
	$(BIN)/pytest -n 0 -sv -rs --durations=5 --ignore-glob='*/test_chaos*' e2e/suites
	$(BIN)/pytest -n 2 --dist worksteal -v -rs --durations=0 e2e/suites/test_chaos*.py

bench-real: setup
	$(BIN)/python e2e/build.py
	$(BIN)/python -m e2e.bench $(ARGS)

clean:
	rm -rf $(VENV) .cache build dist
