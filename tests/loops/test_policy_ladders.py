"""The ladders of every profile, in order, and the numbers in them (ADR 1: order is data)."""

import pytest

from kits.histories import WORK, play
from ralph.kernel.case import Ladder
from ralph.kernel.limits import Limits
from ralph.kernel.ports import Policy
from ralph.kernel.rules import (
    Failing,
    RateLimit,
    ResultGrace,
    RunLimit,
    Stalled,
    Timeouts,
    rule_name,
)
from ralph.kernel.tasks.task import Backlog, Task
from ralph.kernel.turn import Order
from ralph.kernel.world import Signals
from ralph.loops.backlog.policy import tasks
from ralph.loops.backlog.rules import TaskLimit, TasksLimit, TaskTimeLeft
from ralph.loops.prompt.policy import harness
from ralph.loops.session.policy import session
from ralph.loops.stories.policy import reviewed
from ralph.loops.stories.rules import HoldLimit, SilentRetry
from ralph.loops.supervise.policy import supervise
from ralph.loops.supervise.rules import CarryOn, DoneGrace, MaxRestarts, WaitCode
from ralph.testing.fakes import FakeAgent, FakeWorkbench, FakeWorld

HARNESS = harness(Limits(iterations=10))
TASKS, SUPERVISE, REVIEWED = tasks(FakeWorkbench(FakeWorld())), supervise(), reviewed()
BEGIN = "interrupted unstartable refused"
LIMITED = f"{BEGIN} RateLimit UsedUp"
TASK = f"{BEGIN} lost RateLimit UsedUp withdrawn proven"
BELIEVED = "Asks Believed barred Failing"
LISTED = "SilentRetry AllApproved SameObjection"
COUNTED = "Uncounted RunLimit"
END = "Stalled Objections carry_on"
WATCH = "SecondSignal Timeouts ResultGrace TimeLeft MoneyLeft"


def names(ladder: Ladder) -> str:
    return " ".join(rule_name(rule).partition("(")[0] for rule in ladder)


@pytest.mark.parametrize(
    ("ladder", "order"),
    [
        (
            HARNESS.opening,
            "cancelled paused accepted unreadable nothing_left Stuck RunLimit carry_on",
        ),
        (HARNESS.watching, WATCH),
        (HARNESS.stopping, "release"),
        (HARNESS.closing, f"{LIMITED} {BELIEVED} {COUNTED} {END}"),
        (
            TASKS.opening,
            "cancelled paused unreadable broken all_worked none_ready TasksLimit RunLimit carry_on",
        ),
        (TASKS.watching, f"{WATCH} TaskTimeLeft"),
        (TASKS.stopping, "release"),
        (TASKS.closing, f"{TASK} {BELIEVED} TaskLimit RunLimit {END}"),
        (
            SUPERVISE.opening,
            "cancelled marked_done unreadable waiting paused MaxRestarts RunLimit carry_on",
        ),
        (SUPERVISE.watching, "SecondSignal Timeouts DoneGrace TimeLeft MoneyLeft"),
        (SUPERVISE.stopping, "release"),
        (SUPERVISE.closing, f"{BEGIN} marked_done unreadable waiting WaitCode RateLimit CarryOn"),
        (REVIEWED.opening, "cancelled paused unreadable AllApproved Stuck RunLimit carry_on"),
        (REVIEWED.watching, WATCH),
        (REVIEWED.stopping, "HoldLimit Objections release"),
        (
            REVIEWED.closing,
            f"{LIMITED} barred Failing Asks {LISTED} FalseClaim {COUNTED} {END}",
        ),
        (session().stopping, "cancelled Believed RunLimit Disbelieved Remind"),
    ],
)
def test_the_order_of_the_rules(ladder: Ladder, order: str) -> None:
    """STYLE §3: "Order is data"; `ralph explain` prints these."""
    assert names(ladder) == order


@pytest.mark.parametrize(
    ("policy", "rules"),
    [
        (HARNESS, [Failing(3), Stalled(0), RateLimit(86_400.0), ResultGrace(10.0), Timeouts()]),
        (TASKS, [Failing(3, park=True), Stalled(3, park=True), TasksLimit(50)]),
        (TASKS, [TaskLimit(Limits(10, 1800.0, 5.0)), TaskTimeLeft(Limits(10, 1800.0, 5.0))]),
        (TASKS, [RunLimit(Limits(None, 14_400.0, 50.0))]),
        (SUPERVISE, [CarryOn(1.0), DoneGrace(300.0), Timeouts()]),
        (SUPERVISE, [WaitCode(42), MaxRestarts(100)]),
        (REVIEWED, [RunLimit(Limits(iterations=15)), Failing(3), Stalled(3)]),
        (REVIEWED, [SilentRetry(3), HoldLimit(5)]),
        (session(), [RunLimit(Limits(iterations=50))]),
    ],
)
def test_the_numbers_in_them(policy: Policy, rules: list[object]) -> None:
    """The defaults of the specifications, where the design does not say otherwise."""
    ladders = (*policy.opening, *policy.watching, *policy.stopping, *policy.closing)
    assert [rule for rule in rules if rule not in ladders] == []


@pytest.mark.parametrize("policy", [HARNESS, TASKS, SUPERVISE, REVIEWED], ids=lambda p: p.name)
def test_a_signal_ends_every_way_of_working(policy: Policy) -> None:
    """README §Exit codes: "130 interrupted: SIGINT or SIGTERM"."""
    world = FakeWorld(Backlog((Task("a"),)), Signals(1, 1000.0))
    assert play(policy, [WORK], world).turns == 0
    world.asked = Signals()

    def press(order: Order) -> None:
        world.asked = Signals(1, 1000.0)

    result = play(policy, FakeAgent([WORK], during=press), world)
    assert (result.names, result.turns, result.exit_code) == ("Stop", 1, 130)
