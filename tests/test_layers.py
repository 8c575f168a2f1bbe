"""The plan of the house: five rules about who imports whom, and how rooms are furnished."""

import ast
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parent.parent / "src"
# From top to bottom: a room imports only itself and rooms above it, lazily or not.
ORDER = (
    *("errors", "text", "kernel", "guard", "review", "files", "processes", "agents", "journal"),
    *("git", "settings", "gates", "sandbox", "notify", "forge", "formats", "hosts", "ui", "export"),
    *("runner", "fleet", "loops", "hooks", "web", "watch", "mcp", "own_agent", "acp"),
    *("doctor", "evaluation", "testing", "cli", "__init__", "__main__"),
)
PURE_ROOMS = (
    "errors",
    "text",
    "kernel",
    "guard",
    "review",
    "agents.streams",
    "own_agent.protocols",
)
PURE_NAMES = ("policy", "rules", "prompt")  # of every loop
PURE_MODULES = (
    *("agents.login", "agents.prices", "files.digest", "files.json_edit", "gates.secret_files"),
    *("git.uncommitted_text", "hosts.settings_edit", "hosts.stop_cap", "journal.codec"),
    *("journal.life", "journal.spending", "journal.forecast", "doctor.checks", "sandbox.profile"),
    *("loops.backlog.actions", "loops.backlog.anomalies", "loops.backlog.learning"),
    "loops.backlog.gates.ran_none",
    *(
        "loops.backlog.outcome",
        "loops.backlog.parallel.budget",
        "loops.backlog.planning.proposal",
        "loops.session.judged",
        "loops.session.state",
        "loops.session.words",
    ),
    *("loops.supervise.bus_format", "ui.attempt_words", "ui.recap.values", "ui.recap.words"),
    *("ui.recap.chapter", "ui.recap.items", "ui.recap.tables", "ui.recap.beside"),
    "acp.talk",
    *("own_agent.talk", "own_agent.window", "own_agent.words"),
    *("fleet.executors.following", "fleet.lease", "fleet.messages", "fleet.port"),
    *("loops.backlog.parallel.train", "forge.answers", "forge.judging", "forge.port"),
    *("export.lines", "export.parts", "export.steps", "web.security"),
    *("mcp.jsonrpc", "mcp.protocol", "mcp.tools"),
    *("evaluation.statistics", "evaluation.verdict", "evaluation.trials", "evaluation.standings"),
)
# What reads a clock, a file, the environment, chance or the network.
IMPURE = frozenset(
    {"asyncio", "fcntl", "glob", "http", "io", "logging", "multiprocessing", "os", "pathlib"}
    | {"platform", "random", "secrets", "select", "selectors", "shutil", "signal", "socket"}
    | {"subprocess", "tempfile", "threading", "time", "urllib", "uuid"}
)
# Whose modules, and all that these reach, are standard library: hosts start them anew each time.
LEAN = ("hooks", "hosts", "loops.session")
PACKAGES = {  # what may be imported beside the standard library
    "acp": ("msgspec",),
    "agents": ("genai_prices", "msgspec"),
    "cli": ("click", "msgspec"),
    "evaluation": ("msgspec",),
    "export": ("msgspec",),
    "files": ("yaml",),
    "fleet": ("dask", "distributed", "msgspec"),
    "journal": ("msgspec",),
    "loops": ("msgspec",),
    "mcp": ("msgspec",),
    "notify": ("apprise",),
    "settings": ("msgspec",),
    "watch": ("rich", "textual"),
    "web": ("msgspec", "starlette", "uvicorn"),
}
MOST_IN_A_FOLDER = 20
MOST_WITH_A_PREFIX = 2
MOST_IMPORTS = 25


@dataclass(frozen=True)
class Import:
    """One imported module, and the line that names it."""

    module: str
    line: int


@dataclass(frozen=True)
class Module:
    """One file of the package."""

    name: str  # without `ralph.`; "" is the package itself
    path: str  # from src/ralph
    imports: tuple[Import, ...]

    @property
    def room(self) -> str:
        return self.path.partition("/")[0].removesuffix(".py")

    @property
    def is_package(self) -> bool:
        return self.path.endswith("__init__.py")

    def objection(self, line: int, why: str) -> str:
        return f"src/ralph/{self.path}:{line}: {why}"


