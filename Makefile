# Two commands do everything on a fresh machine: `make demo` and `make test`.
SHELL := /bin/bash
PYTHON ?= python3
SUDO := $(if $(filter 0,$(shell id -u)),,sudo)
BIN := .venv/bin

.DEFAULT_GOAL := help
.PHONY: help setup demo demo-down check unit test test-faults bench bench-fetching bench-switching

help: ## show what there is
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

setup: .venv/.ready ## install what is missing: system packages and .venv
.venv/.ready: constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make PYTHON=python3.12 ...")'
	$(SUDO) $(PYTHON) -m lab packages
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r constraints.txt
	printf '#!/bin/sh\nexec "$$(dirname "$$0")/python" -m sparkwright "$$@"\n' > $(BIN)/sparkwright
	chmod +x $(BIN)/sparkwright
	touch $@

demo: setup ## bring up the virtual fleet and run the main job on it
	$(SUDO) $(PYTHON) -m lab up
	$(BIN)/python -m lab.demo

demo-down: ## remove every trace of the virtual fleet
	$(SUDO) $(PYTHON) -m lab down

check: setup ## format, lint and types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

unit: setup ## the unit tests, under a minute
	$(BIN)/python -m pytest -n auto tests/unit

test: check ## everything: format, lint, types, unit tests, and end to end on the virtual fleet
	$(SUDO) $(BIN)/python -m pytest -n auto -m "not fleet"
	$(SUDO) $(BIN)/python -m pytest -m "fleet and not faults"

test-faults: setup ## faults of a fetch and of a switch one by one, on the virtual fleet
	$(SUDO) $(BIN)/python -m pytest -m faults

bench: setup ## measure against Ansible and stock pyinfra on the virtual fleet
	$(SUDO) $(PYTHON) -m lab up
	$(SUDO) $(BIN)/python -m benchmarks.converged

bench-fetching: setup ## measure fetching: against the line, aria2c, and for 4 and 8 hosts
	$(SUDO) $(BIN)/python -m benchmarks.fetching

bench-switching: setup ## measure how long a host does not serve while it is switched
	$(SUDO) $(BIN)/python -m benchmarks.switching
