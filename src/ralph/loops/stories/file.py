"""Reads and writes `tasks.json`, the list of stories (R §8), which the agent can write too."""

import errno
import glob
import json
import os
import shutil
import stat
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from ralph.files.safe_open import create, open_regular
from ralph.kernel.tasks.task import Backlog, ReviewStatus, Status, Task
from ralph.kernel.value import value
from ralph.review.law import NotAListError, malformed, parsed
from ralph.review.text import LARGEST

PRD, TASKS, PROGRESS, PROMPT = "prd.md", "tasks.json", "progress.txt", "prompt.md"


@value
class StoryFile:
    """The list of a project, wherever its folder is."""

    path: str
    home: str = ""  # the real folder that it must be in, if that matters

    def raw(self) -> bytes:
        """Its content. Raises OSError, also if a link, a pipe or a folder stands in its place: by a
        link something else would be judged than is kept."""
        if self.home and os.path.realpath(os.path.dirname(self.path)) != self.home:
            raise OSError(errno.ELOOP, "its folder was replaced", self.path)
        if stat.S_ISLNK(os.lstat(self.path).st_mode):
            raise OSError(errno.ELOOP, "it is a symbolic link", self.path)
        with open_regular(self.path) as file:
            content = file.read(LARGEST + 1)
        if len(content) > LARGEST:
            raise OSError(errno.EFBIG, f"it is larger than {LARGEST >> 20} MB", self.path)
        return content

    def listing(self) -> object:
        """Its JSON. Raises NotAListError if it cannot be read or is none."""
        try:
            return parsed(self.raw())
        except OSError as error:
            raise NotAListError(f"it cannot be read: {error.strerror}") from error

    def write(self, listing: Mapping[str, Any]) -> None:
        self.write_raw(as_text(listing))

    def write_raw(self, text: bytes) -> None:
        """Replace its content, whatever stands in its place now. Raises OSError."""
        folder = os.path.dirname(self.path)
        os.makedirs(folder, exist_ok=True)
        if not os.access(folder, os.W_OK | os.X_OK):
            os.chmod(folder, 0o755)  # noqa: S103  it is ours, whoever has closed it
        # Left by a host that was killed while it wrote: an agent would commit it.
        for left in glob.glob(f"{glob.escape(self.path)}.{'[0-9a-f]' * 16}.tmp"):
            with suppress(OSError):  # a folder, or not ours: it is in nobody's way
                os.unlink(left)
        # No name that an agent could foresee, and put something else there.
        temporary, aside = (f"{self.path}.{os.urandom(8).hex()}.tmp" for _ in range(2))
        try:
            with os.fdopen(create(temporary, 0o666), "wb") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            if os.path.isdir(self.path) and not os.path.islink(self.path):
                os.rename(self.path, aside)  # some folders can be moved, but not be emptied
            os.replace(temporary, self.path)
        finally:
            if os.path.lexists(temporary):
                os.unlink(temporary)
            shutil.rmtree(aside, ignore_errors=True)  # whoever calls has kept what is worth it


def write_synced(path: str, content: bytes, how: str = "wb") -> None:
    """Write a file whose content survives a kill of the machine."""
    with open(path, how) as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def as_text(listing: Mapping[str, Any]) -> bytes:
    """A list as people and git read it."""
    try:
        return (json.dumps(listing, indent=2, ensure_ascii=False) + "\n").encode()
    except UnicodeEncodeError:  # half a character, which only JSON can spell
        return (json.dumps(listing, indent=2) + "\n").encode()


@value
class StoryBacklog:
    """The stories to work on, each with the project's own prompt."""

    folder: str  # the ralph folder, its real path
    shown: str  # the same, as people write it

    @property
    def file(self) -> StoryFile:
        return StoryFile(os.path.join(self.folder, TASKS), self.folder)

    def __call__(self) -> Backlog:
        where = os.path.join(self.shown, TASKS)
        try:
            listing = self.file.listing()
        except NotAListError as error:
            return Backlog(problem=f"{where}: {error}")
        problems = malformed(listing)
        if problems:
            return Backlog(problem=f"{where}: {problems[0][1]}")
        assert isinstance(listing, dict)
        try:
            prompt = self._prompt()
        except (OSError, ValueError) as error:
            why = str(getattr(error, "strerror", "") or error)
            if isinstance(error, UnicodeDecodeError):
                why = f"it is not UTF-8 text (byte {error.start})"
            return Backlog(problem=f"{os.path.join(self.shown, PROMPT)}: {why}")
        tasks = tuple(tasks_of(listing, prompt))
        return Backlog(tasks, known={task.id: task for task in tasks})

    def _prompt(self) -> str:
        with open_regular(os.path.join(self.folder, PROMPT)) as file:
            content = file.read(LARGEST + 1)
        if len(content) > LARGEST:
            raise ValueError(f"it is larger than {LARGEST >> 20} MB: no agent reads that")
        text = content.decode("utf-8-sig")
        if not text.strip():
            raise ValueError("it is empty: write down what an iteration shall do")
        if "\0" in text:
            raise ValueError("it contains a NUL byte: it is not text")
        return text


def tasks_of(listing: Mapping[str, Any], prompt: str = "") -> list[Task]:
    """The stories of a list that passes check 1. R's priority may be any number; only the order
    counts."""
    stories = listing["userStories"]
    ranks = {priority: n for n, priority in enumerate(sorted({s["priority"] for s in stories}), 1)}
    return [
        Task(
            story["id"],
            story["title"],
            prompt,
            Status.DONE if story["passes"] else Status.PENDING,
            priority=ranks[story["priority"]],
            blocked_by=tuple(story.get("dependsOn") or ()),
            review=ReviewStatus(story["reviewStatus"]) if story["reviewStatus"] else None,
            passes=story["passes"],
            notes=story.get("notes") or "",
        )
        for story in stories
    ]
