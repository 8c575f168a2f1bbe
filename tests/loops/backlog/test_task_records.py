"""B §Logs: "progress.jsonl: Execution history", "learning.jsonl: Patterns and metrics"."""

import fcntl
import json
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ralph.files import jsonl
from ralph.files.jsonl import newest_first
from ralph.loops.backlog.learning import lessons_of
from ralph.loops.backlog.store.records import Records, actions_in

RUN = "20261115-101010-abcd"
KEY = "sk-ant-api03-abcdefghijklmnopqrstuvwxyz"
CAPTURES = Path(__file__).parent.parent.parent / "captures"
ITERATION: dict[str, Any] = {
    "taskId": "T-1",
    "iteration": 1,
    "status": "continue",
    "reason": "make test failed",
    "cost": 0.25,
    "seconds": 7.5,
    "filesystemDelta": [{"path": "a.py", "change": "added"}],
    "actions": {"read": 1},
    "findings": [{"gate": "make test", "text": "it failed\nat length"}],
}
LESSON: dict[str, Any] = {
    "taskId": "T-1",
    "title": "Mend it",
    "taskType": "bug",
    "tags": ["ui"],
    "status": "done",
    "iterations": 3,
    "seconds": 9.0,
    "cost": None,
    "estimate": 2,
    "reason": "",
    "blockers": [],
    "gates": {},
    "key": f"{RUN}/T-1/task/done",
}


def keyed(entry: dict[str, Any], run: str = RUN) -> dict[str, Any]:
    """An entry with the key that it would have in a run."""
    where = f"{run}/{entry['taskId']}/{entry['iteration']}/iteration/{entry['status']}"
    return {"key": where, **entry}


class Kept:
    """Records of a workspace, what they kept, and what they complained of."""

    def __init__(self, workspace: Path) -> None:
        self.workspace = workspace
        self.said: list[str] = []
        self.records = self.anew()

    def anew(self, run: str = RUN) -> Records:
        """As another process has them."""
        return Records(str(self.workspace), run, self.said.append, lambda: 1_000_000_000.0)

    @property
    def progress(self) -> Path:
        return self.workspace / ".ralph" / "progress.jsonl"

    def lines(self, name: str = "progress.jsonl") -> list[dict[str, Any]]:
        text = (self.workspace / ".ralph" / name).read_text("utf-8")
        return [json.loads(line) for line in text.splitlines()]


@pytest.fixture
def kept(workspace: Path) -> Kept:
    return Kept(workspace)


def test_an_iteration_becomes_one_line(kept: Kept) -> None:
    """ "Records carry `taskId, iteration, cost, status, reason`"."""
    kept.records.iteration(keyed(ITERATION))
    assert kept.lines() == [
        {
            **ITERATION,
            "type": "iteration",
            "time": "2001-09-09T01:46:40.000000Z",
            "run": RUN,
            "key": f"{RUN}/T-1/1/iteration/continue",
            "findings": [{"gate": "make test", "text": "it failed"}],
        }
    ]
    assert (kept.workspace / ".ralph" / ".gitignore").is_file()


def test_status_changes_and_anomalies_are_progress_too(kept: Kept) -> None:
    where = {"taskId": "T-1", "iteration": 2, "key": "one"}
    kept.records.status(where, "in_progress", "blocked", "task limit")
    where |= {"key": "two", "time": 1.5}
    kept.records.anomaly(where, "stalled", "3 iterations\nwithout any progress")
    status, anomaly = kept.lines()
    shared = {"taskId": "T-1", "iteration": 2, "run": RUN, "cost": None}
    told = {"type": "status", "from": "in_progress", "to": "blocked", "status": "blocked"}
    assert status.items() >= (shared | told | {"reason": "task limit"}).items()
    told = {"type": "anomaly", "kind": "stalled", "detail": "3 iterations without any progress"}
    assert anomaly.items() >= (shared | told | {"status": None}).items()
    assert anomaly["reason"] == anomaly["detail"]
    assert anomaly["time"] == "1970-01-01T00:00:01.500000Z"


@pytest.mark.parametrize(("estimate", "ratio"), [(2, 1.5), (None, None), ("two", None), (0, None)])
def test_a_lesson_compares_with_the_estimate(kept: Kept, estimate: object, ratio: object) -> None:
    kept.records.lesson({**LESSON, "estimate": estimate})
    (lesson,) = kept.lines("learning.jsonl")
    assert lessons_of([lesson]) == kept.records.lessons()
    assert (lesson["type"], lesson["ratio"], lesson["iteration"]) == ("task", ratio, 3)


def test_what_was_written_before_a_kill_is_not_written_twice(kept: Kept) -> None:
    for records in (kept.records, kept.records, kept.anew()):
        records.iteration(keyed(ITERATION))
        records.status({"taskId": "T-1", "key": "taken up"}, "pending", "in_progress")
        records.anomaly({"taskId": "T-1", "key": "stalls"}, "stalled", "why")
        records.lesson(LESSON)
    assert [entry["type"] for entry in kept.lines()] == ["iteration", "status", "anomaly"]
    assert len(kept.lines("learning.jsonl")) == 1


