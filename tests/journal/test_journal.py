"""The journal (ADR 9): every fact comes back, every edit is seen, a torn line is dropped."""

import json
import os
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from kits.adapters import await_that
from ralph.errors import StateError
from ralph.journal import journal as journal_module
from ralph.journal.journal import FileJournal, read_journal
from ralph.journal.runs import Facts
from ralph.kernel.claims import Claim
from ralph.kernel.events import Failure, Usage
from ralph.kernel.facts import (
    Asked,
    Assigned,
    Began,
    Checked,
    Checking,
    Decided,
    Ended,
    Fact,
    Fared,
    Landed,
    Launching,
    Moved,
    Proved,
    Published,
    Resting,
    Resumed,
    Returned,
    Sent,
    Settled,
    Started,
    Step,
)
from ralph.kernel.findings import Finding
from ralph.kernel.limits import Spent
from ralph.kernel.tasks.task import Assignment, Mode
from ralph.kernel.turn import Ending, Role, Turn
from ralph.kernel.verdict import (
    Accept,
    Boundary,
    Continue,
    Feedback,
    Park,
    Placement,
    Reason,
    Release,
    Stop,
    Verdict,
    Wait,
)
from ralph.kernel.world import Origin, Request, Snapshot, Stand

FINDING = Finding("make test", "it\nfails \u2028 \x00 'é' 😀", Placement.PREPEND, 2, "log", "gist")
TURN = Turn(
    ending=Ending.CUT,
    exit_code=None,
    why="timed out",
    failure=Failure("no", 429, 1.5, 2.5),
    claims=(Claim("<response>DONE</response>"),),
    overheard=(Claim("<promise>x</promise>"),),
    question="which?",
    text='<a "quote"> \\ ,"hash":"0"}\n',
    stderr=os.fsdecode(b"not utf-8 \xff"),
    denied=("Bash",),
    cost_usd=0.1,
    usage=Usage(1, 2, 3, 4),
    stream="/run/001.stream",
)
VERDICTS: tuple[Verdict, ...] = (
    Continue((Feedback("again", Placement.REPLACE),), after=1.5),
    Release("enough"),
    Accept(("passed",)),
    Park("why"),
    Wait(None, "paused"),
    Wait(0.0, "empty"),
    Stop(Reason.LIMIT, "used up", ("evidence",)),
)
FACTS: tuple[Fact, ...] = (
    Started(1.0, "run", "harness", "/ws", 42, "0.1.0", '{"a": "b"}'),
    Resumed(2.0, 43),
    Began(3.0, 1, Assignment("prompt", "title", Mode.REVIEW), Snapshot("t", (("a", "b"),)), "c"),
    Ended(4.0, TURN),
    Ended(4.0, Turn()),
    Asked(4.2, Request("7f", "note", Origin.WEB, 2.4, "Mind the tests.", "T-1")),
    Launching(4.5, Role.WORK, "claude", "/run/001.stream"),
    Landed(4.9, kept=False, count=2, held=("a",), spared=("b: why",), saved="/s"),
    Checking(5.0, "make test"),
    Checked(6.0, "make test", 0.5, (FINDING,)),
    Proved(6.1, "a-tree", Stand("all", "head", "refs", "settings"), gates=("make test",)),
    *(Decided(7.0, Boundary.CLOSING, v, (FINDING,), True, False, ("note",)) for v in VERDICTS),
    Step(8.0, "scm:commit", ok=False, detail="no", cost_usd=0.2),
    Moved(8.5, "there"),
    Sent(8.5, 2, "refs/ralph/run/t-1/2", "0a1b"),
    Fared(8.5, 2, "lost", "build-7", "nothing was heard for 60s"),
    Assigned(8.6, Assignment("T-1", "title", most=3), "run-001"),
    Returned(8.7, "T-1", "run-001", Park("why"), Spent(2, 1.5, 0.25, Usage(1, 2), 1), "ralph/T-1"),
    Published(8.8, "T-1", "ralph/T-1", "main", 7, "https://forge.test/7", "0a1b", merged=True),
    Resting(8.9, 23.9, "CI of #7"),
    Settled(9.0, Stop(Reason.COMPLETED)),
)


def written(path: Path, facts: tuple[Fact, ...] = FACTS) -> Path:
    journal = FileJournal(str(path))
    for fact in facts:
        journal.record(fact)
    journal.close()
    return path


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    """A journal with every kind of fact."""
    return written(tmp_path / "journal.jsonl")


def test_every_fact_comes_back_as_it_was(journal: Path) -> None:
    facts, _ = read_journal(str(journal))
    assert tuple(facts) == FACTS


