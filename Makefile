# Every verb builds its own environment from a lock file and needs only make and a Python from 3.11 to 3.13.
# An environment is rebuilt only when its lock changes.

.DELETE_ON_ERROR:
.DEFAULT_GOAL := help
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c

# The first Python on the path that is new enough and can create environments; `make test PYTHON=python3.13` uses another.
PYTHON ?= $(shell for python in python3 python3.13 python3.12 python3.11; do \
	$$python -c 'import ensurepip, sys, venv; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' 2>/dev/null \
	&& { echo $$python; break; }; done)
# Number of concurrent test processes.
WORKERS ?= 2
# What `make dist` builds wheels of the native extension for, and where it puts everything.
VERSIONS ?= 3.11 3.12 3.13
DIST ?= dist

export PIP_DISABLE_PIP_VERSION_CHECK := 1
export UV_PYTHON_DOWNLOADS := never

BIN := .venv/bin
LOCKED := --all-extras --generate-hashes --no-emit-index-url --no-header --quiet --universal --python-version 3.11
# What tests need: what users can install, and what only developers have.
TESTED := $(LOCKED) --group dev
# The image's locks: parts of requirements.lock.
IMAGE := --constraint requirements.lock $(filter-out --all-extras,$(LOCKED)) --no-annotate
# What an example needs of us beside its framework.
EXAMPLE := $(filter-out --all-extras,$(LOCKED)) --upgrade --extra cli --extra prices

.PHONY: help demo test tests test-real coverage lint types components matrix explore docs site validate bench soak lock dist clean

#: Print this list.
help:
	@awk '/^#: /{text = text substr($$0, 3) " "; next} /^[a-z-]+:/ && text {sub(/:.*/, ""); printf "  make %-11s%s\n", $$0, text} {text = ""}' Makefile

#: Start a small fleet of agents and the service that scores them. Start here; Ctrl-C stops it.
demo: .venv-demo/ready
	.venv-demo/bin/otel-reliability demo

# Types are checked beside the tests: one thread, for which the waiting of tests has room.
#: Run lint, type checks and all tests that need only Python packages (about 9 minutes on two slow cores).
test: lint
	@$(MAKE) --no-print-directory --jobs=2 --keep-going types tests || { \
	echo "Failed: types (look for ' - error:' above) or tests (FAILED)." >&2; exit 1; }

tests: .venv/ready
	$(BIN)/python -m pytest -n $(WORKERS) -m "not real"

#: Run the tests that need a real Collector, Prometheus, Chromium, Kafka, Helm or trace store, then the SDK's tests with the oldest supported SDK.
test-real: .venv/ready .venv-lowest/ready components
	$(BIN)/python -m pytest -n $(WORKERS) -m real
	.venv-lowest/bin/python -m pytest -n $(WORKERS) -m "sdk and not real"

#: Run the tests of `make test` with coverage, in twice the time; fails below the limit in pyproject.toml (nightly).
coverage: .venv/ready
	$(BIN)/python -m pytest -n $(WORKERS) -m "not real" --cov --cov-report=term

#: Check lint, format and import rules.
lint: .venv/ready
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/lint-imports --no-logo

#: Check types (strict), in the package and its tests.
types: .venv/ready
	$(BIN)/pyright

#: Build the Collector, Helm and Jaeger and fetch Prometheus, Chromium, Kafka, MLflow and Phoenix for `make test-real` (some minutes, once).
components:
	$(python)
	$(PYTHON) tests/real/install.py $(if $(CI),,--optional)

#: Run the tests of `make test` on Python 3.11, 3.12 and 3.13.
matrix: $(foreach version,3.11 3.12 3.13,matrix-$(version))

matrix-%:
	for python in $$HOME/.pyenv/versions/$*.*/bin/python python$*; do $$python -c 'import venv' 2>/dev/null && break; done; \
	$(MAKE) --no-print-directory PYTHON=$$python .venv-$*/ready
	.venv-$*/bin/python -m pytest -n $(WORKERS) -m "not real"

#: Write the pages that are generated from the code (a test fails when one is outdated).
docs: .venv/ready
	$(BIN)/python docs/generate.py
	$(BIN)/python dashboards/generate.py

#: Run the tests of `make test` on other examples than everyone's, three times as many (nightly).
explore: .venv/ready
	$(BIN)/python -m pytest -n $(WORKERS) -m "not real" --hypothesis-profile=explore

#: Build the documentation site into site/; fails on a broken link.
site: .venv/ready
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet --site-dir site

#: Validate the metrics on public recordings and write docs/explanation/validation.md (15 to 30 minutes).
validate: .venv/ready
	$(BIN)/python -m tests.validation.page

