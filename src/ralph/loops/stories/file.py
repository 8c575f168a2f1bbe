"""Reads, writes and keeps `tasks.json`, the list of stories (R §8), which agents can write too."""

import errno
import glob
import json
import os
import shutil
import stat
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import field
from typing import Any

from ralph.errors import StateError, failing
from ralph.files.digest import digest_of
from ralph.files.safe_open import create, open_regular, remove_file
from ralph.files.state_dir import writing_state
from ralph.kernel.tasks.task import ReviewStatus, Status, Task
from ralph.kernel.value import value
from ralph.review.law import LARGEST, NotAListError, has_shape, parsed

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

    def write(self, text: bytes) -> None:
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
        temporary, moved = (f"{self.path}.{os.urandom(8).hex()}.tmp" for _ in range(2))
        try:
            with os.fdopen(create(temporary, 0o666), "wb") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            if os.path.isdir(self.path) and not os.path.islink(self.path):
                os.rename(self.path, moved)  # some folders can be moved, but not be emptied
            os.replace(temporary, self.path)
        finally:
            remove_file(temporary)
            shutil.rmtree(moved, ignore_errors=True)  # whoever calls has kept what is worth it


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


def tasks_of(listing: Mapping[str, Any], prompt: str = "") -> list[Task]:
    """The stories of a list that passes check 1. Of R's priorities only the order counts."""
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


@value
class StoryStore:
    """The lists before each turn by their digest, in a run's directory, where no agent writes."""

    directory: str
    memory: dict[str, bytes] = field(default_factory=dict, repr=False)  # where no agent reaches

    def keep(self, file: StoryFile) -> str:
        """Keep the list as it is now. Returns a name for `listing`."""
        with failing(f"cannot read {file.path}", "Put it back, then: ralph resume", StateError):
            raw = file.raw()
        _listing(raw, file.path)
        name = digest_of([raw])
        self.memory[name] = raw
        path = os.path.join(self.directory, f"{name}.json")
        with writing_state(self.directory):
            if not os.path.exists(path):  # whole or not at all: a run may be killed here
                os.makedirs(self.directory, mode=0o700, exist_ok=True)
                write_synced(f"{path}.tmp", raw)
                os.replace(f"{path}.tmp", path)
        return name

    def listing(self, name: str) -> Mapping[str, Any]:
        """The list that was kept under that name."""
        path, raw = os.path.join(self.directory, f"{name}.json"), self.memory.get(name, b"")
        with suppress(OSError):  # told below
            if not raw:  # of a run that was killed
                with open(path, "rb") as file:
                    raw = file.read()
        if digest_of([raw]) != name:  # nobody can tell then what a turn did
            raise StateError(
                f"what the list of stories was before a turn is lost: {path}",
                "See for yourself whether each approval in tasks.json is right, then forget that "
                f"run: rm -r {os.path.dirname(self.directory)}",
            )
        self.memory[name] = raw
        return _listing(raw, path)


def _listing(raw: bytes, path: str) -> Mapping[str, Any]:
    """A list that a turn can be judged by."""
    try:
        listing = parsed(raw)
    except NotAListError as error:
        raise StateError(f"{path}: {error}", "Fix it, then: ralph resume") from error
    if not has_shape(listing):
        raise StateError(f"{path} is no list of stories", "Fix it, then: ralph resume")
    return listing
