"""The lines of a log on disk: of a hundred thousand, memory holds a few bytes each.

The file has no name and goes with us. Of a very long log the beginning is given up, so that neither
memory nor disk grows without bounds; `ralph logs --events` has it all.
"""

import os
import struct
import tempfile
from array import array
from collections.abc import Iterator, Sequence
from enum import StrEnum

from ralph.kernel.value import value
from ralph.text.plain import one_line
from ralph.ui.replay import LogLine
from ralph.ui.style import Tone
from ralph.watch.model import TrackLine

LONGEST = 4000  # characters of a line
_MOST_LINES = 250_000  # of one part; there are two
_MOST_BYTES = 64 * 1024 * 1024
_TONES = tuple(Tone)
_AGENT, _DAY, _TIMED, _BAD = 16, 32, 64, 128  # above the number of the tone
_MOST_TASKS = 60_000  # that are told apart: a number has two bytes
_BLOCK = 512  # lines that are read at once
_TIME = struct.Struct("<d")


class Kind(StrEnum):
    """The lines to be shown."""

    ALL = "all"
    AGENT = "agent"
    RALPH = "ralph"
    PROBLEMS = "problems"

    def takes(self, flags: int) -> bool:
        match self:
            case Kind.AGENT:
                return bool(flags & _AGENT)
            case Kind.RALPH:
                return not flags & _AGENT
            case Kind.PROBLEMS:
                return bool(flags & _BAD)
            case _:
                return True


@value
class Filter:
    """The lines to be shown: of a kind, and of one worker's task where one is named."""

    kind: Kind = Kind.ALL
    task: str = ""


class _Part:
    """Some of the lines, in a file."""

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile(prefix="ralph-watch-")  # noqa: SIM115  it lasts
        self._size = self._flushed = 0
        self._ends = array("Q")  # of each line in the file
        self.flags = bytearray()
        self.tasks = array("H")

    def __len__(self) -> int:
        return len(self._ends)

    @property
    def is_full(self) -> bool:
        return len(self) >= _MOST_LINES or self._size >= _MOST_BYTES

    def append(self, data: bytes, flags: int, task: int) -> None:
        self._size += self._file.write(data)
        self._ends.append(self._size)
        self.flags.append(flags)
        self.tasks.append(task)

    def read(self, begin: int, end: int) -> list[bytes]:
        """The lines from one number up to another."""
        if self._flushed < self._size:
            self._file.flush()
            self._flushed = self._size
        ends = self._ends
        first = ends[begin - 1] if begin else 0
        data = os.pread(self._file.fileno(), ends[end - 1] - first, first) if end > begin else b""
        starts = [first, *ends[begin : end - 1]]
        return [data[a - first : b - first] for a, b in zip(starts, ends[begin:end], strict=True)]

    def close(self) -> None:
        self._file.close()


class Lines:
    """A log that grows. Lines are numbered from 0; those before `first` were given up."""

    def __init__(self) -> None:
        self._parts = [_Part()]
        self._tasks = {"": 0}
        self.first = 0
        self.end = 0

    @property
    def tasks(self) -> list[str]:
        """The tasks of workers who have said something; the first is "", of the run itself."""
        return list(self._tasks)

    def append(self, entry: TrackLine) -> None:
        line, last = entry.line, self._parts[-1]
        if last.is_full:
            last = _Part()
            self._parts.append(last)
            if len(self._parts) > 2:
                gone = self._parts.pop(0)
                self.first += len(gone)
                gone.close()
        if len(self._tasks) <= _MOST_TASKS:
            self._tasks.setdefault(entry.task, len(self._tasks))
        task = self._tasks.get(entry.task, 0)
        flags = _TONES.index(line.tone) | _AGENT * line.by_agent | _DAY * line.is_day
        flags |= _BAD * (line.tone in (Tone.BAD, Tone.NOTICE) and not line.is_day)
        flags |= _TIMED * (line.time is not None)
        text = (line.speaker + one_line(line.text))[: LONGEST + 1]
        text = text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
        stamp = _TIME.pack(line.time) if line.time is not None else b""
        last.append(stamp + text.encode("utf-8", "surrogatepass"), flags, task)
        self.end += 1

    def get(self, number: int) -> TrackLine:
        """The line of that number."""
        return next(self.between(number, number + 1))

    def between(self, begin: int, end: int) -> Iterator[TrackLine]:
        """The lines from one number up to another."""
        at, tasks = self.first, self.tasks
        for part in self._parts:
            for start in range(max(begin, at), min(end, at + len(part)), _BLOCK):
                stop = min(start + _BLOCK, end, at + len(part))
                for offset, data in enumerate(part.read(start - at, stop - at), start - at):
                    yield _line_of(data, part.flags[offset], tasks[part.tasks[offset]])
            at += len(part)

    def marks(self, begin: int) -> Iterator[tuple[int, int, str]]:
        """Each line from that number on: its number, flags and task. No file is read."""
        at, tasks = self.first, self.tasks
        for part in self._parts:
            for offset in range(max(begin - at, 0), len(part)):
                yield at + offset, part.flags[offset], tasks[part.tasks[offset]]
            at += len(part)

    def close(self) -> None:
        for part in self._parts:
            part.close()


def _line_of(data: bytes, flags: int, task: str) -> TrackLine:
    begin = _TIME.size if flags & _TIMED else 0
    time = _TIME.unpack(data[:begin])[0] if begin else None
    text = data[begin:].decode("utf-8", "surrogatepass")
    tone, by_agent = _TONES[flags & (_AGENT - 1)], bool(flags & _AGENT)
    return TrackLine(LogLine(text, tone, time, by_agent=by_agent, is_day=bool(flags & _DAY)), task)


class Selection:
    """The numbers of the lines that a filter takes, while the log grows."""

    def __init__(self, lines: Lines, wanted: Filter = Filter()) -> None:
        self._lines, self.wanted = lines, wanted
        self._numbers = array("Q")
        self._seen = 0

    def numbers(self) -> Sequence[int]:
        """In order."""
        lines, wanted = self._lines, self.wanted
        if wanted == Filter():
            return range(lines.first, lines.end)
        for number, flags, task in lines.marks(self._seen):
            if wanted.kind.takes(flags) and wanted.task in ("", task):
                self._numbers.append(number)
        self._seen = lines.end
        while self._numbers and self._numbers[0] < lines.first:
            del self._numbers[: 1 + sum(n < lines.first for n in self._numbers[1:])]
        return self._numbers
