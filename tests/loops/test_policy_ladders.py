"""Which rule wins where two would answer (ADR 1: order is data), and the numbers in them.

Each table lists what may be the case at once, the most urgent first, with the answer to it. All
pairs of them are tried: with both at once, the answer is the one to the first.
"""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from kits.histories import DONE, MISSING, WORK, play, said
from kits.loop_fakes import FakeWorkbench
from ralph.kernel.case import Case, Ladder, decide
from ralph.kernel.events import Failure, Usage
from ralph.kernel.facts import Assigned
from ralph.kernel.findings import Finding, repeated
from ralph.kernel.limits import Limits, Spent
from ralph.kernel.ports import Policy
from ralph.kernel.rules import (
    Failing,
    Patience,
    RateLimit,
    ResultGrace,
    RunLimit,
    Stalled,
    Timeouts,
)
from ralph.kernel.state import RunState
from ralph.kernel.tasks.task import Assignment, Backlog, ReviewStatus, Status, Task
from ralph.kernel.turn import Ending, Order, Pulse, Turn
from ralph.kernel.value import replace
from ralph.kernel.verdict import (
    Accept,
    Answer,
    Boundary,
    Continue,
    Cut,
    Park,
    Reason,
    Release,
    Stop,
    Wait,
)
from ralph.kernel.world import Signals, Snapshot
from ralph.loops.backlog.parallel.budget import Budget
from ralph.loops.backlog.parallel.policy import WorkerContext, foreman, worker
from ralph.loops.backlog.policy import Bounds, Publishing, SettleTask, tasks
from ralph.loops.backlog.prompt import Material
from ralph.loops.backlog.rules import CHECK, DayLimit, TaskLimit, TasksLimit, TaskTimeLeft
from ralph.loops.prompt.policy import harness
from ralph.loops.session.policy import session
from ralph.loops.stories.policy import reviewed
from ralph.loops.stories.rules import HoldLimit, SilentRetry
from ralph.loops.supervise.policy import CarryOn, DoneGrace, MaxRestarts, WaitCode, supervise
from ralph.testing.fakes import FakeAgent, FakeWorld

Fields = dict[str, Any]
NOW = 5000.0
LIMITS, PATIENCE = Limits(9, 500.0, 4.0), Patience(turn=60.0, idle=20.0, stall_after=2)
DAY = DayLimit(100.0, before=100.0)
BENCH = FakeWorkbench(FakeWorld())
HARNESS = harness(LIMITS, PATIENCE)
TASKS = tasks(
    BENCH, Bounds(Limits(5, 100.0), LIMITS, tasks=3, stop_on_failure=True), patience=PATIENCE
)
TODAY = tasks(BENCH, Bounds(Limits(5), LIMITS, day=DAY), patience=PATIENCE)
FOREMAN = foreman(Bounds(Limits(5), LIMITS, tasks=3), Budget(None, 2))
POOR = foreman(Bounds(Limits(5), LIMITS, tasks=3), Budget(4.0, 2, spent=4.0))
CONTEXT = WorkerContext("run-001", Budget(None, 2))
BROKE = replace(CONTEXT, budget=Budget(4.0, 2, spent=4.0))


def crew_of(context: WorkerContext) -> Policy:
    """The policy of a worker, who never gets as far as to merge."""
    bounds = Bounds(Limits(5, 100.0), LIMITS)
    return worker(
        SettleTask(BENCH, TaskLimit(bounds.task), (), (), Publishing()),
        bounds,
        context,
        patience=PATIENCE,
        gates=(),
        about=lambda _: Material(),
    )


WORKER, POOR_WORKER = crew_of(CONTEXT), crew_of(BROKE)
SUPERVISE = supervise(4, limits=LIMITS, patience=PATIENCE)
REVIEWED = reviewed(limits=LIMITS, patience=PATIENCE)
SESSION = session(max_iterations=9)


