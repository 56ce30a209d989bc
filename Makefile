# The two commands that matter: `make run` and `make test`.

# The Python of the system, if it is new enough and has venv: systems compile it with optimisations,
# and the tests take a third longer with one that pyenv has compiled without them.
SYSTEM := /usr/bin/python3
PYTHON ?= $(shell $(SYSTEM) -c "import ensurepip, sys; sys.exit(sys.version_info < (3, 11))" 2>/dev/null \
  && echo $(SYSTEM) || echo python3)
PORT ?= 8000
VENV := .venv
PEERS := .venv-peers
STRATEGIES := .venv-strategies
NEWER := .venv-newer
OLDEST := .venv-oldest
DOCS := .venv-docs
NODE := .node
BIN := $(VENV)/bin
# The locks name all packages: pip need not read what each of them asks for, nor compare it.
INSTALL := install --quiet --no-compile --no-deps --require-hashes
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PIP_ROOT_USER_ACTION := ignore
# Without bytecode, each start of a process compiles Django and all other packages again.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: run install test whole rooms test-postgresql newer newer-environment oldest oldest-environment typescript typescript-environment conformance fuzz artifact load crash attack bench bench-peers strategies check format docs screenshots lock clean

run: install
	@echo "The command of this checkout, with the data of make run: $(BIN)/chatmemory --help"
	@$(BIN)/python manage.py run --port $(PORT)

install: $(VENV)/installed $(BIN)/chatmemory

# A process for each CPU, or WORKERS of them. A process that has no tests left takes some from another:
# each has a server that all of its tests share, so a module need not stay in one process (loadfile).
WORKERS ?= auto
SHARED := -n $(WORKERS) --dist worksteal
PYTEST := $(BIN)/pytest $(SHARED)

test: $(VENV)/installed-dev
	$(PYTEST) $(ARGS)

# Also the tests that are marked long.
whole: $(VENV)/installed-dev
	$(PYTEST) --long $(ARGS)

# Each room is removed, and what is left is tried. `make test` does so for rooms that have changed since.
rooms: $(VENV)/installed-dev
	CONFORMANCE=all $(PYTEST) tests/test_rooms.py $(ARGS)

# DATABASE_URL=postgresql://… make test-postgresql runs the tests that ask the database, but not those
# of rules and formats, of words and pages, of frameworks, of roles, of the schema, of growth (the CPU
# of this process), of fuzzing and of load: CI runs them on SQLite alone.
ONLY_ON_SQLITE := artifact browser explain formats fuzz golden growth inspector integrations lint load messages \
  memories mounted recall testing windows \
  api/test_generated_client.py api/test_schema.py test_command.py test_docs.py test_roles.py test_rooms.py \
  $(addprefix deploy/test_,container.py monitors.py nginx.py static_files.py unit.py) \
  $(addprefix rooms/,agents evidence_file lab lessons observability settings) \
  $(addprefix rooms/doctor/test_,diagnosis.py doctor.py every_rule.py) rooms/repairs/test_repairs.py \
  rooms/transfer/test_archives.py rooms/transfer/test_import.py \
  $(addprefix rooms/evidence/test_,evidence_card.py incident_card.py lab_compactions.py stored_evidence.py) \
  $(addprefix rooms/simulation/test_,compare.py compare_incidents.py simulate.py)

test-postgresql: $(VENV)/installed-dev
	@case "$$DATABASE_URL" in postgres*) ;; *) echo "DATABASE_URL must name a PostgreSQL"; exit 1;; esac
	$(PYTEST) -m database $(addprefix --ignore tests/,$(ONLY_ON_SQLITE)) \
	  --deselect tests/test_altered_rows.py::test_a_row_that_cannot_be_read_breaks_no_page_and_no_list $(ARGS)

# What differs between versions: on the newest Django and the newest Python that is here (that of
# pyenv, of Debian, or NEWER_PYTHON=/path/to/python3.13), and on the oldest version of each package
# that pyproject.toml allows. Of the formats, those whose tests ask a library; the API on the newest.
ON_OTHER_VERSIONS := tests/mounted tests/stores tests/test_public_names.py \
  $(addprefix tests/formats/test_,$(addsuffix .py,anthropic gemini langchain openai_chat openai_library \
    openai_responses pydantic_ai))
NEWER_PYTHON ?= $(firstword $(wildcard $(addsuffix /bin/python,$(lastword $(sort \
  $(wildcard $(HOME)/.pyenv/versions/3.1[2-9].*)))) /usr/bin/python3.13 /usr/bin/python3.12))

newer-environment:
	@if [ -n "$(NEWER_PYTHON)" ]; then $(MAKE) --no-print-directory $(NEWER)/installed; fi