def test_every_kind_of_fact_and_verdict_is_in_this_file() -> None:
    """So that a new one cannot be forgotten here."""
    assert {type(fact) for fact in FACTS} == set(Fact.__args__)
    assert {type(verdict) for verdict in VERDICTS} == set(Verdict.__args__)


def test_a_line_is_one_json_object_with_type_and_hash(journal: Path) -> None:
    lines = [json.loads(line) for line in journal.read_text().splitlines()]
    assert len(lines) == len(FACTS)
    assert all({"type", "time", "hash"} <= line.keys() for line in lines)


def test_the_journal_is_for_its_owner_only(journal: Path) -> None:
    assert stat.S_IMODE(journal.stat().st_mode) == 0o600


@pytest.mark.parametrize(
    "frame", ["say {}", "a\n{}\nb", '"{}"', "\\{}\\", "\t{}", "é {} é", "\x1b[0m{}"]
)
def test_key_shaped_values_are_not_in_the_journal(tmp_path: Path, frame: str) -> None:
    """ADR 13: "key-shaped values from everything people read: console, journal"."""
    key = "sk-ant-" + "a1" * 12
    said = frame.format(key)
    journal = written(tmp_path / "journal.jsonl", (Ended(1.0, Turn(text=said)),))
    assert key not in journal.read_text()
    facts, _ = read_journal(str(journal))
    assert facts == [Ended(1.0, Turn(text=frame.format("[redacted]")))]


def test_a_journal_goes_on_where_it_ended(journal: Path) -> None:
    _, last = read_journal(str(journal))
    more = FileJournal(str(journal), last)
    more.record(Resumed(10.0, 44))
    more.close()
    facts, _ = read_journal(str(journal))
    assert tuple(facts) == (*FACTS, Resumed(10.0, 44))


EDITS: dict[str, Callable[[list[bytes]], list[bytes]]] = {
    "a letter": lambda lines: [*lines[:3], lines[3].replace(b"timed", b"tamed"), *lines[4:]],
    "a number": lambda lines: [*lines[:3], lines[3].replace(b"4.0", b"5.0"), *lines[4:]],
    "a blank": lambda lines: [*lines[:3], lines[3].replace(b":", b": ", 1), *lines[4:]],
    "a hash": lambda lines: [*lines[:3], lines[3][:-5] + b"0000\n", *lines[4:]],
    "no hash": lambda lines: [*lines[:3], b"{}\n", *lines[4:]],
    "a line removed": lambda lines: [*lines[:3], *lines[4:]],
    "a line twice": lambda lines: [*lines[:3], lines[2], *lines[3:]],
    "lines exchanged": lambda lines: [*lines[:3], lines[4], lines[3], *lines[5:]],
    "an empty line": lambda lines: [*lines[:3], b"\n", *lines[3:]],
    "a new line": lambda lines: [*lines[:3], b'{"type":"resumed","time":1,"pid":1}\n', *lines[3:]],
    "binary": lambda lines: [*lines[:3], b"\xff\x00\n", *lines[3:]],
    "line ends": lambda lines: [*lines[:3], *(x[:-1] + b"\r\n" for x in lines[3:])],
    "an end": lambda lines: [*lines[:3], lines[3][:-1] + b" \n", *lines[4:]],
}


READERS: dict[str, Callable[[str], object]] = {
    "all at once": read_journal,
    "as it grows": lambda path: list(Facts(path).new()),
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("edit", EDITS)
def test_an_edit_is_detected_and_its_line_named(journal: Path, edit: str, reader: str) -> None:
    """ADR 9: "Journal lines are hash-chained: a naive edit is detected and named"."""
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join(EDITS[edit](lines)))
    with pytest.raises(StateError) as caught:
        READERS[reader](str(journal))
    assert caught.value.message.startswith(f"{journal}:4: this line was changed")
    assert caught.value.remedy


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize(
    ("body", "why"),
    [
        ('{"type":"dreamt","time":1.0}', "not a fact: 'dreamt'"),
        ('{"type":' + "[" * 100_000 + "}", "maximum recursion depth exceeded"),
        ("{not json}", "Expecting property name"),
    ],
)
def test_a_line_that_tells_no_fact_is_named(
    tmp_path: Path, body: str, why: str, reader: str
) -> None:
    digest = journal_module.chained(body, journal_module.SEED)
    path = tmp_path / "journal.jsonl"
    path.write_text(f'{body[:-1]},"hash":"{digest}"}}\n')
    with pytest.raises(StateError, match=f":1: {why}"):
        READERS[reader](str(path))


def test_the_first_line_cannot_be_removed_unseen(journal: Path) -> None:
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join(lines[1:]))
    with pytest.raises(StateError, match=":1: this line was changed"):
        read_journal(str(journal))