class House:
    """All modules by name."""

    def __init__(self, sources: Mapping[str, str]) -> None:
        """`sources` by their paths from src/ralph."""
        self.modules = {
            name: Module(name, path, tuple(imports(text, name, path)))
            for path, text in sorted(sources.items())
            for name in [name_of(path)]
        }

    def within(self, module: Module) -> Iterator[tuple[Module, int]]:
        """The modules of ours that one imports, each with a line; of `from a import b` it is `a.b`
        where that is a module."""
        for found in module.imports:
            top, _, rest = found.module.partition(".")
            while top == "ralph" and rest and rest not in self.modules:
                rest = rest.rpartition(".")[0]
            if top == "ralph" and rest and rest != module.name:
                yield self.modules[rest], found.line

    def edges(self) -> dict[str, dict[str, int]]:
        """By module, whom it imports, and the first line that says so."""
        return {
            name: {there.name: line for there, line in reversed([*self.within(module)])}
            for name, module in self.modules.items()
            if name
        }


def name_of(path: str) -> str:
    return path.removesuffix(".py").removesuffix("__init__").rstrip("/").replace("/", ".")


def imports(source: str, name: str, path: str) -> Iterator[Import]:
    """Every import, also relative ones, and those inside functions and for types only."""
    here = ("ralph", *name.split(".")) if name else ("ralph",)
    package = here if path.endswith("__init__.py") else here[:-1]
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (Import(alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            module = ".".join([*base, *([node.module] if node.module else [])])
            yield from (Import(f"{module}.{alias.name}", node.lineno) for alias in node.names)


@cache
def house() -> House:
    paths = (SOURCE / "ralph").rglob("*.py")
    return House({str(p.relative_to(SOURCE / "ralph")): p.read_text("utf-8") for p in paths})


# ---------------------------------------------------------------- 1. up only, and no cycles


def order(rooms: House) -> Iterator[str]:
    """Imports go up only."""
    for module in rooms.modules.values():
        if module.room not in ORDER:
            yield module.objection(1, f"{module.room} is not a room of the plan")
            continue
        for there, line in rooms.within(module):
            if there.room in ORDER and ORDER.index(there.room) > ORDER.index(module.room):
                yield module.objection(line, f"{module.room} must not import {there.room}")
        if module.room not in ("__init__", "__main__"):
            for found in module.imports:
                if found.module.startswith("ralph.") and found.module[6:7].isupper():
                    yield module.objection(found.line, f"{found.module} is for other programs")


def cycles(rooms: House) -> Iterator[str]:
    """No module imports itself by way of others."""
    edges = rooms.edges()
    for name in sorted(edges):
        way = way_back(name, edges)
        if way and name == min(way):
            line = edges[name][way[1]]
            yield rooms.modules[name].objection(line, f"a cycle: {' -> '.join(way)}")


def way_back(start: str, edges: Mapping[str, Mapping[str, int]]) -> list[str]:
    """The shortest way from a module to itself; [] if there is none."""
    came: dict[str, str] = {}
    row = [start]
    while row:
        new = []
        for name in row:
            for there in edges.get(name, {}):
                if there == start:
                    way = [start, name]
                    while way[-1] != start:
                        way.append(came[way[-1]])
                    return way[::-1]
                if there not in came:
                    came[there] = name
                    new.append(there)
        row = new
    return []


# ---------------------------------------------------------------- 2. pure


def is_pure(module: Module) -> bool:
    name = module.name
    if any(name == room or name.startswith(f"{room}.") for room in PURE_ROOMS):
        return True
    of_loop = module.room == "loops" and not module.is_package
    return name in PURE_MODULES or (of_loop and name.rpartition(".")[2] in PURE_NAMES)


def purity(rooms: House) -> Iterator[str]:
    """Pure modules read no clock, file or environment, and import none that may."""
    for module in rooms.modules.values():
        if not is_pure(module):
            continue
        for found in module.imports:
            if (top := found.module.partition(".")[0]) in IMPURE:
                yield module.objection(found.line, f"{module.name} is pure: no {top}")
        for there, line in rooms.within(module):
            if not is_pure(there) and not there.is_package:
                yield module.objection(line, f"{module.name} is pure, {there.name} is not")


# ---------------------------------------------------------------- 3. what hooks reach


def lean(rooms: House) -> Iterator[str]:
    """Everything that hooks reach is standard library."""
    row = [m for m in rooms.modules.values() if any(f"{m.name}.".startswith(f"{r}.") for r in LEAN)]
    seen = {module.name for module in row}
    while row:
        module = row.pop()
        for found in module.imports:
            top = found.module.partition(".")[0]
            if top != "ralph" and top not in sys.stdlib_module_names:
                yield module.objection(found.line, f"hooks reach this: no {top}")
        for there in {there for there, _ in rooms.within(module)}:
            if there.name not in seen:
                seen.add(there.name)
                row.append(there)


def packages(rooms: House) -> Iterator[str]:
    """Each room imports only the packages that are there for it."""
    for module in rooms.modules.values():
        allowed = ("ralph", *PACKAGES.get(module.room, ()))
        for found in module.imports:
            top = found.module.partition(".")[0]
            if top not in allowed and top not in sys.stdlib_module_names:
                yield module.objection(found.line, f"{module.room} must not import {top}")


# ---------------------------------------------------------------- 4. folders


def folders(rooms: House) -> Iterator[str]:
    """No folder has too many modules, or modules that would be a folder."""
    names: dict[str, list[str]] = defaultdict(list)
    for path in (module.path for module in rooms.modules.values() if not module.is_package):
        folder, _, name = path.rpartition("/")
        names[folder].append(name.removesuffix(".py"))
    for folder, there in sorted(names.items()):
        where = f"src/ralph/{folder}/__init__.py:1" if folder else "src/ralph/__init__.py:1"
        if len(there) > MOST_IN_A_FOLDER:
            yield f"{where}: {len(there)} modules in one folder, {MOST_IN_A_FOLDER} allowed"
        for prefix, count in Counter(name.partition("_")[0] for name in there).items():
            if count > MOST_WITH_A_PREFIX:
                yield f"{where}: {count} modules begin with {prefix}: make a folder of them"


# ---------------------------------------------------------------- 5. not too many


def business(rooms: House) -> Iterator[str]:
    """No module imports too many others."""
    for name, edges in rooms.edges().items():
        if len(edges) > MOST_IMPORTS:
            why = f"it imports {len(edges)} modules, {MOST_IMPORTS} allowed"
            yield rooms.modules[name].objection(1, why)


RULES: Mapping[str, Callable[[House], Iterator[str]]] = {
    "imports go up only": order,
    "no cycles": cycles,
    "pure rooms are pure": purity,
    "hooks reach the standard library only": lean,
    "packages have their rooms": packages,
    "folders are small": folders,
    "modules know few others": business,
}


@pytest.mark.parametrize("rule", RULES)
def test_the_house_keeps_its_rules(rule: str) -> None:
    """AGENTS.md: "Direction, enforced by a test over imports"."""
    wrong = list(dict.fromkeys(RULES[rule](house())))
    assert house().modules
    assert not wrong, "\n" + "\n".join(wrong)


def many(folder: str, names: int, prefix: str = "m") -> dict[str, str]:
    return {f"{folder}/{prefix}{number}.py": "" for number in range(names)}


BUSY = "\n".join(f"from ralph.files.m{number} import x" for number in range(26))
PLANTED = [
    # 1. up only
    (order, {"kernel/rules.py": "import ralph.ui.style"}, 1, "kernel must not import ui"),
    (order, {"kernel/rules.py": "from ralph import ui"}, 1, "kernel must not import ui"),
    (order, {"kernel/rules.py": "from .. import ui"}, 1, "kernel must not import ui"),
    (order, {"kernel/rules.py": "from ..ui.style import x"}, 1, "kernel must not import ui"),
    (order, {"files/a.py": "def f():\n    import ralph.ui.style"}, 2, "files must not import ui"),
    (
        order,
        {"files/a.py": "if TYPE_CHECKING:\n    from ralph.ui.style import x"},
        2,
        "files must not import ui",
    ),
    (
        order,
        {"runner/wire.py": "from ralph.loops.prompt import loop", "loops/prompt/loop.py": ""},
        1,
        "runner must not import loops",
    ),
    (
        order,
        {"ui/a.py": "from ralph import Supervisor"},
        1,
        "ralph.Supervisor is for other programs",
    ),
    (order, {"extra/thing.py": ""}, 1, "extra is not a room of the plan"),
    (
        cycles,
        {"files/a.py": "\nfrom ralph.files import b", "files/b.py": "import ralph.files.a"},
        2,
        "a cycle: files.a -> files.b -> files.a",
    ),
    (
        cycles,
        {
            "files/a.py": "from ralph.files.b import x",
            "files/b.py": "def f():\n    from ralph.files.c import x",
            "files/c.py": "if TYPE_CHECKING:\n    from ralph.files import a",
        },
        1,
        "a cycle: files.a -> files.b -> files.c -> files.a",
    ),
    # 2. pure
    (purity, {"kernel/rules.py": "import os.path as p"}, 1, "kernel.rules is pure: no os"),
    (purity, {"guard/x.py": "def f():\n    from time import time"}, 2, "guard.x is pure: no time"),
    (
        purity,
        {"agents/streams/claude.py": "import subprocess"},
        1,
        "agents.streams.claude is pure: no subprocess",
    ),
    (
        purity,
        {"loops/backlog/policy.py": "import random"},
        1,
        "loops.backlog.policy is pure: no random",
    ),
    (
        purity,
        {"loops/backlog/rules.py": "from ralph.files.m0 import x", **many("files", 1)},
        1,
        "loops.backlog.rules is pure, files.m0 is not",
    ),
    # 3. standard library
    (lean, {"hooks/stop.py": "import msgspec"}, 1, "hooks reach this: no msgspec"),
    (
        lean,
        {"hooks/stop.py": "import ralph.files.a", "files/a.py": "def f():\n    import yaml"},
        2,
        "hooks reach this: no yaml",
    ),
    (packages, {"runner/plan.py": "import click"}, 1, "runner must not import click"),
    (packages, {"kernel/ports.py": "import msgspec"}, 1, "kernel must not import msgspec"),
    (packages, {"testing/fakes.py": "import pytest"}, 1, "testing must not import pytest"),
    # 4. folders
    (folders, many("files", 21), 1, "21 modules in one folder, 20 allowed"),
    (
        folders,
        {"files/task.py": "", "files/task_file.py": "", "files/task_ids.py": ""},
        1,
        "3 modules begin with task: make a folder of them",
    ),
    # 5. few others
    (
        business,
        {"files/busy.py": BUSY, **many("files", 26)},
        1,
        "it imports 26 modules, 25 allowed",
    ),
]


@pytest.mark.parametrize(("rule", "planted", "line", "why"), PLANTED)
def test_a_planted_violation_is_named_with_its_line(
    rule: Callable[[House], Iterator[str]], planted: dict[str, str], line: int, why: str
) -> None:
    sources = {"ui/__init__.py": "", "ui/style.py": "", **planted}
    found = list(rule(House(sources)))
    assert [text for text in found if text.endswith(f":{line}: {why}")], found
    assert all(text.startswith("src/ralph/") for text in found)


@pytest.mark.parametrize(
    ("rule", "planted"),
    [
        (
            order,
            {"kernel/rules.py": "import re\nfrom ralph import __version__\nfrom . import turn"},
        ),
        (order, {"ui/a.py": "import ralph\nfrom ralph.kernel.facts import Fact"}),
        (order, {"runner/a.py": 'LOOPS = {"prompt": "ralph.loops.prompt.loop"}'}),
        (cycles, {"files/a.py": "import ralph.files.b", "files/b.py": "import ralph.files.c"}),
        (cycles, {"files/__init__.py": "", "files/a.py": "from ralph.files import b"}),
        (purity, {"loops/prompt/scm.py": "import os", "loops/prompt/policy.py": "import re"}),
        (lean, {"hooks/stop.py": "import os", "ui/console.py": "import rich.table"}),
        (packages, {"settings/load.py": "from msgspec import Struct"}),
        (folders, {**many("files", 20), "git/a_b.py": "", "git/a_c.py": ""}),
        (business, {"files/busy.py": BUSY.partition("\n")[2], **many("files", 26)}),
    ],
)
def test_what_keeps_the_rules_is_let_pass(
    rule: Callable[[House], Iterator[str]], planted: dict[str, str]
) -> None:
    found = list(rule(House({"ui/__init__.py": "", **planted})))
    assert [text for text in found if "modules begin with m" not in text] == []
