# Every verb makes its own environment from a lock file and needs nothing but a Python from 3.11 to 3.14 and make.
# Environments are made again when their lock changes, and only then.

.DELETE_ON_ERROR:
.DEFAULT_GOAL := help
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c

# The first Python on the path that is new enough and can make environments; `make test PYTHON=python3.13` takes another.
PYTHON ?= $(shell for python in python3 python3.13 python3.12 python3.11; do \
	$$python -c 'import ensurepip, sys, venv; sys.exit(not (3, 11) <= sys.version_info < (3, 15))' 2>/dev/null \
	&& { echo $$python; break; }; done)
# Test processes at a time.
WORKERS ?= 2

export PIP_DISABLE_PIP_VERSION_CHECK := 1
export UV_PYTHON_DOWNLOADS := never

BIN := .venv/bin
LOCKED := --all-extras --generate-hashes --no-emit-index-url --no-header --quiet --universal --python-version 3.11
# The image's locks: parts of requirements.lock.
IMAGE := --constraint requirements.lock $(filter-out --all-extras,$(LOCKED)) --no-annotate
# What an example needs of us beside its framework.
EXAMPLE := $(filter-out --all-extras,$(LOCKED)) --upgrade --extra cli --extra prices

.PHONY: help demo test lint types matrix docs validate bench soak lock dist clean

#: This list.
help:
	@awk '/^#: /{text = text substr($$0, 3) " "; next} /^[a-z]+:/ && text {sub(/:.*/, ""); printf "  make %-8s%s\n", $$0, text} {text = ""}' Makefile

#: A small fleet of agents, and the service that tells which of them is unreliable and why. Start here; Ctrl-C ends it.
demo: .venv-demo/ready
	.venv-demo/bin/python -m otel_reliability.demo

#: Everything that must hold: lint, import rules, types, and all tests with doctests and coverage, at the newest SDK and the oldest.
test: lint types .venv-lowest/ready
	$(BIN)/python tests/real/install.py $(if $(CI),,--optional)
	$(BIN)/python -m pytest -n $(WORKERS) --cov --cov-report=term
	.venv-lowest/bin/python -m pytest -n $(WORKERS) -m sdk

#: Lint, format and import rules.
lint: .venv/ready
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/lint-imports --no-logo

#: Strict types, over the package and its tests.
types: .venv/ready
	$(BIN)/pyright

#: All tests on Python 3.11, 3.12 and 3.13.
matrix: $(foreach version,3.11 3.12 3.13,matrix-$(version))

matrix-%:
	for python in $$HOME/.pyenv/versions/$*.*/bin/python python$*; do $$python -c 'import venv' 2>/dev/null && break; done; \
	$(MAKE) --no-print-directory PYTHON=$$python .venv-$*/ready
	.venv-$*/bin/python -m pytest -n $(WORKERS)

#: Write the pages that are made from the code (a test fails when they have fallen behind).
docs: .venv/ready
	$(BIN)/python docs/generate.py
	$(BIN)/python dashboards/generate.py

#: Measure on public recordings what the numbers are worth, and write docs/validation.md (a quarter of an hour).
validate: .venv/ready
	$(BIN)/python -m tests.validation.page

#: Measure speed and memory beside what the same work costs others, and write benchmarks/results.json; fails over a limit.
bench: .venv/ready
	$(BIN)/python -m benchmarks

#: The long trials of the service and of workers on Kafka, an hour of load among them, written down in docs; then all long tests, and the property tests with many more examples.
soak: .venv/ready
	$(BIN)/python tests/real/install.py --optional
	$(BIN)/python -m tests.service.soak
	$(BIN)/python -m tests.kafka.soak
	$(BIN)/python -m benchmarks.over_time 10000000 60
	$(BIN)/python -m pytest -n $(WORKERS) --hypothesis-profile=soak -m "not soak" tests/service tests/kafka
	$(BIN)/python -m pytest -n $(WORKERS) --hypothesis-profile=soak --ignore=tests/service --ignore=tests/kafka

#: Lock the newest versions of everything, the oldest that pyproject.toml allows, and the image's part of them.
lock: .venv/ready
	$(BIN)/uv pip compile $(LOCKED) --upgrade pyproject.toml -o requirements.lock
	$(BIN)/uv pip compile $(LOCKED) --upgrade --resolution lowest-direct pyproject.toml -o requirements-lowest.lock
	$(BIN)/uv pip compile $(IMAGE) --extra service pyproject.toml -o docker/requirements.lock
	$(BIN)/uv pip compile $(IMAGE) --extra kafka pyproject.toml -o docker/requirements.kafka.lock
	printf '%s\n' hatchling uv | $(BIN)/uv pip compile $(IMAGE) - -o docker/build.lock
	for example in examples/*/requirements.in; do \
		$(BIN)/uv pip compile $(EXAMPLE) pyproject.toml $$example -o $${example%.in}.txt; \
	done
	! grep -En '[a-z]+://' requirements*.lock docker/*.lock examples/*/requirements.txt

#: Build the package and the native extension into dist/: source archives, and wheels for every Python from 3.11 to 3.14 that is here.
dist: .venv/ready
	rm -rf dist
	$(BIN)/uv build --quiet --no-build-isolation --python $(BIN)/python --out-dir dist .
	$(BIN)/uv build --quiet --no-build-isolation --python $(BIN)/python --out-dir dist --sdist native
	for version in 3.11 3.12 3.13 3.14; do \
		for python in $$HOME/.pyenv/versions/$$version.*/bin/python python$$version; do \
			$$python -c 'import venv' 2>/dev/null || continue; \
			$(BIN)/uv build --quiet --build-constraint requirements.lock --python $$python --out-dir dist --wheel native; break; \
		done; \
	done

#: Remove what the other verbs made.
clean:
	rm -rf .venv .venv-* .pytest_cache .ruff_cache .import_linter_cache .hypothesis .coverage* htmlcov dist build

# An environment begins as a venv with uv as it is locked.
define venv
	$(if $(PYTHON),,$(error No Python from 3.11 to 3.14 with venv is on the path; on Debian: apt-get install python3-venv))
	$(PYTHON) -m venv $(@D)
	sed -n '/^uv==/,/[^\\]$$/p' $< > $(@D)/uv.txt
	$(@D)/bin/python -m pip install --quiet --require-hashes --requirement $(@D)/uv.txt
endef
UV = VIRTUAL_ENV=$(CURDIR)/$(@D) $(@D)/bin/uv --quiet pip

NATIVE := native/otel_reliability_native.pyx native/hashing.pxi native/pyproject.toml

# For tests: exactly what is locked, the package linked into it, and the native extension where there is a C compiler.
define environment
	$(venv)
	$(UV) sync --require-hashes $<
	$(UV) install --no-deps --no-build-isolation --editable .
	$(UV) install --no-deps --no-build-isolation ./native \
		|| echo 'The native extension (native/) is not installed: it needs a C compiler. All else works; its tests are skipped.'
	touch $@
endef

.venv/ready .venv-3.11/ready .venv-3.12/ready .venv-3.13/ready: requirements.lock pyproject.toml $(NATIVE)
	$(environment)

.venv-lowest/ready: requirements-lowest.lock pyproject.toml $(NATIVE)
	$(environment)

# For the demo: what the service needs and no more, as locked.
.venv-demo/ready: requirements.lock pyproject.toml
	$(venv)
	$(UV) install --constraint $< --build-constraint $< --editable '.[service]'
	touch $@
