"""Facts of several workers, folded."""

from ralph.kernel.case import Case
from ralph.kernel.facts import Assigned, Moved, Step
from ralph.kernel.state import NEW, fold
from ralph.kernel.tasks.select import next_task
from ralph.kernel.tasks.task import Assignment, Backlog, Status, Task
from ralph.kernel.verdict import Boundary


def test_work_that_was_put_on_newer_work_is_undone_to_there() -> None:
    """Both the turn and the task begin there from now on."""
    state = fold(NEW, Moved(1.0, "there"))
    assert (state.checkpoint, state.task_checkpoint) == ("there", "there")


def test_merges_that_were_refused_are_counted() -> None:
    """One that goes through is none."""
    refused = fold(NEW, Step(1.0, "merge", ok=False, detail="a conflict"))
    assert refused.sent_back == 1
    assert fold(refused, Step(2.0, "merge")).sent_back == 1


def test_a_blocker_at_work_blocks_also_when_the_list_calls_it_done() -> None:
    """It is merged only when its worker is back."""
    backlog = Backlog((Task("a", status=Status.DONE), Task("b", blocked_by=("a",))))
    free = Case(Boundary.OPENING, NEW, 1.0, backlog=backlog)
    assert next_task(free) == Assignment("b")
    busy = fold(NEW, Assigned(1.0, Assignment("a"), "run-001"))
    assert next_task(Case(Boundary.OPENING, busy, 1.0, backlog=backlog)) is None
