"""The recap of runs on disk, whatever state their files are in."""

import json
import os
from pathlib import Path

import msgspec
import pytest

from ralph.journal.journal import FileJournal
from ralph.journal.runs import Run
from ralph.kernel.facts import (
    Assigned,
    Began,
    Checked,
    Decided,
    Ended,
    Fact,
    Launching,
    Returned,
    Settled,
    Started,
)
from ralph.kernel.findings import Finding
from ralph.kernel.tasks.task import Assignment
from ralph.kernel.turn import Role, Turn
from ralph.kernel.verdict import Accept, Boundary, Continue
from ralph.ui.recap.gather import Gatherer, recap_of
from ralph.ui.recap.values import ItemKind

RUN = "20260101-000000-aaaa"
KEY = "sk-ant-" + "a1b2c3d4e5f6g7h8"
DONE = Continue()


@pytest.fixture
def run(tmp_path: Path) -> Run:
    found = Run(RUN, str(tmp_path / "state"))
    os.makedirs(found.directory)
    return found


def journaled(run: Run, *facts: Fact) -> Path:
    os.makedirs(run.directory, exist_ok=True)
    journal = FileJournal(run.journal)
    for fact in facts:
        journal.record(fact)
    journal.close()
    return Path(run.journal)


def started(run: Run, profile: str = "harness", workers: int = 1) -> Started:
    return Started(1.0, run.id, profile, "/nowhere", 7, "0.2", workers=workers)


def turn(run: Run, number: int, dialect: str = "text") -> tuple[Fact, ...]:
    stream = os.path.join(run.directory, f"{number:03d}.stream")
    launch = Launching(2.0, Role.WORK, dialect, stream)
    ended = (Decided(4.0, Boundary.CLOSING, DONE), Settled(5.0, DONE))
    return (Began(2.0, number, Assignment("prompt")), launch, Ended(3.0, Turn()), *ended)


def written(run: Run, name: str, text: str | bytes) -> Path:
    path = Path(run.directory, name)
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def test_no_journal_at_all(run: Run) -> None:
    found = recap_of(run, 9.0)
    assert (found.run, found.state, found.iterations, found.problem) == (RUN, "crashed", (), "")
    assert Gatherer(run).iteration(1, "", 9.0) is None
    os.mkdir(run.journal)
    assert recap_of(run, 9.0).state == "unknown"
    assert "cannot read" in recap_of(run, 9.0).problem


def test_a_torn_line_and_an_edited_one(run: Run) -> None:
    path = journaled(run, started(run), *turn(run, 1), *turn(run, 2))
    whole = path.read_bytes()
    path.write_bytes(whole[:-9])
    assert len(recap_of(run, 9.0).iterations) == 2
    assert recap_of(run, 9.0).problem == ""
    lines = whole.splitlines(keepends=True)
    lines[8] = lines[8].replace(b'"time":3.0', b'"time":9.0')
    path.write_bytes(b"".join(lines))
    found = recap_of(run, 9.0)
    assert [each.number for each in found.iterations] == [1, 2]
    assert f"{path}:9: this line was changed after it was written" in found.problem
    assert found.state == "unknown"


def test_one_workers_journal_that_cannot_be_read(run: Run) -> None:
    """The others' are told to their ends."""
    names = ("w-1", "w-2")
    sent = [Assigned(2.0, Assignment(name), name) for name in names]
    back = [Returned(8.0, name, name, Accept(("x",))) for name in names]
    journaled(run, started(run, "tasks", workers=2), *sent, *back)
    for name in names:
        worker = Run(name, run.directory)
        path = journaled(worker, started(worker, "tasks"), *turn(worker, 1))
        if name == "w-1":
            path.write_bytes(path.read_bytes().replace(b"0.2", b"0.3"))
    found = recap_of(run, 9.0)
    assert [each.worker for each in found.iterations] == ["w-2"]
    assert [lane.outcome for lane in found.lanes] == ["done", "done"]
    assert "w-1" in found.problem


