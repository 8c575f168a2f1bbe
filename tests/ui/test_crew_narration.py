"""What is said of several tasks at once: by the run itself, and by each worker."""

import pytest

from ralph.kernel.facts import Assigned, Began, Fact, Moved, Returned, Settled, Started, Step
from ralph.kernel.state import NEW, fold, replay
from ralph.kernel.tasks.task import Assignment
from ralph.kernel.verdict import Accept, Cause, Continue, Feedback, Park, Reason, Stop, Verdict
from ralph.settings.schema import LoopSettings
from ralph.ui.lines import Briefing
from ralph.ui.narration import narrate
from ralph.ui.replay import ITERATIONS_PER_TASK, briefing_of

NOW = 1_700_000_000.0
WORKER = Briefing(iterations=10, tasks=True, worker=True)
LEAD = Briefing(iterations=10, tasks=True)
BEGAN = Began(NOW, 1, Assignment("T-3"))
ON_BRANCH = "its work is on the branch ralph/T-3"
DONE = Accept(("claimed",))
SENT = tuple(Assigned(NOW, Assignment(f"T-{n}"), f"r-00{n}") for n in (1, 2, 3))
FIRST = Returned(NOW, "T-1", "r-001", DONE)
PARKED = Returned(NOW, "T-2", "r-002", Park("too hard"))
REFUSED = Step(NOW, "merge", ok=False, detail="conflicts in shared.txt\nOther tasks were merged")


def said(briefing: Briefing, *facts: Fact) -> list[str]:
    """What is said of the last of them."""
    *before, last = facts
    state = replay(tuple(before), NEW)
    return [line.text for line in narrate(last, state, fold(state, last), briefing)]


def back(verdict: Verdict, branch: str = "") -> Returned:
    return Returned(NOW, "T-3", "r-003", verdict, branch=branch)


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ((back(DONE),), "T-3 is done. So far: 1 done"),
        ((FIRST, back(DONE)), "T-3 is done. So far: 2 done"),
        ((FIRST, PARKED, back(DONE)), "T-3 is done. So far: 2 done, 1 left to you"),
        ((back(Park("too hard")),), "T-3 is blocked"),
        (
            (back(Park("too hard"), "ralph/T-3"),),
            f"T-3 is blocked; {ON_BRANCH}",
        ),
        ((back(Park("why?", Cause.QUESTION)),), "T-3 waits for you"),
        ((back(Park("it is no longer open", Cause.PERSON)),), "T-3 is left alone"),
        (
            (back(Stop(Reason.LIMIT, "$5 used up"), "ralph/T-3"),),
            f"T-3 is left in the middle: $5 used up; no other task is begun; {ON_BRANCH}",
        ),
    ],
)
def test_who_is_back_is_told_by_the_run(facts: tuple[Fact, ...], words: str) -> None:
    """ "a Returned with Park tells where the branch is"."""
    assert said(LEAD, *SENT, *facts) == [words]


def test_what_a_worker_tells_itself_is_not_told_twice() -> None:
    assert said(LEAD, SENT[0]) == []
    assert said(WORKER, BEGAN, Moved(NOW, "{}")) == []
    assert said(WORKER, BEGAN, Settled(NOW, Stop(Reason.COMPLETED))) == []


def test_a_task_that_cannot_be_merged_yet() -> None:
    """ "Not merged yet: conflicts in shared.txt; the agent is told"."""
    assert said(WORKER, BEGAN, REFUSED) == []
    told = Settled(NOW, Continue((Feedback(REFUSED.detail),)))
    words = "Not merged yet: conflicts in shared.txt; the agent is told"
    assert said(WORKER, BEGAN, REFUSED, told) == [words]
    assert said(WORKER, BEGAN, told) == []


def test_a_task_that_cannot_be_merged_at_all() -> None:
    parked = Settled(NOW, Park("it cannot be merged: conflicts in shared.txt"))
    words = "T-3 is blocked: it cannot be merged: conflicts in shared.txt"
    assert said(WORKER, BEGAN, REFUSED, parked) == [words]


@pytest.mark.parametrize(
    ("settings", "most"),
    [
        ("{}", ITERATIONS_PER_TASK),
        ('{"loop": {"maxIterationsPerTask": 3}}', 3),
        ('{"loop": {"maxIterationsPerTask": "many"}}', ITERATIONS_PER_TASK),
        ('{"loop": []}', ITERATIONS_PER_TASK),
        ("[]", ITERATIONS_PER_TASK),
        ("{", ITERATIONS_PER_TASK),
    ],
)
def test_a_journal_tells_how_many_iterations_a_task_may_have(settings: str, most: int) -> None:
    """So that a log says `Iteration 1/10`, as the run did."""
    started = Started(NOW, "r", "tasks", "/w", 7, "1.0", settings)
    assert briefing_of(started, "").iterations == most


def test_the_usual_number_is_that_of_the_settings() -> None:
    assert LoopSettings().max_iterations_per_task == ITERATIONS_PER_TASK
