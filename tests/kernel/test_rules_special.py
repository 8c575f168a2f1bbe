"""Rules that only one way of working has: backlog, markers, stories, session."""

from dataclasses import replace

import pytest

from kits.cases import CRASHED, FINDING, NOW, UNDER_WORK, closing, opening, said
from ralph.kernel.case import Case
from ralph.kernel.contracts import CompleteClaim, PromiseTag
from ralph.kernel.limits import Limits, Spent
from ralph.kernel.state import RunState
from ralph.kernel.tasks.select import next_task
from ralph.kernel.tasks.task import Assignment, Backlog, ReviewStatus, Status, Task
from ralph.kernel.turn import Turn
from ralph.kernel.verdict import (
    Accept,
    Answer,
    Boundary,
    Cause,
    Continue,
    Feedback,
    Park,
    Reason,
    Release,
    Stop,
    Verdict,
    Wait,
)
from ralph.kernel.world import Signals
from ralph.loops.backlog.rules import (
    DayLimit,
    Halt,
    TaskLimit,
    TasksLimit,
    all_worked,
    lost,
    none_ready,
    proven,
    withdrawn,
)
from ralph.loops.session.policy import ULTRAWORK, Disbelieved, Remind
from ralph.loops.stories.rules import AllApproved, FalseClaim, HoldLimit, SilentRetry
from ralph.loops.supervise.policy import WaitCode, marked_done, waiting

# ------------------------------------------------------------------ B, tasks


def test_only_so_many_tasks_are_taken_up() -> None:
    """B §Global Limits: max tasks per run."""
    state = RunState(done=frozenset({"a"}), parked=(("b", "why"),))
    assert TasksLimit(2)(opening(state=state)) == Stop(
        Reason.LIMIT, "2 tasks taken up, and some are left"
    )
    assert TasksLimit(3)(opening(state=state)) is None


CHECKED = Task("prompt", check="npm test")
GAVE_UP = said('<result>{"status":"failed"}</result>')
WAITS = Task("a", status=Status.BLOCKED, reason="no network")
ASKS = Task("b", status=Status.BLOCKED, question="red or blue?")


@pytest.mark.parametrize(
    ("tasks", "why"),
    [
        ((WAITS, ASKS), "a is blocked: no network; b asks: red or blue?"),
        ((replace(WAITS, reason=""),), "a is blocked: as said in this run"),
        ((replace(ASKS, question=""),), "b is blocked"),
    ],
)  # fmt: skip
def test_when_only_waiting_tasks_are_left_the_run_says_what_they_wait_for(
    tasks: tuple[Task, ...], why: str
) -> None:
    state = RunState(parked=(("a", "as said in this run"),))
    assert all_worked(opening(*tasks, state=state)) == Stop(Reason.BLOCKED, why)


def test_a_backlog_without_open_tasks_is_worked_through() -> None:
    done, other = Task("a", status=Status.DONE), replace(ASKS, aside=True)
    assert all_worked(opening(done, other)) == Stop(Reason.COMPLETED, "nothing is left to do")
    assert all_worked(opening(Task("a"))) is None


def test_a_task_that_nothing_could_prove_is_not_begun_and_the_run_says_why() -> None:
    """The issue: "a missing TypeScript runner is a configuration error when the task is chosen"."""
    bare = Task("a", script="a.ts", uncheckable="nothing runs it")
    assert next_task(opening(bare, Task("b"))) == Assignment("b")
    assert all_worked(opening(bare)) == Stop(Reason.BLOCKED, "a was not begun: nothing runs it")
    begun = RunState(assignment=Assignment("a"), task_iteration=1)
    assert next_task(opening(bare, Task("b"), state=begun)) == Assignment("a")
    over = replace(begun, task_iteration=0)
    assert next_task(opening(bare, Task("b"), state=over)) == Assignment("b")


def test_open_tasks_that_wait_for_others_are_named_with_these() -> None:
    case = opening(ASKS, Task("c", blocked_by=("b", "unknown")))
    why = "b asks: red or blue?; c waits for b"
    assert none_ready(case) == Stop(Reason.BLOCKED, why)
    assert none_ready(opening(ASKS, Task("c"))) is None


@pytest.mark.parametrize(
    ("last", "why"),
    [
        (Park("task limit"), "a is blocked: task limit (onFailure: stop)"),
        (Park("what?", Cause.QUESTION), None),
        (Accept(("x",)), None),
    ],
)
def test_a_failed_task_can_end_the_run(last: Verdict, why: str | None) -> None:
    """B §Configuration: `onFailure`."""
    state = RunState(assignment=Assignment("a"), verdict=last)
    assert Halt()(opening(state=state)) == (Stop(Reason.BLOCKED, why) if why else None)
    assert Halt()(opening(state=RunState(verdict=last))) is None