@pytest.mark.parametrize(
    "change",
    [
        {"iteration": 2},
        {"taskId": "T-2"},
        {"status": "waiting"},
        {"key": "the second try"},
    ],
)
def test_other_entries_are_written(kept: Kept, change: dict[str, Any]) -> None:
    kept.records.iteration(keyed(ITERATION))
    kept.records.iteration(keyed({**ITERATION, **change}))
    kept.anew("20261116-000000-0000").iteration(keyed(ITERATION))
    assert len(kept.lines()) == 3


def test_secrets_are_redacted_and_long_things_cut(kept: Kept) -> None:
    """Records are what people read, and git keeps."""
    delta = tuple({"path": f"{n}.py", "change": "added"} for n in range(100_000))
    findings = [{"gate": "x", "text": "y" * 9999}] * 999
    reason = f"{KEY}\x1b[31m " + "z" * 99_999
    long = {"filesystemDelta": delta, "findings": findings, "reason": reason}
    kept.records.iteration(keyed({**ITERATION, **long}))
    (entry,) = kept.lines()
    assert KEY not in kept.progress.read_text()
    assert kept.progress.stat().st_size < 40_000
    assert (len(entry["filesystemDelta"]), entry["moreFiles"]) == (500, 99_500)
    assert entry["reason"].startswith("[redacted] zzz")


# ------------------------------------------------------------------ reading


def test_the_newest_entries_of_a_task_come_last(kept: Kept) -> None:
    for number in range(1, 50):
        kept.records.iteration(keyed({**ITERATION, "iteration": number}))
        kept.records.iteration(keyed({**ITERATION, "taskId": "T-10", "iteration": number}))
    found = kept.records.progress_of("T-1", 3)
    assert [(entry["taskId"], entry["iteration"]) for entry in found] == [
        ("T-1", 47),
        ("T-1", 48),
        ("T-1", 49),
    ]
    assert kept.records.progress_of("T") == []


@pytest.mark.parametrize("task", ["T-1", "é", 'é "1" \\'])
def test_ids_may_be_written_in_any_way(kept: Kept, task: str) -> None:
    """JSON has two spellings for most letters."""
    kept.records.iteration(keyed({**ITERATION, "taskId": task}))
    with kept.progress.open("a") as file:
        file.write(json.dumps({"taskId": task}, ensure_ascii=False) + "\n")
    assert len(kept.records.progress_of(task)) == 2


@pytest.mark.parametrize(
    "broken",
    [
        b"no JSON\n",
        b"[1]\n",
        b"\n\n",
        b"\xff\xfe\x00\n",
        b'{"taskId": "T-1"',
        b"[" * 99_999 + b"\n",
    ],
)
def test_broken_lines_are_skipped_and_nothing_is_lost(kept: Kept, broken: bytes) -> None:
    """A person, an agent or a kill left them: "torn last line handled"."""
    kept.records.iteration(keyed(ITERATION))
    with kept.progress.open("ab") as file:
        file.write(broken)
    kept.anew().iteration(keyed({**ITERATION, "iteration": 2}))
    assert [entry["iteration"] for entry in kept.records.progress_of("T-1")] == [1, 2]
    assert broken.strip() in kept.progress.read_bytes()


@pytest.mark.parametrize("block", [1, 7, 64, 4096])
def test_lines_are_whole_wherever_a_block_ends(
    kept: Kept, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(20):
        kept.records.iteration(keyed({**ITERATION, "iteration": number}))
    monkeypatch.setattr(jsonl, "_BLOCK", block)
    found = kept.records.progress_of("T-1", 99)
    assert [entry["iteration"] for entry in found] == list(range(20))


def test_a_line_too_long_for_anybody_costs_only_itself(
    kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept.records.iteration(keyed(ITERATION))
    with kept.progress.open("a") as file:
        file.write(f'{{"taskId": "T-1", "x": "{"y" * 20_000}"}}\n')
    kept.records.iteration(keyed({**ITERATION, "iteration": 2}))
    monkeypatch.setattr(jsonl, "_BLOCK", 512)
    monkeypatch.setattr(jsonl, "_LONGEST_LINE", 4096)
    assert [entry["iteration"] for entry in kept.records.progress_of("T-1")] == [1, 2]


def test_only_the_end_of_a_huge_file_is_read(kept: Kept) -> None:
    """The file may be 1 GB: what stands before its last part is not looked at."""
    kept.records.iteration(keyed(ITERATION))
    with kept.progress.open("r+b") as file:
        file.seek(3 << 30)  # a hole
        file.write(b"\n" + json.dumps({"taskId": "T-1", "iteration": 9}).encode() + b"\n")
    assert [entry["iteration"] for entry in kept.records.progress_of("T-1")] == [9]
    assert list(newest_first(str(kept.progress), 10)) == []


def make_link(path: Path) -> None:
    path.symlink_to(path.parent.parent / "elsewhere")


PLACES: list[tuple[Callable[[Path], None], str]] = [
    (Path.mkdir, "Is a directory"),
    (os.mkfifo, "not a regular file"),
    (make_link, "Too many levels of symbolic links"),
]


@pytest.mark.parametrize(("make", "why"), PLACES)
def test_what_cannot_be_written_is_said_once(
    kept: Kept, make: Callable[[Path], None], why: str
) -> None:
    """ "Unwritable: say it once through a callback, the run goes on"."""
    (kept.workspace / ".ralph").mkdir()
    make(kept.progress)
    for number in range(3):
        kept.records.iteration(keyed({**ITERATION, "iteration": number}))
    assert kept.said == [f".ralph/progress.jsonl cannot be written: {why}. The run goes on."]
    assert kept.records.progress_of("T-1") == []
    kept.records.lesson(LESSON)
    assert len(kept.records.lessons()) == 1


def test_a_workspace_where_nothing_can_be_written(kept: Kept) -> None:
    (kept.workspace / ".ralph").write_text("")
    kept.records.iteration(keyed(ITERATION))
    assert len(kept.said) == 1
    assert "cannot write" in kept.said[0]


def test_a_full_disk_leaves_no_half_line(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    kept.records.iteration(keyed(ITERATION))
    before = kept.progress.read_bytes()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    old = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 20, limits[1]))
    try:
        kept.records.iteration(keyed({**ITERATION, "iteration": 2}))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, old)
    assert kept.progress.read_bytes() == before
    assert len(kept.said) == 1
    kept.records.iteration(keyed({**ITERATION, "iteration": 2}))
    assert len(kept.lines()) == 2


