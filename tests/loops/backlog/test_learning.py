"""B §Logs: "learning.jsonl: Patterns and metrics"; the next prompt carries the relevant lines."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ralph.journal.forecast import Effort
from ralph.kernel.tasks.task import Task
from ralph.loops.backlog.learning import (
    Figures,
    Lesson,
    by_task,
    efforts_of,
    figures,
    lessons_of,
    relevant,
    size_of,
    summary,
)

KEY = "sk-ant-api03-abcdefghijklmnopqrstuvwxyz"
WRITTEN: dict[str, Any] = {
    "type": "task",
    "run": "20260101-120000-0000",
    "taskId": "T-1",
    "title": "Mend it",
    "taskType": "bug",
    "tags": ["ui", 7, ""],
    "status": "blocked",
    "iterations": 3,
    "seconds": 90.5,
    "cost": 0.5,
    "estimate": "2",
    "reason": "task limit",
    "blockers": ["no key"],
    "gates": {"make test": 2, "": 1, "odd": "x"},
}
LESSON = Lesson(
    "T-1",
    "bug",
    ("ui",),
    done=False,
    iterations=3,
    seconds=90.5,
    cost=0.5,
    estimate=2.0,
    reason="task limit",
    blockers=("no key",),
    gates=(("make test", 2),),
    run=WRITTEN["run"],
)


@pytest.mark.parametrize(
    ("estimate", "ratio"),
    [("90s", 1.0), (" 3m ", 0.5), ("1h", 0.025), ("0s", None), ("soon", None), (None, None)],
)
def test_an_estimate_may_be_a_time(estimate: object, ratio: float | None) -> None:
    """ "iterations and time against estimate"."""
    (lesson,) = lessons_of([{**WRITTEN, "seconds": 90.0, "estimate": estimate}])
    assert lesson.ratio == ratio


def test_a_lesson_is_read_as_it_was_written() -> None:
    assert lessons_of([WRITTEN]) == (LESSON,)
    assert LESSON.ratio == 1.5
    assert Lesson("x", iterations=3).ratio is None


@pytest.mark.parametrize(
    "change",
    [{"taskId": 7}, {"taskId": " "}, {"taskId": None}, {"status": "pending"}, {"status": ["done"]}],
)
def test_what_is_no_lesson_is_left_out(change: dict[str, Any]) -> None:
    assert lessons_of([{**WRITTEN, **change}]) == ()


@pytest.mark.parametrize(
    ("key", "odd", "field", "read"),
    [
        ("iterations", True, "iterations", 0),
        ("iterations", -1, "iterations", 0),
        ("seconds", "soon", "seconds", 0.0),
        ("seconds", float("nan"), "seconds", 0.0),
        ("cost", float("inf"), "cost", None),
        ("cost", 10**400, "cost", None),
        ("estimate", [2], "estimate", None),
        ("tags", "ui", "tags", ()),
        ("gates", ["make"], "gates", ()),
        ("taskType", {"a": 1}, "kind", ""),
        ("reason", f"with {KEY}\x1b[31m\n\tand\u202e more\0", "reason", "with [redacted] and more"),
    ],
)
def test_odd_values_cost_only_themselves(key: str, odd: object, field: str, read: object) -> None:
    """An agent can write to the file."""
    (lesson,) = lessons_of([{**WRITTEN, key: odd}])
    assert getattr(lesson, field) == read


@given(st.dictionaries(st.sampled_from(sorted(WRITTEN)), st.none() | st.text() | st.floats()))
def test_no_object_is_too_odd(change: dict[str, Any]) -> None:
    lessons = lessons_of([{**WRITTEN, **change}])
    assert len(summary(lessons).types) == len(lessons)
    assert len(relevant(lessons, [change], Task("T-9", kind="bug"))) <= 12


@pytest.mark.parametrize(
    ("numbers", "told"),
    [
        ([], None),
        ([None], None),
        ([2.0, None], Figures(1, 2.0, 2.0)),
        ([9.0, 1.0, 2.0], Figures(3, 4.0, 2.0)),
        ([4.0, 1.0], Figures(2, 2.5, 2.5)),
    ],
)
def test_mean_and_median(numbers: list[float | None], told: Figures | None) -> None:
    assert figures(numbers) == told


def test_lessons_are_added_up_by_type() -> None:
    """ "iterations and time against estimate, blockers, by task type"."""
    told = summary(
        [
            Lesson("T-1", kind="bug", done=True, iterations=4, seconds=10.0, cost=1.0, estimate=2),
            Lesson("T-2", kind="bug", iterations=2, seconds=30.0, blockers=("no key",)),
            Lesson("T-3", kind="chore", done=True, iterations=1, gates=(("lint", 1), ("test", 3))),
        ]
    )
    bug, chore = told.types
    assert (bug.kind, bug.done, bug.blocked) == ("bug", 1, 1)
    assert bug.iterations == Figures(2, 3.0, 3.0)
    assert bug.seconds == Figures(2, 20.0, 20.0)
    assert bug.cost == Figures(1, 1.0, 1.0)
    assert bug.ratio == Figures(1, 2.0, 2.0)
    assert bug.blockers == (("no key", 1),)
    assert (chore.kind, chore.ratio, chore.cost) == ("chore", None, None)
    assert chore.gates == (("test", 3), ("lint", 1))
    assert (told.together.done, told.together.blocked) == (2, 1)


def test_a_task_counts_once_with_all_its_tries() -> None:
    first = Lesson("T-1", iterations=3, seconds=5.0, cost=1.0, blockers=("a",), gates=(("x", 1),))
    other = Lesson("T-2", done=True)
    again = Lesson("T-1", done=True, iterations=2, seconds=5.0, gates=(("x", 2),), estimate=5)
    free = Lesson("T-2", done=True)
    assert by_task([first, other, again, free]) == (
        Lesson(
            "T-1",
            done=True,
            iterations=5,
            seconds=10.0,
            cost=1.0,
            blockers=("a",),
            gates=(("x", 3),),
            estimate=5,
        ),
        Lesson("T-2", done=True),
    )


def test_nothing_learned_is_nothing_told() -> None:
    assert summary([]).types == ()
    assert summary([]).together.iterations is None
    assert relevant([], [], Task("T-1")) == ()
    assert relevant([LESSON], [], Task("T-9")) == ()  # neither a type nor a tag


def entry(number: int, status: str, reason: str, **more: object) -> dict[str, Any]:
    return {"type": "iteration", "iteration": number, "status": status, "reason": reason, **more}


def test_the_tasks_own_iterations_come_first_the_newest_last() -> None:
    """ "what earlier iterations learned"."""
    progress = [
        entry(1, "continue", "make test failed", findings=[{"gate": "make test"}, {"gate": 3}, 7]),
        {"type": "status", "from": "pending", "to": "in_progress"},
        entry(2, "failed", "it crashed", findings="?"),
        entry(3, "continue", ""),
    ]
    assert relevant([LESSON], progress, Task("T-1", kind="bug")) == (
        "An earlier try ended blocked after 3 iterations: task limit",
        "Iteration 1: continue: make test failed (objected: make test)",
        "Iteration 2: failed: it crashed",
        "Iteration 3: continue",
    )


LIKE = "Tasks like this one"
ALIKE = [
    LESSON,
    Lesson("T-2", kind="bug", done=True, iterations=1, estimate=2, gates=(("lint", 1),)),
    Lesson("T-3", kind="doc", tags=("ui",), done=True, iterations=2, gates=(("make test", 1),)),
]


@pytest.mark.parametrize(
    ("task", "lines"),
    [
        (
            Task("T-9", kind="bug"),
            (
                f"{LIKE}: 1 done, 1 blocked, 2 iterations on average, 0.5 times the estimate.",
                "What objected most to tasks like this one: make test (2), lint (1).",
                "T-1 was blocked: task limit",
            ),
        ),
        (
            Task("T-9", tags=("ui", "new")),
            (
                "Tasks like this one: 1 done, 1 blocked, 2.5 iterations on average.",
                "What objected most to tasks like this one: make test (3).",
                "T-1 was blocked: task limit",
            ),
        ),
        (
            Task("T-9", kind="doc"),
            (
                "Tasks like this one: 1 done, 0 blocked, 2 iterations on average.",
                "What objected most to tasks like this one: make test (1).",
            ),
        ),
        (Task("T-3", kind="doc"), ()),
    ],
)
def test_tasks_of_the_same_type_or_tag_teach(task: Task, lines: tuple[str, ...]) -> None:
    assert relevant(ALIKE, [], task) == lines


def test_a_type_without_objections_has_no_line_about_them() -> None:
    lessons = [Lesson("T-1", kind="bug", done=True, iterations=1)]
    assert relevant(lessons, [], Task("T-2", kind="bug")) == (
        "Tasks like this one: 1 done, 0 blocked, 1 iteration on average.",
    )


@pytest.mark.parametrize("most", [0, 1, 2, 3, 12])
def test_never_too_many_lines_and_none_too_long(most: int) -> None:
    """At most twelve lines of 300 characters; the newest of the own ones stay."""
    blocked = [Lesson(f"B-{n}", kind="bug", reason="x" * 999) for n in range(30)]
    progress = [entry(n, "continue", f"{n} " + "y" * 999) for n in range(1, 31)]
    lines = relevant(blocked, progress, Task("T-1", kind="bug"), most)
    assert len(lines) == most
    assert all(len(line) <= 300 for line in lines)
    if most > 1:
        assert [line[:13] for line in lines if line.startswith("Iteration")][-1] == "Iteration 30:"


# ------------------------------------------------------------------ for forecasts (ADR 46)


def test_a_lesson_is_an_effort() -> None:
    """Also of a task that was parked: the run went on without it."""
    assert efforts_of([WRITTEN]) == (Effort(3, 90.5, 0.5, kind="bug", size=2.0),)


def test_a_task_that_a_broken_agent_gave_up_has_not_come_to_its_end() -> None:
    found = efforts_of([{**WRITTEN, "status": "blocked", "cause": "crash"}])
    assert [effort.ended for effort in found] == [False]
    found = efforts_of([{**WRITTEN, "status": "blocked", "cause": "limit"}])
    assert [effort.ended for effort in found] == [True]


@pytest.mark.parametrize(
    "odd",
    [
        {"status": "pending"},
        {"status": None},
        {"iterations": 0},
        {"iterations": "many"},
        {"iterations": 1e12},
        {"seconds": None},
        {"seconds": -1},
        {"seconds": 1e12},
    ],
)
def test_a_lesson_that_makes_no_sense_is_no_effort(odd: dict[str, Any]) -> None:
    assert efforts_of([{**WRITTEN, **odd}]) == ()


def test_a_cost_or_a_type_that_makes_no_sense_is_not_known() -> None:
    (effort,) = efforts_of([{**WRITTEN, "cost": 1e12, "taskType": 7, "estimate": []}])
    assert (effort.cost_usd, effort.kind, effort.size) == (None, "", 0.0)


def test_a_try_whose_commit_was_refused_counts_once() -> None:
    """What it took is in the later line, which comes first here."""
    done = {**WRITTEN, "status": "done"}
    found = efforts_of([{**done, "iterations": 5}, {**done, "iterations": 3}, {**done, "run": "o"}])
    assert [effort.iterations for effort in found] == [5, 3]


def test_only_so_many_of_the_newest_count() -> None:
    many = [{**WRITTEN, "taskId": f"T-{number}", "iterations": number} for number in range(1, 300)]
    assert [effort.iterations for effort in efforts_of(many)] == [*range(1, 101)]


@pytest.mark.parametrize(
    ("estimate", "size"),
    [(3, 3.0), ("2", 2.0), ("2h", 7200.0), ("soon", 0.0), (None, 0.0), (-1, 0.0), (1e300, 0.0)],
)
def test_an_estimate_is_a_size(estimate: object, size: float) -> None:
    assert size_of(estimate) == size
