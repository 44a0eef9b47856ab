# The same words for people and CI: demo, test, prove, lint, format.
# Each makes .venv first when it is missing or when the requirements changed. PYTHON=... chooses the interpreter.

SHELL := /bin/sh
PY := .venv/bin/python
PIP := $(PY) -m pip install -qq --disable-pip-version-check --no-input
RUN_TIME := .venv/.run-time
DEVELOPMENT := .venv/.development
CLEAN_ENV := env -u KAMPONG_TEST_DB -u KAMPONG_TEST_POSTGRES_URL -u KAMPONG_PROVE

.DEFAULT_GOAL := help
.PHONY: help demo test prove lint format lint-style lint-format lint-types lint-floors lint-migrations lint-checks

help:
	@echo "make demo     start everything with examples, one run waiting for you"
	@echo "make test     all tests, on SQLite and on PostgreSQL (ARGS='tests/engine -k name' narrows them)"
	@echo "make prove    the same tests with full counts; writes prove-report.md"
	@echo "make lint     style, types, floors, migrations, system checks"
	@echo "make format   rewrite style, and the files that are made out of the code"

demo: $(RUN_TIME)
	@$(PY) examples/demo/run.py

test: $(DEVELOPMENT)
	@$(PY) -m tests.run $(ARGS)

prove: $(DEVELOPMENT)
	@$(PY) -m tests.run --prove $(ARGS)

# every part speaks, even after one has failed
lint: $(DEVELOPMENT)
	@$(MAKE) --no-print-directory --keep-going lint-style lint-format lint-types lint-floors lint-migrations lint-checks

lint-style:
	$(PY) -m ruff check .

lint-format:
	$(PY) -m ruff format --check .

lint-types:
	$(CLEAN_ENV) $(PY) -m mypy .

lint-floors:
	.venv/bin/lint-imports --no-logo

lint-migrations:
	$(CLEAN_ENV) $(PY) manage.py makemigrations --check --dry-run

lint-checks:
	$(CLEAN_ENV) $(PY) manage.py check --fail-level WARNING

format: $(DEVELOPMENT)
	$(PY) -m ruff check --fix .
	$(PY) -m ruff format .
	$(PY) -m tests.architecture.contract
	$(CLEAN_ENV) $(PY) -m kampong.reference

$(RUN_TIME): requirements.txt constraints.txt
	@PYTHON="$(PYTHON)" sh .ci/environment
	@echo "installing requirements.txt into .venv ..."
	@$(PIP) -r requirements.txt
	@touch $@

$(DEVELOPMENT): $(RUN_TIME) requirements-dev.txt requirements-scale.txt
	@echo "installing requirements-dev.txt into .venv ..."
	@$(PIP) -r requirements-dev.txt
	@touch $@
