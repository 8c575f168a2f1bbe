"""What a project's files declare is proposed, and nothing else."""

import json
from pathlib import Path

import pytest

from ralph.settings.detect.found import checks_of

PLACEHOLDER = 'echo "Error: no test specified" && exit 1'
PYTEST = "[tool.pytest.ini_options]\n"
UNITTEST = "import unittest\n"


def package(manager: str = "", **scripts: str) -> str:
    named = {"packageManager": manager} if manager else {}
    return json.dumps({"scripts": scripts, **named})


def found(workspace: Path, files: dict[str, str], programs: str) -> list[str]:
    """What is proposed: `ROLE: COMMAND`, and what it lacks."""
    bin_dir = workspace.parent / "bin"
    for path in (*(workspace / name for name in files), *(bin_dir / p for p in programs.split())):
        path.parent.mkdir(parents=True, exist_ok=True)
        inside = path.is_relative_to(workspace)
        path.write_text(files[str(path.relative_to(workspace))] if inside else "")
        runs = path.parent.name in ("bin", ".bin") or path.name in ("gradlew", "mvnw")
        path.chmod(0o755 if runs else 0o644)
    checks = checks_of(str(workspace), {"PATH": str(bin_dir)})
    assert all(check.source.partition(":")[0] in files for check in checks)
    return [f"{c.role}: {c.command}" + (f" - {c.lacks}" if c.lacks else "") for c in checks]


