"""Files of JSON lines that several programs append to, and an agent can reach: written a line at a
time, read from the end backwards."""

import errno
import fcntl
import json
import os
from collections.abc import Iterator
from typing import Any

from ralph.files.append import append_line, is_at, lock
from ralph.files.safe_open import regular
from ralph.text.redact import redacted_json

_BLOCK = 256 * 1024
_LONGEST_LINE = 8 * 1024 * 1024  # a longer one is nobody's record
_PATIENCE = 2.0  # seconds for the lock; one line in one write is whole without it, too
_TRIES = 5
_FLAGS = os.O_CREAT | os.O_APPEND | os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK


def append(path: str, record: dict[str, Any]) -> None:
    """Add one line, in one write, on a line of its own even after one that was torn off.

    OSError where that cannot be done; then nothing of it stays in the file.
    """
    line = redacted_json(record).encode() + b"\n"
    for _ in range(_TRIES):
        file = regular(os.open(path, _FLAGS, 0o644), path)
        try:
            try:  # whoever holds the lock for long does not hold up the run
                locked = lock(file, fcntl.LOCK_EX, _PATIENCE)
            except OSError:  # a file system without locks
                locked = False
            if not locked or is_at(file, path):  # else it was replaced meanwhile
                append_line(file, line, alone=locked)
                return
        finally:
            os.close(file)
    raise OSError(errno.EAGAIN, "it is replaced all the time")


def newest_first(path: str, most_bytes: int, word: str = "") -> Iterator[dict[str, Any]]:
    """The objects in the last `most_bytes` of the file, from its end backwards; only those with
    the word in them. Lines that make no sense are left out; a file that cannot be read is empty."""
    ways = (json.dumps(word, ensure_ascii=way)[1:-1] for way in (True, False))
    spelled = {way.encode("utf-8", "replace") for way in ways}
    for line in _lines_backwards(path, most_bytes):
        if any(spelling in line for spelling in spelled):
            try:
                found = json.loads(line)
            except (ValueError, RecursionError):
                continue
            if isinstance(found, dict):
                yield found


def _lines_backwards(path: str, most_bytes: int) -> Iterator[bytes]:
    try:
        flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK
        file = regular(os.open(path, flags), path)
    except OSError:
        return
    try:
        yield from _backwards(file, os.fstat(file).st_size, most_bytes)
    except OSError:
        return  # a disk that is ill, in the middle
    finally:
        os.close(file)


def _backwards(file: int, size: int, most_bytes: int) -> Iterator[bytes]:
    end, least = size, max(0, size - most_bytes)
    rest: bytes | None = b""  # the end of a line that begins further up; None: it is too long
    while end > least:
        start = max(least, end - _BLOCK)
        block = os.pread(file, end - start, start)
        first, newline, whole = block.partition(b"\n")
        if newline:
            *lines, last = whole.split(b"\n")
            yield from () if rest is None else (last + rest,)
            yield from reversed(lines)
            rest = first
        elif rest is not None:
            rest = block + rest if len(rest) < _LONGEST_LINE else None
        end = start
    if rest and not least:
        yield rest
