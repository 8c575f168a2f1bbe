"""A run and its workers told from their journals and streams, and followed while they grow."""

import os
import time
from collections.abc import Callable, Iterator
from typing import Generic

from ralph.agents.streams.dialects import parser_for
from ralph.journal.merged import MergedJournal
from ralph.journal.runs import Growing, Run, folding, prompt_of
from ralph.kernel.facts import Launching, Returned, Settled
from ralph.kernel.state import NEW, RunState, fold
from ralph.kernel.value import replace
from ralph.kernel.verdict import Stop
from ralph.ui.replay import Player, Stream, Teller, Told


class Retelling(Generic[Told]):
    """Facts, and with `events` what the agents said, in the lines of tellers, one for each run:
    `tellers` makes it for a run, and the task that a worker is at; `stream` is where the stream of
    a launch is now."""

    def __init__(
        self,
        run: Run,
        tellers: Callable[[Run, str], Teller[Told]],
        *,
        events: bool,
        stream: Callable[[Run, Launching], str] = lambda _, launch: launch.stream,
    ) -> None:
        self._tellers = tellers
        self._events = events
        self._stream_of = stream
        self._merged = MergedJournal(run)
        self._players = {run.id: self._player(run, "")}
        self._at_work: dict[str, RunState] = {}  # workers who are not back, by run
        self.stopped = False

    def new(self) -> Iterator[list[Told]]:
        """The lines since the last call. StateError names a line that was changed."""
        for told in self._merged.new():
            fact, run = told.fact, told.run
            if told.sent is None:  # of the run itself, not of a worker
                self.stopped = isinstance(fact, Settled) and isinstance(fact.verdict, Stop)
                if isinstance(fact, Returned) and fact.worker in self._players:
                    yield from self._players.pop(fact.worker).end()
                    self._at_work.pop(fact.worker, None)
            elif run.id not in self._players:
                self._players[run.id] = self._player(run, told.sent.assignment.task)
            with folding(run.journal):
                if told.sent is not None:
                    self._at_work[run.id] = fold(self._at_work.get(run.id, NEW), fact)
                used = [state.spent for state in self._at_work.values()]
                yield from self._players[run.id].fact(fact, () if told.sent else used)
        for player in self._players.values():
            yield from player.idle()

    def end(self) -> Iterator[list[Told]]:
        """The lines that torn streams still hold; there will be no more."""
        for player in self._players.values():
            yield from player.end()

    def _player(self, run: Run, task: str) -> Player[Told]:
        def open_stream(launch: Launching) -> Stream:
            return _stream(replace(launch, stream=self._stream_of(run, launch)))

        return Player(self._tellers(run, task), open_stream if self._events else None)


def _stream(launch: Launching) -> Stream:
    """Of what was printed before we looked, nobody knows when; the last of it was then."""

    def heard_at() -> float:
        try:
            return os.stat(launch.stream).st_mtime
        except OSError:
            return time.time()

    parser = parser_for(launch.dialect, prompt_of(launch))
    return Stream(parser, Growing(launch.stream).blocks, heard_at)
