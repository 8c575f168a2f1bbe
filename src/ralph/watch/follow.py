"""Follows runs by what they leave on disk: one with its log, or all of this machine as a list."""

import os
import time
from collections.abc import Iterator
from functools import cache

from ralph.errors import StateError
from ralph.files.state_dir import lstat
from ralph.journal.outline import costs_of
from ralph.journal.runs import Run, all_runs, look_again
from ralph.kernel.world import Signals
from ralph.loops.backlog.ahead import ahead_of
from ralph.ui.retelling import Retelling
from ralph.ui.status.listing import Entry as Listed
from ralph.ui.status.reading import entry_of
from ralph.ui.style import Style
from ralph.watch.lines import Lines
from ralph.watch.model import Entry, Model, Seen, View

_LOOK_EVERY = 1.0  # seconds between two looks whether the process lives, and at the task list
_ENDED = 2  # readings of everything after the process was gone


class Follower:
    """Follows a run: `read` what is new for a while, then ask for a `view`. It never writes."""

    def __init__(self, run: Run, style: Style) -> None:
        self.run = run
        self.lines = Lines()
        self.model = Model(run, style)
        self._told = Retelling[Entry](run, self.model.track, events=True)
        self._reading: Iterator[list[Entry]] | None = None
        self._looked = float("-inf")
        self._ahead: frozenset[str] | None = None
        self._asked = Signals()
        self._gone = 0  # how often all was read since the process was gone
        self.problem = ""
        self.caught_up = False

    def read(self, seconds: float) -> None:
        """Take in what is new, for so long at most: a long log must not stop the display."""
        until = time.monotonic() + seconds
        if self.problem:
            return
        if self._reading is None:
            self._reading = self._told.new() if self._gone < _ENDED else iter(())
        try:
            for entries in self._reading:
                self._add(entries)
                if time.monotonic() > until:
                    return
            if self._gone + 1 == _ENDED:
                for entries in self._told.end():
                    self._add(entries)
        except StateError as error:
            self.problem = error.words
        self._reading, self.caught_up = None, True
        self._gone += not self.run.live

    @property
    def is_over(self) -> bool:
        """True if there will be no more of it: it has ended, or its process is gone."""
        return self.problem != "" or (self._gone >= _ENDED and not self.run.live)

    def _add(self, entries: list[Entry]) -> None:
        """Several agents take turns at every line: empty ones part nothing."""
        for entry in entries:
            if entry.line.text or not entry.task:
                self.lines.append(entry)

    def view(self) -> View:
        """The run now."""
        now, clock = time.time(), time.monotonic()
        if clock - self._looked >= _LOOK_EVERY:
            self._looked = clock
            was = self.run.live
            self.run = look_again(self.run)
            if self.run.live and not was:
                self._gone = 0  # it was resumed
            self._asked = self.run.asked()
            self._ahead = self._look_ahead()
        pid = self.run.owner.pid if self.run.owner else None
        seen = Seen(now, pid, self._asked, self._ahead, self.problem)
        return self.model.view(seen, caught_up=self.caught_up)

    def look_soon(self) -> None:
        """Look at everything with the next view: somebody has asked the run for something."""
        self._looked = float("-inf")

    def _look_ahead(self) -> frozenset[str] | None:
        started = self.model.started
        if started is None or started.workers < 2 or not self.run.live:
            return None
        return ahead_of(self.run, started.workspace)

    def close(self) -> None:
        self.lines.close()


class Listing:
    """The runs of this machine, newest first. A run is read again when its journal has changed."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._known: dict[str, tuple[object, Listed]] = {}

    def entries(self, most: int) -> tuple[list[Listed], int]:
        """So many of them, with all that go on; and how many there are beside."""
        now, runs = time.time(), all_runs(self._root)
        shown = [run for number, run in enumerate(runs) if number < most or run.live]
        costs = cache(costs_of)  # a ledger is read once
        known, self._known = self._known, {}
        for run in shown:
            seen = lstat(run.journal)
            stamp = (run.owner, seen and (seen.st_size, seen.st_mtime_ns), _signals(run))
            old = known.get(run.journal)
            is_old = old is not None and old[0] == stamp
            entry = old[1] if old and is_old else entry_of(run, now, costs)
            self._known[run.journal] = (stamp, entry)
        return [entry for _, entry in self._known.values()], len(runs) - len(shown)


def _signals(run: Run) -> object:
    """Changes with what is asked of a run that goes on."""
    try:
        return os.stat(os.path.join(run.directory, "signals")).st_mtime_ns if run.live else None
    except OSError:
        return None
