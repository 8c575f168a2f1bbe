"""B, the backlog: histories of several tasks, each proven, committed and recorded."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import pytest

from kits.histories import (
    BLOCKED,
    COMPLETE,
    CRASH,
    CUT,
    DECIDE,
    DONE,
    MISSING,
    QUESTION,
    WORK,
    Played,
    erred,
    limited,
    play,
    said,
)
from kits.loop_fakes import FakeWorkbench
from ralph.kernel.case import Case
from ralph.kernel.claims import find_claims
from ralph.kernel.facts import Began, Decided, Ended, Fact, Resumed, Settled, Step
from ralph.kernel.findings import Finding
from ralph.kernel.limits import Limits
from ralph.kernel.rules import Patience
from ralph.kernel.state import replay
from ralph.kernel.tasks.task import Assignment, Backlog, Status, Task
from ralph.kernel.turn import Order, Pulse, Turn
from ralph.kernel.verdict import Accept, Boundary, Continue, Reason
from ralph.kernel.world import Signals
from ralph.loops.backlog.policy import DISCARDED, Bounds, tasks
from ralph.loops.backlog.prompt import Material, task_prompt
from ralph.loops.backlog.rules import NAMED, DayLimit
from ralph.testing.fakes import FakeAgent, FakeClock, FakeGate, FakeWorld

A, B, C = Task("a", "first", "do a"), Task("b", "second", "do b"), Task("c", "third", "do c")
RESULT = said('<result>{"status":"complete","artifacts":["x"]}</result>')
FAILED = said('<result>{"status":"failed","error":"tests hang"}</result>')


@dataclass(frozen=True)
class History:
    """One row: backlog and turns in, who was worked on and the exit code out."""

    name: str
    backlog: tuple[Task, ...]
    turns: tuple[Turn | tuple[Turn, ...], ...]
    worked_on: str  # the task of each turn
    verdicts: str
    exit_code: int
    most_tasks: int = 50
    task_limits: Limits = Limits(iterations=10)
    run_limits: Limits = Limits()
    patience: Patience = Patience()
    stop_on_failure: bool = False
    refusals: dict[int, str] = field(default_factory=dict)


HISTORIES = [
    History("one after the other", (A, B), (COMPLETE,), "a b", "Accept Accept", 0),
    History("until it is complete", (A, B), (WORK, WORK, COMPLETE, COMPLETE), "a a a b",
            "Continue Continue Accept Accept", 0),
    History("in progress first", (A, replace(B, status=Status.IN_PROGRESS)), (COMPLETE,), "b a",
            "Accept Accept", 0),
    History("a blocker first", (replace(A, blocked_by=("b",)), B), (COMPLETE,), "b a",
            "Accept Accept", 0),
    History("B's result object", (A,), (RESULT,), "a", "Accept", 0),
    History("H's tag says nothing here", (A,), (DONE, COMPLETE), "a a", "Continue Accept", 0),
    History("nothing to do", (), (), "", "", 0),
    History("BLOCKED parks and goes on", (A, B), (BLOCKED, COMPLETE), "a b", "Park Accept", 3),
    History("DECIDE parks", (A,), (DECIDE,), "a", "Park", 3),
    History("a question parks", (A,), (QUESTION,), "a", "Park", 3),
    History("only parked tasks are left", (A, B), (BLOCKED,), "a b", "Park Park", 3),
    History("a parked blocker", (A, replace(B, blocked_by=("a",))), (BLOCKED,), "a", "Park", 3),
    History("a circle", (replace(A, blocked_by=("b",)), replace(B, blocked_by=("a",))), (), "",
            "", 3),
    History("the task's limit parks it", (A, B), (WORK, WORK, COMPLETE), "a a b",
            "Continue Park Accept", 3, task_limits=Limits(iterations=2)),
    History("its own limit counts", (replace(A, limits=Limits(iterations=1)), B),
            (WORK, COMPLETE), "a b", "Park Accept", 3),
    History("the limit counts each task anew", (A, B), (WORK, COMPLETE, WORK, COMPLETE),
            "a a b b", "Continue Accept Continue Accept", 0, task_limits=Limits(iterations=2)),
    History("complete at the limit", (A,), (WORK, COMPLETE), "a a", "Continue Accept", 0,
            task_limits=Limits(iterations=2)),
    History("a failed turn at the limit", (A, B), (CRASH, COMPLETE), "a b", "Park Accept", 3,
            task_limits=Limits(iterations=1)),
    History("money of the task", (A, B), (said("x", cost=6.0), COMPLETE), "a b", "Park Accept", 3,
            task_limits=Limits(dollars=5.0)),
    History("failures without end", (A,), (CRASH,), "a a a", "Continue Continue Park", 3,
            task_limits=Limits(iterations=3), patience=Patience(fail_after=0)),
    History("so many tasks", (A, B, C), (COMPLETE,), "a b", "Accept Accept", 1, most_tasks=2),
    History("parked ones count", (A, B, C), (BLOCKED, COMPLETE), "a b", "Park Accept", 1,
            most_tasks=2),
    History("money of the run", (A, B), (said("x", cost=3.0),), "a a", "Continue Stop", 1,
            run_limits=Limits(dollars=5.0)),
    History("the only task crashes", (A,), (CRASH,), "a a a", "Continue Continue Park", 5),
    History("two tasks crash", (A, B, C), (CRASH,), "a a a b b b",
            "Continue Continue Park Continue Continue Park", 5),
    History("one task crashes", (A, B, C), (CRASH, CRASH, COMPLETE), "a a b c",
            "Continue Park Accept Accept", 3, patience=Patience(fail_after=2)),
    History("two crash, and another is done between them", (A, B, C), (CRASH, COMPLETE, CRASH),
            "a b c", "Park Accept Park", 3, patience=Patience(fail_after=1)),
    History("one worked before it crashed", (A, B), (WORK, CRASH, CRASH), "a a b",
            "Continue Park Park", 3, patience=Patience(fail_after=1)),
    History("limits end what crashes", (A, B, C), (CRASH,), "a b", "Park Park", 5,
            task_limits=Limits(iterations=1)),
    History("onFailure: stop", (A, B), (CRASH,), "a", "Park", 5, patience=Patience(fail_after=1),
            stop_on_failure=True),
    History("unstartable", (A,), (MISSING,), "a", "Stop", 2),
    History("401", (A,), (erred(401),), "a", "Stop", 2),
    History("429", (A,), ((limited(), COMPLETE),), "a a", "Wait Accept", 0),
    History("stalled tasks are parked one by one", (A, B), (WORK,), "a a b b",
            "Continue Park Continue Park", 3, patience=Patience(stall_after=2)),
    History("a refused commit is an objection", (A,), (COMPLETE,), "a a", "Accept Accept", 0,
            refusals={1: "lint: 1 error"}),
    History("refused again and again", (A, B), (COMPLETE,), "a a b", "Accept Accept Accept", 3,
            task_limits=Limits(iterations=2), refusals={1: "no", 2: "nor so"}),
    History("refused in other words", (A, B), (COMPLETE,), "a a a", "Accept Accept Accept", 3,
            refusals={1: "no", 2: "nor so", 3: "never"}),
    History("refused for ever", (A, B), (COMPLETE,), "a a", "Accept Accept", 3,
            refusals={1: "no", 2: "no"}),
]  # fmt: skip


def played(history: History) -> tuple[Played, FakeWorkbench]:
    world = FakeWorld(Backlog(history.backlog))
    bench = FakeWorkbench(world, history.refusals)
    policy = tasks(
        bench,
        Bounds(
            history.task_limits,
            history.run_limits,
            history.most_tasks,
            stop_on_failure=history.stop_on_failure,
        ),
        patience=history.patience,
    )
    return play(policy, FakeAgent(history.turns), world), bench


@pytest.mark.parametrize("history", HISTORIES, ids=lambda history: history.name)
def test_history(history: History) -> None:
    result, _ = played(history)
    assert " ".join(result.tasks) == history.worked_on
    assert (result.names, result.exit_code) == (history.verdicts, history.exit_code)
    if result.exit_code == 5:  # "and stay pending: a broken agent must not block fifty tasks"
        assert {task.status for task in result.world.tasks.tasks} == {Status.PENDING}


def test_an_accepted_task_is_recorded_committed_and_synced_in_this_order() -> None:
    """ADR 21: "Records ... are written before the task's commit, sync after"."""
    result, bench = played(HISTORIES[0])
    assert [key for key, _, _ in result.steps] == ["record", "commit", "sync"] * 2
    assert bench.done == {
        (1, "a", "record"): Status.DONE,
        (1, "a", "commit"): "",
        (1, "a", "sync"): "",
        (2, "b", "record"): Status.DONE,
        (2, "b", "commit"): "",
        (2, "b", "sync"): "",
    }
    assert (result.stop.why, bench.ended) == ("nothing is left to do", True)


def test_a_parked_task_is_rolled_back_and_marked_blocked() -> None:
    """B §Rollback: "Rollback to last good commit", "Mark task as `blocked`"."""
    world = FakeWorld(Backlog((A, B)))
    bench = FakeWorkbench(world)
    result = play(tasks(bench), [BLOCKED, COMPLETE], world)
    assert [key for key, _, _ in result.steps] == ["restore", "record", "record", "commit", "sync"]
    assert bench.done[1, "a", "restore"] == "whole task"
    assert world.tasks.get("a") == replace(A, status=Status.BLOCKED)
    assert result.stop.why == "a is blocked: no network"
    both, _ = played(next(h for h in HISTORIES if h.name == "only parked tasks are left"))
    assert both.state.parked == (("a", "no network"), ("b", "no network"))


def test_a_refused_commit_opens_the_task_again_and_tells_why() -> None:
    """ADR 1: "a commit refused by the user's own git hook is a Continue with that output"."""
    world = FakeWorld(Backlog((A,)))
    bench = FakeWorkbench(world, {1: "lint: 1 error"})
    result = play(tasks(bench), [COMPLETE], world)
    assert [key for key, _, _ in result.steps][:3] == ["record", "commit", "reopen"]
    assert result.agent.prompts()[1].endswith("The commit was refused:\nlint: 1 error")
    assert (bench.done[1, "a", "record"], bench.done[2, "a", "record"]) == ("in_progress", "done")


def test_a_commit_refused_at_the_tasks_limit_parks_it() -> None:
    world = FakeWorld(Backlog((A,)))
    bench = FakeWorkbench(world, {1: "no"})
    result = play(tasks(bench, Bounds(Limits(iterations=1))), [COMPLETE], world)
    assert bench.done[1, "a", "restore"] == "whole task"
    assert bench.done[1, "a", "record"] == Status.BLOCKED
    assert (result.exit_code, result.turns) == (3, 1)


@pytest.mark.parametrize("turn", [CRASH, CUT, erred(400), FAILED])
def test_a_failed_iteration_is_discarded_and_the_feedback_says_so(turn: Turn) -> None:
    """ADR 21: "crashed, timed out or said `failed`: its changes are discarded"."""
    world = FakeWorld(Backlog((A,)))
    bench = FakeWorkbench(world)
    result = play(tasks(bench), [turn, COMPLETE], world)
    assert bench.done[1, "a", "restore"] == "turn"
    assert result.agent.prompts()[1].endswith(DISCARDED)
    assert ("The previous iteration failed: " in result.agent.prompts()[1]) is turn.failed


@pytest.mark.parametrize("fails_in", [frozenset({1}), frozenset[int]()])
def test_an_objection_or_unfinished_work_discards_nothing(fails_in: frozenset[int]) -> None:
    """ADR 21: "A gate's objection, an unmet completion check or a Wait discards nothing"."""
    world = FakeWorld(Backlog((A,)))
    bench = FakeWorkbench(world)
    policy = tasks(bench, gates=(FakeGate(fails_in=fails_in),))
    result = play(policy, [WORK, (limited(), COMPLETE)], world)
    assert (result.names, result.exit_code) == ("Continue Wait Accept", 0)
    assert not any(what == "restore" for _, _, what in bench.done)


def test_stopping_while_a_rate_limit_is_waited_for_discards_nothing() -> None:
    world = FakeWorld(Backlog((A,)))
    bench = FakeWorkbench(world)

    def press() -> None:
        world.asked = Signals(1, 1000.0)

    result = play(tasks(bench), [limited()], world, FakeClock(during_rest=press))
    assert (result.exit_code, bench.done) == (130, {})
    assert not bench.ended, "it may go on"


def test_a_check_of_the_task_completes_it_without_a_word() -> None:
    """B §Completion Detection 2 to 4."""
    found = Finding("completion", "1 failed")
    gate = FakeGate("completion", fails_in=frozenset({1}), finding=found)
    world = FakeWorld(Backlog((replace(A, check="npm test"),)))
    bench = FakeWorkbench(world)
    result = play(tasks(bench, gates=(gate,)), [COMPLETE, WORK], world)
    assert (result.names, result.stop.evidence) == ("Continue Accept", ("passed: npm test",))
    assert "The task is complete when npm test." in result.agent.prompts()[0]
    assert result.agent.prompts()[1].endswith("1 failed")


@dataclass(frozen=True)
class NamedTests(FakeGate):
    """The tests that are named after a task, which are there from that iteration on."""

    since: int = 1

    def check(self, case: Case) -> Iterable[Finding]:
        return super().check(case) if case.state.iteration >= self.since else ()

    def passed_as(self, case: Case) -> str:
        there = case.state.iteration >= self.since
        return f"{NAMED}{case.task.id}" if there else ""


FAILED_TESTS = Finding("completion", "Not complete yet: 1 failed", code=1)
BY_TESTS = ("passed: the tests named a", "passed: make lint")
BY_CLAIM = ("claimed: <promise>COMPLETE</promise>", "passed: make lint")


@pytest.mark.parametrize(
    ("tests", "turns", "verdicts", "evidence"),
    [
        (NamedTests("completion"), (WORK,), "Accept", BY_TESTS),
        (NamedTests("completion"), (COMPLETE,), "Accept", BY_TESTS),
        # They fail: no claim is believed.
        (
            NamedTests("completion", fails_in=frozenset({1, 2}), finding=FAILED_TESTS),
            (COMPLETE, COMPLETE, WORK),
            "Continue Continue Accept",
            BY_TESTS,
        ),
        # There are none, and the agent's word counts.
        (NamedTests("completion", since=9), (WORK, COMPLETE), "Continue Accept", BY_CLAIM),
        # A turn has written them.
        (NamedTests("completion", since=2), (WORK, WORK), "Continue Accept", BY_TESTS),
        # What a turn calls failed is discarded, whatever passes.
        (NamedTests("completion"), (FAILED, WORK), "Continue Accept", BY_TESTS),
        (NamedTests("completion"), (CRASH, WORK), "Continue Accept", BY_TESTS),
    ],
)
def test_tests_named_after_a_task_complete_it_without_a_word(
    tests: NamedTests, turns: tuple[Turn, ...], verdicts: str, evidence: tuple[str, ...]
) -> None:
    """B §Completion Detection 2: "If task has associated tests"."""
    world = FakeWorld(Backlog((A,)))
    gates = (FakeGate("make lint"), tests)
    result = play(tasks(FakeWorkbench(world), gates=gates), list(turns), world)
    assert (result.names, result.stop.evidence) == (verdicts, evidence)


def test_a_guardrail_holds_whatever_the_tests_of_a_task_say() -> None:
    lint = FakeGate("make lint", fails_in=frozenset({1}))
    world = FakeWorld(Backlog((A,)))
    gates = (lint, NamedTests("completion"))
    result = play(tasks(FakeWorkbench(world), gates=gates), [WORK], world)
    assert (result.names, result.stop.evidence) == ("Continue Accept", BY_TESTS)


def test_an_agent_is_told_of_the_tests_that_complete_its_task() -> None:
    """B §Completion Detection 2; without such tests it has to say when it is done."""
    known = Material(tests="npm test -- --grep a")
    said = task_prompt(A, known, 1, None)
    assert "This task is complete when `npm test -- --grep a` passes; the host runs that" in said
    assert "Where no test is named a, end your answer with <promise>COMPLETE</promise>" in said
    checked = task_prompt(replace(A, check="npm test"), known, 1, None)
    assert "--grep" not in checked


def test_what_the_agent_is_told() -> None:
    """B §The Loop: index, task; the words that count; what was learned; the count."""
    task = replace(A, kind="bug", tags=("ui", "ux"), answers=("blue",), saved="refs/ralph/r/cut-1")
    known = Material((("AGENTS.md", "Be kind.\n"),), ("Iteration 1 failed: no disk",))
    world = FakeWorld(Backlog((task,)))
    result = play(tasks(FakeWorkbench(world), about=lambda _: known), [COMPLETE], world)
    parts = result.agent.prompts()[0].split("\n\n")
    assert parts[:3] == [
        '<file path="AGENTS.md">\nBe kind.\n</file>',
        "Task a: first (type: bug; tags: ui, ux)",
        "do a",
    ]
    for words in ("end your answer with <promise>COMPLETE</promise>", "<promise>BLOCKED: why"):
        assert words in parts[3]
    assert parts[4:] == [
        "A person has answered:\n- blue",
        "What an earlier try had done is kept in git: git show refs/ralph/r/cut-1",
        "What was learned so far:\n- Iteration 1 failed: no disk",
        "Iteration 1 of 10, 9 remaining.",
    ]


def test_a_paper_without_end_is_cut() -> None:
    known = Material((("AGENTS.md", "x" * 40_000),))
    prompt = task_prompt(A, known, 1, None)
    assert "[... the rest is in AGENTS.md]" in prompt
    assert len(prompt) < 34_000


def test_a_task_that_was_answered_meanwhile_comes_back() -> None:
    """B: `ralph tasks answer` puts the answer into its next prompt."""
    world = FakeWorld(Backlog((A, B)))

    def answer(order: Order) -> None:
        if order.iteration == 2:
            world.update("a", status=Status.PENDING, answers=("blue",))

    agent = FakeAgent([DECIDE, COMPLETE], during=answer)
    result = play(tasks(FakeWorkbench(world)), agent, world)
    assert (result.tasks, result.exit_code) == (["a", "b", "a"], 0)
    assert "A person has answered:\n- blue" in result.agent.prompts()[2]
    assert result.state.parked == ()


def test_an_edit_of_the_task_list_is_undone_before_the_turn_is_judged() -> None:
    world = FakeWorld(Backlog((A,)))
    bench = FakeWorkbench(world, edits={1: "a was set to done"})
    result = play(tasks(bench), [COMPLETE], world)
    assert result.steps[0] == ("tasks.jsonl", True, "a was set to done")


def test_the_first_failed_task_ends_the_run_if_asked_for() -> None:
    world = FakeWorld(Backlog((A, B)))
    bounds = Bounds(Limits(iterations=1), stop_on_failure=True)
    result = play(tasks(FakeWorkbench(world), bounds), [WORK], world)
    assert (result.tasks, result.exit_code) == (["a"], 3)


def test_the_days_money_bounds_the_run() -> None:
    """The allowance is "the least of turn, task, run and day limits"."""
    world = FakeWorld(Backlog((A,)))
    bounds = Bounds(day=DayLimit(10.0, before=8.0))
    result = play(tasks(FakeWorkbench(world), bounds), [said("x", cost=2.5)], world)
    assert result.agent.orders[0].dollars == 2.0
    assert (result.exit_code, result.stop.why) == (1, "the day's $10 are used up (spent $10.50)")


def test_a_run_that_stops_after_a_parked_task_restores_nothing_more() -> None:
    world = FakeWorld(Backlog((A,)))
    bench = FakeWorkbench(world)
    bounds = Bounds(Limits(iterations=1))
    result = play(tasks(bench, bounds, patience=Patience(fail_after=0)), [CRASH], world)
    assert [key for key, _, _ in result.steps] == ["restore", "record"]
    assert result.exit_code == 3


def test_a_turn_cut_off_by_a_crash_is_told_so() -> None:
    world = FakeWorld(Backlog((A,)))
    state = replay([Began(900.0, 4, Assignment("a")), Resumed(950.0, 8)])
    bench = FakeWorkbench(world, leftover="refs/ralph/r/cut-4", edits={4: "a was set to done"})
    result = play(tasks(bench), [COMPLETE], world, state=state)
    assert result.steps[:2] == [
        ("tasks.jsonl", True, "a was set to done"),
        ("cut off", True, "refs/ralph/r/cut-4"),
    ]
    assert result.agent.prompts()[0].startswith("Iteration 4 was cut off")


def test_the_tasks_money_bounds_its_turn() -> None:
    """ADR 1: the allowance is "the least of turn, task, run and day limits"."""
    world = FakeWorld(Backlog((A, B)))
    run, task = Limits(dollars=9.0), Limits(dollars=5.0)
    policy = tasks(FakeWorkbench(world), Bounds(task, run))
    costly = replace(COMPLETE, cost_usd=2.0)
    agent = FakeAgent([said("x", cost=3.0), costly, replace(COMPLETE, cost_usd=1.0)])
    result = play(policy, agent, world)
    money = [order.dollars for order in result.agent.orders]
    assert money == [5.0, 2.0, 4.0]


def test_a_turn_that_uses_up_the_tasks_time_is_cut_and_the_task_parked() -> None:
    """B §Per-Task Limits: max time, 30 min."""
    world = FakeWorld(Backlog((A,)))
    policy = tasks(FakeWorkbench(world), Bounds(Limits(seconds=3.0)))
    agent = FakeAgent([WORK], pulses=[Pulse(1.0, 0.0)] * 9)
    result = play(policy, agent, world, FakeClock(tick=1.0))
    assert [cut.why for cut in agent.cuts] == ["the task's 3.0s are used up"]
    assert (result.names, result.stop.reason) == ("Park", Reason.BLOCKED)


def test_a_task_that_waits_for_a_machine_uses_up_none_of_its_time() -> None:
    world = FakeWorld(Backlog((A,)))
    policy = tasks(FakeWorkbench(world), Bounds(Limits(seconds=6.0)))
    waits = [Pulse(0.0, 0.0, queued=float(n)) for n in range(20)]
    agent = FakeAgent([replace(COMPLETE, queued=19.0)], pulses=waits)
    result = play(policy, agent, world, FakeClock(tick=1.0))
    assert (agent.cuts, result.stop.reason) == ([], Reason.COMPLETED)


def test_a_commit_refused_before_a_crash_is_still_refused_after_it() -> None:
    """A resumed settling must not take a refused commit for a step that is done."""
    world = FakeWorld(Backlog((A,)))
    turn = Turn(claims=find_claims("<promise>COMPLETE</promise>"))
    facts: list[Fact] = [
        Began(900.0, 1, Assignment("a")),
        Ended(910.0, turn),
        Decided(910.0, Boundary.CLOSING, Accept(("claimed",)), checked=True),
        Step(911.0, "record"),
        Step(912.0, "commit", ok=False, detail="lint: 1 error"),
        Resumed(950.0, 8),
    ]
    bench = FakeWorkbench(world)
    result = play(tasks(bench), [COMPLETE], world, state=replay(facts))
    assert result.steps[0][0] == "reopen"
    settled = [fact for fact in result.facts if isinstance(fact, Settled)]
    assert type(settled[0].verdict).__name__ == "Continue"
    assert (1, "a", "sync") not in bench.done


def test_a_turn_that_may_write_nothing_ends_the_run() -> None:
    """ADR 15: "ends the run (2) with that hint, unless its claim was believed"."""
    world = FakeWorld(Backlog((A,)))
    denied = replace(COMPLETE, denied=("Write",))
    assert play(tasks(FakeWorkbench(world)), [denied], world).exit_code == 0
    world = FakeWorld(Backlog((A,)))
    result = play(tasks(FakeWorkbench(world)), [replace(WORK, denied=("Write",))], world)
    assert (result.names, result.turns, result.exit_code) == ("Stop", 1, 2)


def test_failed_turns_are_spaced_and_that_time_counts() -> None:
    """ADR 11: "an iteration is used, and the time counts in the run's"; a `Wait` uses neither."""
    world = FakeWorld(Backlog((A,)))
    result = play(tasks(FakeWorkbench(world)), [CRASH, CRASH, COMPLETE], world)
    assert [v.after for v in result.verdicts if isinstance(v, Continue)] == [1.0, 2.0]
    assert result.state.spent.seconds >= 3.0
    world = FakeWorld(Backlog((A,)))
    result = play(tasks(FakeWorkbench(world)), [(erred(503), COMPLETE)], world)
    assert (result.names, result.iterations) == ("Wait Accept", [1, 1])
    assert result.state.spent.seconds < 30.0 <= result.state.waited