def test_the_day_has_its_money() -> None:
    case = opening(state=RunState(spent=Spent(dollars=3.0)))
    why = "the day's $10 are used up (spent $10.50)"
    assert DayLimit(10.0, before=7.5)(case) == Stop(Reason.LIMIT, why)
    assert DayLimit(10.0, before=6.0)(case) is None


@pytest.mark.parametrize(
    ("case", "answer"),
    [
        (
            closing(tasks=(CHECKED,), passed=("lint", "completion")),
            Accept(("passed: npm test", "passed: lint")),
        ),
        (closing(tasks=(CHECKED,), passed=("lint",)), None),
        (closing(CRASHED, tasks=(CHECKED,), passed=("completion",)), None),
        (closing(tasks=(CHECKED,), passed=("completion",), findings=(FINDING,)), None),
        (closing(tasks=(CHECKED,), passed=("completion",), checked=False), None),
        (closing(passed=("lint", "completion")), None),
        (closing(GAVE_UP, tasks=(CHECKED,), passed=("completion",)), None),
    ],
    ids=[
        "passed",
        "did not run",
        "crashed",
        "another objects",
        "another did not run",
        "no check",
        "said failed",
    ],
)
def test_a_check_of_the_task_proves_it_done(case: Case, answer: Answer | None) -> None:
    """B §Completion Detection: tests, an artifact or a script complete a task without a word."""
    assert proven(case) == answer


@pytest.mark.parametrize(
    ("status", "answer"),
    [
        (Status.IN_PROGRESS, None),
        (Status.DONE, Accept(("a person called it done",))),
        (Status.CANCELLED, Park("a person made it cancelled", Cause.PERSON)),
        (Status.REVIEW, Park("a person made it review", Cause.PERSON)),
    ],
)
def test_a_person_may_settle_a_task_under_work(status: Status, answer: Answer | None) -> None:
    tasks = (Task("prompt", status=status),)
    assert withdrawn(closing(tasks=tasks)) == answer
    assert withdrawn(closing(CRASHED, tasks=tasks)) is None


def test_a_task_that_is_not_in_the_list_is_never_believed() -> None:
    assert lost(closing()) is None
    gone = replace(closing(), backlog=Backlog((Task("other"),)))
    assert lost(gone) == Stop(Reason.CONFIG, "the task prompt is no longer in the list")
    unreadable = replace(closing(), backlog=Backlog(problem="no disk"))
    assert lost(unreadable) == Stop(Reason.CONFIG, "no disk")


@pytest.mark.parametrize(
    ("own", "why"),
    [
        (Limits(), "3 iterations used up"),
        (Limits(iterations=4, seconds=50.0), "50s of time used up"),
        (Limits(iterations=4, seconds=51.0, dollars=1.5), "$1.5 used up (spent $1.50)"),
        (Limits(iterations=4, seconds=51.0, dollars=2.0), None),
    ],
)
def test_a_task_has_limits_of_its_own(own: Limits, why: str | None) -> None:
    """B §Per-Task Limits; on limit reached the task is blocked with its reason."""
    spent, before = Spent(13, 150.0, 3.5), Spent(10, 100.0, 2.0)
    state = replace(UNDER_WORK, spent=spent, spent_before_task=before)
    case = closing(tasks=(Task("prompt", limits=own),), state=state)
    answer = TaskLimit(Limits(iterations=3, seconds=60.0, dollars=5.0))(case)
    assert answer == (Park(f"task limit: {why}") if why else None)


# ------------------------------------------------------------------ S, markers


def test_only_the_done_file_completes() -> None:
    """S §Exit Conditions: "Exit code 0 by itself is NOT a stop condition"."""
    done = Stop(Reason.COMPLETED, "DONE marker present", ("DONE marker present",))
    assert marked_done(closing(signals=Signals(done_at=NOW))) == done
    assert marked_done(closing(said("<promise>DONE</promise>"))) is None


@pytest.mark.parametrize(
    ("code", "signals", "why"),
    [
        (42, Signals(), "waiting without restart: exit code 42"),
        (0, Signals(wait="a webhook"), "waiting without restart: a webhook"),
        (42, Signals(wait="a webhook"), "waiting without restart: a webhook"),
        (0, Signals(), None),
        (None, Signals(), None),
    ],
)
def test_waiting_without_restart(code: int | None, signals: Signals, why: str | None) -> None:
    """S §Wait-Without-Restart: exit code, bus message or marker file."""
    case = closing(Turn(exit_code=code), signals=signals)
    answer = waiting(case) or WaitCode()(case)
    assert answer == (Stop(Reason.BLOCKED, why) if why else None)


# ------------------------------------------------------------------ R, stories

GOOD = Task("US-1", review=ReviewStatus.APPROVED, passes=True)
OPEN = Task("US-2", review=ReviewStatus.NEEDS_REVIEW)
ODD = Task("US-3", passes=True)