# Without properties, which are about our own code.
newer:
	@if [ -z "$(NEWER_PYTHON)" ]; then \
	  echo "make newer is left out: there is no Python 3.12 or newer (pyenv install 3.13, or NEWER_PYTHON=…)"; \
	else $(MAKE) --no-print-directory $(NEWER)/installed && \
	  $(NEWER)/bin/pytest $(SHARED) -m "not hypothesis" --ignore tests/stores/test_twin.py --ignore tests/api/test_generated_client.py \
	    --ignore tests/api/test_typescript_client.py tests/api $(ON_OTHER_VERSIONS) $(ARGS); \
	fi

oldest-environment: $(OLDEST)/installed

# Without properties: they are about our own code, and take half of the time. Without extras: what the
# wheel asks for is the same on every version.
oldest: $(OLDEST)/installed
	$(OLDEST)/bin/pytest $(SHARED) -m "not hypothesis" --ignore tests/stores/test_twin.py $(ON_OTHER_VERSIONS) \
	  tests/formats/test_llama_index.py tests/integrations --ignore tests/integrations/test_extras.py $(ARGS)

# A client in TypeScript, made from the OpenAPI document; its packages need npm.
typescript-environment: $(NODE)/installed

typescript: $(VENV)/installed-dev $(NODE)/installed
	$(BIN)/pytest tests/api/test_typescript_client.py $(ARGS)

# Every sequence on every store, where `make test` replays a sample over HTTP and on PostgreSQL, and
# all sessions of agents and runs of bots, of which it imports some.
conformance: $(VENV)/installed-dev
	CONFORMANCE=all $(PYTEST) tests/conformance tests/rooms/transfer/test_import_sessions.py \
	  tests/rooms/simulation/test_compare_incidents.py $(ARGS)

# Each search of tests/fuzz goes on for MINUTES, and properties are tested with that many times ten
# the examples that they name; `make test` runs a few fixed examples of each search, and half of those.
fuzz: MINUTES ?= 10
fuzz: $(VENV)/installed-dev
	FUZZ_SECONDS=$$(($(MINUTES) * 60)) $(BIN)/pytest tests/fuzz -s $(ARGS)
	EXAMPLES=$$(($(MINUTES) * 10)) $(PYTEST) -m hypothesis --ignore tests/fuzz $(ARGS)

# What people install, and the lines of the documents with it: some of it is marked long.
artifact: $(VENV)/installed-dev $(NODE)/installed
	$(PYTEST) --long tests/artifact tests/test_wheel.py tests/deploy/test_container.py tests/browser/test_mounted.py $(ARGS)

load: $(VENV)/installed-dev
	LOAD_WRITERS=8 LOAD_ADDS=500 LOAD_CONVERSATIONS=50 LOAD_RELOADS=10 LOAD_CLIENTS=4 \
	  $(BIN)/pytest tests/load/test_concurrency.py tests/load/test_reload.py --long -v $(ARGS)

crash: $(VENV)/installed-dev
	CRASH_SERVER=50 CRASH_DATABASE=10 LOAD_CLIENTS=4 $(BIN)/pytest tests/load/test_crash.py --long -v $(ARGS)

# Clients that want more than their share; DATABASE_URL chooses the database. At the end, how long the
# largest changes hold SQLite's writer.
attack: $(VENV)/installed-dev
	$(BIN)/pytest tests/attack tests/growth tests/inspector/test_body_memory.py tests/deploy --long -v $(ARGS)
	env -u DATABASE_URL $(BIN)/python -m benchmarks.holds

# Ratios of things that are timed in turns, with their limits; QUICK=1 for smaller databases,
# POSTGRESQL=1 for those of a PostgreSQL, and ARGS="peers imports" for some parts.
bench: $(VENV)/installed-dev
	QUICK=$(QUICK) RECORD=$(RECORD) POSTGRESQL=$(POSTGRESQL) $(BIN)/python -m benchmarks $(ARGS)

# Other libraries, in an environment of their own, and the ratios to them. `make bench` has them from
# then on.
bench-peers: $(VENV)/installed-dev $(PEERS)/installed
	QUICK=$(QUICK) $(BIN)/python -m benchmarks peers

# The memories of agent frameworks, in an environment of their own: what they would have held of FILES,
# or else of the recorded corpora, and the tests that need all of them. RECORD=1 writes the tables and
# plots of docs/strategies.md.
strategies: $(STRATEGIES)/installed
	RECORD=$(RECORD) $(STRATEGIES)/bin/python -m benchmarks.strategies $(FILES) $(ARGS)
	$(STRATEGIES)/bin/pytest -q -n0 --long tests/strategies

