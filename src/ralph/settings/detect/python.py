"""Tools that a Python project is configured for: tests by pytest, tox, nox or unittest; linters."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from ralph.kernel.value import value
from ralph.settings.detect.project import Project, ProposedCheck

_LOCKS = {  # who runs the project's own tools
    "uv.lock": "uv",
    "poetry.lock": "poetry",
    "pdm.lock": "pdm",
    "Pipfile.lock": "pipenv",
}
_VENVS = (".venv", "venv")
_SECTION = re.compile(r"^\[([^\]\n]+)\]", re.MULTILINE)
_TESTS = (
    *("tests/test_*.py", "test_*.py", "tests/*_test.py", "*_test.py", "tests/*/test_*.py"),
    *("test/test_*.py", "*/tests/test_*.py", "src/*/tests/test_*.py"),
)


@value
class Tool:
    """A program, and what configures it, beside its table in pyproject.toml."""

    role: str
    program: str
    command: str
    files: tuple[str, ...] = ()
    sections: tuple[str, ...] = ()


_PYTEST = Tool("test", "pytest", "pytest", ("pytest.ini",), ("pytest", "tool:pytest"))
_RUNNERS = (
    Tool("test", "tox", "tox", ("tox.ini",)),
    Tool("test", "nox", "nox", ("noxfile.py",)),
)
_MYPY = Tool("lint", "mypy", "mypy", ("mypy.ini", ".mypy.ini"), ("mypy",))
_LINTERS = (
    Tool("lint", "ruff", "ruff check", ("ruff.toml", ".ruff.toml")),
    Tool("lint", "flake8", "flake8", (".flake8",), ("flake8",)),
    _MYPY,
)
_WHERE = ("files", "packages", "modules")  # what mypy is to look at


def checks(project: Project) -> Iterator[ProposedCheck]:
    """The tests, once, and each linter that is configured."""
    tables = _tables(project)
    yield from _tests(project, tables)
    for tool in _LINTERS:
        source = _configured(project, tables, tool)
        if source and (tool is not _MYPY or _knows_where(project, tables, source)):
            yield _by(project, tool, source)


def _tests(project: Project, tables: Mapping[str, Any]) -> Iterator[ProposedCheck]:
    """By pytest if it is there; else by what runs it, or by Python itself if that is enough."""
    written = next(project.glob(*_TESTS), "")
    source = _configured(project, tables, _PYTEST) or written
    asked = [_by(project, _PYTEST, source)] if source else []
    configured = ((tool, _configured(project, tables, tool)) for tool in _RUNNERS)
    asked += [_by(project, tool, where) for tool, where in configured if where]
    if written and "unittest" in project.text(written) and project.runs("python3"):
        folder = written.rpartition("/")[0]
        apart = folder and not any(project.glob(f"{folder}/__init__.py"))
        where = f" discover -s {folder}" if apart else " discover" if folder else ""
        asked.append(ProposedCheck("test", f"python3 -m unittest{where}", written))
    yield from [check for check in asked if not check.lacks][:1] or asked[:1]


def _tables(project: Project) -> Mapping[str, Any]:
    """The tools that pyproject.toml configures."""
    if "pyproject.toml" not in project.names:
        return {}
    import tomllib

    try:
        tool = tomllib.loads(project.text("pyproject.toml")).get("tool")
    except (ValueError, RecursionError):
        return {}
    return tool if isinstance(tool, dict) else {}


def _configured(project: Project, tables: Mapping[str, Any], tool: Tool) -> str:
    """The place that configures a tool; "" if nothing does."""
    if tool.program in tables:
        return f"pyproject.toml: tool.{tool.program}"
    if name := project.first(*tool.files):
        return name
    for name in ("setup.cfg", "tox.ini") if tool.sections else ():
        sections = _SECTION.findall(project.text(name))
        if found := next((section for section in tool.sections if section in sections), ""):
            return f"{name}: {found}"
    return ""


def _knows_where(project: Project, tables: Mapping[str, Any], source: str) -> bool:
    """True if mypy's configuration says what to check: by itself it refuses to guess."""
    if "mypy" in tables:
        return isinstance(tables["mypy"], dict) and any(key in tables["mypy"] for key in _WHERE)
    text = project.text(source.partition(":")[0])
    return any(re.search(rf"^{key}\s*=", text, re.MULTILINE) for key in _WHERE)


def _by(project: Project, tool: Tool, source: str) -> ProposedCheck:
    """The tool as the project has it: by the manager of its lock file, its venv, or from PATH."""
    _, _, arguments = tool.command.partition(tool.program)
    for lock, manager in _LOCKS.items():
        if f'"{tool.program}"' in project.text(lock) and project.runs(manager):
            return ProposedCheck(tool.role, f"{manager} run {tool.command}", source)
    # As a module of Python, pytest finds what lies in the directory.
    for venv in _VENVS:
        if project.runs(f"{venv}/bin/{tool.program}"):
            program = f"{venv}/bin/{tool.program}"
            if tool is _PYTEST and project.runs(f"{venv}/bin/python"):
                program = f"{venv}/bin/python -m pytest"
            return ProposedCheck(tool.role, f"{program}{arguments}", source)
    found, python = (project.which(p).rpartition("/")[0] for p in (tool.program, "python3"))
    if tool is _PYTEST and python and found == python:
        return ProposedCheck(tool.role, "python3 -m pytest", source)
    return project.check(tool.role, tool.command, source)