def test_whoever_keeps_the_lock_does_not_hold_up_the_run(
    kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jsonl, "_PATIENCE", 0.0)
    kept.records.iteration(keyed(ITERATION))
    with kept.progress.open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        kept.records.iteration(keyed({**ITERATION, "iteration": 2}))
    assert len(kept.lines()) == 2


WRITER = """
import sys
from ralph.loops.backlog.store.records import Records
records = Records(sys.argv[1], sys.argv[2])
for number in range(100):
    records.iteration({"taskId": "T-1", "iteration": number, "key": f"{sys.argv[2]}/{number}"})
"""


def test_writers_at_the_same_time_lose_nothing(kept: Kept) -> None:
    """ "Concurrent writers lose nothing"."""
    argv = [sys.executable, "-c", WRITER, str(kept.workspace)]
    writers = [subprocess.Popen([*argv, f"run-{n}"]) for n in range(4)]
    assert [writer.wait() for writer in writers] == [0, 0, 0, 0]
    keys = [entry["key"] for entry in kept.lines()]
    assert len(keys) == len(set(keys)) == 400


# ------------------------------------------------------------------ actions

STREAMS = [
    ("claude/success.ndjson", "claude", {"read": 1, "write": 1, "bash": 1}),
    ("codex/success-workspace-write.ndjson", "codex", {"write": 2, "bash": 1}),
    ("gemini/success.ndjson", "gemini", {"read": 1, "write": 1, "bash": 1}),
    ("opencode/success.ndjson", "opencode", {"read": 1, "write": 1, "bash": 1}),
    (
        "ralph-agent/success.ndjson",
        "ralph-agent",
        {"read": 1, "write": 2, "bash": 1, "git": 1, "eval": 1},
    ),
]


@pytest.mark.parametrize(("name", "dialect", "counts"), STREAMS)
def test_actions_are_counted_in_real_streams(
    name: str, dialect: str, counts: dict[str, int]
) -> None:
    """B §Actions, by kind."""
    none = {"read": 0, "write": 0, "bash": 0, "git": 0, "eval": 0}
    assert actions_in(str(CAPTURES / name), dialect) == none | counts


@pytest.mark.parametrize("content", [None, b"", b"\x00\xff\n[", b'{"type": "assistant"'])
def test_a_stream_that_cannot_be_understood_tells_of_no_action(
    tmp_path: Path, content: bytes | None
) -> None:
    if content is not None:
        (tmp_path / "001.stream").write_bytes(content)
    assert set(actions_in(str(tmp_path / "001.stream"), "claude").values()) == {0}


def test_another_file_is_read_anew(kept: Kept) -> None:
    """What was read once is not read again, unless somebody has written another file."""
    kept.records.iteration(keyed(ITERATION))
    kept.records.lesson(LESSON)
    assert len(kept.records.progress_of("T-1")) == len(kept.records.lessons()) == 1
    kept.records.iteration(keyed({**ITERATION, "iteration": 2}))
    kept.records.lesson({**LESSON, "key": "two"})
    assert len(kept.records.progress_of("T-1")) == len(kept.records.lessons()) == 2
    kept.progress.write_text(json.dumps({"taskId": "T-1", "iteration": 7}) + "\n")
    learning = kept.progress.with_name("learning.jsonl")
    learning.write_text(json.dumps({**LESSON, "taskId": "T-7"}) + "\n")
    assert [entry["iteration"] for entry in kept.records.progress_of("T-1")] == [7]
    assert [lesson.task for lesson in kept.records.lessons()] == ["T-7"]
    learning.unlink()
    assert kept.records.lessons() == ()
