"""The folder of a project's stories, and what is known of them. Only the standard library
stands behind it."""

import os
from collections.abc import Mapping
from typing import Any

from ralph.errors import ConfigError
from ralph.files.state_dir import project_dir, state_root
from ralph.kernel.value import value
from ralph.loops.stories.file import TASKS, StoryFile
from ralph.loops.stories.past_reviews import last_archived, reviews_of
from ralph.review.law import NotAListError, has_shape
from ralph.review.stats import Analytics, analytics
from ralph.runner.arguments import current_directory

RALPH_DIR = "ralph"


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


def analytics_of(folder: Folder, environ: Mapping[str, str]) -> Analytics:
    """The analytics that the list and the journals tell together."""
    listing = folder.listing()
    state = project_dir(state_root(environ), folder.project)
    branch = listing.get("branchName")
    since = last_archived(folder.project)
    return analytics(listing, reviews_of(state, str(branch), since))
