"""How a run fares: from its facts, from what is asked of it, and from whether its process lives."""

import pytest

from ralph.journal.life import Account, Life, life_of
from ralph.kernel.facts import Began, Decided, Ended, Fact, Launching, Settled, Started
from ralph.kernel.state import replay
from ralph.kernel.tasks.task import Assignment
from ralph.kernel.turn import Role, Turn
from ralph.kernel.verdict import Boundary, Continue, Reason, Stop, Wait
from ralph.kernel.world import Signals

STARTED = Started(10.0, "20260101-100000-aaaa", "harness", "/w", 1, "0.1", agent="claude")
BEGAN = Began(11.0, 1, Assignment("prompt", "Do it"))
LAUNCHING = Launching(12.0, Role.WORK, "claude", "/s/001.stream")
WORKING = (STARTED, BEGAN, LAUNCHING)
TURN = (STARTED, BEGAN, Ended(20.0, Turn(cost_usd=0.5)))
PAUSED = (STARTED, Decided(11.0, Boundary.OPENING, Wait(None, "paused")))
NOBODY, PAUSE = Signals(), Signals(paused=True)


def closed(verdict: Continue | Wait | Stop) -> tuple[Fact, ...]:
    """A turn that was judged, and the verdict put into effect."""
    return (*TURN, Decided(21.0, Boundary.CLOSING, verdict), Settled(22.0, verdict))


ASLEEP, RESTING = closed(Wait(1000.0, "limited")), closed(Continue(after=60.0))
OVER = closed(Stop(Reason.LIMIT, "1 iteration used up"))


@pytest.mark.parametrize(
    ("facts", "asked", "now", "life"),
    [
        ((), NOBODY, 30.0, Life.RUNNING),  # it has its lock and no fact yet
        (WORKING, NOBODY, 30.0, Life.RUNNING),
        (ASLEEP, NOBODY, 30.0, Life.WAITING),
        (ASLEEP, PAUSE, 30.0, Life.WAITING),  # asked, but not yet paused
        (ASLEEP, NOBODY, 1001.0, Life.RUNNING),
        (RESTING, NOBODY, 30.0, Life.WAITING),
        (RESTING[:-1], NOBODY, 30.0, Life.RUNNING),  # the verdict is still put into effect
        (PAUSED, PAUSE, 30.0, Life.PAUSED),
        (PAUSED, NOBODY, 30.0, Life.RUNNING),  # resumed, and about to go on
        (TURN, PAUSE, 30.0, Life.RUNNING),  # asked, but not yet paused
        (OVER, PAUSE, 30.0, Life.ENDED),
    ],
)
def test_how_a_live_run_fares(
    facts: tuple[Fact, ...], asked: Signals, now: float, life: Life
) -> None:
    assert life_of(Account(state=replay(facts)), asked, now, live=True) is life


@pytest.mark.parametrize(
    ("facts", "problem", "life"),
    [
        (WORKING, "", Life.CRASHED),
        (PAUSED, "", Life.CRASHED),
        ((), "", Life.CRASHED),
        (WORKING, "line 3 was changed", Life.UNKNOWN),
        (OVER, "", Life.ENDED),
        (OVER, "a line behind the last was changed", Life.ENDED),
    ],
)
def test_how_a_run_fares_whose_process_is_gone(
    facts: tuple[Fact, ...], problem: str, life: Life
) -> None:
    """ "crashed (no stop, owner process gone)"."""
    account = Account(state=replay(facts), problem=problem)
    assert life_of(account, PAUSE, 30.0, live=False) is life