CASES: dict[str, tuple[dict[str, str], str, list[str]]] = {
    "nothing": ({}, "make python3 pytest npm", []),
    "a README alone": ({"README.md": "make test\n"}, "make", []),
    # Make and just
    "make": (
        {"Makefile": "X := 1\ntest lint:\n\ttrue\n.PHONY: build\n"},
        "make",
        ["test: make test", "lint: make lint"],
    ),
    "make check is the tests, or else the lint": (
        {"Makefile": "check:\n\ntest :\nbuild: a\n"},
        "make",
        ["test: make test", "lint: make check", "build: make build"],
    ),
    "make check alone": ({"Makefile": "check::\n"}, "make", ["test: make check"]),
    "no make": ({"Makefile": "test:\n"}, "", ["test: make test - make"]),
    "a variable is no target": ({"Makefile": "test := 1\nlint:=2\n"}, "make", []),
    "just": (
        {"justfile": "set shell := ['sh']\n@test *args:\nlint level='1':\nbuild what:\n"},
        "just",
        ["test: just test", "lint: just lint"],
    ),
    "make before just before the language": (
        {"Makefile": "test:\n", "justfile": "test:\nlint:\n", "Cargo.toml": "[lints.clippy]\n"},
        "make just cargo cargo-clippy",
        ["test: make test", "lint: just lint"],
    ),
    "what cannot run hides nothing": (
        {"Makefile": "test:\n", "go.mod": ""},
        "go",
        ["test: make test - make", "test: go test ./...", "lint: go vet ./..."],
    ),
    # Python
    "pytest beside its python": (
        {"pyproject.toml": PYTEST},
        "python3 pytest",
        ["test: python3 -m pytest"],
    ),
    "pytest without a python beside it": ({"pytest.ini": ""}, "pytest", ["test: pytest"]),
    "tests alone speak for pytest": (
        {"tests/unit/test_a.py": ""},
        "python3 pytest",
        ["test: python3 -m pytest"],
    ),
    "a venv comes first": (
        {"tox.ini": "[pytest]\n", ".venv/bin/pytest": "", ".venv/bin/python": ""},
        "python3 pytest tox",
        ["test: .venv/bin/python -m pytest"],
    ),
    "uv, where its lock has it": (
        {"pyproject.toml": PYTEST + "[tool.ruff]\n", "uv.lock": 'name = "pytest"\n'},
        "uv ruff",
        ["test: uv run pytest", "lint: ruff check"],
    ),
    "poetry": (
        {"setup.cfg": "[tool:pytest]\n[flake8]\n", "poetry.lock": '"pytest"\n"flake8"\n'},
        "poetry python3 pytest",
        ["test: poetry run pytest", "lint: poetry run flake8"],
    ),
    "pytest is missing": ({"pyproject.toml": PYTEST}, "python3", ["test: pytest - pytest"]),
    "tox where pytest is missing": (
        {"pyproject.toml": PYTEST, "tox.ini": "[tox]\n"},
        "tox",
        ["test: tox"],
    ),
    "nox": ({"noxfile.py": ""}, "nox", ["test: nox"]),
    "unittest": ({"test_a.py": UNITTEST}, "python3", ["test: python3 -m unittest"]),
    "unittest in a directory": (
        {"tests/test_a.py": UNITTEST},
        "python3",
        ["test: python3 -m unittest discover -s tests"],
    ),
    "unittest in a package": (
        {"tests/test_a.py": UNITTEST, "tests/__init__.py": ""},
        "python3",
        ["test: python3 -m unittest discover"],
    ),
    "mypy that knows where": (
        {"pyproject.toml": '[tool.mypy]\nfiles = ["src"]\n'},
        "mypy",
        ["lint: mypy"],
    ),
    "mypy in an INI file": ({"setup.cfg": "[mypy]\nfiles = src\n"}, "mypy", ["lint: mypy"]),
    "mypy that does not": (
        {"pyproject.toml": "[tool.mypy]\n", "setup.cfg": "files = 1\n"},
        "mypy",
        [],
    ),
    "a broken pyproject": ({"pyproject.toml": "[tool.pytest"}, "pytest", []),
    # Node
    "npm": (
        {"package.json": package(test="node --test", lint="eslint .", build="node b.js")},
        "npm node",
        ["test: npm test", "lint: npm run lint - eslint", "build: npm run build"],
    ),
    "npm's placeholder": ({"package.json": package(test=PLACEHOLDER)}, "npm", []),
    "what watches never ends": ({"package.json": package(test="jest --watch")}, "npm jest", []),
    "its own programs": (
        {"package.json": package(test="CI=1 vitest run", typecheck="tsc"), "yarn.lock": ""}
        | {"node_modules/.bin/vitest": "", "node_modules/.bin/tsc": ""},
        "yarn",
        ["test: yarn test", "lint: yarn run typecheck"],
    ),
    "packageManager beats a lock": (
        {"package.json": package("pnpm@9.1.0", test="echo a"), "package-lock.json": "{}"},
        "pnpm npm",
        ["test: pnpm test"],
    ),
    "bun has a test of its own": (
        {"package.json": package(test="(cd a && b)"), "bun.lock": ""},
        "bun",
        ["test: bun run test"],
    ),
    "another manager is missing": (
        {"package.json": package(test="echo"), "pnpm-lock.yaml": ""},
        "npm",
        ["test: pnpm test - pnpm"],
    ),
    "no object": ({"package.json": "[1]"}, "npm", []),
    "no scripts": ({"package.json": '{"scripts": 3}'}, "npm", []),
    # The others
    "cargo": ({"Cargo.toml": "[package]\n"}, "cargo", ["test: cargo test"]),
    "go": (
        {"go.mod": "", ".golangci.yml": ""},
        "go golangci-lint",
        ["test: go test ./...", "lint: go vet ./...", "lint: golangci-lint run"],
    ),
    "gradle": ({"build.gradle.kts": ""}, "gradle", ["test: gradle test"]),
    "gradle's wrapper": (
        {"settings.gradle": "", "gradlew": ""},
        "java",
        ["test: ./gradlew test"],
    ),
    "a wrapper without Java": ({"pom.xml": "", "mvnw": ""}, "", ["test: ./mvnw -B test - java"]),
    "composer": (
        {"composer.json": json.dumps({"scripts": {"test": ["phpunit"], "lint": "phpcs"}})},
        "composer",
        ["test: composer test", "lint: composer lint"],
    ),
    "phpunit": (
        {"composer.json": "{}", "phpunit.xml.dist": "", "vendor/bin/phpunit": ""},
        "php",
        ["test: vendor/bin/phpunit"],
    ),
    "mix": (
        {"mix.exs": "", ".formatter.exs": "", ".credo.exs": ""},
        "mix",
        ["test: mix test", "lint: mix format --check-formatted", "lint: mix credo"],
    ),
    "two languages": (
        {"package.json": package(test="node a"), "pyproject.toml": PYTEST},
        "npm node pytest",
        ["test: pytest", "test: npm test"],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_the_checks_of_a_project(workspace: Path, name: str) -> None:
    """Issue 22: "the test, lint and build commands of the project"; only what it declares."""
    files, programs, expected = CASES[name]
    assert found(workspace, files, programs) == expected


@pytest.mark.parametrize("content", [b"\xff\xfe\x00", b"{" * 100_000, b""])
def test_files_that_are_no_text_propose_nothing(workspace: Path, content: bytes) -> None:
    for name in ("package.json", "pyproject.toml", "Makefile", "justfile", "composer.json"):
        (workspace / name).write_bytes(content)
    (workspace / "setup.cfg").mkdir()
    (workspace / "tests").write_text("")
    assert checks_of(str(workspace), {"PATH": ""}) == ()


def test_a_directory_that_is_gone_proposes_nothing(tmp_path: Path) -> None:
    assert checks_of(str(tmp_path / "gone"), {}) == ()
