"""A run read for export: its facts, and at their places what the agents said. Memory stays flat:
a stream is read line by line, and nothing of it is kept."""

from collections import deque
from collections.abc import Iterator, Sequence
from datetime import datetime
from io import BufferedReader
from typing import Any, Protocol

import msgspec

from ralph.agents.stream_lines import gap_at
from ralph.agents.streams.dialects import parser_for
from ralph.agents.turn_files import MOST_SAVED
from ralph.errors import StateError
from ralph.export.lines import iso
from ralph.export.parts import Closed, Gap, Opened, Part, Said
from ralph.files.safe_open import open_regular
from ralph.journal.merged import MergedJournal
from ralph.journal.runs import Facts, Run, folding, is_name, prompt_of
from ralph.kernel.facts import Assigned, Began, Ended, Fact, Launching, Resumed, Settled, Step
from ralph.kernel.state import NEW, fold

_PIECE = 1 << 20  # bytes; lines are shorter, nearly always
_TIMED = ("amp", "claude", "gemini", "opencode")  # dialects whose lines may tell a time
_MILLISECONDS = 1e11  # larger numbers are no seconds
_END_OF_TIME = 1e14


class Source(Protocol):
    """What is exported. Whatever is wrong with it ends it, and is its `problem`."""

    id: str
    journal: str  # where that is; "": there is none
    sent: Assigned | None  # to what, if it is a worker
    problem: str

    @property
    def workers(self) -> Sequence["Source"]:
        """Those that it has sent, as far as it is told."""

    def told(self) -> Iterator[Fact | Part]:
        """The facts, and behind each Launching its turn, which knows what it came to."""

    def merged(self) -> Iterator[tuple[str, Fact | Part]]:
        """The same with those of its workers, in the order of time, and by whose id."""


class Journal:
    """The facts of one run, and the workers that it sent."""

    def __init__(self, run: Run, sent: Assigned | None = None) -> None:
        self.run, self.sent = run, sent
        self.id, self.journal = run.id, run.journal
        self.workers: list[Journal] = []
        self.problem = ""

    def __iter__(self) -> Iterator[Fact]:
        state = NEW
        try:
            with folding(self.run.journal):
                for fact in Facts(self.run.journal).new():
                    # What makes no sense ends it here, also a time that no calendar has.
                    state = fold(state, fact)
                    iso(fact.time)
                    if isinstance(fact, Assigned) and is_name(fact.worker):
                        worker = Run(fact.worker, self.run.directory, lead=self.run)
                        self.workers.append(Journal(worker, fact))
                    yield fact
        except StateError as error:
            self.problem = error.words

    def told(self) -> Iterator[Fact | Part]:
        facts, waiting = iter(self), deque[Fact]()
        while (fact := waiting.popleft() if waiting else next(facts, None)) is not None:
            yield fact
            if isinstance(fact, Launching):
                yield from turn_of(fact, _outcome(facts, waiting))

    def merged(self) -> Iterator[tuple[str, Fact | Part]]:
        try:
            with folding(self.journal):
                for told in MergedJournal(self.run).new():
                    yield told.run.id, told.fact
                    if isinstance(told.fact, Launching):
                        yield from ((told.run.id, part) for part in turn_of(told.fact))
        except StateError as error:
            self.problem = error.words


def _outcome(facts: Iterator[Fact], waiting: deque[Fact]) -> Ended | Step | None:
    """The fact that ends a turn which was launched just now, out of those that follow."""
    already = iter(tuple(waiting))
    while (fact := next(already, None) or _next(facts, waiting)) is not None:
        if isinstance(fact, Ended | Step):
            return fact
        if isinstance(fact, Began | Launching | Resumed | Settled):
            return None  # it was lost
    return None


def _next(facts: Iterator[Fact], waiting: deque[Fact]) -> Fact | None:
    fact = next(facts, None)
    if fact is not None:
        waiting.append(fact)
    return fact


def turn_of(launch: Launching, outcome: Ended | Step | None = None) -> Iterator[Part]:
    """A turn as its files tell it. Whatever is wrong with them is told, too."""
    prompt = prompt_of(launch)
    yield Opened(launch, prompt, outcome)
    parser = parser_for(launch.dialect, prompt, whole=True)
    try:
        with open_regular(launch.stream) as file:
            for piece in _pieces(file, by_line=launch.dialect in _TIMED):
                if isinstance(piece, Gap):
                    yield from map(Said, parser.feed(b"\n"))
                    yield piece
                    continue
                time = _time_of(piece) if launch.dialect in _TIMED else None
                yield from (Said(event, time) for event in parser.feed(piece))
    except FileNotFoundError:
        yield Gap("the stream is not there: cleaned away, or the agent said nothing")
    except OSError as error:
        yield Gap(f"the stream cannot be read: {error.strerror}")
    yield from map(Said, parser.end())
    if parser.lines.dropped:
        yield Gap(f"{parser.lines.dropped} lines were too long to be understood")
    yield Closed()


def _pieces(file: BufferedReader, *, by_line: bool) -> Iterator[bytes | Gap]:
    """A stream in lines or in blocks, with a Gap where its middle is left out."""
    kept = MOST_SAVED // 4
    gap = gap_at(file.fileno(), kept)
    if gap is None:
        yield from _to(file, None, by_line=by_line)
        return
    left_out, mark = gap
    yield from _to(file, kept, by_line=by_line)
    yield Gap("the middle of the stream is left out", left_out)
    file.seek(kept + mark)
    yield from _to(file, None, by_line=by_line)


def _to(file: BufferedReader, end: int | None, *, by_line: bool) -> Iterator[bytes]:
    read, at = file.readline if by_line else file.read, 0
    while piece := read(_PIECE if end is None else min(_PIECE, end - at)):
        at += len(piece)
        yield piece


class _Timed(msgspec.Struct, gc=False):
    timestamp: Any = None


_TIME = msgspec.json.Decoder(_Timed)


def _time_of(line: bytes) -> float | None:
    """The time that a line tells of itself."""
    if b'"timestamp"' not in line:
        return None
    try:
        return moment(_TIME.decode(line).timestamp)
    except (ValueError, RecursionError):
        return None


def moment(told: object) -> float | None:
    """A time as a line of a stream tells it."""
    try:
        if isinstance(told, str):
            return datetime.fromisoformat(told).timestamp()
        if isinstance(told, int | float) and 0 < told < _END_OF_TIME:
            return told / 1000 if told > _MILLISECONDS else told
    except (ValueError, OverflowError):
        pass
    return None
