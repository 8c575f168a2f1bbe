"""What `ralph logs` shows: a run and its workers in the words of a teller, or byte by byte."""

import time
from collections.abc import Callable, Iterator
from typing import Protocol

from ralph.errors import StateError
from ralph.journal import merged
from ralph.journal.merged import Chronicle
from ralph.journal.runs import NONSENSE, Growing, GrowingLines, Run, prompt_of
from ralph.kernel.facts import Began, Ended, Fact, Launching, Resumed, Returned, Settled
from ralph.kernel.turn import Role
from ralph.kernel.verdict import Stop
from ralph.ui.replay import Player, Stream, Teller

Piece = bytes | list[str]
Tellers = Callable[[Run, str], Teller]  # for a run, and the task that a worker is at


class Source(Protocol):
    """Something to be copied to stdout, piece by piece."""

    def new(self) -> Iterator[Piece]:
        """What came since the last call."""

    def end(self) -> Iterator[Piece]:
        """What is left when nothing more will come."""


class Told:
    """Facts and events in the words of tellers, one for each run."""

    def __init__(self, run: Run, tellers: Tellers, *, events: bool) -> None:
        self._run = run
        self._tellers = tellers
        self._open = _open_stream if events else None
        self._chronicle = Chronicle(run)
        self._players = {run.id: self._player(run, "")}
        self.stopped = False

    def new(self) -> Iterator[Piece]:
        """The facts since the last call, and what agents say now."""
        for told in self._chronicle.new():
            if told.sent is None:
                yield from self._own(told.fact)
            yield from self._told(told)
        for player in self._players.values():
            yield from player.idle()

    def end(self) -> Iterator[Piece]:
        """The last words of streams that were cut off."""
        for player in self._players.values():
            yield from player.end()

    def _own(self, fact: Fact) -> Iterator[Piece]:
        """Of the run itself, not of a worker."""
        self.stopped = isinstance(fact, Settled) and isinstance(fact.verdict, Stop)
        if isinstance(fact, Returned) and fact.worker in self._players:
            yield from self._players.pop(fact.worker).end()

    def _told(self, told: merged.JournaledFact) -> Iterator[Piece]:
        run = told.run
        if told.sent is not None and run.id not in self._players:
            self._players[run.id] = self._player(run, told.sent.assignment.task)
        try:
            yield from self._players[run.id].fact(told.fact)
        except NONSENSE as error:
            raise StateError(f"{run.journal}: its facts make no sense ({error!r})") from error

    def _player(self, run: Run, task: str) -> Player:
        return Player(self._tellers(run, task), time.time, self._open)


class RawJournal:
    """The journal's lines as they are, also those that were changed or torn. Workers have journals
    of their own."""

    def __init__(self, run: Run) -> None:
        self._lines = GrowingLines(run.journal)

    def new(self) -> Iterator[Piece]:
        """The lines since the last call."""
        yield from self._lines.lines()

    def end(self) -> Iterator[Piece]:
        """A torn last line."""
        yield self._lines.rest


class RawStreams:
    """What agents printed, turn after turn, byte by byte. Where several are at work, a turn is
    shown when it is over."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._chronicle = Chronicle(run)
        self._streams: dict[str, Growing] = {}  # of turns, by run

    def new(self) -> Iterator[Piece]:
        """The bytes since the last call."""
        for told in self._chronicle.new():
            if isinstance(told.fact, Ended | Launching | Began | Resumed | Settled):
                yield from self._over(told)
        if (own := self._streams.get(self._run.id)) is not None:
            yield from own.blocks()

    def end(self) -> Iterator[Piece]:
        """The bytes of the last streams."""
        for stream in self._streams.values():
            yield from stream.blocks()

    def _over(self, told: merged.JournaledFact) -> Iterator[Piece]:
        if (stream := self._streams.pop(told.run.id, None)) is not None:
            yield from stream.blocks()
        if isinstance(told.fact, Launching) and told.fact.role is not Role.MESSAGE:
            self._streams[told.run.id] = Growing(told.fact.stream)


def _open_stream(launch: Launching) -> Stream:
    return Stream(launch.dialect, prompt_of(launch), Growing(launch.stream).blocks)
