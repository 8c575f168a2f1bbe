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
_BLOCK = 1 << 18
_MOST_KINDS = 4  # choices of kinds that are remembered
_NUMBERS = {kind: number for number, kind in enumerate(KINDS)}
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
        self.total = 0  # lines that all may see
        self.count = 0  # those that were added
        self._file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115  it closes with us
        self._size = 0
        self._data, self._starts = bytearray(), list[tuple[int, int, int]]()
        self._lock = Lock()
        self._kinds_lock = Lock()
        self._kinds: dict[frozenset[str], tuple[array[int], int, int]] = {}
        # Of each sixteenth line: where it stands, and its place.
        self._offsets, self._journal, self._stream = array("Q"), array("Q"), array("Q")

    def close(self) -> None:
        self._file.close()

    def add(self, rows: list[Row], place: Place) -> None:
        """Add lines that come from one place. Nobody sees them before `flush`."""
        data, number = self._data, self.count
        for row in rows:
            if not number % _EVERY:
                self._starts.append((self._size + len(data), *place))
            number += 1
            text = row.text
            if len(text) > _LONGEST:
                text = f"{text[:_LONGEST]}…"
            raw = text.encode("utf-8", "replace")
            time = nan if row.time is None else row.time
            data += _HEAD.pack(*place, time, len(raw), _NUMBERS[row.kind])
            data += raw
        self.count = number
        if len(data) > _BLOCK:
            self.flush()

    def flush(self) -> None:
        """Let all see what was added."""
        rest = memoryview(self._data)
        while rest:
            rest = rest[os.write(self._file.fileno(), rest) :]
        with self._lock:
            for offset, journal, stream in self._starts:
                self._offsets.append(offset)
                self._journal.append(journal)
                self._stream.append(stream)
            self._size += len(self._data)
            self.total = self.count
        self._data, self._starts = bytearray(), []

    def read(self, begin: int, most: int) -> list[tuple[Place, Row]]:
        """At most so many lines from one on."""
        with self._lock:
            end = min(self.total, begin + most)
            first, last = begin // _EVERY, -(-end // _EVERY)
            if begin < 0 or begin >= end:
                return []
            start = self._offsets[first]
            stop = self._offsets[last] if last < len(self._offsets) else self._size
        found = _rows(os.pread(self._file.fileno(), stop - start, start))
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

    def of_kinds(self, kinds: frozenset[str]) -> "array[int]":
        """The numbers of the lines of these kinds; those who ask again wait for the new ones."""
        with self._lock:
            size = self._size
        with self._kinds_lock:
            found, number, at = self._kinds.pop(kinds, (array("I"), 0, 0))
            wanted = {_NUMBERS[kind] for kind in kinds}
            for data in self._blocks(at, size):
                for kind, _, _ in _records(data):
                    if kind in wanted:
                        found.append(number)
                    number += 1
            self._kinds[kinds] = found, number, size
            while len(self._kinds) > _MOST_KINDS:
                self._kinds.pop(next(iter(self._kinds)))
            return found

    def matches(self, words: str, most: int) -> list[int]:
        """The numbers of the lines that hold these words, whatever their case."""
        wanted, found, number = words.casefold(), list[int](), 0
        with self._lock:
            size = self._size
        for data in self._blocks(0, size):
            for _, begin, end in _records(data):
                if wanted in data[begin:end].decode("utf-8", "replace").casefold():
                    found.append(number)
                    if len(found) == most:
                        return found
                number += 1
        return found

    def _blocks(self, at: int, size: int) -> Iterator[bytes]:
        """The records between two places, in pieces of whole ones."""
        rest = b""
        while at < size:
            block = rest + os.pread(self._file.fileno(), min(_BLOCK, size - at), at)
            at += len(block) - len(rest)
            whole = max((end for _, _, end in _records(block)), default=0)
            rest = block[whole:]
            yield block[:whole]


def _rows(data: bytes) -> Iterator[tuple[Place, Row]]:
    """The lines in whole records."""
    for kind, begin, end in _records(data):
        journal, stream, time, *_ = _HEAD.unpack_from(data, begin - _HEAD.size)
        text = data[begin:end].decode("utf-8", "replace")
        yield (journal, stream), Row(KINDS[kind], text, None if isnan(time) else time)


def _records(block: bytes) -> Iterator[tuple[int, int, int]]:
    """The kind of each whole record, and from where to where its text stands."""
    at = 0
    while at + _HEAD.size <= len(block):
        *_, length, kind = _HEAD.unpack_from(block, at)
        begin = at + _HEAD.size
        at = begin + length
        if at > len(block):
            return
        yield kind, begin, at
