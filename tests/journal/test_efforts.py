"""ADR 46: what runs and stories took until they ended, a line each."""

import json
from pathlib import Path
from typing import Any

import pytest

from ralph.errors import StateError
from ralph.journal.efforts import FILE, MOST, Efforts, bookkeepers, read_efforts
from ralph.journal.forecast import Effort
from ralph.journal.ledger import read_ledger
from ralph.kernel.facts import Began, Decided, Ended, Fact, Resumed, Settled, Started, Step
from ralph.kernel.tasks.task import Assignment
from ralph.kernel.turn import Ending, Turn
from ralph.kernel.verdict import Accept, Boundary, Continue, Reason, Stop, Verdict, Wait

RUN = "20261115-101010-abcd"
T = 1000.0  # when the runs begin
STARTED = Started(T, RUN, "harness", "/w", 1, "1")
COMPLETED, LIMIT = Stop(Reason.COMPLETED), Stop(Reason.LIMIT)


def turn(
    number: int,
    begins: float,
    ends: float,
    cost: float | None = 1.0,
    verdict: Verdict = Continue(),
    task: str = "prompt",
) -> list[Fact]:
    """An iteration of which the gates take no time, so many seconds after the run began."""
    begins, ends = T + begins, T + ends
    return [
        Began(begins, number, Assignment(task)),
        Ended(ends, Turn(cost_usd=cost, seconds=ends - begins)),
        Decided(ends, Boundary.CLOSING, verdict),
        Settled(ends, verdict),
    ]


def stops(time: float, stop: Stop = COMPLETED) -> list[Fact]:
    return [Decided(T + time, Boundary.OPENING, stop), Settled(T + time, stop)]


class Kept:
    """A project's history, and what its keeper complained of."""

    def __init__(self, project: Path) -> None:
        self.project, self.said = project, list[str]()

    def hear(self, *facts: Fact, past: tuple[Fact, ...] = ()) -> None:
        keeper = Efforts(str(self.project), self.said.append, past)
        for fact in facts:
            keeper.on_fact(fact)
        keeper.on_events([])

    @property
    def path(self) -> str:
        return str(self.project / FILE)

    @property
    def lines(self) -> list[dict[str, Any]]:
        found = self.project / FILE
        return [json.loads(line) for line in found.read_text("utf-8").splitlines()]

    def efforts(self, profile: str = "harness", but: tuple[str, str] = ("", "")) -> list[Effort]:
        return read_efforts(self.path, profile, but)


@pytest.fixture
def kept(tmp_path: Path) -> Kept:
    return Kept(tmp_path)


def test_a_run_is_one_line(kept: Kept) -> None:
    kept.hear(STARTED, *turn(1, 1, 11, 2.0), *turn(2, 12, 33, 1.0, Accept(("claim",))), *stops(33))
    assert kept.lines == [
        {
            "time": 1033.0,
            "run": RUN,
            "profile": "harness",
            "task": "",
            "iterations": 2,
            "seconds": 33.0,
            "cost_usd": 3.0,
            "squares": [11.0**2 + 22.0**2, 5.0],
            "ended": True,
        }
    ]
    assert kept.efforts() == [Effort(2, 33.0, 3.0, squares=(605.0, 5.0))]


def test_a_run_that_hits_a_limit_was_cut_off(kept: Kept) -> None:
    kept.hear(STARTED, *turn(1, 0, 10), *stops(10, LIMIT))
    assert [each.ended for each in kept.efforts()] == [False]


def test_time_asleep_is_not_counted_and_the_turn_after_it_is_the_same_iteration(kept: Kept) -> None:
    kept.hear(
        STARTED, *turn(1, 0, 10, verdict=Wait(T + 500, "no more")), *turn(1, 500, 520), *stops(520)
    )
    (effort,) = kept.efforts()
    assert (effort.iterations, effort.seconds, effort.cost_usd) == (1, 30.0, 2.0)


def test_a_turn_that_was_interrupted_is_no_iteration_yet(kept: Kept) -> None:
    stop = Stop(Reason.INTERRUPTED)
    kept.hear(STARTED, *turn(1, 0, 10), *turn(2, 10, 15, verdict=stop))
    (effort,) = kept.efforts()
    assert (effort.iterations, effort.seconds, effort.ended) == (1, 10.0, False)


def test_of_a_run_that_was_resumed_its_last_word_counts(kept: Kept) -> None:
    before = (STARTED, *turn(1, 0, 10), *turn(2, 10, 20), *stops(20, LIMIT))
    kept.hear(*before)
    after = [Resumed(T + 500.0, 2), *turn(3, 500, 510, verdict=Accept(("claim",))), *stops(510)]
    kept.hear(*after, past=before)
    assert len(kept.lines) == 2
    (effort,) = kept.efforts()
    assert (effort.iterations, effort.seconds, effort.ended) == (3, 30.0, True)


