"""Directories of a fleet's processes, in the state directory: gone with them, or with the next."""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress

from ralph.files.state_dir import ensure_state_root, state_root

_LOCK = "lock"


@contextmanager
def scratch(environ: Mapping[str, str]) -> Iterator[str]:
    """A new directory, removed at the end; those of processes that were killed go too."""
    root = state_root(environ)
    ensure_state_root(root)
    above = os.path.join(root, "fleet")
    os.makedirs(above, mode=0o700, exist_ok=True)
    for name in os.listdir(above):
        _remove_dead(os.path.join(above, name))
    path = tempfile.mkdtemp(prefix=f"{os.getpid()}-", dir=above)
    with open(os.path.join(path, _LOCK), "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            yield path
        finally:
            shutil.rmtree(path, ignore_errors=True)


def _remove_dead(path: str) -> None:
    """Remove a directory that nobody holds."""
    with suppress(OSError), open(os.path.join(path, _LOCK), encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(path, ignore_errors=True)
