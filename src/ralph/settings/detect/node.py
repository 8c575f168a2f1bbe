"""Scripts of a package.json, by the project's package manager."""

import re
from collections.abc import Iterator

from ralph.kernel.value import replace
from ralph.settings.detect.project import Project, ProposedCheck, by_role, scripts_of

_LOCKS = {
    "pnpm-lock.yaml": "pnpm",
    "yarn.lock": "yarn",
    "bun.lock": "bun",
    "bun.lockb": "bun",
    "package-lock.json": "npm",
    "npm-shrinkwrap.json": "npm",
}
_SCRIPTS = {"test": ("test",), "lint": ("lint",), "build": ("build",)}
_TYPES = ("typecheck", "type-check", "check-types")
_PLAIN = re.compile(r"[A-Za-z][\w.-]*")
_BUILTIN = frozenset(
    {"cd", "echo", "exit", "export", "false", "for", "if", "set", "test", "true", "while"}
)
_MANAGERS = ("npm", "pnpm", "yarn", "bun")
# npm's placeholder, and what would never end.
_USELESS = re.compile(r"no test specified|--watch\w*(?!\w|=false)")


def checks(project: Project) -> Iterator[ProposedCheck]:
    """The scripts named test, lint, typecheck and build."""
    package = project.json("package.json")
    named = str(package.get("packageManager", "")).partition("@")[0]
    locked = next((by for lock, by in _LOCKS.items() if lock in project.names), "npm")
    manager = named if named in _MANAGERS else locked
    useful = {
        name: words
        for name, words in scripts_of(package).items()
        if words.strip() and not _USELESS.search(words)
    }
    types = next(iter(by_role(useful, {"lint": _TYPES})), None)
    for role, script in (*by_role(useful, _SCRIPTS), *([types] if types else [])):
        # `bun test` is a program of its own, and not the script.
        short = script == "test" and manager != "bun"
        command = f"{manager} {script}" if short else f"{manager} run {script}"
        check = project.check(role, command, f"package.json: scripts.{script}")
        yield check if check.lacks else replace(check, lacks=_lacking(project, useful[script]))


def _lacking(project: Project, script: str) -> str:
    """The program that a script begins with, if it is a plain name and nowhere to be found."""
    words = (word for word in script.split() if "=" not in word and word != "cross-env")
    program = next(words, "")
    shells = program in _BUILTIN or _PLAIN.fullmatch(program) is None
    places = (program, f"node_modules/.bin/{program}")
    return "" if shells or any(map(project.runs, places)) else program