def test_a_cost_that_a_turn_did_not_tell_makes_the_whole_unknown(kept: Kept) -> None:
    kept.hear(STARTED, *turn(1, 0, 10), *turn(2, 10, 20, None, Accept(("claim",))), *stops(20))
    assert kept.efforts()[0].cost_usd is None


def test_a_message_turn_is_paid_too(kept: Kept) -> None:
    facts = turn(1, 0, 10, verdict=Accept(("claim",)))
    kept.hear(
        STARTED, *facts[:-1], Step(T + 11.0, "scm:message", cost_usd=0.5), facts[-1], *stops(12)
    )
    assert kept.efforts()[0].cost_usd == 1.5


def test_a_run_without_a_turn_leaves_nothing(kept: Kept) -> None:
    kept.hear(STARTED, *stops(1))
    assert kept.efforts() == []
    unstartable = Turn(Ending.UNSTARTABLE, exit_code=None)
    kept.hear(STARTED, Began(T, 1, Assignment("prompt")), Ended(T, unstartable))
    assert not (kept.project / FILE).exists()


@pytest.mark.parametrize("profile", ["tasks", "supervise"])
def test_other_loops_keep_their_own_records(kept: Kept, profile: str) -> None:
    started = Started(T, RUN, profile, "/w", 1, "1")
    kept.hear(started, *turn(1, 0, 10, verdict=Accept(("claim",))), *stops(10))
    assert not (kept.project / FILE).exists()


def test_each_story_is_a_line(kept: Kept) -> None:
    """One that the run went on from had come to its end; the last has, if the run did."""
    started = Started(T, RUN, "reviewed", "/w", 1, "1")
    turns = [
        *turn(1, 0, 10, task="US-1"),
        *turn(2, 10, 15, task="US-1"),
        *turn(3, 15, 35, task="US-2"),
    ]
    kept.hear(started, *turns, *stops(35, LIMIT))
    told = [(e["task"], e["iterations"], e["seconds"], e["ended"]) for e in kept.lines]
    assert told == [("US-1", 2, 15.0, True), ("US-2", 1, 20.0, False)]
    assert [each.iterations for each in kept.efforts("reviewed", (RUN, "US-2"))] == [2]
    assert kept.efforts("harness") == []


def line(run: str = "r", **fields: object) -> str:
    usual = {"run": run, "profile": "harness", "task": "", "iterations": 2, "seconds": 9.0}
    return json.dumps({**usual, "cost_usd": 1.0, "squares": [50, 1], "ended": True, **fields})


@pytest.mark.parametrize(
    "bad",
    [
        "",
        "{",
        "[]",
        "null",
        line(iterations=0),
        line(iterations=-1),
        line(iterations=True),
        line(iterations="2"),
        line(iterations=10**9),
        line(seconds=-1),
        line(seconds="9"),
        line(seconds=1e300),
        line(seconds=float("nan")),
        "\x00\x01",
    ],
)
def test_lines_that_make_no_sense_are_left_out(kept: Kept, bad: str) -> None:
    Path(kept.path).write_text(f"{line('a')}\n{bad}\n{line('b')}\n", "utf-8")
    assert [each.iterations for each in kept.efforts()] == [2, 2]


@pytest.mark.parametrize("squares", [None, [], [1], ["a", 1], [1, -1], 5])
def test_squares_that_make_no_sense_are_not_known(kept: Kept, squares: object) -> None:
    Path(kept.path).write_text(line(squares=squares, cost_usd="much") + "\n", "utf-8")
    assert kept.efforts() == [Effort(2, 9.0, None)]


def test_only_the_newest_tell(kept: Kept) -> None:
    rows = [line(f"r{n}", iterations=n) for n in range(1, 3 * MOST)]
    Path(kept.path).write_text("\n".join(rows) + "\n", "utf-8")
    found = kept.efforts()
    assert len(found) == MOST
    assert found[0].iterations == 3 * MOST - 1


def test_without_a_history_there_is_none(kept: Kept) -> None:
    assert kept.efforts() == []


def test_a_history_that_cannot_be_written_is_told_of_once(kept: Kept) -> None:
    Path(kept.path).mkdir()
    keeper = Efforts(str(kept.project), kept.said.append)
    facts = [STARTED, *turn(1, 0, 10), *stops(10, LIMIT)]
    again = [Resumed(T + 20.0, 2), *turn(2, 20, 30), *stops(30, LIMIT)]
    for fact in (*facts, *again):
        keeper.on_fact(fact)
    (said,) = kept.said
    assert said.startswith(f"The history {kept.path} cannot be written: ")


def test_the_books_of_a_run_are_the_ledger_and_the_history(kept: Kept) -> None:
    books = bookkeepers(str(kept.project), kept.said.append, (), "")
    for fact in (STARTED, *turn(1, 0, 10, verdict=Accept(("claim",))), *stops(10)):
        for book in books:
            book.on_fact(fact)
    assert len(kept.efforts()) == 1
    try:
        assert [entry.cost_usd for entry in read_ledger(str(kept.project))] == [1.0]
    except StateError as error:
        pytest.fail(error.words)
