"""Recipes of a justfile."""

import re
from collections.abc import Iterator

from ralph.settings.detect.makefile import TARGETS
from ralph.settings.detect.project import Project, ProposedCheck, by_role

# A parameter without a default would have to be given.
_RECIPES = re.compile(
    r"^@?([A-Za-z_][\w-]*)((?:[ \t]+[*$]?[\w-]+(?:=\S+)?)*)[ \t]*:(?!=)", re.MULTILINE
)


def checks(project: Project) -> Iterator[ProposedCheck]:
    """`just test`, `just lint`, `just build`: the recipes that need no argument."""
    name = project.first("justfile", "Justfile", ".justfile")
    recipes = [
        recipe
        for recipe, parameters in _RECIPES.findall(project.text(name))
        if all("=" in word or word.startswith("*") for word in parameters.split())
    ]
    for role, recipe in by_role(recipes, TARGETS):
        yield project.check(role, f"just {recipe}", name)