def test_whoever_follows_reads_only_what_is_new(run: Run) -> None:
    facts = (started(run), *turn(run, 1), *turn(run, 2))
    path = journaled(run, *facts)
    whole = path.read_bytes()
    path.write_bytes(b"")
    following = Gatherer(run)
    assert not following.read()
    for cut in (1, len(whole) // 2, len(whole)):
        path.write_bytes(whole[:cut])
        following.read()
    assert not following.read()
    assert following.recap(9.0, whole=True) == recap_of(run, 9.0)


def test_a_worker_that_comes_back_while_somebody_follows(run: Run) -> None:
    worker = Run("w-1", run.directory)
    journaled(worker, started(worker, "tasks"), *turn(worker, 1))
    sent = (started(run, "tasks", workers=2), Assigned(2.0, Assignment("a"), "w-1"))
    path = journaled(run, *sent, Returned(8.0, "a", "w-1", Accept(("x",))))
    whole = path.read_bytes()
    path.write_bytes(b"".join(whole.splitlines(keepends=True)[:2]))
    following = Gatherer(run)
    assert following.read()
    path.write_bytes(whole)
    assert following.read()
    assert following.recap(9.0, whole=True) == recap_of(run, 9.0)


def test_contents_of_a_turn_are_clean_and_short(run: Run) -> None:
    journaled(run, started(run), *turn(run, 1, "claude"))
    evil = f"\x1b]0;title\x07\x1b[2J\u202eword {KEY}"
    said = {"type": "assistant", "message": {"content": [{"type": "text", "text": evil}]}}
    lines = [json.dumps(said), "not json \x1b[31m", '{"type":"x","text":"' + "y" * 10_000_000]
    written(run, "001.stream", "\n".join(lines))
    written(run, "001.prompt", f"Do it.\n{evil}\n" + "z" * 1_000_000)
    following = Gatherer(run)
    following.read()
    whole = following.iteration(1, "", 9.0)
    assert whole is not None
    text = msgspec.json.encode(whole).decode()
    assert KEY not in text
    assert not {"\x1b", "\x07", "\u202e"} & set(json.dumps(json.loads(text), ensure_ascii=False))
    assert whole.items[0].kind is ItemKind.TEXT
    assert whole.items[0].text == "word [redacted]"
    assert whole.prompt.startswith("Do it.\nword [redacted]\n")
    assert len(text) < 60_000


def test_a_stream_that_is_no_file(run: Run) -> None:
    journaled(run, started(run), *turn(run, 1), *turn(run, 2))
    os.mkfifo(os.path.join(run.directory, "001.stream"))
    os.symlink("/dev/zero", os.path.join(run.directory, "002.stream"))
    assert [each.items for each in recap_of(run, 9.0).iterations] == [(), ()]


def test_logs_are_those_of_the_check_and_of_no_later_run(run: Run) -> None:
    text = "Guardrail failed.\nOutput (truncated):\nthe beginning"
    log = written(run, "guardrail_001_test.log", "first\n" + "x\n" * 200_000 + "last\n")
    os.utime(log, (2.5, 2.5))
    finding = Finding("test", text, code=1, log=str(log))
    began, launch, ended, decided, settled = turn(run, 1)
    facts = (began, launch, ended, Checked(3.0, "test", 1.0, (finding,)), decided, settled)
    journaled(run, started(run), *facts)
    (check,) = recap_of(run, 9.0).iterations[0].checks
    assert check.output.startswith("first\n")
    assert check.output.endswith("\nlast\n")
    assert len(check.output) < 9_000
    os.utime(log, (900.0, 900.0))
    (check,) = recap_of(run, 9.0).iterations[0].checks
    assert check.output == "the beginning"
    # What a check runs may lead us to what only we can read.
    secret = written(run, "precious", "only mine")
    log.unlink()
    log.symlink_to(secret)
    for path in (log, secret):
        os.utime(path, (2.5, 2.5), follow_symlinks=False)
    (check,) = recap_of(run, 9.0).iterations[0].checks
    assert check.output == "the beginning"
    assert check.objections == ("Guardrail failed.",)
