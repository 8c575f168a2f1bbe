"""onAnomaly: "stalled, protected path changed, journal edited, cost over twice the task's mean,
near-miss claim", and an agent's edits of the task file."""

import pytest

from kits.cases import closing as closing_case
from kits.cases import said
from ralph.kernel.contracts import CompleteClaim
from ralph.kernel.facts import Decided, Fact, Step
from ralph.kernel.findings import Finding
from ralph.kernel.rules import Stalled
from ralph.kernel.state import NEW, RunState
from ralph.kernel.turn import Turn
from ralph.kernel.value import replace
from ralph.kernel.verdict import Boundary, Continue, Park, Reason, Stop, Verdict
from ralph.kernel.world import Snapshot
from ralph.loops.backlog.anomalies import JOURNAL, Anomaly, anomalies_in, costly

NEAR = said("<promise>complete</promise>")
(NOTE,) = CompleteClaim().near_misses(NEAR)
PROTECT = Finding("protect", "Protected: .git/hooks\nIt was put back.")


def judged(verdict: Verdict = Continue(), **more: object) -> Decided:
    return Decided(1.0, Boundary.CLOSING, verdict, **more)  # type: ignore[arg-type]


STALL = "3 iterations without any progress"
FACTS: list[tuple[Fact, Turn | None, list[Anomaly]]] = [
    (judged(), Turn(), []),
    (
        judged(findings=(PROTECT, Finding("make", "x"))),
        Turn(),
        [Anomaly("protected", "Protected: .git/hooks")],
    ),
    (judged(notes=(NOTE, "by the way")), NEAR, [Anomaly("near_miss", NOTE)]),
    (judged(notes=("by the way",)), None, []),
    (judged(Stop(Reason.STALLED, STALL)), Turn(), [Anomaly("stalled", STALL)]),
    (judged(Stop(Reason.LIMIT, "used up")), Turn(), []),
    (judged(Park("task limit: 3 iterations used up")), Turn(), []),
    (Decided(1.0, Boundary.OPENING, Stop(Reason.STALLED, "x")), None, []),
    (
        Step(1.0, "tasks.jsonl", detail="T-1 was set to done"),
        Turn(),
        [Anomaly("task_file", "T-1 was set to done")],
    ),
    (
        Step(1.0, "tasks.jsonl"),
        Turn(),
        [Anomaly("task_file", "the agent changed .ralph/tasks.jsonl")],
    ),
    (Step(1.0, "commit"), Turn(), []),
]


@pytest.mark.parametrize(("fact", "turn", "found"), FACTS)
def test_what_is_odd_is_found_in_facts(fact: Fact, turn: Turn | None, found: list[Anomaly]) -> None:
    assert list(anomalies_in(fact, replace(NEW, turn=turn))) == found


def test_a_task_parked_for_want_of_progress_is_stalled() -> None:
    """By the rule itself."""
    state = RunState(stalls=2, snapshot=Snapshot("same"))
    case = replace(closing_case(state=state), snapshot=Snapshot("same"))
    verdict = Stalled(3, park=True)(case)
    assert isinstance(verdict, Park)
    assert [a.kind for a in anomalies_in(judged(verdict), state)] == ["stalled"]


@pytest.mark.parametrize(
    ("cost", "earlier", "odd"),
    [
        (9.0, [], False),
        (9.0, [0.0], False),
        (2.0, [1.0], False),
        (2.1, [1.0], True),
        (3.0, [1.0, 2.0], False),
        (3.1, [1.0, 2.0], True),
    ],
)
def test_cost_over_twice_the_mean(cost: float, earlier: list[float], odd: bool) -> None:
    assert [a.kind for a in costly(cost, earlier)] == ["cost"] * odd


def test_anomalies_are_told_in_a_sentence() -> None:
    (odd,) = costly(1.5, [0.5])
    assert odd.detail == "the iteration cost $1.50, more than twice the $0.50 of earlier ones"
    assert JOURNAL.detail
