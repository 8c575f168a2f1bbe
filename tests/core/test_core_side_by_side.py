"""Facts of several workers, folded."""

from ralph.core.facts import Moved, Step
from ralph.core.state import NEW, fold


def test_work_that_was_put_on_newer_work_is_undone_to_there() -> None:
    """Both the turn and the task begin there from now on."""
    state = fold(NEW, Moved(1.0, "there"))
    assert (state.checkpoint, state.task_checkpoint) == ("there", "there")


def test_merges_that_were_refused_are_counted() -> None:
    """One that goes through is none."""
    refused = fold(NEW, Step(1.0, "merge", ok=False, detail="a conflict"))
    assert refused.sent_back == 1
    assert fold(refused, Step(2.0, "merge")).sent_back == 1
