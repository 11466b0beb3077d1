# `make help` lists the targets. Every target that needs the environment sets it up first.
# `make test PYTHON=python3.13` uses that Python, in an environment of its own.
PYTHON ?=
VENV := .venv$(addprefix -,$(notdir $(PYTHON)))
BIN := $(VENV)/bin
LOCKS := requirements.lock requirements-build.lock
# Stamps are named by content, so that a fresh clone or a touched file sets nothing up again.
ENVIRONMENT := $(VENV)/.environment-$(shell (pwd; cat $(LOCKS)) | cksum | cut -d' ' -f1)
PROJECT := $(VENV)/.project-$(shell cksum < pyproject.toml | cut -d' ' -f1)
COMPILE := $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	--no-header --no-emit-index-url

# How many processes share the tests: 4 keep two cores busy, because each waits half of its time for
# brokers. 0 is one process without workers.
WORKERS ?= 4

# A slow mirror is not a failure, and a company may have its own certificates.
export UV_HTTP_TIMEOUT ?= 180
export UV_SYSTEM_CERTS ?= true

# The tests start hundreds of Python processes. Without bytecode each compiles what it imports, which
# takes as long as all that it does then, and several seconds for Airflow.
test matrix faults: export PYTHONDONTWRITEBYTECODE :=

.PHONY: help setup demo test matrix dist docs up down lint bench faults clean lock
.DEFAULT_GOAL := help

help: ## list the targets
	@sed -n 's/^\([a-z]*\):.*## /\1 /p' $(MAKEFILE_LIST) | awk '{t=$$1; $$1=""; printf "  make %-7s%s\n", t, $$0}'

setup: $(PROJECT) ## install everything locked in requirements.lock, and the Kafka jars
	@$(BIN)/python -m quota_ops.lab.kafka.jars
	@$(BIN)/python scripts/make_kafka_archives.py
	@$(BIN)/python -m quota_ops.sql.spark_archive

demo: setup ## apply desired_state/demo to a real Kafka broker, step by step
	@$(BIN)/quota-ops demo

test: setup ## run the suite: real brokers of every pinned Kafka, Spark and Airflow
	@$(BIN)/python -m quota_ops.lab.kafka.jars $(notdir $(wildcard quota_ops/lab/kafka/versions/*.*.*))
	@$(BIN)/python -m pytest --numprocesses $(WORKERS) --no-loadscope-reorder

matrix: setup ## run the tests that `make test` leaves out: a Spark cluster, Airflow in a browser, a bucket, another day
	@$(BIN)/python -m pytest -m matrix --numprocesses 0 tests/engines tests/browser tests/objects tests/broker tests/dag tests/cli tests/usage tests/unit/test_model_coverage.py
	@CLOCK=2028-02-29T23:59:00Z TZ=Pacific/Kiritimati PYTHONPATH="$(CURDIR)/tests/moved_clock" \
		PYTEST_ADDOPTS="-W ignore::pytest.PytestAssertRewriteWarning" \
		$(BIN)/python -m pytest --numprocesses 0 --hypothesis-profile many tests/unit tests/docs

dist: setup ## build wheel and source archive, and plan with the wheel in an empty environment without Java
	@$(BIN)/python scripts/build_dist.py dist

docs: setup ## build the site of this version into build/site, beside others; fails for a broken link
	@$(BIN)/python -m tests.docs.site build/site

up: setup ## start the sandbox broker, Spark and Airflow in the background; prints address and login
	@$(BIN)/quota-ops up

down: setup ## stop what `make up` started
	@$(BIN)/quota-ops down

lint: setup ## ruff, the import contracts and mypy --strict
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check
	@$(BIN)/lint-imports
	@$(BIN)/mypy

bench: setup ## measure speed and memory, and keep the results
	@$(BIN)/python -m tests.benchmarks

# `make faults OPTIONS=--resume` leaves out what held before it was interrupted or failed.
faults: setup ## play every fault and every kill on real brokers, and write docs/explanation/reliability.md
	@$(BIN)/python -m tests.faults $(OPTIONS)

clean: ## remove every .venv and build output; never runs, ledgers or the Kafka cache
	@rm -rf .venv .venv-* build dist .coverage .hypothesis .import_linter_cache .mypy_cache \
		.pytest_cache .ruff_cache
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

lock: setup ## write the lock files again from pyproject.toml
	@$(COMPILE) --group build --output-file requirements-build.lock
	@$(COMPILE) --all-extras --group dev pyproject.toml --output-file requirements.lock

# An interrupted install leaves packages that look whole, so each attempt starts from nothing;
# what was downloaded is in uv's cache.
$(ENVIRONMENT):
	@python=$$(sh scripts/required_tools.sh $(PYTHON)) && \
	echo "Setting up $(VENV) with $$python (about 1 GB; minutes the first time)" && \
	"$$python" -m venv --clear $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes \
		-r requirements-build.lock
	@$(BIN)/uv pip sync --python $(BIN)/python --require-hashes \
		--build-constraints requirements-build.lock --require-build-hashes \
		--preview-features build-dependency-hashes requirements.lock
	@touch $@

$(PROJECT): $(ENVIRONMENT)
	@rm -f $(VENV)/.project-*
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation --editable .
	@touch $@
