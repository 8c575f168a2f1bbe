"""What the commands of `ralph prd` have in common: the folder, its list, and options."""

import os
from collections.abc import Mapping
from typing import Any

import click

from ralph.adapters.story_file import TASKS, StoryFile
from ralph.cli.params import completed_by, current_directory
from ralph.core.review import NotAListError, has_shape
from ralph.core.value import value
from ralph.errors import ConfigError

RALPH_DIR = "ralph"
in_json = click.option("--json", "in_json", is_flag=True, help="Print one JSON object.")
ralph_dir = click.option(
    "--ralph-dir",
    metavar="PATH",
    default=f"./{RALPH_DIR}",
    show_default=True,
    shell_complete=completed_by("directories"),
    help="Where the stories are.",
)


@value
class Folder:
    """The ralph folder of a project; both paths are absolute."""

    project: str
    path: str

    @property
    def file(self) -> StoryFile:
        """The list of stories."""
        return StoryFile(os.path.join(self.path, TASKS))

    def of(self, name: str) -> str:
        """One of its files."""
        return os.path.join(self.path, name)

    def shown(self, name: str) -> str:
        """One of its files, as people in the project write it."""
        return os.path.relpath(self.of(name), self.project)

    def listing(self) -> Mapping[str, Any]:
        """The list, if its stories can be told apart; a ConfigError otherwise."""
        where = self.shown(TASKS)
        try:
            listing = self.file.listing()
        except NotAListError as error:
            raise ConfigError(f"{where}: {error}", "See: ralph prd check") from error
        if not has_shape(listing):
            message = f"{where}: this is no list of stories"
            raise ConfigError(message, "See what is wrong: ralph prd check")
        return listing


def found_folder(given: str) -> Folder:
    """The folder that is meant, which has to be there."""
    project = current_directory()
    path = os.path.join(project, os.path.expanduser(given))
    if not os.path.isdir(path):
        what = "is not a folder" if os.path.lexists(path) else "is not there"
        remedy = "Make it: ralph prd init (or name another: --ralph-dir PATH)"
        raise ConfigError(f"the ralph folder {given} {what}", remedy)
    return Folder(project, os.path.normpath(path))
