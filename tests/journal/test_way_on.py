"""What `ralph resume` would do with a run, and the limit it needs."""

from dataclasses import replace

import pytest

from ralph.journal.way_on import WayOn, limits_to_raise, way_on
from ralph.kernel.facts import Began, Decided, Ended, Settled, Started
from ralph.kernel.limits import Limits, Spent
from ralph.kernel.state import NEW, RunState, replay
from ralph.kernel.tasks.task import Assignment
from ralph.kernel.turn import Turn
from ralph.kernel.verdict import Boundary, Reason, Stop

STARTED = Started(10.0, "r", "harness", "/w", 1, "0.1", limits=Limits(iterations=1))
BEGAN = Began(11.0, 1, Assignment("prompt"))


def over(reason: Reason) -> RunState:
    stop = Stop(reason, "why")
    facts = (Ended(20.0, Turn()), Decided(21.0, Boundary.CLOSING, stop), Settled(22.0, stop))
    return replay([STARTED, BEGAN, *facts])


NEXT = "goes on with iteration 2"


@pytest.mark.parametrize(
    ("state", "way"),
    [
        (replay([STARTED]), WayOn(True, "goes on with iteration 1")),
        (replay([STARTED, BEGAN]), WayOn(True, "takes the turn that was cut off again")),
        (over(Reason.INTERRUPTED), WayOn(True, NEXT)),
        (over(Reason.COMPLETED), WayOn(False, "is complete")),
        (over(Reason.LIMIT), WayOn(True, f"{NEXT}, once its limit is raised", "-m +10")),
        (replace(over(Reason.LIMIT), limits=Limits()), WayOn(True, NEXT)),
        (over(Reason.BLOCKED), WayOn(True, f"{NEXT}, once it has what it needs from you")),
        (over(Reason.FAILING), WayOn(True, f"{NEXT}; failures and stalls are counted anew")),
    ],
)
def test_the_way_on(state: RunState, way: WayOn) -> None:
    assert way_on(state) == way


@pytest.mark.parametrize(
    ("profile", "words"), [("supervise", "goes on with attempt 2"), ("tasks", "goes on")]
)
def test_each_loop_has_its_words(profile: str, words: str) -> None:
    assert way_on(over(Reason.INTERRUPTED), profile).words == words


@pytest.mark.parametrize(
    ("limits", "spent", "flags"),
    [
        (Limits(iterations=3), Spent(iterations=2), ""),
        (Limits(iterations=3), Spent(iterations=3), "-m +10"),
        (Limits(seconds=60.0), Spent(seconds=61.0), "--max-time +1h"),
        (Limits(seconds=60.0), Spent(seconds=8000.0), "--max-time +3h"),
        (Limits(dollars=20.0), Spent(dollars=20.5), "--max-cost +11"),
        (Limits(dollars=0.5), Spent(dollars=3.0), "--max-cost +3"),
        (Limits(tasks=2), Spent(), "--max-tasks +10"),
        (Limits(3, 60.0), Spent(3, 60.0), "-m +10 --max-time +1h"),
    ],
)
def test_each_limit_that_is_used_up_has_its_flag(limits: Limits, spent: Spent, flags: str) -> None:
    taken = {"done": frozenset({"a"}), "parked": (("b", "why"),)}
    state = replace(NEW, limits=limits, spent=spent, **taken)  # type: ignore[arg-type]
    assert limits_to_raise(state) == flags
    assert limits_to_raise(replace(state, again=True)) == flags.removeprefix("-m +10").strip()
