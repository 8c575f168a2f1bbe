"""The money ledger: one line for each turn that cost something (ADR 22)."""

import json
import os
import stat
from pathlib import Path

import pytest

from ralph.errors import StateError
from ralph.journal.ledger import FILE, Ledger, read_ledger
from ralph.journal.spending import LedgerEntry, Sum, sums_by, total
from ralph.kernel.events import Progress, Usage
from ralph.kernel.facts import Began, Ended, Fact, Launching, Resumed, Settled, Started, Step
from ralph.kernel.tasks.task import Assignment
from ralph.kernel.turn import Ending, Role, Turn
from ralph.kernel.verdict import Continue

STARTED = Started(100.0, "20261115-101010-abcd", "harness", "/w", 1, "1", agent="codex", model="m")
BEGAN = Began(101.0, 3, Assignment("prompt"))
USED = Usage(input=10, output=5, cache_read=2, cache_write=1)
ENTRY = LedgerEntry(
    time=110.0,
    run="20261115-101010-abcd",
    profile="harness",
    iteration=3,
    role="work",
    agent="codex",
    model="m",
    cost_usd=0.25,
    usage=USED,
    seconds=7.5,
)


def work(time: float) -> Launching:
    return Launching(time, Role.WORK, "codex", "s")


def ended(**fields: object) -> Ended:
    return Ended(110.0, Turn(seconds=7.5, **fields))  # type: ignore[arg-type]


class Kept:
    """A ledger, what it kept, and what it complained of."""

    def __init__(self, project: Path) -> None:
        self.project = project
        self.said: list[str] = []
        self.ledger = Ledger(str(project), self.said.append)

    def hear(self, *facts: Fact) -> None:
        for fact in facts:
            self.ledger.on_fact(fact)

    @property
    def entries(self) -> tuple[LedgerEntry, ...]:
        return read_ledger(str(self.project))


@pytest.fixture
def kept(tmp_path: Path) -> Kept:
    return Kept(tmp_path)


def test_a_turn_becomes_one_line(kept: Kept) -> None:
    kept.hear(STARTED, BEGAN, work(102.5), ended(cost_usd=0.25, usage=USED))
    assert kept.entries == (ENTRY,)
    (line,) = (kept.project / FILE).read_text("utf-8").splitlines()
    assert json.loads(line) == {
        "time": 110.0,
        "run": "20261115-101010-abcd",
        "profile": "harness",
        "iteration": 3,
        "role": "work",
        "agent": "codex",
        "model": "m",
        "cost_usd": 0.25,
        "usage": {"input": 10, "output": 5, "cache_read": 2, "cache_write": 1},
        "seconds": 7.5,
    }
    assert stat.S_IMODE((kept.project / FILE).stat().st_mode) == 0o600


@pytest.mark.parametrize(
    ("turn", "costs"),
    [
        (ended(cost_usd=0.25), [0.25]),
        (ended(usage=USED), [None]),
        (ended(cost_usd=0.0, usage=USED), [0.0]),
        (ended(cost_usd=0.25, ending=Ending.CUT, exit_code=None, why="timed out"), [0.25]),
        (ended(cost_usd=0.25, exit_code=1), [0.25]),
        (ended(), [None]),
        (ended(ending=Ending.CUT, exit_code=143, why="timed out"), [None]),
        (ended(cost_usd=0.0), []),
        (ended(ending=Ending.UNSTARTABLE, exit_code=None), []),
    ],
)
def test_what_is_written_down(kept: Kept, turn: Ended, costs: list[float | None]) -> None:
    """ADR 22: every turn "that cost something or used tokens", also a failed or cut one."""
    kept.hear(STARTED, BEGAN, work(102.5), turn)
    assert [entry.cost_usd for entry in kept.entries] == costs


def test_a_message_turn_is_a_line_of_its_own(kept: Kept) -> None:
    kept.hear(STARTED, BEGAN, work(102.5), ended(cost_usd=0.25, usage=USED))
    kept.hear(
        Launching(111.0, Role.MESSAGE, "text", "s"),
        Step(113.5, "scm:message", detail="Add", cost_usd=0.01),
        Step(114.0, "scm:commit"),
        Settled(115.0, Continue()),
    )
    (_, message) = kept.entries
    assert (message.role, message.cost_usd, message.seconds) == ("message", 0.01, 2.5)
    assert (message.iteration, message.usage) == (3, Usage())


def test_a_review_is_named_by_its_role(kept: Kept) -> None:
    kept.hear(STARTED, BEGAN, Launching(1.0, Role.REVIEW, "codex", "s"), ended(cost_usd=1.0))
    assert [entry.role for entry in kept.entries] == ["review"]


def test_events_are_not_its_business(kept: Kept) -> None:
    kept.ledger.on_events([Progress("x")])
    assert kept.entries == ()
    assert not (kept.project / FILE).exists()


def test_a_resumed_run_goes_on_without_a_line_twice(kept: Kept) -> None:
    """ADR 22: a fact is heard once, as it is recorded; a journal that is replayed is not."""
    kept.hear(STARTED, BEGAN, work(102.5), ended(cost_usd=0.25, usage=USED))
    again = Ledger(
        str(kept.project), kept.said.append, [STARTED, Began(2.0, 3, Assignment("prompt"))]
    )
    for fact in (Resumed(200.0, 2), Step(201.0, "scm:message", cost_usd=0.5)):
        again.on_fact(fact)
    assert [(e.run, e.iteration, e.role, e.cost_usd) for e in kept.entries] == [
        (STARTED.run, 3, "work", 0.25),
        (STARTED.run, 3, "message", 0.5),
    ]


