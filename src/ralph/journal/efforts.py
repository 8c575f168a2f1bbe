"""What earlier runs of a project took until they ended: one line each, for forecasts (ADR 46).

A run of the prompt loop is one effort, and so is each story. What tasks took, their own records
tell (B §Logs).
"""

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ralph.journal.ledger import Book, Ledger
from ralph.kernel.events import AgentEvent
from ralph.kernel.facts import Began, Fact, Settled, Started
from ralph.kernel.limits import Spent
from ralph.kernel.state import NEW, RunState, fold
from ralph.kernel.verdict import Reason, Stop

if TYPE_CHECKING:
    from ralph.journal.forecast import Effort

FILE = "efforts.jsonl"
MOST = 100  # efforts, the newest, on which a forecast stands: more would tell no more
PROFILES = ("harness", "reviewed")
_MOST_OF_IT = 1e18  # the square of thirty years
_FAR = 256 * 1024  # bytes from the end in which they are looked for


class _Tally:
    """A unit's iterations that are over: their number, and sums of what they took and of the
    squares of that."""

    def __init__(self) -> None:
        self.iterations = 0
        self.seconds = self.dollars = 0.0
        self.squares = [0.0, 0.0]
        self.unknown = False  # some turn did not tell its cost

    def add(self, before: Spent, after: Spent) -> None:
        """One more iteration, which began and ended with so much spent."""
        seconds = after.seconds - before.seconds
        dollars = after.dollars - before.dollars
        self.iterations += 1
        self.seconds += seconds
        self.dollars += dollars
        self.squares[0] += seconds**2
        self.squares[1] += dollars**2
        self.unknown |= after.uncounted > before.uncounted


class Efforts:
    """A reader of facts that keeps what a run took, or each of its stories. It never disturbs the
    run. `past` are the facts of a run that is resumed."""

    def __init__(
        self, project: str, on_loss: Callable[[str], None], past: Sequence[Fact] = ()
    ) -> None:
        self._book = Book("history", os.path.join(project, FILE), on_loss)
        self._started: Started | None = None
        self._state = NEW
        self._tallies: dict[str, _Tally] = {}
        self._task = ""
        self._open = False  # an iteration has begun, and is not counted yet
        self._spent = Spent()  # when it began
        for fact in past:
            self._hear(fact, write=False)

    def on_fact(self, fact: Fact) -> None:
        """Count it; write down what ended with it."""
        self._hear(fact, write=True)

    def on_events(self, events: Sequence[AgentEvent]) -> None:
        """Nothing: what a turn took is known when it is over."""

    def _hear(self, fact: Fact, *, write: bool) -> None:
        if isinstance(fact, Started):
            self._started = fact
        if self._profile not in PROFILES:
            return
        before, self._state = self._state, fold(self._state, fact)
        if isinstance(fact, Began):
            self._begin(fact, before, write=write)
        elif isinstance(fact, Settled):
            self._settle(fact, write=write)

    def _begin(self, fact: Began, before: RunState, *, write: bool) -> None:
        if fact.iteration != before.iteration:
            self._close()
        task = fact.assignment.task if self._profile == "reviewed" else ""
        if before.iteration and task != self._task and write:
            self._write(fact.time, ended=True)
        self._task, self._open = task, True

    def _settle(self, fact: Settled, *, write: bool) -> None:
        verdict, state = fact.verdict, self._state
        if not (state.again or state.unjudged or state.unsettled or state.cut_off):
            self._close()  # else the same iteration is taken again
        if isinstance(verdict, Stop) and write:
            self._write(fact.time, ended=verdict.reason is Reason.COMPLETED)

    def _close(self) -> None:
        """The iteration under way is over."""
        if self._open:
            self._tally.add(self._spent, self._state.spent)
            self._spent, self._open = self._state.spent, False

    @property
    def _tally(self) -> _Tally:
        return self._tallies.setdefault(self._task, _Tally())

    @property
    def _profile(self) -> str:
        return self._started.profile if self._started else ""

    def _write(self, time: float, *, ended: bool) -> None:
        tally, started = self._tally, self._started
        if started is None or started.profile not in PROFILES or not tally.iterations:
            return
        self._book.add(
            {
                "time": time,
                "run": started.run,
                "profile": started.profile,
                "task": self._task,
                "iterations": tally.iterations,
                "seconds": round(tally.seconds, 3),
                "cost_usd": None if tally.unknown else round(tally.dollars, 6),
                "squares": [round(number, 6) for number in tally.squares],
                "ended": ended,
            }
        )


def bookkeepers(
    project: str, on_loss: Callable[[str], None], past: Sequence[Fact], lead: str
) -> tuple[Ledger, Efforts]:
    """The readers of a run that write down what it takes; `lead` as a Ledger has it."""
    return Ledger(project, on_loss, past, lead), Efforts(project, on_loss, past)


def read_efforts(path: str, profile: str, without: tuple[str, str] = ("", "")) -> "list[Effort]":
    """The newest efforts of such runs. Of a run that was resumed its last word counts; `without`
    is the run and the task that the forecast is about. Lines that make no sense are left out."""
    from ralph.files.jsonl import json_object, newest_first

    seen: set[tuple[str, str]] = {without}
    efforts: list[Effort] = []
    for line in newest_first(path, _FAR):
        data = json_object(line)
        if data is None or data.get("profile") != profile:
            continue
        key = str(data.get("run")), str(data.get("task"))
        effort = _effort(data) if key not in seen else None
        seen.add(key)
        if effort is not None:
            efforts.append(effort)
        if len(efforts) == MOST:
            break
    return efforts


def _effort(data: dict[str, Any]) -> "Effort | None":
    from ralph.journal.forecast import Effort

    iterations, seconds = data.get("iterations"), _amount(data.get("seconds"))
    if type(iterations) is not int or not 0 < iterations < 1_000_000 or seconds is None:
        return None
    found = data.get("squares")
    some = [_amount(number) for number in found] if isinstance(found, list) else []
    squares = (some[0], some[1]) if len(some) == 2 else (None, None)
    return Effort(
        iterations,
        seconds,
        _amount(data.get("cost_usd")),
        data.get("ended") is True,
        squares=None if squares[0] is None or squares[1] is None else (squares[0], squares[1]),
    )


def _amount(number: object) -> float | None:
    """A number that makes sense."""
    if isinstance(number, bool) or not isinstance(number, int | float):
        return None
    return float(number) if 0 <= number < _MOST_OF_IT else None
