"""The message bus on disk (S): one file that many processes append to, and others follow.

Writers take a lock and write an entry at once. Readers take it only to learn how long the file is
when nobody is writing; a lock that is never released delays them for a moment and no more.
Whatever is in the file, a look at it takes a moment only, and bounded memory.
"""

import errno
import fcntl
import itertools
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from ralph.files.append import append_line, lock
from ralph.files.safe_open import refuse_irregular, regular
from ralph.journal.run_id import timestamp
from ralph.loops.supervise.bus_format import LARGEST, Decoder, Message, encode

_BLOCK = 64 * 1024
_LOOK = 8 * 1024 * 1024  # bytes that are read in one look
_LOOK_SECONDS = 0.25  # after which it ends too: a few bytes can be a message
_LATELY = 1024 * 1024  # bytes at the end of a bus
_SEARCH_SECONDS = 1.0
_HEARD = 8 * 1024 * 1024  # bytes of a body that a follower keeps: all may have to be looked at anew
_HOLE = 1024 * 1024  # so many bytes that nobody wrote belong to no message
_ALL = 1 << 62
_WRITERS_PATIENCE = 10.0  # seconds; an entry is written in much less than one
_READERS_PATIENCE = 0.2
_SEEK_DATA: int | None = getattr(os, "SEEK_DATA", None)  # not every system tells holes
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

    def post(self, message: Message, patience: float = _WRITERS_PATIENCE) -> None:
        """Append a message, whole or not at all. Raises OSError, also if another process keeps the
        file locked for so many seconds."""
        entry = encode(message)
        if len(entry) > LARGEST:
            raise OSError(errno.EFBIG, "the message is too large", self._path)
        with _opened(self._path, os.O_RDWR | os.O_APPEND | os.O_CREAT) as file:
            if not lock(file, fcntl.LOCK_EX, patience):
                raise OSError(errno.EBUSY, "another process keeps it locked", self._path)
            append_line(file, entry, alone=True)

    def read(self) -> list[Message]:
        """All messages; a missing file has none. Raises OSError."""
        return list(Follower(self._path, most=LARGEST).each())

    def has(self, wanted: Callable[[Message], bool], last: int = _LATELY) -> bool:
        """True if such a message is among the last bytes: a quick look. Raises OSError."""
        start = max(0, _size(self._path) - last - 1)  # the newline before an entry counts
        follower = Follower(self._path, start, at_start=start == 0)
        return any(map(wanted, follower.each(last + 1, _SEARCH_SECONDS)))

    def end(self) -> int:
        """Its size in bytes now; 0 if there is no readable file."""
        try:
            return _size(self._path)
        except OSError:
            return 0


class Follower:
    """The messages of a bus from some byte on, as they come. At most `most` bytes are kept of a
    message that is not whole yet, and a larger one is left out. A bus that was truncated or removed
    is read from its beginning."""

    def __init__(
        self, path: str, offset: int = 0, *, most: int = _HEARD, at_start: bool = True
    ) -> None:
        self._path = path
        self._offset = offset
        self._most = most
        self._decoder = Decoder(most, at_start=at_start)

    def new(self) -> list[Message]:
        """The messages since the last call, or the first of them: a call takes a moment only, and
        the next one continues. If there are none, it costs one look at the size. Raises OSError."""
        return list(self.each(_LOOK, _LOOK_SECONDS))

    def each(self, most: int = _ALL, seconds: float = _ALL) -> Iterator[Message]:
        """The same one by one, since a large bus may not fit into memory. Ends after so many bytes
        or seconds, and the next call continues."""
        size = _size(self._path)
        if size < self._offset:
            self._offset, self._decoder = 0, Decoder(self._most)
        if size == self._offset:
            return
        give_up = time.monotonic() + seconds
        with suppress(FileNotFoundError), _opened(self._path, os.O_RDONLY) as file:
            end = _settled_size(file)
            stop = min(end, self._offset + most)
            while block := os.pread(file, min(_BLOCK, max(0, stop - self._offset)), self._offset):
                self._offset += len(block)
                yield from self._decoder.feed(block)
                # Not before zeros are seen: file systems have taken data for a hole.
                if block.count(0) == len(block):
                    behind = min(end, _next_data(file, self._offset, end))
                    if behind - self._offset > _HOLE:
                        self._offset = behind
                        yield from self._decoder.skip()
                if time.monotonic() >= give_up:
                    break
            if self._offset >= end:
                yield from self._decoder.settle()


@contextmanager
def _opened(path: str, how: int) -> Iterator[int]:
    """An open file. A pipe or a device in its place is an error, not a wait."""
    flags = how | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
    file = regular(os.open(path, flags, 0o644), path)
    try:
        yield file
    finally:
        os.close(file)


def _size(path: str) -> int:
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return 0
    refuse_irregular(found, path)
    return found.st_size


def _next_data(file: int, offset: int, end: int) -> int:
    """The offset of the next bytes that somebody wrote."""
    if _SEEK_DATA is None:
        return offset
    try:
        return os.lseek(file, offset, _SEEK_DATA)
    except OSError as error:
        return end if error.errno == errno.ENXIO else offset  # none, or nobody knows


def _settled_size(file: int) -> int:
    """The file's size when nobody is writing: an entry that is not whole then is torn."""
    with suppress(OSError):  # a file system without locks
        lock(file, fcntl.LOCK_SH, _READERS_PATIENCE)
    size = os.fstat(file).st_size
    with suppress(OSError):
        fcntl.flock(file, fcntl.LOCK_UN)
    return size
