# The commands of the house. `make` alone lists them.
#
# All paths are relative, so that a clone in a directory with spaces in its name works too.

PYTHON ?= python3
VENV := .venv
PY := $(VENV)/bin/python
# One environment, filled in two steps: what serving needs, then the tools of development.
RUN_STAMP := $(VENV)/.ready-to-run
STAMP := $(VENV)/.ready
INSTALL := $(PY) -m pip install --quiet --no-deps
LOCK := $(PY) -m uv pip compile pyproject.toml --universal --generate-hashes --no-emit-index-url \
	--python-version 3.11 --custom-compile-command "make lock" --quiet
# What the linters look at; bench only once there is code in it.
CODE := src tests docs examples $(if $(wildcard bench/*.py),bench)

export PIP_DISABLE_PIP_VERSION_CHECK := 1

.DEFAULT_GOAL := help
.PHONY: help setup check types types-beside lint rules house test tests coverage torture torture-seeded test-slow slow-tests explore crowd life test-database test-citus test-clients test-ways test-browser bench scoreboard docs docs-site run lock \
	sbom audit clean

help: ## List the commands
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 18

setup: $(STAMP) ## Fill .venv with everything that development needs; does nothing when nothing changed

# mypy takes as long as all the others together, so it runs beside them.
check: $(STAMP) ## Lint, format, types, layers and the rules of the house
	@$(MAKE) --no-print-directory -j 2 types rules

types: $(STAMP)
	$(PY) -m mypy $(CODE)

lint: $(STAMP)
	$(PY) -m ruff check $(CODE)
	$(PY) -m ruff format --check $(CODE)
	$(VENV)/bin/lint-imports --no-logo

rules: lint
	$(PY) -m pytest tests/test_house.py

house: $(STAMP) ## Print the measures of the house
	$(PY) tests/house_measures.py

# Many tests wait for processes and disks; mypy uses that time. What it says is shown at the end, below the tests.
test: lint ## All checks and all tests
	@$(MAKE) --no-print-directory -j 2 types-beside tests; failed=$$?; cat build/types.txt; exit $$failed

types-beside: $(STAMP)
	@mkdir -p build
	@nice -n 5 $(PY) -m mypy $(CODE) > build/types.txt 2>&1

# More workers than two cores: half of the time a test waits, for processes and for servers.
tests: $(STAMP)
	$(PY) -m pytest -n 3 --dist worksteal

coverage: $(STAMP) ## All tests with a report of the lines they did not reach; takes half as long again
	$(PY) -m pytest -n 2 --cov --cov-report=term

torture: $(STAMP) ## Kills, power cuts, full disks, races; SCALE=ci|minutes|full, GOALS="power flips", WRITE=docs/reliability.md
	PYTHONPATH=tests $(PY) -m torture --scale $(or $(SCALE),minutes) $(GOALS) $(if $(WRITE),--write $(WRITE))

torture-seeded: $(STAMP) ## Put 30 bugs into a copy, one at a time, and see that a goal notices each
	PYTHONPATH=tests $(PY) -m torture --seeded $(if $(WRITE),--write $(WRITE))

# One after the other, and all of them also when one fails. The crowd is alone: it prints how long calls took and how many
# cores they kept busy.
test-slow: $(STAMP) ## Slow tests, property tests with many new examples, an hour of a thousand agents: 100 minutes
	@$(MAKE) --no-print-directory --keep-going -j 1 slow-tests explore crowd

slow-tests: $(STAMP)
	$(PY) -m pytest -n 3 --dist worksteal -m slow --timeout 900 --ignore tests/journeys/test_crowd.py

explore: $(STAMP)
	HYPOTHESIS_PROFILE=long $(PY) -m pytest -n 3 --dist worksteal -m "hypothesis and not slow" --timeout 1800

crowd: $(STAMP)
	$(PY) -m pytest -s -m slow tests/journeys/test_crowd.py

# With SECONDS: stories composed at random, for so long. Each failure is printed with the number that tells it again.
life: $(STAMP) ## All stories of people and agents, through real doors; SECONDS=600 SEED=7 composes new ones
	$(if $(SECONDS),PYTHONPATH=tests $(PY) -m life --keep-going --seconds $(SECONDS) $(if $(SEED),--seed $(SEED)),$(PY) -m pytest -n 2 -m "" tests/life)

test-database: $(STAMP) ## The contract of the stores on a database that is emptied; DATABASE=postgresql://… of a superuser
	@test -n "$(DATABASE)" || { echo "Name a database that may be emptied: make test-database DATABASE=postgresql://…" >&2; exit 2; }
	$(PY) -m pytest --database "$(DATABASE)" --timeout 600 tests/contract -k "postgres or both or citus"

test-citus: ## The same on a Citus cluster, where the store is distributed; CITUS=postgresql://… on its coordinator
	@$(MAKE) --no-print-directory test-database DATABASE="$(CITUS)"

test-clients: $(STAMP) ## Real coding agents from npm, against a scripted model; CLIENTS="codex or goose" names some
	@command -v npm >/dev/null || echo "No coding agent was tested: npm, which installs them, is not there."
	@! command -v npm >/dev/null || $(PY) -m pytest -n 2 -m clients tests/clients $(if $(CLIENTS),-k "$(CLIENTS)")

test-ways: $(STAMP) ## pip, uv, pipx, npx, the bundle: each from an empty home, with the wheel of this checkout
	$(PY) -m pytest -m ways tests/ways

test-browser: $(STAMP) ## The dashboard in a real Chromium (Debian: chromium, chromium-driver)
	$(PY) -m pytest -m browser tests/browser

bench: $(STAMP) ## Measure; NAMES="start notes", QUICK=1, PEERS=1 (fetches other tools), STORY=file, WRITE=docs/benchmarks.md
	$(PY) -m bench $(NAMES) $(if $(QUICK),--quick) $(if $(PEERS),--peers) $(if $(STORY),--story $(STORY)) $(if $(WRITE),--write $(WRITE))

scoreboard: $(STAMP) ## Public benchmarks beside peers, onto docs/scoreboard.md; DATA=folder of what was fetched, NAMES="precision 10M", MOST=1 of each size of BEAM
	$(PY) -m bench.scoreboard $(NAMES) $(if $(DATA),--data $(DATA)) $(if $(MOST),--most $(MOST)) --write docs/scoreboard.md

docs: $(STAMP) ## Write the pages that are generated: reference, settings, licences, commands, Python; and the plugin
	$(PY) docs/make_reference.py
	$(PY) docs/make_settings.py
	$(PY) docs/make_licences.py
	$(PY) docs/make_plugin.py
	$(PY) docs/make_commands.py
	$(PY) docs/make_python.py
	$(PY) docs/make_site.py

docs-site: docs ## Build the documentation as a site in build/site, with a generator that is fetched for it
	$(PY) docs/make_site.py build/site-source
	cd build/site-source && $(CURDIR)/$(PY) -m uv tool run --from zensical==0.0.73 zensical build --clean --strict
	rm -rf build/site && mv build/site-source/site build/site
	@echo "Open build/site/index.html."

run: $(RUN_STAMP) ## Install what serving needs and serve on this machine; prints its address; PORT=0 takes a free one
	$(VENV)/bin/limpet serve $(if $(PORT),--port $(PORT))

lock: $(STAMP) ## Choose versions again and write requirements/*.txt; UPGRADE=1 takes the newest
	$(LOCK) $(if $(UPGRADE),--upgrade) --all-extras --group dev -o requirements/dev.txt
	$(LOCK) --constraint requirements/dev.txt -o requirements/base.txt
	$(LOCK) --constraint requirements/dev.txt --extra http --extra postgres --group build -o requirements/run.txt
	$(MAKE) sbom

# An environment with nothing but the base packages, because the list is made of what is in it. What the tool adds
# about itself is left out.
sbom: $(STAMP) ## Write requirements/base.cdx.json, the list of packages that goes into the wheel
	rm -rf build/sbom
	$(PY) -m uv venv --quiet --no-config --python $(PY) build/sbom
	$(PY) -m uv pip install --quiet --python build/sbom --require-hashes -r requirements/base.txt
	$(PY) -m uv tool run --from cyclonedx-bom==7.5.0 cyclonedx-py environment --output-reproducible \
		--spec-version 1.6 --output-file build/sbom/list.json build/sbom
	$(PY) -c 'import json, sys; made = json.load(sys.stdin); del made["metadata"]["tools"]; \
		print(json.dumps(made, indent=1, sort_keys=True))' < build/sbom/list.json > requirements/base.cdx.json

audit: $(STAMP) ## Ask the public databases for known faults in what is locked (needs the internet)
	$(PY) -m uv tool run --from pip-audit==2.10.1 pip-audit --strict --disable-pip --require-hashes \
		-r requirements/base.txt -r requirements/run.txt -r requirements/dev.txt

clean: ## Remove everything the commands above made
	rm -rf $(VENV) build dist htmlcov .coverage .coverage.* .hypothesis .import_linter_cache \
		.mypy_cache .pytest_cache .ruff_cache bench/out
	find src tests bench -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

$(RUN_STAMP): requirements/run.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "Limpet needs Python 3.11 or newer, and '$(PYTHON)' is not that." >&2; \
		echo "Name another one: make setup PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
		echo "'$(PYTHON)' cannot make a virtual environment with pip in it." >&2; \
		echo "On Debian and Ubuntu, install the package python3-venv, then run this again." >&2; exit 1; }
	@test -x $(PY) && $(PY) -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv --clear $(VENV)
	$(INSTALL) --require-hashes -r requirements/run.txt
	$(INSTALL) --no-build-isolation --editable .
	@touch $(RUN_STAMP)

$(STAMP): requirements/dev.txt $(RUN_STAMP)
	$(INSTALL) --require-hashes -r requirements/dev.txt
	@touch $(STAMP)
