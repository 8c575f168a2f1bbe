"""Files where the agent can write too: a pipe or a device in a file's place must not hold us up,
and a link must not lead what we write to somewhere else."""

import os
import stat

TYPE_CHECKING = False  # as typing has it, which takes a while to import
if TYPE_CHECKING:
    from typing import BinaryIO

_EISDIR = 21
_IRREGULAR = "not a regular file"


def open_regular(path: str) -> "BinaryIO":
    """A file to read; a pipe or a device in its place is an error, not a wait. A link to a file
    is fine: people make such."""
    mode = os.stat(path).st_mode
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(_EISDIR, os.strerror(_EISDIR))
    if not stat.S_ISREG(mode):
        raise OSError(0, _IRREGULAR)  # to open some devices already does something
    return os.fdopen(regular(os.open(path, os.O_RDONLY | os.O_NONBLOCK)), "rb")


def create(path: str, mode: int = 0o600) -> int:
    """A new file to write, in place of whatever stands there. A directory is an error."""
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, mode)


def regular(descriptor: int) -> int:
    """The descriptor, if it is a regular file's; otherwise it is closed, and that is an error."""
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(0, _IRREGULAR)
    return descriptor