@dataclass(frozen=True)
class Event:
    """Something that is the case, as fields of parts of a `Case`, and the beginning of the answer
    to it. Two that say different things of a field cannot both be the case."""

    answer: str
    fields: Fields


def on(answer: str, **fields: Any) -> Event:  # noqa: ANN401
    """`turn__tools` is the field `tools` of the turn."""
    return Event(answer, fields)


# ------------------------------------------------------------------ what may be the case

WELL: Fields = {"turn__exit_code": 0, "turn__ending": Ending.EXITED, "turn__failure": None}
PASSED: Fields = {**WELL, "case__checked": True, "case__findings": ()}
OBJECTION = Finding("make test", "the tests fail", code=1)
TWICE = repeated(repeated((), (OBJECTION,)), (OBJECTION,))
APPROVED = {"task__passes": True, "task__review": ReviewStatus.APPROVED}
PROMISED = {"turn__claims": said("<promise>DONE</promise>").claims}
WAITS_FOR_A = Task("b", blocked_by=("a",))
NOT_OF_THIS_RUN = Task("b", status=Status.BLOCKED, aside=True)
AT_WORK = Assigned(1.0, Assignment("z"), "run-001")
COMPLETE = {"turn__claims": said("<promise>COMPLETE</promise>").claims}

CANCELLED = on("interrupted: asked to stop", signals__cancels=1)
PAUSED = on("wait: paused", signals__paused=True)
UNREADABLE = on("config: no such list", backlog__problem="no such list")
ITERATIONS = on("limit: 9 iterations used up", spent__iterations=9)
WAITING = on("blocked: a waits for b", task__blocked_by=("b",), others__b=NOT_OF_THIS_RUN)
TASKS_TAKEN = on("limit: 3 tasks taken up", state__done=frozenset("xyz"))
GO_ON = on("continue")
HURRIED = on("cut: asked to stop at once", signals__cancels=2)
TOO_LONG = on("cut: timed out after 1m", pulse__seconds=60.0)
SILENT = on("cut: silent for 20s", pulse__idle=20.0, pulse__since_result=None)
LINGERS = on("cut: still running 10s after its result", pulse__since_result=10.0)
TIME = on("cut: the run's 8m20s are used up", spent__seconds=500.0)
MONEY = on("cut: the run's $4 are used up", pulse__dollars=4.0, pulse__since_result=None)
NOTHING = on("none")
UNSTARTABLE = on("config: 'claud'", turn__ending=Ending.UNSTARTABLE, turn__why=MISSING.why)
REFUSED = on("config: the agent's credential was refused", turn__failure=Failure("no", 401))
LIMITED = on("wait: slower", turn__failure=Failure("slower", 429))
OUT_OF_MONEY = on("limit: $4 used up", spent__dollars=4.0, turn__exit_code=1)
QUESTION = on("blocked: Which?", turn__question="Which?", **WELL)
PARKED_QUESTION = on("park: Which?", turn__question="Which?", **WELL)
BELIEVED = on("accept: claimed", turn__claims=DONE.claims, **PASSED)
BARRED = on("config: permission denied", turn__denied=("Write",))
FAILED = on("failing: 3 agent failures", state__failures=2, turn__exit_code=1)
UNCOUNTED = on("config: what its tokens cost", turn__usage=Usage(5), turn__cost_usd=None)
STALLED = on("stalled: ", state__stalls=2)
OBJECTIONS = on(
    "continue: the tests fail", case__findings=(OBJECTION,), state__findings=(OBJECTION,)
)

CLOSING_OF_ALL = (CANCELLED, UNSTARTABLE, REFUSED)
WATCHING = (HURRIED, TOO_LONG, SILENT, LINGERS, TIME, MONEY)
LAST = (UNCOUNTED, ITERATIONS, STALLED, OBJECTIONS, GO_ON)

# ------------------------------------------------------------------ the tables

