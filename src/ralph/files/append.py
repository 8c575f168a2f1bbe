"""Appends to files that several processes write: a line in one write, under a lock with a limit."""

import errno
import fcntl
import os
import time

_PAUSE = 0.002  # seconds; a line is written in much less than one


def append_line(file: int, line: bytes, *, alone: bool) -> None:
    """Write a line, given with its end, at once: on a line of its own even after one that was torn
    off. OSError where not all of it has room; who is `alone`, by a lock, leaves nothing of it."""
    size = os.fstat(file).st_size
    torn = size > 0 and os.pread(file, 1, size - 1) != b"\n"
    data = b"\n" * torn + line
    written = os.write(file, data)
    if written < len(data):
        if alone and os.fstat(file).st_size == size + written:  # not everybody minds the lock
            os.ftruncate(file, size)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def lock(file: int, kind: int, patience: float) -> bool:
    """Take a lock, which goes when the file is closed; false if that could not be done in so many
    seconds. OSError on a file system without locks."""
    give_up = time.monotonic() + patience
    while True:
        try:
            fcntl.flock(file, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            left = give_up - time.monotonic()
            if left <= 0:
                return False
            time.sleep(min(_PAUSE, left))
        else:
            return True


def is_at(file: int, path: str) -> bool:
    """True if the open file is still the one with this name, and no other was put in its place."""
    try:
        return os.path.samestat(os.fstat(file), os.lstat(path))
    except OSError:
        return False
