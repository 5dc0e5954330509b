# Every target sees to its own set-up; what is already in place is not done again.

.DEFAULT_GOAL := help
.PHONY: help setup test test-all test-long test-live test-real-data lint format demo bench bench-live lock clean

BIN := .venv/bin
# What `make test-all` adds, by marker.
LONG := bench or cluster or fuzz or live or seeds or upgrade
# Files of tests side by side, those that share a Spark in one process (tests/conftest.py).
SIDE_BY_SIDE := -n auto --dist loadgroup --no-loadscope-reorder

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

setup: ## .venv with the locked packages and this project, and a Java for Spark
	@sh scripts/setup.sh

test: ## what a change has to pass; PYTEST_ARGS="-k ring" goes to pytest, PYTHON=python3.13 makes .venv with that one
	@sh scripts/setup.sh --need-java --test-tools
	@$(MAKE) --no-print-directory --jobs=2 --output-sync types style archive
	$(BIN)/pytest $(SIDE_BY_SIDE) $(PYTEST_ARGS)

test-all: test ## and the long ones: benchmarks, a Spark cluster, fuzzing, swarms of live nodes, more seeds, an upgrade
	@$(MAKE) --no-print-directory test-long

test-long: ## only the long ones; LONG="fuzz or seeds" runs some of them
	@sh scripts/setup.sh --need-java --test-tools
	$(BIN)/pytest $(SIDE_BY_SIDE) -m "$(LONG)" $(PYTEST_ARGS)

test-live: ## only the swarms of live nodes: fifty per system, kill -9, ten thousand connections; minutes
	@sh scripts/setup.sh --java-optional
	$(BIN)/pytest -m live tests/live $(PYTEST_ARGS)

test-real-data: ## exact counts of the real data sets, which TOPICWEAVE_DATASETS names
	@sh scripts/setup.sh
	$(BIN)/pytest -m real_data $(PYTEST_ARGS)

lint: ## the checks without the tests
	@sh scripts/setup.sh --java-optional
	@$(MAKE) --no-print-directory checks

.PHONY: checks types style archive
checks: # mypy beside the others
	@$(MAKE) --no-print-directory --jobs=2 --output-sync types style
types:
	$(BIN)/mypy
style:
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/lint-imports --no-logo

archive: # of Java's classes, so that tests start Spark sooner
	@$(BIN)/python -m tests.java_archive

format: ## lay out the code and mend what can be mended
	@sh scripts/setup.sh --java-optional
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

demo: ## a first look: results in out/demo
	@sh scripts/setup.sh --java-optional
	$(BIN)/topicweave demo

bench: ## the benchmarks; BENCH_ARGS goes to them
	@sh scripts/setup.sh --java-optional
	$(BIN)/python -m benchmarks $(BENCH_ARGS)

bench-live: ## live nodes beside other meshes and brokers, without a network but loopback; BENCH_ARGS goes to it
	@sh scripts/setup.sh --java-optional
	@cmp -s requirements/bench-live.txt out/bench-live/lock || { rm -rf out/bench-live && \
	  $(BIN)/pip install --quiet --require-hashes --no-deps --target out/bench-live -r requirements/bench-live.txt && \
	  cp requirements/bench-live.txt out/bench-live/lock; }
	@isolate=; if unshare -rn true 2>/dev/null; then isolate='unshare -rn'; fi; \
	  PYTHONPATH=out/bench-live $$isolate sh -c '{ [ -z "$$0" ] || ip link set lo up; } && exec $(BIN)/python -m benchmarks.live $(BENCH_ARGS)' "$$isolate"

lock: ## write requirements/ anew from pyproject.toml; UPGRADE=1 takes the newest versions
	@sh scripts/lock.sh $(if $(UPGRADE),--upgrade)

clean: ## remove what the targets above made
	rm -rf .venv out build dist src/*.egg-info .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find src tests scripts benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +
