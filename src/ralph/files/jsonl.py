"""Files of JSON lines that several programs append to, and an agent can reach: written a line at a
time, read from the end backwards."""

import errno
import fcntl
import json
import os
from collections.abc import Iterator
from typing import Any

from ralph.files.append import append_line, is_at, lock
from ralph.files.safe_open import open_regular, regular
from ralph.text.redact import redacted_json

_BLOCK = 256 * 1024
_LONGEST_LINE = 8 * 1024 * 1024  # a longer one is nobody's record
_PATIENCE = 2.0  # seconds for the lock; one line in one write is whole without it, too
_TRIES = 5
_FLAGS = os.O_CREAT | os.O_APPEND | os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK


def append(path: str, record: dict[str, Any]) -> None:
    """Add one line in one write. On an OSError nothing of it stays in the file."""
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


def json_object(line: bytes) -> dict[str, Any] | None:
    """The object in a line; None for anything else."""
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def newest_first(path: str, most_bytes: int, word: str = "", begin: int = 0) -> Iterator[bytes]:
    """The lines in the last `most_bytes` of the file, from its end backwards; only those that hold
    the word as a string, and end behind a byte. A file that cannot be read is empty."""
    ways = (json.dumps(word, ensure_ascii=way) for way in (True, False)) if word else ("",)
    spelled = {way.encode("utf-8", "replace") for way in ways}
    try:
        with open_regular(path) as file:
            for lines in _backwards(file.fileno(), most_bytes, begin):
                # Of most blocks no line is wanted: they are not taken apart.
                if any(spelling in lines for spelling in spelled):
                    for line in reversed(lines.split(b"\n")):
                        if line and any(spelling in line for spelling in spelled):
                            yield line
    except OSError:
        return  # there is none, or the disk is ill


def _backwards(file: int, most_bytes: int, begin: int) -> Iterator[bytes]:
    """Blocks of whole lines of a file, from its end."""
    end = os.fstat(file).st_size
    least = max(0, begin - 1, end - most_bytes)  # a byte more: a line may begin right there
    rest: bytes | None = b""  # the end of a line that begins further up; None: it is too long
    while end > least:
        start = max(least, end - _BLOCK)
        block = os.pread(file, end - start, start)
        first, newline, whole = block.partition(b"\n")
        if newline:
            yield whole.rpartition(b"\n")[0] if rest is None else whole + rest
            rest = first
        elif rest is not None:
            rest = block + rest if len(rest) < _LONGEST_LINE else None
        end = start
    if rest and not least:
        yield rest
