"""What may follow on a status, who waits for whom, and which tasks a run is for (B)."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ralph.kernel.tasks.task import (
    TRANSITIONS,
    Backlog,
    Status,
    Task,
    chosen,
    cycle,
    legal,
    unknown_blockers,
)

FOLLOWS = {
    "pending": "in_progress blocked done cancelled",
    "in_progress": "pending blocked review done cancelled",
    "blocked": "pending in_progress cancelled",
    "review": "pending in_progress blocked done cancelled",
    "done": "",
    "cancelled": "",
}


@pytest.mark.parametrize(("old", "new"), list(product(Status, Status)))
def test_which_status_may_follow(old: Status, new: Status) -> None:
    """Legal status transitions are enforced; to stay is always legal."""
    assert legal(old, new) is (old is new or new.value in FOLLOWS[old.value].split())


def test_every_status_has_its_transitions() -> None:
    assert set(TRANSITIONS) == set(Status)


def named(**blockers: str) -> list[Task]:
    return [Task(name, blocked_by=tuple(by.split())) for name, by in blockers.items()]


@pytest.mark.parametrize(
    ("tasks", "circle"),
    [
        ([], ()),
        (named(a="", b="a", c="a b"), ()),
        (named(a="a"), ("a",)),
        (named(a="b", b="a"), ("a", "b")),
        (named(a="b", b="c", c="d", d="b"), ("b", "c", "d")),
        (named(x="y", y="", a="x b", b="x y a"), ("a", "b")),
        (named(a="gone"), ()),
        ([Task("a", blocked_by=("b",)), Task("b", status=Status.DONE, blocked_by=("a",))], ()),
        ([Task("a", blocked_by=("b",)), Task("b", status=Status.CANCELLED, blocked_by=("a",))], ()),
        (
            [
                Task("a", blocked_by=("b",)),
                Task("b", status=Status.BLOCKED, blocked_by=("a",)),
            ],
            ("a", "b"),
        ),
    ],
)
def test_a_cycle_is_named(tasks: list[Task], circle: tuple[str, ...]) -> None:
    """ADR 21: each before the one that it waits for, among those that are not over."""
    assert cycle(tasks) == circle


def test_a_chain_as_long_as_the_backlog_is_followed() -> None:
    chain = [Task(str(n), blocked_by=(str(n + 1),)) for n in range(100_000)]
    assert cycle(chain) == ()
    assert cycle([*chain, Task("100000", blocked_by=("99998",))]) == ("99998", "99999", "100000")


@given(st.lists(st.lists(st.integers(0, 7), max_size=3), max_size=8))
def test_a_circle_is_one_and_is_found_if_there_is_one(edges: list[list[int]]) -> None:
    tasks = [Task(str(n), blocked_by=tuple(map(str, by))) for n, by in enumerate(edges)]
    by_id = {t.id: t for t in tasks}
    circle = cycle(tasks)
    for here, onward in zip(circle, (*circle[1:], *circle[:1]), strict=True):
        assert onward in by_id[here].blocked_by
    if not circle:
        left = set(by_id)
        while free := {i for i in left if left.isdisjoint(by_id[i].blocked_by)}:
            left -= free
        assert not left, "those wait for each other"


def test_who_waits_for_a_stranger() -> None:
    """A task whose line is broken is known: it is told elsewhere what is wrong with it."""
    tasks = (
        Task("a", status=Status.DONE),
        Task("b", status=Status.REVIEW),
        Task("c", blocked_by=("a", "b", "x")),
        Task("d", blocked_by=("a",)),
    )
    assert unknown_blockers(Backlog(tasks)) == (("c", "x"),)
    known = {t.id: t for t in (*tasks, Task("x"))}
    assert unknown_blockers(Backlog(tasks, known=known)) == ()


TASKS = (Task("a", tags=("x", "y")), Task("b", tags=("y",)), Task("c"))


@pytest.mark.parametrize(
    ("task", "tags", "open_ones"),
    [
        (None, (), "a b c"),
        ("b", (), "b"),
        ("nobody", (), ""),
        (None, ("y",), "a b"),
        (None, ("x", "z"), "a"),
        ("b", ("x",), ""),
        ("a", ("x",), "a"),
    ],
)
def test_the_tasks_that_a_run_is_for(
    task: str | None, tags: tuple[str, ...], open_ones: str
) -> None:
    """`--task ID`: that one only; `--tag`: those that have any of them. The others stay there."""
    found = chosen(Backlog(TASKS), task, tags)
    assert [t.id for t in found.tasks] == ["a", "b", "c"]
    assert [t.id for t in found.tasks if t.open] == open_ones.split()
