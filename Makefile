# One word for each task; `make help` lists them. Any Python 3.11 with pip is enough: make run PYTHON=python3.12

PYTHON ?= python3
BIN := .venv/bin
SETUP := scripts/install.py pyproject.toml requirements.lock hatch_build.py package-lock.json

.DEFAULT_GOAL := help
.PHONY: help run test quick check lint types lock bench screenshots reference clean

help: ## this list
	@sed -n 's/^\([a-z]*\):.*## /  make \1\t/p' Makefile | expand -t 22

# The example, unless you bring your own workflows.
run: export POSTERN_WORKFLOWS ?= examples/workflows
run: export POSTERN_EXAMPLE ?= on
# No shell in between: make's only child is the program, so Ctrl-C and SIGTERM reach it and make waits for it to end.
run: .venv/.run ## set up, and serve in the foreground on http://127.0.0.1:8080 (POSTERN_PORT=…)
	@$(BIN)/postern serve

test: .venv/.test check ## install all that the tests need, and run everything: lint, types, tests
	$(BIN)/pytest -n 3

quick: .venv/.test ## the tests of the decision and the use cases on SQLite; ends at the first failure
	$(BIN)/pytest -n 2 -x -k "not postgres" tests/core tests/presets tests/outbound tests/usecases tests/test_settings.py

check: lint types ## lint and types only

lint: .venv/.test ## ruff and the architecture's contracts
	$(BIN)/ruff check
	$(BIN)/ruff format --check --quiet
	$(BIN)/lint-imports

types: .venv/.test ## mypy, strict
	$(BIN)/mypy

lock: ## resolve all dependencies again and write both lock files
	$(PYTHON) scripts/lock.py

bench: .venv/.test ## measure
	$(BIN)/python -m bench

screenshots: .venv/.test ## take the pictures in docs/ again
	$(BIN)/python scripts/screenshots.py

reference: .venv/.test ## write docs/reference again from the code
	$(BIN)/python scripts/reference.py

clean: ## remove what was installed and built; your data stays
	rm -rf .venv .tools dist build src/postern/surfaces/console/static/vendor .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis

.venv/.run: $(SETUP)
	@$(PYTHON) scripts/install.py

.venv/.test: $(SETUP) requirements-dev.lock
	@$(PYTHON) scripts/install.py test