check: $(VENV)/installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/djlint --quiet --check --lint templates inspector/project/templates
	$(BIN)/python manage.py makemigrations --check --dry-run
	$(BIN)/python manage.py check

format: $(VENV)/installed-dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/djlint --quiet --reformat templates inspector/project/templates

# The documentation as a site, in var/site; a link that leads nowhere ends it.
docs: $(DOCS)/installed
	NO_MKDOCS_2_WARNING=1 $(DOCS)/bin/mkdocs build --quiet

# The pictures of docs/, anew.
screenshots: $(VENV)/installed-dev
	$(BIN)/python -m docs.images.take

# All extras but the frameworks of `make strategies`, which have an environment of their own.
OLDEST_EXTRAS = $(shell $(BIN)/python -c "import tomllib; found = tomllib.load(open('pyproject.toml', 'rb')); \
  print(*(f'--extra {name}' for name in found['project']['optional-dependencies'] if name != 'strategies'))")

lock: $(VENV)/installed-dev
	for name in requirements requirements-serve requirements-build requirements-dev requirements-docs requirements-peers requirements-strategies requirements-newer requirements-oldest; do \
	  case $$name in *-newer) python=3.12;; *) python=3.11;; esac; \
	  case $$name in *-oldest) from="pyproject.toml $(OLDEST_EXTRAS) --resolution lowest-direct";; *) from=;; esac; \
	  $(BIN)/uv pip compile --quiet --universal --generate-hashes --no-emit-index-url \
	    --no-emit-find-links --no-header --python-version $$python $$from $$name.in -o $$name.txt; \
	done

clean:
	rm -rf $(VENV) $(PEERS) $(STRATEGIES) $(NEWER) $(OLDEST) $(DOCS) $(NODE) .mypy_cache .pytest_cache .ruff_cache .hypothesis

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "chatmemory needs Python 3.11 or newer: make run PYTHON=python3.11"; exit 1; }
	@$(PYTHON) -m venv $(VENV) || \
	  { echo "Python's venv is missing. On Debian and Ubuntu: apt-get install python3-venv"; rm -rf $(VENV); exit 1; }

$(VENV)/installed: requirements.txt | $(VENV)/bin/python
	@$(BIN)/pip $(INSTALL) -r requirements.txt
	@touch $@

# The command of the checkout, without a build: what pip would write for its entry point.
$(BIN)/chatmemory: Makefile | $(VENV)/bin/python
	@printf '#!%s\nimport sys\n\nsys.path.insert(0, "%s")\nfrom inspector.command import main\n\nmain()\n' \
	  "$(CURDIR)/$(BIN)/python" "$(CURDIR)" > $@
	@chmod +x $@

$(VENV)/installed-dev: requirements-dev.txt | $(VENV)/installed
	@$(BIN)/pip $(INSTALL) -r requirements-dev.txt
	@touch $@

$(NEWER)/installed: requirements-newer.txt
	@rm -rf $(NEWER)
	@$(NEWER_PYTHON) -m venv $(NEWER)
	@$(NEWER)/bin/pip $(INSTALL) -r requirements-newer.txt
	@touch $@

# An environment of the same Python needs no pip of its own: that of .venv installs its packages.
$(OLDEST)/installed: requirements-oldest.txt | $(VENV)/bin/python
	@rm -rf $(OLDEST)
	@$(BIN)/python -m venv --without-pip $(OLDEST)
	@$(BIN)/pip --python $(OLDEST) $(INSTALL) -r requirements-oldest.txt
	@touch $@

$(DOCS)/installed: requirements-docs.txt | $(VENV)/bin/python
	@rm -rf $(DOCS)
	@$(BIN)/python -m venv --without-pip $(DOCS)
	@$(BIN)/pip --python $(DOCS) $(INSTALL) -r requirements-docs.txt
	@touch $@

# The lock file names no registry (npm's omit-lockfile-registry-resolved): npm asks its own.
$(NODE)/installed: tests/api/typescript/package-lock.json
	@rm -rf $(NODE)
	@mkdir $(NODE)
	@cp tests/api/typescript/package*.json $(NODE)
	@npm ci --prefix $(NODE) --ignore-scripts --no-audit --no-fund --silent
	@touch $@

$(PEERS)/installed: requirements-peers.txt
	@$(PYTHON) -m venv $(PEERS)
	@$(PEERS)/bin/pip $(INSTALL) -r requirements-peers.txt
	@touch $@

$(STRATEGIES)/installed: requirements-strategies.txt
	@rm -rf $(STRATEGIES)
	@$(PYTHON) -m venv $(STRATEGIES)
	@$(STRATEGIES)/bin/pip $(INSTALL) -r requirements-strategies.txt
	@touch $@