ORDERS: dict[str, tuple[Ladder, Boundary, tuple[Event, ...]]] = {
    "prompt, opening": (
        HARNESS.opening,
        Boundary.OPENING,
        (
            CANCELLED,
            PAUSED,
            on("completed: nothing is left", state__done=frozenset({"a"})),
            UNREADABLE,
            on("completed: nothing is left", backlog__tasks=()),
            ITERATIONS,
            GO_ON,
        ),
    ),
    "prompt, watching": (HARNESS.watching, Boundary.WATCHING, (*WATCHING, NOTHING)),
    "prompt, closing": (
        HARNESS.closing,
        Boundary.CLOSING,
        (
            *CLOSING_OF_ALL,
            LIMITED,
            OUT_OF_MONEY,
            QUESTION,
            BELIEVED,
            BARRED,
            FAILED,
            *LAST,
        ),
    ),
    "backlog, opening": (
        TASKS.opening,
        Boundary.OPENING,
        (
            CANCELLED,
            PAUSED,
            UNREADABLE,
            on("blocked: a is blocked: no (onFailure", state__verdict=Park("no")),
            on("failing: the agent failed in a, b", state__barren=("a", "b")),
            on("completed: nothing is left", task__status=Status.DONE),
            WAITING,
            TASKS_TAKEN,
            ITERATIONS,
            GO_ON,
        ),
    ),
    "backlog with the day's money, opening": (
        TODAY.opening,
        Boundary.OPENING,
        (on("completed: ", task__status=Status.DONE), on("limit: the day's", spent__iterations=9)),
    ),
    "foreman, opening": (
        FOREMAN.opening,
        Boundary.OPENING,
        (
            CANCELLED,
            PAUSED,
            on("config: no agent", state__recalled=Stop(Reason.CONFIG, "no agent")),
            UNREADABLE,
            on("failing: the agent failed in a, b", state__barren=("a", "b")),
            on("completed: nothing is left", task__status=Status.DONE),
            WAITING,
            TASKS_TAKEN,
            on("limit: 3 tasks taken up", state__done=frozenset("xy"), state__crew=(AT_WORK,)),
            ITERATIONS,
            GO_ON,
        ),
    ),
    "foreman without money, opening": (
        POOR.opening,
        Boundary.OPENING,
        (TASKS_TAKEN, on("limit: $4 used up", spent__iterations=9)),
    ),
    "backlog, watching": (
        TASKS.watching,
        Boundary.WATCHING,
        (*WATCHING, on("cut: the task's 1m40s", task__used=Spent(seconds=100.0)), NOTHING),
    ),
    "backlog, closing": (
        TASKS.closing,
        Boundary.CLOSING,
        (
            *CLOSING_OF_ALL,
            UNREADABLE,
            LIMITED,
            OUT_OF_MONEY,
            on("park: a person made it cancelled", task__status=Status.CANCELLED, **WELL),
            on("accept: passed: it runs", task__check="it runs", case__passed=(CHECK,), **PASSED),
            PARKED_QUESTION,
            on("accept: claimed", **COMPLETE, **PASSED),
            BARRED,
            on("park: 3 agent failures", state__failures=2, turn__exit_code=1),
            on("park: task limit", task__used=Spent(5)),
            ITERATIONS,
            on("park: ", state__stalls=2),
            OBJECTIONS,
            GO_ON,
        ),
    ),
    "backlog with the day's money, closing": (
        TODAY.closing,
        Boundary.CLOSING,
        (on("park: task limit", task__used=Spent(5)), on("limit: the day's", spent__iterations=9)),
    ),
    "worker, opening": (
        WORKER.opening,
        Boundary.OPENING,
        (UNREADABLE, on("completed: ", task__status=Status.DONE), CANCELLED, PAUSED, ITERATIONS),
    ),
    "worker without money, opening": (
        POOR_WORKER.opening,
        Boundary.OPENING,
        (CANCELLED, PAUSED, ITERATIONS, on("limit: $4 used up")),
    ),
    "worker, closing": (
        WORKER.closing,
        Boundary.CLOSING,
        (
            on("park: task limit", task__used=Spent(5)),
            ITERATIONS,
            on("park: it cannot be merged: make test", state__sent_back=1, **OBJECTIONS.fields),
            OBJECTIONS,
            GO_ON,
        ),
    ),
    "worker without money, closing": (
        POOR_WORKER.closing,
        Boundary.CLOSING,
        (
            *CLOSING_OF_ALL,
            UNREADABLE,
            LIMITED,
            on("limit: $4 used up", turn__exit_code=1, state__failures=2),
            PARKED_QUESTION,
            on("accept: claimed", **COMPLETE, **PASSED),
            BARRED,
            on("park: task limit", task__used=Spent(5), turn__exit_code=0),
            on("limit: $4 used up", turn__exit_code=0, spent__iterations=9),
        ),
    ),
    "supervise, opening": (
        SUPERVISE.opening,
        Boundary.OPENING,
        (
            CANCELLED,
            on("completed: DONE", signals__done_at=4000.0),
            UNREADABLE,
            on("blocked: waiting without restart: a mark", signals__wait="a mark"),
            PAUSED,
            on("limit: max restarts", spent__iterations=4),
            on("limit: 8m20s of time", spent__seconds=500.0),
            GO_ON,
        ),
    ),
    "supervise, a crashed attempt": (
        SUPERVISE.retaking,
        Boundary.OPENING,
        (
            CANCELLED,
            on("completed: DONE", signals__done_at=4000.0),
            UNREADABLE,
            on("blocked: waiting without restart: a mark", signals__wait="a mark"),
            on("limit: 8m20s of time", spent__seconds=500.0),
            NOTHING,
        ),
    ),
    "supervise, watching": (
        SUPERVISE.watching,
        Boundary.WATCHING,
        (
            HURRIED,
            TOO_LONG,
            SILENT,
            on("cut: still running 5m after DONE", signals__done_at=4000.0),
            TIME,
            MONEY,
            NOTHING,
        ),
    ),
    "supervise, closing": (
        SUPERVISE.closing,
        Boundary.CLOSING,
        (
            *CLOSING_OF_ALL,
            on("completed: DONE", signals__done_at=4000.0),
            UNREADABLE,
            on("blocked: waiting without restart: a mark", signals__wait="a mark"),
            on("blocked: waiting without restart: exit code 42", turn__exit_code=42),
            LIMITED,
            GO_ON,
        ),
    ),
    "stories, opening": (
        REVIEWED.opening,
        Boundary.OPENING,
        (
            CANCELLED,
            PAUSED,
            UNREADABLE,
            on("completed: every story", **APPROVED, task__blocked_by=()),
            on("blocked: no open task", task__blocked_by=("b",), others__b=WAITS_FOR_A),
            ITERATIONS,
            GO_ON,
        ),
    ),
    "stories, watching": (REVIEWED.watching, Boundary.WATCHING, (*WATCHING, NOTHING)),
    "stories, stopping": (
        REVIEWED.stopping,
        Boundary.STOPPING,
        (on("release: held back 5 times", state__holds=5), OBJECTIONS, on("release: ")),
    ),
    "stories, closing": (
        REVIEWED.closing,
        Boundary.CLOSING,
        (
            *CLOSING_OF_ALL,
            LIMITED,
            OUT_OF_MONEY,
            BARRED,
            FAILED,
            QUESTION,
            on("wait: the agent said nothing", turn__text="", **WELL),
            on("completed: every story", **APPROVED, case__findings=()),
            on("stalled: no progress: make test", state__objected=TWICE, case__checked=True,
               case__findings=(OBJECTION,), state__findings=(OBJECTION,)),
            on("continue: ", **COMPLETE, task__passes=False),
            *LAST,
        ),
    ),
    "session, stopping": (
        SESSION.stopping,
        Boundary.STOPPING,
        (
            CANCELLED,
            on("accept: claimed", **PROMISED, turn__tools=1, **PASSED),
            ITERATIONS,
            on("continue: Promise detected, but no tool", **PROMISED, turn__tools=0),
            on("continue: You attempted to end the loop"),
        ),
    ),
}  # fmt: skip


