"""Follows a run by what it leaves on disk."""

import time
from collections.abc import Iterator

from ralph.errors import StateError
from ralph.journal.forecast import Forecast
from ralph.journal.runs import Run, look_again
from ralph.kernel.value import replace
from ralph.kernel.world import Signals
from ralph.loops.backlog.ahead import ahead_of
from ralph.runner.showing.forecasts import Forecasts
from ralph.ui.retelling import Retelling
from ralph.ui.style import Style
from ralph.watch.lines import Lines
from ralph.watch.model import Model, Seen, TrackLine, View

_LOOK_EVERY = 1.0  # seconds between two looks whether the process lives, and at the task list
_ENDED = 2  # readings of everything after the process was gone


class RunFollower:
    """Follows a run: `read` what is new for a while, then ask for a `view`. It never writes."""

    def __init__(self, run: Run, style: Style) -> None:
        self.run = run
        self.lines = Lines()
        self.model = Model(run, style)
        self._told = Retelling[TrackLine](run, self.model.track, events=True)
        self._reading: Iterator[list[TrackLine]] | None = None
        self._looked = float("-inf")
        self._ahead: frozenset[str] | None = None
        self._asked = Signals()
        self._gone = 0  # how often all was read since the process was gone
        self.problem = ""
        self.caught_up = False
        self._likely = Forecasts()
        self._forecast: Forecast | None = None

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

    def _add(self, entries: list[TrackLine]) -> None:
        """Several agents take turns at every line: empty ones part nothing."""
        for entry in entries:
            if entry.line.text or not entry.task:
                self.lines.append(entry)

    def view(self) -> View:
        """The run now."""
        now, clock = time.time(), time.monotonic()
        looks = clock - self._looked >= _LOOK_EVERY
        if looks:
            self._looked = clock
            was = self.run.live
            self.run = look_again(self.run)
            if self.run.live and not was:
                self._gone = 0  # it was resumed
            self._asked = self.run.asked()
            self._ahead = self._look_ahead()
        pid = self.run.owner.pid if self.run.owner else None
        seen = Seen(now, pid, self._asked, self._ahead, self.problem)
        view = self.model.view(seen, caught_up=self.caught_up)
        if looks and self.caught_up:
            report = view.report
            crew = [worker.state for worker in report.workers]
            self._forecast = self._likely(self.run, report.started, report.state, crew)
        return replace(view, forecast=self._forecast)

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
