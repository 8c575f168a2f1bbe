"""What a project begins with: the templates of `ralph/` (R §6 to §9), and how they get there."""

import errno
import json
import os
from collections.abc import Mapping
from typing import Any

from ralph.kernel.value import value
from ralph.loops.stories.file import PRD, PROGRESS, PROMPT, TASKS, as_text

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
        return {**texts, TASKS: as_text(self._listing()), PROGRESS: self._progress().encode()}

    def _listing(self) -> dict[str, Any]:
        listing: dict[str, Any] = json.loads(template(TASKS))
        branch = {"branchName": self.branch} if self.branch else {}
        return {**listing, "project": self.project, **branch}

    def _progress(self) -> str:
        dated = template(PROGRESS).replace("{{DATE}}", self.date)
        return dated.replace("{{PROJECT_NAME}}", self.project)


def project_name(directory: str) -> str:
    """A project is called like its directory, as far as that is text."""
    name = os.path.basename(os.path.realpath(directory)) or "project"
    return os.fsencode(name).decode("utf-8", "replace")


def is_begun(listing: Mapping[str, Any]) -> bool:
    """Whether anybody wrote stories into a list; its other fields say nothing about that."""
    return bool(listing["userStories"] != json.loads(template(TASKS))["userStories"])


# ------------------------------------------------------------------ making them


def add_missing(folder: str, files: Mapping[str, bytes]) -> list[str]:
    """Write those files that are not there, and say which. OSError, and then none is left."""
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
    """Whether it was not there. It appears with all its content, or not at all."""
    if os.path.lexists(path):
        return False
    temporary = f"{path}.{os.getpid()}.tmp"
    try:
        with open(temporary, "xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        return _appear(temporary, path)
    finally:
        if os.path.lexists(temporary):
            os.unlink(temporary)


def _appear(temporary: str, path: str) -> bool:
    """A link is refused where somebody else was quicker; a rename would overwrite his file."""
    try:
        os.link(temporary, path)
    except FileExistsError:
        return False
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        os.rename(temporary, path)
    return True