def test_a_journal_cut_anywhere_gives_the_facts_before_the_cut(tmp_path: Path) -> None:
    """A torn last line is what a kill in the middle of a write leaves."""
    journal = written(tmp_path / "journal.jsonl", FACTS[:3])
    whole = journal.read_bytes()
    for size in range(len(whole) + 1):
        journal.write_bytes(whole[:size])
        facts, _ = read_journal(str(journal))
        assert tuple(facts) == FACTS[: whole[:size].count(b"\n")]


def test_each_record_is_on_disk_before_the_next_thing_happens(tmp_path: Path) -> None:
    """ADR 9: "Each record is one `write`, which survives kill -9"."""
    path = tmp_path / "journal.jsonl"
    script = (
        "import os, sys; from ralph.journal.journal import FileJournal; "
        "from ralph.kernel.facts import Resumed; journal = FileJournal(sys.argv[1]); "
        "journal.record(Resumed(1.0, 1)); os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", script, str(path)], check=False)
    assert read_journal(str(path))[0] == [Resumed(1.0, 1)]


def test_a_write_that_takes_only_a_part_is_gone_on_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk that is nearly full, or a signal in the middle."""
    really = os.write
    monkeypatch.setattr(os, "write", lambda file, data: really(file, data[: len(data) // 2 + 1]))
    path = written(tmp_path / "journal.jsonl")
    assert tuple(read_journal(str(path))[0]) == FACTS


def test_a_full_disk_is_named_with_the_remedy(tmp_path: Path) -> None:
    (tmp_path / "journal.jsonl").symlink_to("/dev/full")
    journal = FileJournal(str(tmp_path / "journal.jsonl"))
    with pytest.raises(StateError, match="No space left on device") as caught:
        journal.record(Resumed(1.0, 1))
    assert "Free some space" in caught.value.remedy
    journal.close()


def test_a_journal_that_cannot_be_opened_is_named(tmp_path: Path) -> None:
    with pytest.raises(StateError, match=r"cannot write the journal .*: Is a directory"):
        FileJournal(str(tmp_path))


@pytest.mark.parametrize(("name", "why"), [("missing", "No such file"), (".", "Is a directory")])
def test_a_journal_that_cannot_be_read_is_named(tmp_path: Path, name: str, why: str) -> None:
    with pytest.raises(StateError, match=f"cannot read the journal .*: {why}"):
        read_journal(str(tmp_path / name))


def test_closing_waits_for_the_thread_that_syncs(tmp_path: Path) -> None:
    journal = FileJournal(str(tmp_path / "journal.jsonl"))
    for _ in range(100):
        journal.record(Decided(1.0, Boundary.OPENING, Continue()))
    journal.close()
    assert len(read_journal(journal.path)[0]) == 100


@pytest.mark.parametrize("decided", [0, 100])
def test_syncs_are_few_and_the_last_one_has_everything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, decided: int
) -> None:
    """ADR 9: "at most ten times a second, and is awaited at the end"; also what was recorded after
    the last decision."""
    synced: list[int] = []
    monkeypatch.setattr(os, "fdatasync", lambda file: synced.append(os.fstat(file).st_size))
    monkeypatch.setattr(journal_module, "_SYNC_EVERY", 3600.0)
    journal = FileJournal(str(tmp_path / "journal.jsonl"))
    for _ in range(decided):
        journal.record(Decided(1.0, Boundary.OPENING, Continue()))
    await_that(lambda: bool(synced) or not decided)
    journal.record(Settled(2.0, Stop(Reason.COMPLETED)))
    journal.close()
    assert synced[-1] == os.path.getsize(journal.path)
    assert len(synced) <= 3


def test_without_a_thread_the_loop_itself_waits_for_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A machine may be short of threads for a while."""

    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    path = written(tmp_path / "journal.jsonl")
    assert tuple(read_journal(str(path))[0]) == FACTS


def shorten(path: Path) -> None:
    os.truncate(path, path.stat().st_size - 1)


def lengthen(path: Path) -> None:
    with path.open("a") as file:
        file.write("{}\n")


def replace_it(path: Path) -> None:
    other = path.with_name("other")
    other.write_bytes(path.read_bytes())
    other.rename(path)


@pytest.mark.parametrize("edit", [shorten, lengthen, replace_it, Path.unlink])
def test_an_edit_by_somebody_else_is_seen_while_the_run_goes_on(
    tmp_path: Path, edit: Callable[[Path], None]
) -> None:
    """B §Hooks, onAnomaly: the journal was edited. Also in a run that was resumed."""
    path = tmp_path / "journal.jsonl"
    for _ in range(2):
        journal = FileJournal(str(path))
        assert journal.intact()
        journal.record(Resumed(1.0, 7))
        assert journal.intact()
        journal.close()
    journal = FileJournal(str(path))
    edit(path)
    assert not journal.intact()
    journal.close()
