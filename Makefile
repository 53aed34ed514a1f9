# One word for each task; `make help` lists them. Python 3.11 or newer with pip is enough: make run PYTHON=python3.12

PYTHON ?= python3
BIN := .venv/bin
# Most tests wait for programs now and then: two lanes a core.
LANES ?= $(shell expr $$(getconf _NPROCESSORS_ONLN) \* 2)
# Where it is set, every program would be compiled at each of its hundreds of starts.
export PYTHONDONTWRITEBYTECODE :=
# Where one is asked for (make run PYTHON=python3.13), an .venv of another one is made anew. Otherwise it stays what it is.
ifneq ($(origin PYTHON),file)
OTHER_PYTHON := $(shell $(PYTHON) scripts/install.py other || echo other-python)
endif
SETUP := scripts/install.py pyproject.toml requirements.lock requirements-build.lock requirements-uv.lock hatch_build.py package-lock.json

RELEASE = "$(VERSION)" $(if $(REPOSITORY),--repository "$(REPOSITORY)")

.DEFAULT_GOAL := help
.PHONY: help run test tests quick mutants simulate bare check lint types lock bench screenshots schema written reference release releasable clean

help: ## this list
	@sed -n 's/^\([a-z]*\):.*## /  make \1\t/p' Makefile | expand -t 22

# With the example in ./workflows, unless you bring your own.
# No shell in between: make's only child is the program, so Ctrl-C and SIGTERM reach it and make waits for it to end.
run: .venv/.run ## set up, and serve in the foreground on http://127.0.0.1:8080 (POSTERN_PORT=…)
	@$(BIN)/postern serve $(if $(POSTERN_WORKFLOWS),,--example)

# Types are checked beside the first tests, and what is wrong with them fails the whole as well.
test: .venv/.test lint ## install all that the tests need, and run everything: lint, types, the quick tests, the others
	@$(MAKE) --no-print-directory --jobs=2 types tests

tests: .venv/.test ## the tests alone, without lint and types (LANES=4)
	$(BIN)/pytest -n $(LANES) --quick-decides

quick: .venv/.test ## the tests of the decision and the use cases, without programs and Postgres; ends at the first failure
	$(BIN)/pytest -n auto -x -q -m quick tests/core tests/presets tests/outbound tests/usecases tests/test_settings.py

# What was drawn once is found out by then: another seed each time.
N ?= 60
SEED ?= $(shell date +%N)
mutants: .venv/.test ## make random mistakes and look whether tests notice (N=60 SEED=7 FILES="core/watch/alarms.py usecases/")
	$(BIN)/python scripts/mutants.py $(LANES) $(N) $(SEED) $(FILES)

simulate: .venv/.test ## try random worlds with crashes, lost commits and wrong clocks against what was promised (N=200 SEED=1)
	PYTHONPATH=tests $(BIN)/python tests/support/simulated.py $(N) $(SEED)

check: lint types ## lint and types only

bare: ## try the README's two commands in new Debians without anything else, as root, with debootstrap (DEBIAN=trixie)
	@for debian in $(or $(DEBIAN),bookworm trixie); do scripts/bare.sh $$debian || exit 1; done

lint: .venv/.test ## ruff and the architecture's contracts
	$(BIN)/ruff check
	$(BIN)/ruff format --check --quiet
	$(BIN)/lint-imports

types: .venv/.test ## mypy, strict
	$(BIN)/mypy

lock: ## resolve all dependencies again and write the lock files
	$(PYTHON) scripts/lock.py

bench: .venv/.test ## measure
	$(BIN)/python -m bench

screenshots: .venv/.test ## take the pictures in docs/ again
	$(BIN)/python scripts/screenshots.py

schema: .venv/.test ## write the first migration's SQL from the tables, until the first release
	$(BIN)/python scripts/schema.py
	$(BIN)/python scripts/written.py

written: .venv/.test ## write tests/written/ again: what later versions have to open and read
	$(BIN)/python scripts/written.py

reference: .venv/.test ## write docs/reference again from the code
	$(BIN)/python scripts/reference.py

release: releasable test ## make a version: make release VERSION=0.2.0
	@$(BIN)/python scripts/release.py $(RELEASE)

# What is in its way is said before ten minutes of tests, not after them.
releasable: .venv/.test ## say what is in the way of a release: make releasable VERSION=0.2.0
	@$(BIN)/python scripts/release.py $(RELEASE) --check

clean: ## remove what was installed and built; your data stays
	rm -rf .venv .tools dist build site src/postern/surfaces/console/static/vendor .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis

.PHONY: other-python

.venv/.run: $(SETUP) $(OTHER_PYTHON)
	@$(PYTHON) scripts/install.py $(if $(OTHER_PYTHON),anew)

.venv/.test: $(SETUP) requirements-dev.lock tests/npm/package-lock.json $(OTHER_PYTHON)
	@$(PYTHON) scripts/install.py test $(if $(OTHER_PYTHON),anew)
