"""Keeps a copy of the list of stories before each turn, where no agent can write."""

import os
from collections.abc import Mapping
from dataclasses import field
from typing import Any

from ralph.errors import StateError
from ralph.files.digest import digest_of
from ralph.files.state_dir import unwritable_state
from ralph.kernel.value import value
from ralph.loops.stories.file import StoryFile, write_synced
from ralph.review.law import NotAListError, has_shape, parsed


@value
class StoryStore:
    """Lists by their digest, in a run's directory."""

    directory: str
    memory: dict[str, bytes] = field(default_factory=dict, repr=False)  # where no agent reaches

    def keep(self, file: StoryFile) -> str:
        """Keep the list as it is now. Returns a name for `listing`."""
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
            if not os.path.exists(path):  # whole or not at all: a run may be killed here
                os.makedirs(self.directory, mode=0o700, exist_ok=True)
                write_synced(f"{path}.tmp", raw)
                os.replace(f"{path}.tmp", path)
        except OSError as error:
            raise unwritable_state(self.directory, error) from error
        return name

    def listing(self, name: str) -> Mapping[str, Any]:
        """The list that was kept under that name."""
        path, raw = self._path(name), self.memory.get(name, b"")
        try:
            if not raw:  # of a run that was killed
                with open(path, "rb") as file:
                    raw = file.read()
        except OSError:
            pass  # told below
        if digest_of([raw]) != name:  # nobody can tell then what a turn did
            raise StateError(
                f"what the list of stories was before a turn is lost: {path}",
                "See for yourself whether each approval in tasks.json is right, then forget that "
                f"run: rm -r {os.path.dirname(self.directory)}",
            )
        self.memory[name] = raw
        return _listing(raw, path)

    def _path(self, name: str) -> str:
        return os.path.join(self.directory, f"{name}.json")


def _listing(raw: bytes, path: str) -> Mapping[str, Any]:
    """A list that a turn can be judged by."""
    try:
        listing = parsed(raw)
    except NotAListError as error:
        raise StateError(f"{path}: {error}", "Fix it, then: ralph resume") from error
    if not has_shape(listing):
        raise StateError(f"{path} is no list of stories", "Fix it, then: ralph resume")
    return listing
