"""The lines of a run's log, in a file without a name, with an index that stays small.

Whoever looks at a part of them reads that part alone. The lines are written once, by one thread;
any other may read.
"""

import os
import tempfile
from array import array
from collections.abc import Iterator
from math import isnan, nan
from struct import Struct
from threading import Lock
from typing import Any

from ralph.kernel.value import value

KINDS = ("ralph", "agent", "tool", "good", "bad", "notice", "day")
_HEAD = Struct("<QQdIB")  # where it comes from, when it was said, how long it is, and its kind
_EVERY = 16  # lines stand between two places that the index knows
_BLOCK = 1 << 20
_LONGEST = 4_000  # characters of a line that are shown
Place = tuple[int, int]  # of what told a line: offsets in the journal and in the stream


@value
class Row:
    """A line of a log."""

    kind: str
    text: str
    time: float | None = None

    def as_dict(self, number: int) -> dict[str, Any]:
        return {"n": number, "t": self.time, "kind": self.kind, "text": self.text}


class Spool:
    """Lines by their numbers, from 0 on, each with its place; places only grow."""

    def __init__(self) -> None:
        self.total = 0
        self._file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115  it closes with us
        self._size = 0
        self._lock = Lock()
        # Of each sixteenth line: where it stands, and its place.
        self._offsets, self._journal, self._stream = array("Q"), array("Q"), array("Q")

    def close(self) -> None:
        self._file.close()

    def add(self, rows: list[Row], place: Place) -> None:
        """Add lines that come from one place."""
        data, starts = bytearray(), []
        for number, row in enumerate(rows, self.total):
            if number % _EVERY == 0:
                starts.append(self._size + len(data))
            text = row.text
            if len(text) > _LONGEST:
                text = f"{text[:_LONGEST]}…"
            raw = text.encode("utf-8", "replace")
            time = nan if row.time is None else row.time
            data += _HEAD.pack(*place, time, len(raw), KINDS.index(row.kind)) + raw
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(self._file.fileno(), rest) :]
        with self._lock:
            self._offsets.extend(starts)
            self._journal.extend([place[0]] * len(starts))
            self._stream.extend([place[1]] * len(starts))
            self._size += len(data)
            self.total += len(rows)

    def read(self, begin: int, most: int) -> list[tuple[Place, Row]]:
        """At most so many lines from one on."""
        with self._lock:
            end = min(self.total, begin + most)
            first, last = begin // _EVERY, -(-end // _EVERY)
            if begin < 0 or begin >= end:
                return []
            start = self._offsets[first]
            stop = self._offsets[last] if last < len(self._offsets) else self._size
        found = self._records(os.pread(self._file.fileno(), stop - start, start))
        skip = begin - first * _EVERY
        return [each for number, each in enumerate(found) if skip <= number < skip + end - begin]

    def after(self, place: Place) -> int:
        """The number of lines whose place is not behind this one."""
        with self._lock:
            low, high = 0, len(self._offsets)
            while low < high:
                middle = (low + high) // 2
                if (self._journal[middle], self._stream[middle]) <= place:
                    low = middle + 1
                else:
                    high = middle
        begin = max(0, low - 1) * _EVERY
        near = self.read(begin, _EVERY)
        return begin + sum(there <= place for there, _ in near)

    def matches(self, words: str, most: int) -> list[int]:
        """The numbers of the lines that hold these words, whatever their case."""
        wanted, found, number, rest, at = words.casefold(), [], 0, b"", 0
        with self._lock:
            size = self._size
        while at < size and len(found) < most:
            block = rest + os.pread(self._file.fileno(), min(_BLOCK, size - at), at)
            at += len(block) - len(rest)
            used = 0
            for used, text in _texts(block):
                if wanted in text.casefold():
                    found.append(number)
                number += 1
            rest = block[used:]
        return found[:most]

    @staticmethod
    def _records(data: bytes) -> Iterator[tuple[Place, Row]]:
        at = 0
        while at < len(data):
            journal, stream, time, length, kind = _HEAD.unpack_from(data, at)
            at += _HEAD.size
            text = data[at : at + length].decode("utf-8", "replace")
            at += length
            yield (journal, stream), Row(KINDS[kind], text, None if isnan(time) else time)


def _texts(block: bytes) -> Iterator[tuple[int, str]]:
    """The texts of whole records, each with where it ends."""
    at = 0
    while at + _HEAD.size <= len(block):
        *_, length, _ = _HEAD.unpack_from(block, at)
        at += _HEAD.size + length
        if at > len(block):
            return
        yield at, block[at - length : at].decode("utf-8", "replace")
