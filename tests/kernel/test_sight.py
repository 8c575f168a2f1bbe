"""What a ladder saw is recorded once, and then only what changes (ADR 55)."""

import json
from dataclasses import replace

import pytest
from engine_cases import BACKLOGS
from hypothesis import given
from hypothesis import strategies as st

from ralph.journal.codec import decode_fact, encode
from ralph.kernel.facts import Decided
from ralph.kernel.sight import Lookout, Sight
from ralph.kernel.tasks.task import Backlog, Status, Task
from ralph.kernel.verdict import Boundary, Continue
from ralph.kernel.world import NOTE, Request, Signals

A, B, C = Task("a", text="long " * 1000), Task("b", priority=2), Task("c")
NONE = Signals()


def stored(sight: Sight) -> Sight:
    """As a journal gives it back."""
    fact = decode_fact(
        json.loads(json.dumps(encode(Decided(1.0, Boundary.OPENING, Continue(), seen=sight))))
    )
    assert isinstance(fact, Decided)
    assert fact.seen is not None
    return fact.seen


def read(backlog: Backlog) -> tuple[tuple[Task, ...], str | None]:
    """What rules read of a backlog; nothing of one that cannot be used."""
    if backlog.problem is not None:
        return (), backlog.problem
    return tuple(replace(task, title="", text="") for task in backlog.tasks), None


@given(st.lists(BACKLOGS, max_size=6))
def test_each_backlog_is_had_again(backlogs: list[Backlog]) -> None:
    lookout, usable = Lookout(), Backlog()
    for backlog in backlogs:
        seen = stored(lookout.seen(NONE, backlog)).backlog(usable)
        assert read(seen) == read(backlog)
        usable = usable if seen.problem else seen


def test_only_changes_are_recorded() -> None:
    lookout = Lookout()
    first = lookout.seen(NONE, Backlog((A, B)))
    assert ([task.id for task in first.tasks], first.anew, first.tasks[0].text) == (
        ["a", "b"],
        True,
        "",
    )
    assert lookout.seen(NONE, Backlog((A, replace(B, notes="a word")))) == Sight()
    done = replace(B, status=Status.DONE)
    second = lookout.seen(NONE, Backlog((A, done, C)))
    assert [task.id for task in second.tasks] == ["b", "c"]
    assert not second.anew
    third = lookout.seen(NONE, Backlog((A, C)))
    assert third == Sight(gone=("b",))
    assert lookout.seen(NONE, Backlog((C, A))).anew, "their order counts"


def test_a_backlog_that_cannot_be_used_leaves_the_last_one() -> None:
    lookout = Lookout()
    usable = lookout.seen(NONE, Backlog((A,))).backlog(Backlog())
    broken = lookout.seen(NONE, Backlog(problem="line 3"))
    assert broken == Sight(problem="line 3")
    assert broken.backlog(usable) == Backlog(problem="line 3")
    again = lookout.seen(NONE, Backlog((A,)))
    assert again == Sight()
    assert again.backlog(usable) == usable


@pytest.mark.parametrize("tasks", [(), (A, B, C)])
@pytest.mark.parametrize("known", [True, False])
def test_what_is_aside_is_in_sight_if_it_is_waited_for(
    tasks: tuple[Task, ...], known: bool
) -> None:
    """A worker has one task of a thousand, and a journal of its own."""
    aside = tuple(replace(task, aside=True) for task in tasks)
    mine = Task("mine", blocked_by=("b", "x", "unknown"))
    broken = Task("x", status=Status.BLOCKED, aside=True)  # its line cannot be used
    listed = (*aside, mine)
    table = {task.id: task for task in (*listed, broken)} if known else {}
    found = Lookout().seen(NONE, Backlog(listed, known=table)).backlog(Backlog())
    wanted = {"mine", *(["b"] if tasks else []), *(["x"] if known else [])}
    assert {task.id for task in found.tasks} == wanted
    assert found.get("x") == (broken if known else None)
    if tasks:  # and the task under work, though a person has put it aside
        seen = Lookout().seen(NONE, Backlog(listed, known=table), task="c")
        assert "c" in {task.id for task in seen.tasks}


def test_requests_are_facts_of_their_own() -> None:
    asked = Signals(cancels=1, requests=(Request("1", NOTE, text="a secret"),))
    assert Lookout().seen(asked, Backlog()).signals == Signals(cancels=1)


def test_nothing_new_takes_a_few_bytes() -> None:
    assert encode(Sight()) == {"type": "sight"}
    assert encode(Sight(Signals(paused=True), passed=("make test",), moved=False)) == {
        "type": "sight",
        "signals": {"type": "signals", "paused": True},
        "passed": ["make test"],
        "moved": False,
    }