@pytest.mark.parametrize(
    ("stories", "skip_review", "word"),
    [
        ((GOOD,), False, "is approved"),
        ((GOOD, OPEN), False, None),
        ((ODD,), False, None),
        ((replace(OPEN, review=ReviewStatus.APPROVED),), False, None),
        ((), False, None),
        ((ODD,), True, "passes"),
        ((ODD, OPEN), True, None),
        ((), True, None),
    ],
)
def test_the_list_itself_must_show_every_story_approved(
    stories: tuple[Task, ...], skip_review: bool, word: str | None
) -> None:
    """ADR 4: "An empty story list is not complete"."""
    evidence = tuple(f"{story.id} {word}" for story in stories)
    done = Stop(Reason.COMPLETED, f"every story {word}", evidence)
    rule = AllApproved(skip_review)
    assert rule(opening(*stories)) == (done if word else None)
    assert rule(closing(tasks=stories, findings=(FINDING,))) is None


@pytest.mark.parametrize(
    ("turn", "waits", "again"),
    [
        (Turn(), 0, True),
        (Turn(text=" \n"), 2, True),
        (Turn(), 3, False),
        (Turn(text="hello"), 0, False),
        (Turn(tools=1), 0, False),
        (Turn(exit_code=1), 0, False),
    ],
)
def test_an_empty_answer_is_taken_again(turn: Turn, waits: int, again: bool) -> None:
    """R §3: transient empty responses are retried, "with a cap on retries"."""
    answer = SilentRetry()(closing(turn, state=replace(UNDER_WORK, waits=waits)))
    assert answer == (Wait(0, "the agent said nothing") if again else None)


def test_a_false_claim_is_told_which_stories_are_left() -> None:
    """R §3: the promise, then the list: "Dual check prevents false completion signals"."""
    rule, turn = FalseClaim(CompleteClaim()), said("<promise>COMPLETE</promise>")
    told = "You said <promise>COMPLETE</promise>, but these are not approved: US-2."
    found = Feedback("the tests fail")
    case = closing(turn, tasks=(GOOD, OPEN), findings=(FINDING,))
    assert rule(case) == Continue((found, Feedback(told)))
    assert rule(closing(turn, tasks=(GOOD,), findings=(FINDING,))) is None
    assert rule(closing(said("not yet"), tasks=(OPEN,))) is None


def test_a_session_is_held_back_only_so_often() -> None:
    held = replace(UNDER_WORK, holds=5)
    at = Boundary.STOPPING
    assert HoldLimit()(closing(state=held, boundary=at)) == Release("held back 5 times")
    assert HoldLimit(6)(closing(state=held, boundary=at)) is None


# ------------------------------------------------------------------ P, session

PROMISE = PromiseTag("SHIPPED")
CLAIM = "<promise>SHIPPED</promise>"


def spoken(answer: Answer | None) -> str:
    assert isinstance(answer, Continue)
    [feedback] = answer.feedback
    return feedback.text


def test_a_promise_without_work_is_rejected_in_the_specs_words() -> None:
    """P §Bypass prevention."""
    rule = Disbelieved(PROMISE)
    assert spoken(rule(closing(said(CLAIM)))) == (
        "Promise detected, but no tool calls/work were performed; you must actually complete "
        "the task before emitting the promise.\n\nOriginal task: do it"
    )
    assert rule(closing(said("no promise"))) is None


def test_a_promise_that_a_gate_objects_to_is_rejected_with_its_words() -> None:
    rule, turn = Disbelieved(PROMISE), said(CLAIM, tools=1)
    told = spoken(rule(closing(turn, findings=(FINDING, replace(FINDING, text="so does lint")))))
    assert told.startswith("the tests fail\n\nso does lint\n\nOriginal task:")
    assert spoken(rule(closing(turn, checked=False))).startswith("The promise was not accepted.")


def test_who_forgets_the_promise_gets_the_task_again() -> None:
    """P §Continuation message format."""
    told = spoken(Remind(PROMISE)(closing(said("I am done."))))
    assert told == (
        f"You attempted to end the loop, but you did not output the completion promise {CLAIM}. "
        "Continue working on the original task below. Only output the promise when the task is "
        "fully complete.\n\nOriginal task: do it"
    )
    near = spoken(Remind(PROMISE)(closing(said("<promise>shipped</promise>"))))
    assert f"complete. <promise>shipped</promise> is not exactly {CLAIM}.\n\nOriginal" in near


def test_the_ultrawork_loop_says_so_every_time() -> None:
    """P §ULW-loop: "identical ... except it prepends an ultrawork mode instruction"."""
    for rule in (Remind(PROMISE, ultrawork=True), Disbelieved(PROMISE, ultrawork=True)):
        assert spoken(rule(closing(said(CLAIM)))).startswith(f"{ULTRAWORK}\n\n")


def test_a_task_that_is_gone_from_the_backlog_still_has_its_name() -> None:
    case = closing(tasks=(), state=UNDER_WORK)
    assert case.task == Task("prompt", "")
