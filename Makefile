# `make run` starts everything, `make test` runs the suite; both share `make setup`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# What runs the suite for us, if anything.
TRY :=

.PHONY: run start test test-slow test-postgres test-agents test-repositories chaos chaos-planted bench setup setup-dev lock axe lint check clean

run: setup
	@exec $(BIN)/python manage.py run_orchestrator --demo

# The first hour with a project of your own: asks, and may be run again.
start: setup
	@$(BIN)/python manage.py start

# Bytecode is kept whatever the environment says: hundreds of processes begin with it.
PYTEST = PYTHONDONTWRITEBYTECODE= $(TRY) $(BIN)/python -m pytest
WORKERS = --numprocesses 3 --dist worksteal

test: setup-dev
	$(PYTEST) $(WORKERS) -m "not slow and not browser"

# Whole installations with real processes, and pages in a real browser: one more, because they also wait.
test-slow: setup-dev
	$(PYTEST) --numprocesses 4 --dist loadfile --no-loadscope-reorder -m "slow or browser"

# Whatever uses the database, once more on PostgreSQL.
test-postgres: setup-dev
	@test -n "$$TEST_POSTGRES_URL" || { echo "TEST_POSTGRES_URL names no PostgreSQL server."; exit 1; }
	DATABASE_URL="$$TEST_POSTGRES_URL" $(PYTEST) $(WORKERS) --database-only -m "not slow and not browser"

# The real agent commands, from the package registry, against a model that only pretends. Not part of `test`:
# they are large. Whoever is not root takes their own network with a user namespace, where that is allowed.
test-agents: setup-dev
	@$(BIN)/python -m tests.real_agents.install
	$$(test "$$(id -u)" = 0 || ! unshare --map-root-user --net true 2>/dev/null || echo unshare --map-root-user) \
	$(BIN)/python -m pytest --numprocesses 2 tests/real_agents/test_stub.py tests/real_agents/real_*.py

# Published source packages of many ecosystems as strangers' repositories. Not part of `test`: it needs the package
# registries and about an hour. Toolchains are installed by apt-get where root may.
test-repositories: setup-dev
	@$(BIN)/python -m tests.real_repositories.install
	$(BIN)/python -m pytest -n0 tests/real_repositories/real_landings.py

# Faults in the middle of real work, on SQLite and on a PostgreSQL and a Redis of its own, where these are installed.
# SEED repeats the schedule of an earlier run. docs/chaos.md has the table.
chaos: setup-dev
	@$(BIN)/python -m bench.chaos $(if $(SEED),--seed $(SEED))

# The same with bugs planted into a copy of the tree, one at a time: is each of them caught?
chaos-planted: setup-dev
	@$(BIN)/python -m bench.chaos --planted

# What the program costs, within ten minutes, on a machine that does nothing else. docs/performance.md explains it.
bench: setup-dev
	@$(BIN)/python -m bench $(if $(AGAINST),--against $(AGAINST))

# The key lies in the data folder, unless the environment has one.
setup: $(VENV)/.installed
	@umask 077 && home="$${STEROIDS_HOME:-var}" && mkdir -p "$$home" && \
	{ test -n "$$SECRET_KEY$$SECRET_KEY_FILE" || test -s "$$home/secret-key" || \
	$(BIN)/python -c "import secrets; print(secrets.token_urlsafe(50))" > "$$home/secret-key"; }
	@$(BIN)/python manage.py migrate --verbosity 0

setup-dev: setup $(VENV)/.installed-dev

$(VENV)/.installed: requirements.txt
	@sh .ci/check-tools "$(PYTHON)"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "Installing what the program needs into $(VENV) (once) ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --requirement requirements.txt
	@touch $@

$(VENV)/.installed-dev: requirements-dev.txt $(VENV)/.installed
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --requirement requirements-dev.txt
	@touch $@

# What is installed: each package at one version, with the hashes of its files, for every platform and Python. Written
# again after a change of a requirements*.in; with UPGRADE=1 also what the packages ask for is taken at its newest.
LOCK = $(VENV)/lock/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-annotate \
	--no-emit-index-url --custom-compile-command "make lock" $(if $(UPGRADE),--upgrade)

lock:
	@test -x $(VENV)/lock/bin/uv || { $(PYTHON) -m venv $(VENV)/lock && $(VENV)/lock/bin/pip install --quiet uv==0.13.9; }
	@$(LOCK) requirements.in --output-file requirements.txt
	@$(LOCK) requirements-dev.in --constraint requirements.txt --output-file requirements-dev.txt

# What the tests of accessibility ask; without npm they are skipped.
axe: var/axe/node_modules/axe-core/axe.min.js

var/axe/node_modules/axe-core/axe.min.js:
	@mkdir -p -m 700 var
	@npm install --silent --no-save --no-audit --no-fund --ignore-scripts --prefix var/axe axe-core@4.14.1

lint: setup-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

check: lint test

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache
