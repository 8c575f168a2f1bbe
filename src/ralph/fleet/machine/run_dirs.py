"""The directories of attempts in the state directory: streams, layers of sandboxes, logs."""

import fcntl
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import count

from ralph.errors import StateError
from ralph.files.state_dir import state_root, writing_state
from ralph.fleet.machine.holding import mark
from ralph.fleet.port import Job
from ralph.sandbox import layer_store

_KEPT = 50  # that are newest
_YOUNG = 3600.0  # seconds; a stream may still be read


@contextmanager
def made(job: Job, environ: Mapping[str, str]) -> Iterator[str]:
    """A new directory for an attempt; those of old ones go."""
    above = os.path.join(state_root(environ), "fleet")
    with writing_state(above):
        os.makedirs(above, mode=0o700, exist_ok=True)
        _forget(above)
        name = mark(job)
        for number in count(1):
            path = os.path.join(above, name if number == 1 else f"{name}-{number}")
            with suppress(FileExistsError):
                os.mkdir(path, 0o700)
                break
        os.mkdir(os.path.join(path, "signals"), 0o700)
        lock = os.open(os.path.join(path, "lock"), os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.flock(lock, fcntl.LOCK_EX)
    try:
        yield path
    finally:
        os.close(lock)


def _forget(above: str) -> None:
    """Remove all but the newest, and those that somebody has."""
    with os.scandir(above) as entries:
        found = sorted(
            (entry.stat(follow_symlinks=False).st_mtime, entry.path) for entry in entries
        )
    for when, path in found[:-_KEPT]:
        with suppress(OSError, StateError):
            lock = os.open(os.path.join(path, "lock"), os.O_RDWR)
            try:
                if time.time() - when > _YOUNG:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    layer_store.remove(path)
            finally:
                os.close(lock)
