"""The outline of a run says what its whole journal would, from two ends of it."""

from pathlib import Path

import pytest

from ralph.journal.journal import FileJournal
from ralph.journal.outline import outline_of
from ralph.journal.runs import Run, account_of
from ralph.kernel.facts import (
    Asked,
    Assigned,
    Began,
    Decided,
    Ended,
    Fact,
    Resumed,
    Returned,
    Settled,
)
from ralph.kernel.facts import Started as Start
from ralph.kernel.limits import Limits, Spent
from ralph.kernel.tasks.task import Assignment
from ralph.kernel.turn import Turn
from ralph.kernel.verdict import Accept, Boundary, Cause, Continue, Park, Reason, Stop
from ralph.kernel.world import ANSWER, Origin, Request

STARTED = Start(1.0, "r", "harness", "/shop", 1, "0", limits=Limits(5))
CREW = Start(1.0, "r", "tasks", "/shop", 1, "0", workers=2)
LIMIT = Settled(9.0, Stop(Reason.LIMIT, "used up"))
STOPPED = Settled(4.0, Stop(Reason.INTERRUPTED, "asked"))
LONG = Ended(3.0, Turn(why="x" * 200_000))
ASK, GIVEN_UP = Park("Which?", Cause.QUESTION), Park("10 iterations used up")


def began(iteration: int, task: str = "prompt") -> Began:
    return Began(2.0, iteration, Assignment(task))


HISTORIES: dict[str, tuple[Fact, ...]] = {
    "not begun": (STARTED,),
    "ended": (STARTED, began(1), Ended(3.0, Turn()), LIMIT),
    "ended before a turn": (STARTED, LIMIT),
    "in a turn": (STARTED, began(1), Ended(3.0, Turn()), began(2)),
    "resumed": (STARTED, began(1), Ended(3.0, Turn()), STOPPED, Resumed(5.0, 2)),
    "a long turn last": (STARTED, began(1), LONG),
    "a long turn first": (STARTED, began(1), LONG, began(2), Ended(4.0, Turn()), LIMIT),
    "a long turn between": (STARTED, began(7), LONG, LIMIT),
    "raised": (STARTED, began(5), LIMIT, Resumed(5.0, 2, Limits(9)), began(6)),
    "raised long ago": (STARTED, began(5), Resumed(5.0, 2, Limits(9)), LONG, began(6), LIMIT),
    "a crew": (
        *(CREW, Assigned(2.0, Assignment("A"), "r-001")),
        *(Returned(3.0, "A", "r-001", Accept(()), Spent(4)), LIMIT),
    ),
}


def run_with(tmp_path: Path, facts: tuple[Fact, ...]) -> Run:
    run = Run("r", str(tmp_path))
    Path(run.directory).mkdir(parents=True)
    journal = FileJournal(run.journal)
    for fact in facts:
        journal.record(fact)
    journal.close()
    return run


def assert_as_the_whole(run: Run) -> None:
    outline, account = outline_of(run), account_of(run)
    assert (outline.started, outline.stop) == (account.started, account.state.stop)
    assert outline.iterations == account.state.spent.iterations
    assert outline.most == account.state.limits.iterations
    assert outline.problem == account.problem


@pytest.mark.parametrize("history", HISTORIES)
def test_the_ends_say_what_the_whole_says(tmp_path: Path, history: str) -> None:
    assert_as_the_whole(run_with(tmp_path, HISTORIES[history]))


@pytest.mark.parametrize("history", HISTORIES)
@pytest.mark.parametrize("cut", [1, 30])
def test_a_line_that_was_torn_off_is_left_out(tmp_path: Path, history: str, cut: int) -> None:
    run = run_with(tmp_path, HISTORIES[history])
    data = Path(run.journal).read_bytes()
    Path(run.journal).write_bytes(data[:-cut])
    assert_as_the_whole(run)


@pytest.mark.parametrize(
    "data", [None, b"", b"\0" * 70_000, b"{}\n", b'{"type":"began"}\n', b"\n\n"]
)
def test_what_cannot_be_read_is_an_outline_too(tmp_path: Path, data: bytes | None) -> None:
    run = run_with(tmp_path, ())
    Path(run.journal).unlink()
    if data is not None:
        Path(run.journal).write_bytes(data)
    assert_as_the_whole(run)


def test_a_long_journal_is_not_read_between_its_ends(tmp_path: Path) -> None:
    """What stands there is broken, and nobody sees it."""
    run = run_with(tmp_path, HISTORIES["a long turn first"])
    text = Path(run.journal).read_bytes()
    Path(run.journal).write_bytes(text.replace(b"x" * 200_000, b"y" * 200_000))
    assert account_of(run).problem
    assert outline_of(run).stop == LIMIT.verdict


def test_questions_stand_until_their_task_is_taken_up_again(tmp_path: Path) -> None:
    asked = (STARTED, began(1, "A"), Settled(3.0, ASK), began(2, "B"), Settled(4.0, GIVEN_UP))
    assert account_of(run_with(tmp_path / "1", asked)).asks == ("A",)
    assert account_of(run_with(tmp_path / "2", (*asked, began(3, "A")))).asks == ()
    crew = (CREW, Assigned(2.0, Assignment("A"), "r-001"), Returned(3.0, "A", "r-001", ASK))
    assert account_of(run_with(tmp_path / "3", crew)).asks == ("A",)
    for heard in (
        Asked(4.0, Request("1", ANSWER, Origin.CLI, 4.0, "yes", "A")),
        Assigned(4.0, Assignment("A"), "r-002"),
        Returned(4.0, "A", "r-001", GIVEN_UP),
    ):
        assert account_of(run_with(tmp_path / type(heard).__name__, (*crew, heard))).asks == ()
    goes_on = Decided(5.0, Boundary.CLOSING, Continue())
    assert account_of(run_with(tmp_path / "4", (STARTED, began(1, "A"), goes_on))).asks == ()
