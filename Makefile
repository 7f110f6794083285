# Every command of the house. `make` alone lists them; each one makes .venv first if it must.
SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.NOTPARALLEL:
.ONESHELL:
.PHONY: help demo test slow check lint types contracts format fixtures lock cases soak bench clean

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/installed
PIP := $(BIN)/python -m pip --disable-pip-version-check --no-input
SUPPORTED := import sys; sys.exit(not (3, 11) <= sys.version_info[:2])
PYTEST := $(BIN)/python -m pytest -q
WORKERS ?= 2
SHARED ?= ../shared
# The demo and the tests are the same for everyone: no key, no setting of ours from outside.
CLEAN_ENV := for name in $$(compgen -e | grep -E '^(ANTHROPIC|TIEOUT|XDG)_' || true); \
	do unset "$$name"; done

help: ## list the commands
	@grep -E '^[a-z]+:.*## ' Makefile | sed -E 's/^([a-z]+):.*## /\1\t/' | expand -t 12

# A Python that was named is the one that is meant: another in its place would go unnoticed.
ifneq ($(PYTHON),)
ifneq ($(shell if "$(PYTHON)" -c '$(SUPPORTED)' >/dev/null 2>&1; then echo fine; fi),fine)
$(error PYTHON=$(PYTHON) is not a Python 3.11 or newer: name one, or leave PYTHON out)
endif
endif

$(STAMP): requirements-dev.txt pyproject.toml
	@if ! $(BIN)/python -c '$(SUPPORTED)' 2>/dev/null || ! $(PIP) --version >/dev/null 2>&1; then
		python=''
		for name in $(or $(PYTHON),python3.11 python3.12 python3.13 python3.14 python3); do
			if "$$name" -c '$(SUPPORTED)' >/dev/null 2>&1; then python=$$name; break; fi
		done
		if [ -z "$$python" ]; then
			echo 'make: Python 3.11 or newer is needed, and none was found on PATH.' >&2
			echo 'Install it, or name it: make PYTHON=/path/to/python3.11' >&2
			exit 5
		fi
		echo "making $(VENV) with $$($$python --version) ($$python)"
		rm -rf $(VENV)
		if ! $$python -m venv $(VENV); then
			rm -rf $(VENV)
			echo "make: $$python cannot make a virtual environment; see the lines above." >&2
			exit 5
		fi
	fi
	echo 'installing from the hashed lock'
	export PIP_ROOT_USER_ACTION=ignore
	$(PIP) install --quiet --require-hashes -r requirements-dev.txt
	$(PIP) install --quiet --no-build-isolation --no-deps -e .
	touch $(STAMP)

demo: $(STAMP) ## the main job on fixtures/close, then its replay and its check
	@$(CLEAN_ENV)
	export TIEOUT_CACHE=$(CURDIR)/.demo/cache XDG_CONFIG_HOME=$(CURDIR)/.demo/config
	rm -rf .demo && mkdir .demo
	cp -R fixtures/close .demo/close && rm -rf .demo/close/.tieout
	say() { printf '\n$$ %s\n' "$$*"; "$$@"; }
	tieout=$(BIN)/tieout
	say $$tieout init .demo/close
	say $$tieout snapshot -w .demo/close
	say $$tieout run .demo/close/questions.toml -w .demo/close
	say $$tieout replay latest -w .demo/close
	say $$tieout verify -w .demo/close
	printf '\nFrom here on (the workspace is .demo/close):\n'
	printf '  %s -w .demo/close\n' \
		"$$tieout show find-the-cent/difference" \
		"$$tieout show latest/find-the-cent" \
		"$$tieout log" \
		"$$tieout doctor" \
		"$$tieout ask 'Does it tie out?' --source bank --source gl --plan .demo/close/plans/bank-1010.json"

test: $(STAMP) ## the fast tests
	@$(PYTEST) -n $(WORKERS) --dist loadfile

slow: $(STAMP) ## the slow tests, as CI runs them
	@$(PYTEST) -n $(WORKERS) --slow -m slow $(SLOW_ARGS)

soak: $(STAMP) ## slow and soak tests at full counts
	@$(PYTEST) --slow --soak -m 'slow or soak'

check: lint types contracts fixtures demo test $(if $(filter true,$(CI)),slow) ## all of it; CI=true: slow too

lint: $(STAMP) ## ruff: rules and form
	@$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(STAMP) ## mypy strict, then pyright
	@$(BIN)/mypy
	$(BIN)/pyright

contracts: $(STAMP) ## who may import whom
	@$(BIN)/lint-imports --no-logo

format: $(STAMP) ## write the form that lint wants
	@$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

fixtures: $(STAMP) ## make the fixtures again; fails when they differ from what is committed
	@$(BIN)/python fixtures/make.py
	found=$$(git status --porcelain -- fixtures)
	if [ -n "$$found" ]; then
		git --no-pager diff --stat -- fixtures
		printf 'make: the fixtures are not what fixtures/make.py writes, or not committed:\n%s\n' \
			"$$found" >&2
		exit 1
	fi

cases: $(STAMP) ## the cases in SHARED=DIR: passed, failed, waiting
	@$(BIN)/python tests/cases/run.py --shared $(SHARED)

bench: $(STAMP) ## speed beside bare DuckDB, of the sandbox and of row roots; ARGS=--save keeps the figures
	@for name in executor step sandbox rows; do $(BIN)/python bench/$$name.py $(ARGS); done

# No release younger than a week is taken: bad ones are mostly found and withdrawn by then.
# What is pinned stays unless it must move; UPGRADE=--upgrade moves all.
lock: ## write the locks anew
	@folder=$$(mktemp -d)
	trap 'rm -rf "$$folder"' EXIT
	python3 -m venv "$$folder/venv"
	"$$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check uv
	compile() {
		"$$folder/venv/bin/uv" pip compile pyproject.toml --extra all --universal \
			--python-version 3.11 --generate-hashes --no-annotate --no-header --quiet \
			--no-emit-index-url --no-emit-find-links \
			--exclude-newer "$$(date -u -d '7 days ago' +%F)" $(UPGRADE) "$$@"
	}
	compile -o requirements.txt
	compile --group dev -c requirements.txt -o requirements-dev.txt
	grep -q '^hatchling==' requirements-dev.txt
	"$$folder/venv/bin/uv" pip compile requirements-builds.in --universal --python-version 3.11 \
		--generate-hashes --no-annotate --no-header --quiet --no-emit-index-url \
		--no-emit-find-links --exclude-newer "$$(date -u -d '7 days ago' +%F)" $(UPGRADE) \
		-o requirements-builds.txt

clean: ## remove .venv and everything that was made
	@rm -rf $(VENV) .venv-builds .demo .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache dist build
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
