# Two commands do everything on a fresh machine: `make demo` and `make test`.
SHELL := /bin/bash
PYTHON ?= python3
SUDO := $(if $(filter 0,$(shell id -u)),,sudo)
BIN := .venv/bin
# More than cores, since tests wait for programs and clocks; each worker collects all tests, 2 s.
WORKERS = $(shell expr $$(nproc) + 1)
# Tests start a thousand Pythons: without bytecode each compiles the same modules again, 0.2 s.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup demo demo-down outputs check unit test test-without-fleet test-on-fleet test-faults test-fuzz test-real-engine test-bench clients \
	bench bench-tools bench-fetching bench-switching bench-starting \
	bench-networks bench-gateways bench-commands bench-report picture pins wheel release-check gpu gpu-pack

help: ## show what there is
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

setup: .venv/.ready ## install what is missing: system packages and .venv
.venv/.ready: constraints.txt constraints-dev.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make PYTHON=python3.12 ...")'
	$(SUDO) $(PYTHON) -m lab packages
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes \
		-r constraints.txt -r constraints-dev.txt
	printf '#!/bin/sh\nexec "$$(dirname "$$0")/python" -m sparkwright "$$@"\n' > $(BIN)/sparkwright
	chmod +x $(BIN)/sparkwright
	touch $@

wheel: setup ## build what `pip install` takes, and its SBOM (CycloneDX): dist/
	$(BIN)/python -m hatchling build
	.ci/sbom.sh $(BIN)/cyclonedx-py dist/sparkwright-$$($(BIN)/python -m hatchling version)-py3-none-any.cdx.json

release-check: wheel ## judge dist/ as an index would, and install it in bare trees of Debian 12 and 13
	$(SUDO) $(PYTHON) -m lab packages
	$(SUDO) env SPARKWRIGHT_DIST=dist $(BIN)/python -m pytest -m "not real_engine" \
		--ignore=tests/install/test_without_extras.py tests/install

pins: ## pin all dependencies anew, with hashes; UPGRADE=1 takes the newest
	PYTHON=$(PYTHON) .ci/pins.sh

demo: setup ## bring up the virtual fleet and run the main job on it
	$(BIN)/python -m lab.demo

outputs: demo ## record the outputs that the pages show, on the virtual fleet
	$(BIN)/python -m docs.record
	$(BIN)/python -m docs.generate

demo-down: ## remove every trace of the virtual fleet
	$(SUDO) $(PYTHON) -m lab down

check: setup ## format, lint, directions of imports, the budget of code, prose, types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports
	$(BIN)/python .ci/budget.py
	$(BIN)/codespell
	$(BIN)/python .ci/prose.py
	$(BIN)/mypy

unit: setup ## what needs neither a host nor root, under a minute
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal tests/unit tests/operations

# Both halves at once: hosts mostly wait for each other, and what needs no host takes only the CPU
# that they leave. Its output comes when it ends, so that the lines of two programs never mix.
test: setup ## everything: format, lint, types, unit tests, the page in a browser, and end to end on the virtual fleet
	$(SUDO) $(PYTHON) -m lab packages --browser
	@$(MAKE) --no-print-directory -j2 test-without-fleet test-on-fleet

test-without-fleet: setup ## the half of `make test` that needs no virtual fleet, at the lowest priority
	@log=$$(mktemp) && { nice -n 19 $(MAKE) --no-print-directory check && \
		$(SUDO) nice -n 19 $(BIN)/python -m pytest -n auto --dist loadgroup \
		-m "not fleet and not faults and not real_engine and not bench"; } >"$$log" 2>&1; \
		result=$$?; cat "$$log"; rm "$$log"; exit $$result

test-on-fleet: setup ## the half of `make test` that needs it
	$(SUDO) $(BIN)/python -m pytest -m "fleet and not faults and not real_engine"

test-faults: setup ## faults one by one, sharing, proxies and taking over, on the virtual fleet
	$(SUDO) $(BIN)/python -m pytest -m faults

test-fuzz: setup ## 6,000 wrong inputs: inventories, group_data, catalogs, locks, command lines
	$(BIN)/python -m pytest -n auto --hypothesis-profile=fuzz tests/fuzz

# OPEN_WEBUI names the Python of a virtual environment with open-webui, which takes 3 GB.
clients: .venv-clients/.ready ## try client files and the address with their clients (550 MB more); OPEN_WEBUI=PYTHON
	.venv-clients/bin/python -m pytest -rs tests/unit/extras/endpoints/test_endpoint_clients.py tests/host/models/test_clients.py
.venv-clients/.ready: constraints.txt constraints-dev.txt constraints-clients.txt
	$(PYTHON) -m venv .venv-clients
	.venv-clients/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes \
		-r constraints.txt -r constraints-dev.txt -r constraints-clients.txt
	touch $@

test-real-engine: setup bench-tools ## the real vLLM, on this machine's CPU and on a virtual host: 2 GB the first time
	$(SUDO) $(BIN)/python -m pytest -m real_engine

bench-tools: .venv-bench/.ready ## install the load generator of `sparkwright bench` (1.2 GB)
.venv-bench/.ready: constraints-bench.txt
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14) and "The load generator needs Python 3.11 to 3.13: make bench-tools PYTHON=python3.12 ...")'
	rm -rf .venv-bench
	$(PYTHON) -m venv .venv-bench
	.venv-bench/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r constraints-bench.txt
	touch $@

gpu-pack: setup ## pack what a GPU machine without network needs, in parts: .gpu/parts
	$(SUDO) $(BIN)/python -m lab.gpu.pack

gpu: ## bring up the lab of real GPUs on this machine, from the parts of `make gpu-pack`
	$(SUDO) lab/gpu/start.sh all

test-bench: setup bench-tools ## the real load generator against a local fake for vLLM, a minute
	$(BIN)/python -m pytest -m bench

bench: setup ## measure against Ansible, stock pyinfra and another checkout (BEFORE=DIR) on the virtual fleet
	$(SUDO) $(BIN)/python -m benchmarks.converged $(if $(BEFORE),--before '$(BEFORE)')
	$(SUDO) $(BIN)/python -m benchmarks.many_hosts $(if $(BEFORE),--before '$(BEFORE)')

bench-fetching: setup ## measure fetching: against the line, aria2c, and for 4 and 8 hosts
	$(SUDO) $(BIN)/python -m benchmarks.fetching

bench-switching: setup ## measure how long a host does not serve while it is switched
	$(SUDO) $(BIN)/python -m benchmarks.switching

bench-starting: setup ## measure the real engine's second start, on the CPU, beside `docker restart`
	$(SUDO) $(BIN)/python -m benchmarks.starting

bench-networks: setup ## measure what a container's own network costs a request
	$(SUDO) $(BIN)/python -m benchmarks.networks

bench-gateways: setup ## measure what choosing a service by `model` costs a request; GATEWAYS="NAME=PROGRAM ..." adds others than HAProxy
	$(BIN)/python -m benchmarks.gateways $(GATEWAYS)

bench-commands: setup ## measure every command that needs no host; FLEET=INVENTORY those that look at hosts, too
	$(BIN)/python -m benchmarks.commands --write $(if $(FLEET),--fleet '$(FLEET)')

bench-report: setup ## measure the report's page of 100 hosts
	$(BIN)/python -m benchmarks.page_of_hosts

picture: setup ## take the pictures of the dashboard and the report again, in chromium
	$(SUDO) $(PYTHON) -m lab packages --browser
	$(BIN)/python -m tests.browser.picture docs
