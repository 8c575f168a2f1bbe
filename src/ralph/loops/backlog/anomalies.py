"""Anomalies: what a person should look at, though the run goes on (B §Hooks, `onAnomaly`)."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ralph.kernel.contracts import CompleteClaim
from ralph.kernel.facts import Decided, Fact, Step
from ralph.kernel.limits import Spent
from ralph.kernel.state import RunState
from ralph.kernel.value import value
from ralph.kernel.verdict import Boundary, Cause, Park, Reason, Stop
from ralph.text.plain import first_line
from ralph.text.words import counted, duration, money

if TYPE_CHECKING:
    from ralph.journal.forecast import Forecast

FORECAST = "forecast"  # the kind of an anomaly that a task has once
TASK_FILE = "tasks.jsonl"  # the key of the step that undoes an agent's edits of it
_TOO_MUCH = 2  # times the mean


@value
class Anomaly:
    """One thing to look at: its kind in one word, and what it is in a sentence."""

    kind: str
    detail: str


def anomalies_in(fact: Fact, before: RunState) -> Iterator[Anomaly]:
    """The anomalies of a fact, given the state before it."""
    if isinstance(fact, Step) and fact.key == TASK_FILE:
        yield Anomaly("task_file", fact.detail or f"the agent changed .ralph/{TASK_FILE}")
    if not isinstance(fact, Decided) or fact.boundary is not Boundary.CLOSING:
        return
    for finding in fact.findings:
        if finding.gate == "protect":
            yield Anomaly("protected", first_line(finding.text))
    near = CompleteClaim().near_misses(before.turn) if before.turn is not None else ()
    yield from (Anomaly("near_miss", note) for note in fact.notes if note in near)
    match fact.verdict:
        case Stop(reason=Reason.STALLED, why=why) | Park(why=why, cause=Cause.STALLED):
            yield Anomaly("stalled", why)


def costly(cost: float, earlier: Sequence[float]) -> Iterator[Anomaly]:
    """An anomaly if an iteration cost more than twice the mean of its task's earlier ones."""
    mean = sum(earlier) / len(earlier) if earlier else 0.0
    if mean and cost > _TOO_MUCH * mean:
        than = f"more than twice the ${mean:.2f} of earlier ones"
        yield Anomaly("cost", f"the iteration cost ${cost:.2f}, {than}")


def outside(spent: Spent, expected: "Forecast") -> Iterator[Anomaly]:
    """An anomaly if a task has taken more than was forecast for it, eight times of ten."""
    for used, range_, said in (
        (spent.iterations, expected.iterations, _iterations),
        (spent.seconds, expected.seconds, duration),
        (spent.dollars, expected.cost_usd, money),
    ):
        if range_ is not None and used > range_.high > 0:
            took = f"the task has taken {said(used)}, more than the {said(range_.high)}"
            by = counted(expected.observations, "earlier task")
            yield Anomaly(FORECAST, f"{took} of its forecast (by {by})")
            return


def _iterations(number: float) -> str:
    return counted(int(number), "iteration")


JOURNAL = Anomaly("journal", "the run's journal was changed by somebody else")
