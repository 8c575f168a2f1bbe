"""Targets of a Makefile."""

import re
from collections.abc import Iterator

from ralph.settings.detect.project import Project, ProposedCheck, by_role

_TARGETS = re.compile(r"^([A-Za-z0-9_.-]+(?:[ \t]+[A-Za-z0-9_.-]+)*)[ \t]*::?(?!=)", re.MULTILINE)
TARGETS = {"test": ("test", "tests", "check"), "lint": ("lint", "check"), "build": ("build",)}


def checks(project: Project) -> Iterator[ProposedCheck]:
    """`make test`, `make lint`, `make build`: the targets that are written there."""
    name = project.first("GNUmakefile", "makefile", "Makefile")  # as make looks for it
    targets = {word for found in _TARGETS.findall(project.text(name)) for word in found.split()}
    for role, target in by_role(targets, TARGETS):
        yield project.check(role, f"make {target}", name)
