"""A run told once more at any speed, with a mark where something differs today."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence

from ralph.journal.runs import Run
from ralph.kernel.events import AgentEvent
from ralph.kernel.facts import Fact, Launching
from ralph.kernel.limits import Spent
from ralph.runner.again.judged import Retold, stream_of
from ralph.runner.again.words import difference_lines
from ralph.ui.replay import Teller
from ralph.ui.retelling import Retelling

_MARK = "       ≠ "  # as wide as a time
_LONGEST = 10.0  # seconds that nothing happens, at any speed


class Pace:
    """Waits as long as a run took from one moment to the next, divided by the speed; 0 is at once.
    Nobody watches a night of waiting: no wait is longer than ten seconds."""

    def __init__(self, speed: float, sleep: Callable[[float], object]) -> None:
        self._speed, self._sleep = speed, sleep
        self._now: float | None = None

    def until(self, moment: float) -> None:
        gone = 0.0 if self._now is None else moment - self._now
        self._now = max(moment, self._now or moment)
        if self._speed and gone > 0:
            self._sleep(min(_LONGEST, gone / self._speed))


class _Paced(Teller[str]):
    """The lines of another teller, each in its time. A stream tells none: its events are spread
    evenly over its turn."""

    def __init__(self, teller: Teller[str], pace: Pace, retold: Sequence[Retold]) -> None:
        self._teller, self._pace, self._retold = teller, pace, retold
        self._at = 0  # the next fact
        self._began = 0.0
        self._heard = 0  # events of the turn under way

    def fact(self, fact: Fact, used: Sequence[Spent] = ()) -> list[str]:
        self._pace.until(fact.time)
        if isinstance(fact, Launching):
            self._began, self._heard = fact.time, 0
        lines = self._teller.fact(fact, used)
        if self._at < len(self._retold):  # a run that goes on has more by now
            marks = difference_lines(self._retold[self._at])
            lines = [*lines, *(f"{_MARK}{line}" for line in marks)]
        self._at += 1
        return lines

    def event(self, event: AgentEvent, now: float) -> list[str]:
        self._heard += 1
        coming = self._retold[self._at] if self._at < len(self._retold) else None
        reading = coming and coming.reading
        if coming and reading and coming.fact:
            share = self._heard / max(reading.events, self._heard)
            self._pace.until(self._began + share * (coming.fact.time - self._began))
        return self._teller.event(event, now)


def told_again(
    run: Run,
    retold: Iterable[Retold],
    tellers: Callable[[Run, str], Teller[str]],
    pace: Pace,
) -> Iterator[list[str]]:
    """The lines of `ralph logs --events`, one piece after the other, when it is their time."""
    by_run = defaultdict[str, list[Retold]](list)
    for each in retold:
        by_run[each.run].append(each)

    def paced(run: Run, task: str) -> Teller[str]:
        return _Paced(tellers(run, task), pace, by_run[run.id])

    told = Retelling[str](run, paced, events=True, stream=stream_of)
    yield from told.new()
    yield from told.end()
