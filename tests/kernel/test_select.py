"""Which task is next, and what is done to it (B §Task Selection, R §6)."""

from dataclasses import replace

import pytest

from kits.cases import opening
from ralph.kernel.state import RunState
from ralph.kernel.tasks.select import blockers, first_open, next_story, next_task, next_unreviewed
from ralph.kernel.tasks.task import Assignment, Backlog, Mode, ReviewStatus, Status, Task

DOING, DONE, BLOCKED = Status.IN_PROGRESS, Status.DONE, Status.BLOCKED
A, B = Task("a"), Task("b")


@pytest.mark.parametrize(
    ("tasks", "chosen"),
    [
        ([], None),
        ([A, B], "a"),
        ([A, Task("b", status=DOING)], "b"),
        ([Task("a", priority=9), Task("b", status=DOING)], "b"),
        ([Task("a", status=DOING), Task("b", status=DOING, priority=1)], "b"),
        ([Task("a", status=DOING), Task("b", status=DOING)], "a"),
        ([A, Task("b", priority=1)], "b"),
        ([Task("a", priority=-1), B], "b"),  # a missing priority is 0 (ADR 21)
        ([Task("a", created="2026-02-01"), Task("b", created="2026-01-31")], "b"),
        ([Task("a", priority=1, created="2026"), Task("b", created="2025")], "a"),
        ([Task("a", status=DONE), B], "b"),
        ([Task("a", status=BLOCKED), B], "b"),
        ([Task("a", status=Status.REVIEW), B], "b"),
        ([Task("a", status=Status.CANCELLED)], None),
    ],
)
def test_the_next_task(tasks: list[Task], chosen: str | None) -> None:
    """B: blocked are skipped, in progress first, highest priority, oldest, then the file."""
    assignment = next_task(opening(*tasks))
    assert (assignment.task if assignment else None) == chosen


@pytest.mark.parametrize(
    ("blocker", "free"),
    [
        (Task("b", status=Status.PENDING), False),
        (Task("b", status=DOING), False),
        (Task("b", status=BLOCKED), False),
        (Task("b", status=Status.REVIEW), False),
        (Task("b", status=DONE), True),
        (Task("b", status=Status.CANCELLED), True),
        (Task("b", passes=True), True),
        (Task("other"), True),
    ],
)
def test_what_blocks_a_task(blocker: Task, free: bool) -> None:
    """ADR 21: "A blocker that is done, cancelled or unknown does not block"."""
    waiting = Task("a", priority=9, blocked_by=("b",))
    chosen = next_task(opening(waiting, blocker))
    assert (chosen == Assignment("a")) is free


def test_one_open_blocker_of_several_is_enough() -> None:
    chosen = next_task(opening(Task("a", blocked_by=("x", "b")), B))
    assert chosen == Assignment("b")


def test_what_a_task_waits_for_is_named() -> None:
    """ADR 21: "A blocker that is done, cancelled or unknown does not block"."""
    done, reviewed = Task("d", status=DONE), Task("r", status=Status.REVIEW)
    task = Task("a", blocked_by=("d", "r", "x", "b"))
    assert blockers(task, opening(task, done, reviewed, B)) == ("r", "b")
    assert blockers(B, opening(task, B)) == ()


def test_a_blocker_done_in_this_run_does_not_block() -> None:
    case = opening(Task("a", blocked_by=("b",)), B, state=RunState(done=frozenset({"b"})))
    assert next_task(case) == Assignment("a")


def test_a_parked_task_is_taken_again_when_a_person_has_answered() -> None:
    """B: DECIDE parks only that task; the backlog says whether it still waits."""
    state = RunState(done=frozenset({"a"}), parked=(("b", "no key"),))
    waiting, third = replace(B, status=Status.BLOCKED), Task("c", "third")
    assert next_task(opening(A, waiting, third, state=state)) == Assignment("c", "third")
    assert next_task(opening(A, B, third, state=state)) == Assignment("b", B.title)


def test_what_is_not_of_this_run_is_not_taken_but_blocks() -> None:
    aside, waits = Task("a", aside=True), Task("b", blocked_by=("a",))
    assert next_task(opening(aside)) is None
    assert next_task(opening(aside, waits)) is None


def test_many_tasks_are_known_by_their_ids() -> None:
    tasks = (A, B)
    backlog = Backlog(tasks, known={task.id: task for task in tasks})
    assert (backlog.get("b"), backlog.get("x")) == (B, None)


def test_the_task_under_work_stays_so_until_it_ends() -> None:
    """B §Core Principle: "pick one task, iterate until complete, then next"."""
    state = RunState(assignment=Assignment("a"))
    newcomers = (Task("b", priority=9), Task("c", status=DOING))
    assert next_task(opening(A, *newcomers, state=state)) == Assignment("a")
    blocked = Task("a", blocked_by=("b",))
    assert next_task(opening(blocked, *newcomers, state=state)) == Assignment("c")


def test_a_plain_prompt_is_a_backlog_of_one() -> None:
    assert first_open(opening(Task("prompt", "title"))) == Assignment("prompt", "title")
    assert first_open(opening(Task("prompt", status=DONE))) is None


NEW, FIX = Task("new"), Task("fix", review=ReviewStatus.CHANGES_REQUESTED)
LOOK = Task("look", review=ReviewStatus.NEEDS_REVIEW)
GOOD = Task("good", review=ReviewStatus.APPROVED, passes=True)


@pytest.mark.parametrize(
    ("stories", "chosen"),
    [
        ([NEW, LOOK, FIX, GOOD], Assignment("fix", mode=Mode.REVIEW_FIX)),
        ([NEW, LOOK, GOOD], Assignment("look", mode=Mode.REVIEW)),
        ([GOOD, NEW], Assignment("new", mode=Mode.IMPLEMENT)),
        ([Task("a", priority=2), Task("b", priority=1)], Assignment("b")),
        ([Task("a", priority=1, blocked_by=("new",)), Task("new", priority=2)], Assignment("new")),
        ([Task("a", blocked_by=("good",)), GOOD], Assignment("a")),
        ([replace(LOOK, blocked_by=("new",)), NEW], Assignment("look", mode=Mode.REVIEW)),
        ([replace(FIX, blocked_by=("new",)), NEW], Assignment("fix", mode=Mode.REVIEW_FIX)),
        ([GOOD], None),
        ([], None),
        ([Task("odd", passes=True), Task("odder", review=ReviewStatus.APPROVED)], None),
    ],
)
def test_the_next_story(stories: list[Task], chosen: Assignment | None) -> None:
    """R §6: "Mode priority: Review-Fix > Review > Implement"; priority 1 comes first."""
    assert next_story(opening(*stories)) == chosen


@pytest.mark.parametrize(
    ("stories", "chosen"),
    [
        ([LOOK, FIX], "look"),
        ([Task("a", priority=2), Task("b", priority=1), Task("c", passes=True)], "b"),
        ([Task("a", blocked_by=("b",)), Task("b", priority=9)], "b"),
        ([Task("c", passes=True)], None),
    ],
)
def test_without_reviews_every_turn_implements(stories: list[Task], chosen: str | None) -> None:
    """R §Skip-review mode: "the prompt operates in Implement mode only"."""
    assert next_unreviewed(opening(*stories)) == (Assignment(chosen) if chosen else None)
