"""What the host remembers of a list of stories before each turn, where no agent can write."""

import os
from collections.abc import Mapping
from dataclasses import field
from typing import Any

from ralph.errors import StateError
from ralph.files.digest import digest_of
from ralph.files.state_dir import unwritable_state
from ralph.kernel.value import value
from ralph.loops.stories.file import StoryFile
from ralph.review.law import NotAListError, has_shape, parsed


@value
class StoryStore:
    """Lists by their digest, in a run's directory."""

    directory: str
    memory: dict[str, bytes] = field(default_factory=dict, repr=False)  # where no agent reaches

    def keep(self, file: StoryFile) -> str:
        """Remember the list as it is now; the name it can be had back by."""
        try:
            raw = file.raw()
        except OSError as error:
            message = f"cannot read {file.path}: {error.strerror}"
            raise StateError(message, "Put it back, then: ralph resume") from error
        _listing(raw, file.path)
        name = digest_of([raw])
        self.memory[name] = raw
        path = self._path(name)
        try:
            if not os.path.exists(path):
                os.makedirs(self.directory, mode=0o700, exist_ok=True)
                _write(path, raw)
        except OSError as error:
            raise unwritable_state(self.directory, error) from error
        return name

    def listing(self, name: str) -> Mapping[str, Any]:
        """What was kept under that name."""
        path = self._path(name)
        try:
            if name not in self.memory:  # of a run that was killed
                with open(path, "rb") as file:
                    self.memory[name] = file.read()
        except OSError as error:
            raise _lost(path, self.directory) from error
        if digest_of([self.memory[name]]) != name:
            raise _lost(path, self.directory)
        return _listing(self.memory[name], path)

    def _path(self, name: str) -> str:
        return os.path.join(self.directory, f"{name}.json")


def _lost(path: str, directory: str) -> StateError:
    """Nobody can say then what a turn did; a person can look."""
    return StateError(
        f"what the list of stories was before a turn is lost: {path}",
        "See for yourself whether each approval in tasks.json is right, then forget that run: "
        f"rm -r {os.path.dirname(directory)}",
    )


def _listing(raw: bytes, path: str) -> Mapping[str, Any]:
    """A list that a turn can be judged by."""
    try:
        listing = parsed(raw)
    except NotAListError as error:
        raise StateError(f"{path}: {error}", "Mend it, then: ralph resume") from error
    if not has_shape(listing):
        raise StateError(f"{path} is no list of stories", "Mend it, then: ralph resume")
    return listing


def _write(path: str, raw: bytes) -> None:
    """Whole or not at all: a run may be killed here."""
    with open(f"{path}.tmp", "wb") as file:
        file.write(raw)
        file.flush()
        os.fsync(file.fileno())
    os.replace(f"{path}.tmp", path)
