"""The message bus on disk (S): one file that many processes append to, and others follow.

Writers take a lock and write an entry at once. Readers take it only to learn how long the file is
when nobody is writing; someone who never lets it go delays them for a moment and no more.
"""

import errno
import fcntl
import itertools
import os
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from ralph.adapters.run_info import timestamp
from ralph.core.bus import Decoder, Message, encode

_BLOCK = 1024 * 1024
_WRITERS_PATIENCE = 10.0  # seconds; an entry is written in much less than one
_READERS_PATIENCE = 0.2
_PAUSE = 0.001
_numbers = itertools.count(1)


def new_message(
    kind: str, body: str, *, project: str, task: str, run: str = "", now: float
) -> Message:
    """A message with an id that no other has; ids sort by time."""
    moment = timestamp(now)
    day, _, hour = moment.removesuffix("Z").partition("T")
    stamp = f"{day.replace('-', '')}-{hour.replace(':', '').replace('.', '-')}"
    # A process in another container may have the same number, and so may one after a reboot.
    who = f"{os.getpid()}-{next(_numbers):04d}-{os.urandom(2).hex()}"
    return Message(f"MSG-{stamp}-{who}", moment, kind, project, task, run, body)


class Bus:
    """A bus file. It is made by the first message."""

    def __init__(self, path: str) -> None:
        self._path = path

    def post(self, message: Message) -> None:
        """Append a message, whole or not at all; OSError when it cannot be written."""
        entry = encode(message)
        with _opened(self._path, os.O_RDWR | os.O_APPEND | os.O_CREAT) as file:
            if not _locked(file, fcntl.LOCK_EX, _WRITERS_PATIENCE):
                raise OSError(errno.EBUSY, "another process keeps it locked", self._path)
            _append(file, entry, self._path)

    def read(self) -> list[Message]:
        """All messages; a missing file has none. OSError when it cannot be read."""
        return Follower(self._path).new()

    def end(self) -> int:
        """Its size in bytes now; 0 where there is no file that could be read."""
        try:
            return _size(self._path)
        except OSError:
            return 0


class Follower:
    """The messages of a bus from some byte on, as they come. One that was cut down or removed is
    read from its beginning."""

    def __init__(self, path: str, offset: int = 0) -> None:
        self._path = path
        self._offset = offset
        self._decoder = Decoder()

    def new(self) -> list[Message]:
        """What came since the last call; where nothing did, that costs one look at the size.
        OSError when the file cannot be read."""
        return list(self.each())

    def each(self) -> Iterator[Message]:
        """The same, one by one: not all of a large bus has to be in memory."""
        size = _size(self._path)
        if size < self._offset:
            self._offset, self._decoder = 0, Decoder()
        if size == self._offset:
            return
        for block in self._blocks():
            yield from self._decoder.feed(block)
        yield from self._decoder.settle()

    def _blocks(self) -> Iterator[bytes]:
        with suppress(FileNotFoundError), _opened(self._path, os.O_RDONLY) as file:
            end = _settled_size(file)
            while block := os.pread(file, min(_BLOCK, max(0, end - self._offset)), self._offset):
                self._offset += len(block)
                yield block


# ------------------------------------------------------------------ the file


@contextmanager
def _opened(path: str, how: int) -> Iterator[int]:
    """An open file. A pipe or a device in its place is an error, not a wait."""
    flags = how | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
    file = os.open(path, flags, 0o644)
    try:
        _check_regular(os.fstat(file), path)
        yield file
    finally:
        os.close(file)


def _size(path: str) -> int:
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return 0
    _check_regular(found, path)
    return found.st_size


def _check_regular(found: os.stat_result, path: str) -> None:
    if stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    if not stat.S_ISREG(found.st_mode):
        raise OSError(errno.EINVAL, "not a regular file", path)


def _locked(file: int, how: int, patience: float) -> bool:
    """Take a lock, which goes when the file is closed; whether that could be done in time."""
    give_up = time.monotonic() + patience
    while True:
        try:
            fcntl.flock(file, how | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > give_up:
                return False
            time.sleep(_PAUSE)
        else:
            return True


def _settled_size(file: int) -> int:
    """How long the file is when nobody is writing: an entry that is not whole then is torn."""
    with suppress(OSError):  # a file system without locks
        _locked(file, fcntl.LOCK_SH, _READERS_PATIENCE)
    size = os.fstat(file).st_size
    with suppress(OSError):
        fcntl.flock(file, fcntl.LOCK_UN)
    return size


def _append(file: int, entry: bytes, path: str) -> None:
    """In one write, on a line of its own even behind an entry that was torn off."""
    size = os.fstat(file).st_size
    torn = size > 0 and os.pread(file, 1, size - 1) != b"\n"
    data = b"\n" + entry if torn else entry
    written = os.write(file, data)
    if written < len(data):
        if os.fstat(file).st_size == size + written:  # nobody has written without the lock
            os.ftruncate(file, size)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
