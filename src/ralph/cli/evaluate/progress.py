"""How an evaluation goes on, on stderr: one line that changes in a terminal, else one a trial."""

import sys
import threading
import time
from typing import TYPE_CHECKING

from ralph.text.plain import plain
from ralph.text.words import elapsed
from ralph.ui.safe_stream import Channel
from ralph.ui.style import is_terminal, size_of

if TYPE_CHECKING:
    from ralph.evaluation.trials import Result, TaskCheck, Trial

_CLEAR = "\r\x1b[K"


class Progress:
    """Tells people; also called from the threads that begin trials."""

    def __init__(self) -> None:
        self._channel, self._live = Channel(sys.stderr), is_terminal(sys.stderr)
        self._lock = threading.Lock()
        self._at_work: dict[int, str] = {}
        self._done = self._all = self._now = 0
        self._began = time.monotonic()

    def say(self, words: str) -> None:
        """A line that stays."""
        with self._lock:
            clear = _CLEAR if self._live else ""
            self._channel.put(f"{clear}[ralph] {plain(words)}\n")
            self._draw()

    def plan(self, done: int, planned: int) -> None:
        """So many trials have a result of all."""
        self._done, self._all, self._began = done, planned, time.monotonic()

    def on_check(self, check: "TaskCheck") -> None:
        if check.problem:
            self.say(f"{check.task} is not tried: {check.problem}")
        elif check.passes_at_start:
            self.say(f"{check.task}: its check passes already, so it measures nothing")

    def on_start(self, trial: "Trial") -> None:
        with self._lock:
            self._at_work[trial.number] = trial.words()
            self._draw()

    def on_result(self, result: "Result") -> None:
        from ralph.evaluation.words import outcome_words, why_words

        with self._lock:
            self._at_work.pop(result.trial.number, None)
            self._done += 1
            self._now += 1
        why = f": {why_words(result)}" if result.verdict.why else ""
        if not self._live or result.verdict.outcome == "error":
            words = f"{result.trial.words()}: {outcome_words(result)}{why}"
            self.say(f"{self._done} of {self._all}  {words}")
        else:
            with self._lock:
                self._draw()

    def end(self) -> None:
        """Leave nothing that changes."""
        with self._lock:
            self._all = 0
            if self._live:
                self._channel.put(_CLEAR)

    def _draw(self) -> None:
        if not self._live or not self._all:
            return
        passed = time.monotonic() - self._began
        left = passed / self._now * (self._all - self._done) if self._now else 0.0
        about = f", about {elapsed(left)} left" if self._now and left >= 1 else ""
        newest = next(reversed(self._at_work.values()), "")
        line = f"[ralph] {self._done} of {self._all} trials{about}"
        line += f"  {plain(newest)}" if newest else ""
        width = size_of(sys.stderr)[0] or 80
        self._channel.put(f"{_CLEAR}{line[: width - 1]}")
