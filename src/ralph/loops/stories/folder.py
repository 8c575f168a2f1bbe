"""The folder of a project's stories, its templates (R §6 to §9), and what is known of its reviews.
Only the standard library stands behind it."""

import json
import os
from collections.abc import Mapping
from typing import Any

from ralph.errors import ConfigError
from ralph.files.safe_open import open_regular
from ralph.files.state_dir import project_dir, state_root
from ralph.kernel.tasks.task import Backlog
from ralph.kernel.value import value
from ralph.loops.stories.file import PRD, PROGRESS, PROMPT, TASKS, StoryFile, as_text, tasks_of
from ralph.loops.stories.past_runs import last_archived, reviews_of
from ralph.review.law import LARGEST, NotAListError, has_shape, malformed
from ralph.review.stats import Analytics, analytics
from ralph.runner.arguments import current_directory, text_of

RALPH_DIR = "ralph"
_TEMPLATES = os.path.join(os.path.dirname(__file__), "project_files")


@value
class Folder:
    """The ralph folder of a project; both paths are absolute."""

    project: str
    path: str
    home: str = ""  # the real path that it must keep, if that matters

    @property
    def file(self) -> StoryFile:
        """The list of stories."""
        return StoryFile(self.of(TASKS), self.home)

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

    def backlog(self) -> Backlog:
        """The stories to work on, each with the project's own prompt."""
        where = self.shown(TASKS)
        try:
            listing = self.file.listing()
        except NotAListError as error:
            return Backlog(problem=f"{where}: {error}")
        problems = malformed(listing)
        if problems:
            return Backlog(problem=f"{where}: {problems[0][1]}")
        assert isinstance(listing, dict)
        try:
            with open_regular(self.of(PROMPT)) as file:
                prompt = text_of(file.read(LARGEST + 1), "it", LARGEST)
            why = "" if prompt.strip() else "it is empty: write down what an iteration shall do"
        except (OSError, ConfigError) as error:
            why = error.message if isinstance(error, ConfigError) else str(error.strerror)
        if why:
            return Backlog(problem=f"{self.shown(PROMPT)}: {why}")
        tasks = tuple(tasks_of(listing, prompt))
        return Backlog(tasks, known={task.id: task for task in tasks})


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


def fresh_files(directory: str, date: str, branch: str = "") -> dict[str, bytes]:
    """The first files of the project in a directory; without a `branch`, the template's."""
    name = os.path.basename(os.path.realpath(directory)) or "project"
    project = os.fsencode(name).decode("utf-8", "replace")
    texts = {}
    for each in (PROMPT, PRD, TASKS, PROGRESS):
        with open(os.path.join(_TEMPLATES, each), encoding="utf-8") as file:
            texts[each] = file.read()
    listing = {**json.loads(texts[TASKS]), "project": project}
    listing |= {"branchName": branch} if branch else {}
    progress = texts[PROGRESS].replace("{{DATE}}", date).replace("{{PROJECT_NAME}}", project)
    files = {name: text.encode() for name, text in texts.items()}
    return {**files, TASKS: as_text(listing), PROGRESS: progress.encode()}