def pairs(events: tuple[Event, ...]) -> Iterator[tuple[Event, Event]]:
    """Each of them alone, and each two that can both be the case, the more urgent first."""
    for first, second in itertools.combinations_with_replacement(events, 2):
        shared = first.fields.keys() & second.fields.keys()
        if all(first.fields[key] == second.fields[key] for key in shared):
            yield first, second


def case_of(boundary: Boundary, *events: Event) -> Case:
    """All of this is the case; everything else is in order."""
    parts: dict[str, Fields] = {}
    for event in events:
        for key, given in event.fields.items():
            name, _, field = key.partition("__")
            parts.setdefault(name, {})[field] = given

    def part(name: str) -> Fields:
        return parts.get(name, {})

    task = replace(Task("a", "the title", "do it"), **part("task"))
    turn = replace(Turn(text="working", cost_usd=0.1), **part("turn"))
    spent = replace(Spent(iterations=1), **part("spent"))
    begun: Fields = {"time": NOW, "iteration": 1, "assignment": Assignment("a")}
    state = RunState(**begun, spent=spent, spent_before_task=spent, snapshot=Snapshot("same"))
    state = replace(state, turn=None if boundary is Boundary.OPENING else turn, **part("state"))
    listed: Fields = {"tasks": (task, *part("others").values())} | part("backlog")
    return replace(
        Case(boundary, state, NOW, snapshot=Snapshot("same")),
        signals=replace(Signals(), **part("signals")),
        backlog=Backlog(**listed),
        pulse=replace(Pulse(1.0, 0.0), **part("pulse")) if boundary is Boundary.WATCHING else None,
        **part("case"),
    )