def test_a_turn_that_outlived_its_run_is_its_own_agent_s(kept: Kept) -> None:
    """Its stream told the end after a kill: the end is recorded before the run is resumed."""
    spare = Launching(2.5, Role.WORK, "claude", "s", 1, "claude", "haiku")
    past: list[Fact] = [STARTED, Began(2.0, 3, Assignment("prompt")), spare]
    Ledger(str(kept.project), kept.said.append, past).on_fact(ended(cost_usd=0.25, usage=USED))
    assert [(e.agent, e.model) for e in kept.entries] == [("claude", "haiku")]


def test_a_ledger_that_knows_nothing_of_the_run_still_counts(kept: Kept) -> None:
    kept.hear(ended(cost_usd=0.25))
    assert [(e.run, e.cost_usd, e.role) for e in kept.entries] == [("", 0.25, "work")]


def test_a_ledger_that_cannot_be_written_is_said_once(kept: Kept) -> None:
    """ADR 22: "it never disturbs the run"."""
    (kept.project / FILE).mkdir()
    kept.hear(STARTED, BEGAN, *[ended(cost_usd=0.25)] * 3)
    (said,) = kept.said
    assert str(kept.project / FILE) in said
    assert "Is a directory" in said
    assert "The run goes on." in said


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_full_disk_is_said_once(kept: Kept) -> None:
    (kept.project / FILE).symlink_to("/dev/full")
    kept.hear(*[ended(cost_usd=0.25)] * 2)
    assert len(kept.said) == 1


def test_a_pipe_in_its_place_blocks_nobody(kept: Kept) -> None:
    os.mkfifo(kept.project / FILE)
    kept.hear(ended(cost_usd=0.25))
    assert len(kept.said) <= 1


def test_a_line_that_was_torn_off_harms_only_itself(kept: Kept) -> None:
    kept.hear(ended(cost_usd=1.0))
    with (kept.project / FILE).open("a") as file:
        file.write('{"time":111.0,"run":"x","cost')
    kept.hear(ended(cost_usd=2.0))
    assert [entry.cost_usd for entry in kept.entries] == [1.0, 2.0]
    assert kept.said == []


def test_two_writers_do_not_mix(kept: Kept) -> None:
    other = Ledger(str(kept.project), kept.said.append)
    for cost in (1.0, 2.0, 3.0):
        kept.hear(ended(cost_usd=cost))
        other.on_fact(ended(usage=USED))
    assert [entry.cost_usd for entry in kept.entries] == [1.0, None, 2.0, None, 3.0, None]


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"not JSON",
        b"[1, 2]",
        b"null",
        b'"text"',
        b"\xff\xfe\x00",
        b"{}",
        b'{"time": "now"}',
        b'{"time": true}',
        b'{"time": -1}',
        b'{"time": NaN}',
        b'{"time": 1e300}',
        b'{"time": 1' + b"0" * 400 + b"}",
        b"[" * 100_000,
    ],
)
def test_a_line_that_makes_no_sense_is_left_out(kept: Kept, line: bytes) -> None:
    kept.hear(ended(cost_usd=1.0))
    with (kept.project / FILE).open("ab") as file:
        file.write(line + b"\n")
    kept.hear(ended(cost_usd=2.0))
    assert [entry.cost_usd for entry in kept.entries] == [1.0, 2.0]


def test_a_field_that_makes_no_sense_is_nothing(kept: Kept) -> None:
    odd = {"run": 5, "iteration": "x", "cost_usd": "free", "usage": [1], "seconds": None}
    more = {"usage": {"input": -5, "output": True, "cache_read": 7, "new": 1}, "iteration": 2}
    lines = [json.dumps({"time": 5.0, **odd}), json.dumps({"time": 6, **more})]
    (kept.project / FILE).write_text("\n".join(lines), "utf-8")
    assert kept.entries == (
        LedgerEntry(5.0, "", "", 0, "", "", "", None, Usage(), 0.0),
        LedgerEntry(6.0, "", "", 2, "", "", "", None, Usage(cache_read=7), 0.0),
    )


def test_a_ledger_that_is_not_there_is_empty_and_one_that_cannot_be_read_is_named(
    tmp_path: Path,
) -> None:
    assert read_ledger(str(tmp_path / "nowhere")) == ()
    (tmp_path / FILE).mkdir()
    with pytest.raises(StateError, match=r"cannot read the ledger .*Is a directory"):
        read_ledger(str(tmp_path))


def entry(time: float, run: str, cost: float | None) -> LedgerEntry:
    return LedgerEntry(time, run, "harness", 1, "work", "codex", "", cost, Usage(1, 2), 3.0)


ENTRIES = (entry(1.0, "a", 1.0), entry(2.0, "b", None), entry(30.0, "a", 0.5))


def test_sums() -> None:
    a = Sum(1.5, 0, Usage(2, 4), 2, 6.0)
    b = Sum(0.0, 1, Usage(1, 2), 1, 3.0)
    assert sums_by(ENTRIES, lambda entry: entry.run) == {"a": a, "b": b}
    tens = sums_by(ENTRIES, lambda entry: str(int(entry.time) // 10))
    assert list(tens) == ["0", "3"]
    assert tens["0"] == Sum(1.0, 1, Usage(2, 4), 2, 6.0)
    assert total(ENTRIES) == Sum(1.5, 1, Usage(3, 6), 3, 9.0)
    assert total(()) == Sum()
