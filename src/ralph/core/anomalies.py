"""What a person should look at, though the run goes on (B §Hooks, `onAnomaly`)."""

from collections.abc import Iterator, Sequence

from ralph.core.contracts import CompleteClaim
from ralph.core.facts import Decided, Fact, Step
from ralph.core.state import RunState
from ralph.core.value import value
from ralph.core.verdict import Boundary, Cause, Park, Reason, Stop, Verdict

TASK_FILE = "tasks.jsonl"  # the key of the step that undoes an agent's edits of it
_TOO_MUCH = 2  # times the mean


@value
class Anomaly:
    """One thing to look at: its kind in one word, and what it is in a sentence."""

    kind: str
    detail: str


def anomalies_in(fact: Fact, before: RunState) -> Iterator[Anomaly]:
    """What is odd about a fact, given the state before it."""
    match fact:
        case Decided(boundary=Boundary.CLOSING):
            yield from _protected(fact)
            yield from _near_misses(fact, before)
            yield from _stalled(fact.verdict)
        case Step(key=key, detail=detail) if key == TASK_FILE:
            yield Anomaly("task_file", detail or f"the agent changed .ralph/{TASK_FILE}")
        case _:
            return


def _protected(fact: Decided) -> Iterator[Anomaly]:
    for finding in fact.findings:
        if finding.gate == "protect":
            yield Anomaly("protected", finding.text.strip().partition("\n")[0])


def _near_misses(fact: Decided, before: RunState) -> Iterator[Anomaly]:
    near = CompleteClaim().near_misses(before.turn) if before.turn is not None else ()
    yield from (Anomaly("near_miss", note) for note in fact.notes if note in near)


def _stalled(verdict: Verdict) -> Iterator[Anomaly]:
    match verdict:
        case Stop(reason=Reason.STALLED, why=why):
            yield Anomaly("stalled", why)
        case Park(why=why, cause=Cause.STALLED):
            yield Anomaly("stalled", why)
        case _:
            return


def costly(cost: float, earlier: Sequence[float]) -> Iterator[Anomaly]:
    """Whether an iteration cost more than twice the mean of its task's earlier ones."""
    mean = sum(earlier) / len(earlier) if earlier else 0.0
    if mean and cost > _TOO_MUCH * mean:
        than = f"more than twice the ${mean:.2f} of earlier ones"
        yield Anomaly("cost", f"the iteration cost ${cost:.2f}, {than}")


JOURNAL = Anomaly("journal", "the run's journal was changed by somebody else")