def words(answer: Answer | None) -> str:
    """An answer as the tables spell it."""
    match answer:
        case Stop(reason=reason, why=why):
            return f"{reason}: {why}"
        case Continue(feedback=feedback):
            return f"continue: {' '.join(each.text for each in feedback)}"
        case Accept(evidence=evidence):
            return f"accept: {'; '.join(evidence)}"
        case Wait(why=why) | Park(why=why) | Cut(why=why) | Release(why=why):
            return f"{type(answer).__name__.lower()}: {why}"
    return "none"


@pytest.mark.parametrize("name", ORDERS)
def test_which_of_two_answers_wins(name: str) -> None:
    ladder, boundary, events = ORDERS[name]
    wrong = []
    for first, second in pairs(events):
        answer = words(decide(case_of(boundary, first, second), ladder))
        if not answer.startswith(first.answer):
            wrong.append(f"{first.answer} and {second.answer} at once: {answer}")
    assert wrong == []


# ------------------------------------------------------------------ what else holds of all


@pytest.mark.parametrize(
    ("policy", "rules"),
    [
        (
            harness(Limits(10)),
            [Failing(3), Stalled(0), RateLimit(86_400.0), ResultGrace(10.0), Timeouts()],
        ),
        (tasks(BENCH), [Failing(3, park=True), Stalled(3, park=True), TasksLimit(50)]),
        (tasks(BENCH), [TaskLimit(Limits(10, 1800.0, 5.0)), TaskTimeLeft(Limits(10, 1800.0, 5.0))]),
        (tasks(BENCH), [RunLimit(Limits(None, 14_400.0, 50.0))]),
        (supervise(), [CarryOn(1.0), DoneGrace(300.0), Timeouts()]),
        (supervise(), [WaitCode(42), MaxRestarts(100)]),
        (reviewed(), [RunLimit(Limits(iterations=15)), Failing(3), Stalled(3)]),
        (reviewed(), [SilentRetry(3), HoldLimit(5)]),
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
