"""The templates of `ralph/` (R §6 to §9), and how they get into a project."""

import errno
import json
import os
from collections.abc import Mapping
from typing import Any

from ralph.kernel.value import value
from ralph.loops.stories.file import PRD, PROGRESS, PROMPT, TASKS, as_text, write_synced

# What file systems without links say.
_NO_LINKS = (errno.EPERM, errno.ENOSYS, errno.EOPNOTSUPP, errno.EMLINK)
_TEMPLATES = os.path.join(os.path.dirname(__file__), "project_files")


def template(name: str) -> str:
    """A template as it was written."""
    with open(os.path.join(_TEMPLATES, name), encoding="utf-8") as file:
        return file.read()


@value
class Fresh:
    """The files of a project that begins. `branch` is taken as it is; "" is the template's."""

    project: str
    date: str
    branch: str = ""

    def files(self) -> dict[str, bytes]:
        """Every file by its name."""
        texts = {name: template(name).encode() for name in (PROMPT, PRD)}
        branch = {"branchName": self.branch} if self.branch else {}
        listing = {**json.loads(template(TASKS)), "project": self.project, **branch}
        dated = template(PROGRESS).replace("{{DATE}}", self.date)
        progress = dated.replace("{{PROJECT_NAME}}", self.project)
        return {**texts, TASKS: as_text(listing), PROGRESS: progress.encode()}


def project_name(directory: str) -> str:
    """The name of a project: that of its directory, as far as it is text."""
    name = os.path.basename(os.path.realpath(directory)) or "project"
    return os.fsencode(name).decode("utf-8", "replace")


def is_begun(listing: Mapping[str, Any]) -> bool:
    """True if anybody wrote stories into a list."""
    return bool(listing["userStories"] != json.loads(template(TASKS))["userStories"])


# ------------------------------------------------------------------ making them


def add_missing(folder: str, files: Mapping[str, bytes]) -> list[str]:
    """Write the files that are missing. Returns their names. Raises OSError, and leaves none."""
    had_folder = os.path.isdir(folder)
    made: list[str] = []
    try:
        os.makedirs(folder, exist_ok=True)
        for name, content in files.items():
            if _add(os.path.join(folder, name), content):
                made.append(name)
    except BaseException:
        take_back(folder, made, whole=not had_folder)
        raise
    return made


def take_back(folder: str, made: list[str], *, whole: bool) -> None:
    """Remove what was made, the folder too if that was new."""
    try:
        for name in made:
            os.unlink(os.path.join(folder, name))
        if whole:
            os.rmdir(folder)
    except OSError:
        pass  # whoever calls tells of the trouble that led here


def _add(path: str, content: bytes) -> bool:
    """Write a file with all its content, or not at all; False if there is one already."""
    if os.path.lexists(path):
        return False
    temporary = f"{path}.{os.getpid()}.tmp"
    try:
        write_synced(temporary, content, "xb")
        try:
            os.link(temporary, path)  # a rename would overwrite what somebody else just made
        except FileExistsError:
            return False
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            os.rename(temporary, path)
        return True
    finally:
        if os.path.lexists(temporary):
            os.unlink(temporary)
