"""The import directions of the design: each room of src/ralph may see only those below it."""

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

import ralph

SOURCE = Path(__file__).resolve().parent.parent / "src" / "ralph"
PURE = frozenset({"core", "streams"})
# What reads a clock, a file, the environment, chance or the network.
IMPURE = frozenset(
    {"asyncio", "fcntl", "glob", "http", "io", "logging", "multiprocessing", "os", "pathlib"}
    | {"platform", "random", "secrets", "select", "selectors", "shutil", "signal", "socket"}
    | {"subprocess", "tempfile", "threading", "time", "urllib", "uuid"}
)


@dataclass(frozen=True)
class Room:
    """What the modules of one room may import, beside themselves and the standard library."""

    rooms: frozenset[str] = field(default_factory=frozenset)
    packages: frozenset[str] = field(default_factory=frozenset)


def room(rooms: str = "", packages: str = "") -> Room:
    return Room(frozenset(rooms.split()), frozenset(packages.split()))


ALL = "core streams ports proving engine profiles adapters settings hooks ui testing errors cli"
ALL = f"{ALL} runner"
ROOMS = {
    "core": room(),
    "errors": room(),
    "streams": room("core", "msgspec"),
    "ports": room("core"),
    "proving": room("core ports errors"),  # gates on one tree, for the engine and for settling
    "engine": room("core ports proving errors"),
    "profiles": room("core ports proving errors"),
    "adapters": room("core streams ports errors", "apprise msgspec yaml"),
    "settings": room("core streams ports errors", "msgspec"),
    "testing": room("core streams ports errors adapters"),  # its kits drive adapters
    "hooks": room("core ports proving engine profiles"),
    "ui": room("core streams", "rich"),
    "cli": room(f"{ALL} loops", "click msgspec rich"),
    "runner": room(ALL),
    "loops": room(f"{ALL}", "msgspec"),
    "__main__": room(ALL),
    "__init__": room(f"{ALL} loops"),
}
LIBRARY = frozenset(ralph.__all__) - {"__version__"}  # `from ralph import ...`


@dataclass(frozen=True)
class Import:
    """One imported module, and the line that names it."""

    module: str
    line: int


def imports(source: str, package: tuple[str, ...]) -> Iterator[Import]:
    """Every import, also relative ones and those inside functions."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(alias.name, node.lineno)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            module = ".".join([*base, *([node.module] if node.module else [])])
            for alias in node.names:
                # `from ralph import core` names a room only together with its alias.
                yield Import(f"{module}.{alias.name}", node.lineno)


def room_of(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def objection(here: str, module: str) -> str | None:
    """Why a module of this room may not import that one."""
    top, _, rest = module.partition(".")
    allowed = ROOMS[here]
    if top == "ralph":
        there = "loops" if rest in LIBRARY else rest.partition(".")[0]
        known = there in ROOMS and there != "__init__"
        wrong = known and there != here and there not in allowed.rooms
        return f"{here} must not import {there}" if wrong else None
    if here in PURE and top in IMPURE:
        return f"{here} is pure: no {top}"
    if top not in sys.stdlib_module_names and top not in allowed.packages:
        return f"{here} must not import {top}"
    return None


def violations(path: Path, source: str) -> list[str]:
    """Each wrong import of one module, as `file:line: why`."""
    here = room_of(path)
    name = f"src/ralph/{path.relative_to(SOURCE)}"
    if here not in ROOMS:
        return [f"{name}:1: {here} is not a room of the design"]
    package = ("ralph", *path.relative_to(SOURCE).parent.parts)
    found = ((i.line, objection(here, i.module)) for i in imports(source, package))
    # One line may import many names from one module: say it once.
    return list(dict.fromkeys(f"{name}:{line}: {why}" for line, why in found if why))


def test_every_room_sees_only_the_rooms_below_it() -> None:
    """AGENTS.md: "Direction, enforced by a test over imports"."""
    modules = sorted(SOURCE.rglob("*.py"))
    assert modules
    wrong = [text for path in modules for text in violations(path, path.read_text("utf-8"))]
    assert not wrong, "\n" + "\n".join(wrong)


@pytest.mark.parametrize(
    ("module", "source", "why"),
    [
        ("core/rules.py", "import os", "core is pure: no os"),
        ("core/rules.py", "def f():\n    from time import time", "core is pure: no time"),
        ("core/rules.py", "import os.path as p", "core is pure: no os"),
        ("core/rules.py", "from ralph.ports import Agent", "core must not import ports"),
        ("core/rules.py", "from ralph import ports", "core must not import ports"),
        ("core/rules.py", "from .. import ports", "core must not import ports"),
        ("core/rules.py", "from ..streams.claude import x", "core must not import streams"),
        ("core/rules.py", "import msgspec", "core must not import msgspec"),
        ("streams/claude.py", "import subprocess", "streams is pure: no subprocess"),
        ("ports.py", "import msgspec", "ports must not import msgspec"),
        ("ports.py", "from .engine import run", "ports must not import engine"),
        ("engine.py", "from ralph.adapters.git import Git", "engine must not import adapters"),
        ("engine.py", "from ralph.profiles import harness", "engine must not import profiles"),
        ("profiles/tasks.py", "import msgspec", "profiles must not import msgspec"),
        ("adapters/git.py", "import click", "adapters must not import click"),
        ("adapters/git.py", "import ralph.cli.run", "adapters must not import cli"),
        ("settings/load.py", "import rich.table", "settings must not import rich"),
        ("settings/load.py", "import ralph.adapters.git", "settings must not import adapters"),
        ("hooks/stop.py", "import msgspec", "hooks must not import msgspec"),
        ("hooks/stop.py", "import ralph.adapters.git", "hooks must not import adapters"),
        ("ui/console.py", "from ralph.engine import run", "ui must not import engine"),
        ("testing/fakes.py", "import pytest", "testing must not import pytest"),
        ("runner/plan.py", "from ralph import Supervisor", "runner must not import loops"),
        ("runner/plan.py", "from ralph.loops.prompt import loop", "runner must not import loops"),
        ("extra/thing.py", "", "extra is not a room of the design"),
    ],
)
def test_a_wrong_import_is_named_with_its_line(module: str, source: str, why: str) -> None:
    line = source.count("\n") + 1
    assert violations(SOURCE / module, source) == [f"src/ralph/{module}:{line}: {why}"]


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("core/rules.py", "import re\nfrom ralph.core.case import Case\nfrom . import turn"),
        ("streams/claude.py", "import msgspec\nfrom ralph.core.events import Text"),
        ("engine.py", "import time\nfrom ralph import __version__\nfrom ralph.ports import Ports"),
        ("adapters/git.py", "import os\nfrom ralph.errors import StateError\nimport msgspec"),
        ("ui/console.py", "from rich.table import Table\nfrom ralph.streams import claude"),
        ("__init__.py", "from ralph.loops.supervise import library"),
        ("cli/run.py", "import click\nfrom ralph.adapters import git\nfrom ralph import testing"),
    ],
)
def test_a_right_import_is_let_pass(module: str, source: str) -> None:
    assert violations(SOURCE / module, source) == []
