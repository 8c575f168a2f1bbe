"""The checks of a project, from every ecosystem whose files lie in its directory."""

import fnmatch
import importlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ralph.settings.detect.project import Project, ProposedCheck

COMMITS = {"command": "git", "tasks": ["commit"]}  # what a repository is proposed as `scm`
ROLES = ("test", "lint", "build")  # in the order in which they run
# A module each, with `checks(project)`, and the files that speak for it. What the project wrote for
# people to type goes before what a language implies, role by role.
RUNNERS: Mapping[str, tuple[str, ...]] = {
    "makefile": ("GNUmakefile", "makefile", "Makefile"),
    "justfile": ("justfile", "Justfile", ".justfile"),
}
LANGUAGES: Mapping[str, tuple[str, ...]] = {
    "python": ("pyproject.toml", "setup.cfg", "tox.ini", "pytest.ini", "*.py", "tests", "test"),
    "node": ("package.json",),
    "cargo": ("Cargo.toml",),
    "go": ("go.mod",),
    "jvm": ("gradlew", "build.gradle*", "settings.gradle*", "mvnw", "pom.xml"),
    "composer": ("composer.json",),
    "mix": ("mix.exs",),
}


def checks_of(directory: str, environ: Mapping[str, str]) -> tuple[ProposedCheck, ...]:
    """The checks, tests first; also those that cannot run here, which say what they lack."""
    project = Project(directory, environ)
    written = list(_checks(project, RUNNERS))
    taken: set[str] = set()
    chosen = []
    for check in written:  # of make and just, whichever comes first
        if check.role not in taken:
            chosen.append(check)
            taken |= {check.role} if not check.lacks else set()
    chosen += [check for check in _checks(project, LANGUAGES) if check.role not in taken]
    return tuple(sorted(dict.fromkeys(chosen), key=lambda check: ROLES.index(check.role)))


def guardrails(checks: Iterable[ProposedCheck]) -> list[dict[str, Any]]:
    """Those that can run here, as the settings have them."""
    return [{"command": c.command, "failAction": "APPEND"} for c in checks if not c.lacks]


def _checks(project: Project, ecosystems: Mapping[str, tuple[str, ...]]) -> Iterator[ProposedCheck]:
    for name, files in ecosystems.items():
        if any(fnmatch.filter(project.names, pattern) for pattern in files):
            yield from importlib.import_module(f"ralph.settings.detect.{name}").checks(project)