#: Measure speed and memory on recorded traffic and write benchmarks/results.json; fails over a limit.
bench: .venv/ready components
	$(BIN)/python -m benchmarks

#: Run the soak tests: an hour of load, repeated kills, and the property tests with many more examples; writes the soak pages in docs.
soak: .venv/ready components
	$(BIN)/python -m tests.service.soak
	$(BIN)/python -m tests.kafka.soak
	$(BIN)/python -m benchmarks.over_time 10000000 60
	$(BIN)/python -m benchmarks.bench_report 1000
	$(BIN)/python -m pytest -n $(WORKERS) --hypothesis-profile=soak -m "not soak" tests/service tests/kafka
	$(BIN)/python -m pytest -n $(WORKERS) --hypothesis-profile=soak --ignore=tests/service --ignore=tests/kafka

#: Write the lock files: newest versions, oldest versions that pyproject.toml allows, and those of the image and the examples.
lock: .venv/ready
	$(BIN)/uv pip compile $(TESTED) --upgrade pyproject.toml -o requirements.lock
	$(BIN)/uv pip compile $(TESTED) --upgrade --resolution lowest-direct pyproject.toml -o requirements-lowest.lock
	$(BIN)/uv pip compile $(IMAGE) --extra service pyproject.toml -o docker/requirements.lock
	$(BIN)/uv pip compile $(IMAGE) --extra kafka pyproject.toml -o docker/requirements.kafka.lock
	printf '%s\n' hatchling uv | $(BIN)/uv pip compile $(IMAGE) - -o docker/build.lock
	for example in examples/*/requirements.in; do \
		$(BIN)/uv pip compile $(EXAMPLE) pyproject.toml $$example -o $${example%.in}.txt; \
	done
	! grep -En '[a-z]+://' requirements*.lock docker/*.lock examples/*/requirements.txt

#: Build the package and the native extension into dist/: source archives, and wheels for every Python of VERSIONS on this machine.
dist: .venv/ready
	rm -rf $(DIST) build/wheels
	$(BIN)/uv build --quiet --no-build-isolation --python $(BIN)/python --out-dir $(DIST) .
	$(BIN)/uv build --quiet --no-build-isolation --python $(BIN)/python --out-dir $(DIST) --sdist native
	for version in $(VERSIONS); do \
		for python in $$HOME/.pyenv/versions/$$version.*/bin/python python$$version; do \
			$$python -c 'import venv' 2>/dev/null || continue; \
			$(BIN)/uv build --quiet --build-constraint requirements.lock --python $$python --out-dir build/wheels --wheel native; break; \
		done; \
	done
	for wheel in build/wheels/*.whl; do \
		if [ -x $(BIN)/auditwheel ]; \
		then PATH="$(abspath $(BIN)):$$PATH" $(BIN)/auditwheel repair --wheel-dir $(DIST) $$wheel; \
		else cp $$wheel $(DIST); fi; \
	done

#: Remove environments, caches and build results.
clean:
	rm -rf .venv .venv-* .pytest_cache .ruff_cache .import_linter_cache .hypothesis .coverage* htmlcov dist site build native/build native/*.c native/*.egg-info

# A recipe that needs Python fails here with the remedy where there is none.
python = $(if $(PYTHON),,$(error No Python from 3.11 to 3.13 with venv is on the path; on Debian: apt-get install python3-venv))

# An environment begins as a venv with the locked version of uv.
define venv
	$(python)
	$(PYTHON) -m venv $(@D)
	sed -n '/^uv==/,/[^\\]$$/p' $< > $(@D)/uv.txt
	$(@D)/bin/python -m pip install --quiet --require-hashes --requirement $(@D)/uv.txt
endef
UV = VIRTUAL_ENV=$(CURDIR)/$(@D) $(@D)/bin/uv --quiet pip

NATIVE := native/otel_reliability_native.pyx native/hashing.pxi native/pyproject.toml

# For tests: exactly the locked packages, the package itself (editable), and the native extension where there is a C compiler.
define environment
	$(venv)
	$(UV) sync --require-hashes $<
	$(UV) install --no-deps --no-build-isolation --editable .
	$(UV) install --no-deps --no-build-isolation ./native \
		|| echo 'The native extension is not installed: it needs a C compiler. Its tests are skipped.'
	touch $@
endef

.venv/ready .venv-3.11/ready .venv-3.12/ready .venv-3.13/ready: requirements.lock pyproject.toml $(NATIVE)
	$(environment)

.venv-lowest/ready: requirements-lowest.lock pyproject.toml $(NATIVE)
	$(environment)

# For the demo: the locked packages that the service needs.
.venv-demo/ready: requirements.lock pyproject.toml
	$(venv)
	$(UV) install --constraint $< --build-constraint $< --editable '.[service]'
	touch $@
