"""Opens files where the agent can write too: a pipe or a device in a file's place must not hold us
up, and a link must not lead what we write to somewhere else."""

import os
import stat
from io import BufferedReader

_EISDIR = 21
_EINVAL = 22


def open_regular(path: str) -> BufferedReader:
    """A file to read; a pipe or a device in its place is an error, not a wait. A link to a file
    is fine: people make such."""
    refuse_irregular(os.stat(path), path)  # to open some devices already does something
    return os.fdopen(regular(os.open(path, os.O_RDONLY | os.O_NONBLOCK), path), "rb")


def read_or_nothing(path: str, most: int = -1) -> bytes:
    """The beginning of a file; nothing where it cannot be read."""
    try:
        with open_regular(path) as file:
            return file.read(most)
    except OSError:
        return b""


def remove_file(path: str | bytes) -> None:
    """Remove a file, if it is there."""
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass


def create(path: str, mode: int = 0o600) -> int:
    """A new file to write, in place of whatever stands there. A directory is an error."""
    remove_file(path)
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, mode)


def regular(descriptor: int, path: str) -> int:
    """The descriptor, if it is a regular file's; otherwise it is closed, and that is an error."""
    try:
        refuse_irregular(os.fstat(descriptor), path)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def refuse_irregular(found: os.stat_result, path: str) -> None:
    """Raise OSError for everything but a file."""
    if stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError(_EISDIR, os.strerror(_EISDIR), path)
    if not stat.S_ISREG(found.st_mode):
        raise OSError(_EINVAL, "not a regular file", path)
