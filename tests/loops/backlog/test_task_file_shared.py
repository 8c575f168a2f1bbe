"""`.ralph/tasks.jsonl` in bad company: many writers, kills, full disks, pipes in its place."""

import fcntl
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from task_file_support import file, path_of, titles, write

from ralph.errors import ConfigError, StateError
from ralph.files.append import lock
from ralph.kernel.tasks.task import Status
from ralph.loops.backlog.store import task_file
from ralph.loops.backlog.store.lines import encoded
from ralph.loops.backlog.store.task_file import Listing, TaskFile
from ralph.loops.backlog.store.watch import known, note

__all__ = ["file"]


# ------------------------------------------------------------------ many at once

WORKER = """
import sys
from ralph.loops.backlog.store.task_file import TaskFile
file, worker = TaskFile(sys.argv[1]), sys.argv[2]
for n in range(int(sys.argv[3])):
    made = file.add({"title": f"{worker}-{n}"})["id"]
    file.update("shared", lambda old: {"count": old.get("count", 0) + 1})
    file.update(made, lambda old: {"status": "in_progress"})
"""
COMPACTOR = """
import sys
from ralph.loops.backlog.store.task_file import TaskFile
for _ in range(100):
    TaskFile(sys.argv[1]).compact()
"""


def start(script: str, *arguments: str) -> "subprocess.Popen[bytes]":
    return subprocess.Popen([sys.executable, "-c", script, *arguments])


def test_many_writers_lose_nothing_while_the_file_is_compacted(
    file: TaskFile, workspace: Path
) -> None:
    """Concurrent writers lose nothing."""
    write(workspace, {"id": "shared"})
    workers = [start(WORKER, str(workspace), str(n), "20") for n in range(6)]
    workers.append(start(COMPACTOR, str(workspace)))
    assert [worker.wait(60) for worker in workers] == [0] * 7
    listing = file.read()
    assert listing.problems == ()
    made = [t for t in listing.backlog.tasks if t.id != "shared"]
    assert {t.title for t in made} == {f"{w}-{n}" for w in range(6) for n in range(20)}
    assert {t.status for t in made} == {Status.IN_PROGRESS}
    shared = file.record("shared")
    assert shared is not None
    assert shared["count"] == 120
    file.compact()
    assert len(Path(file.path).read_bytes().splitlines()) == 121
    assert [p.name for p in (workspace / ".ralph").glob("*.tmp")] == []


def test_the_first_task_is_added_by_many_at_once(file: TaskFile, workspace: Path) -> None:
    add = "import sys; from ralph.loops.backlog.store.task_file import TaskFile as F; "
    add += "F(sys.argv[1]).add({'title': 'x'})"
    workers = [start(add, str(workspace)) for _ in range(10)]
    assert [worker.wait(60) for worker in workers] == [0] * 10
    ids = [t.id for t in file.read().backlog.tasks]
    assert ids == [f"T-{n:03}" for n in range(1, 11)]


def test_a_line_torn_off_by_a_kill_costs_only_itself(file: TaskFile, workspace: Path) -> None:
    """Each record is one write; what a crash left of one is named and stays."""
    path = write(workspace, {"id": "T-001"})
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"id":"T-002","ti')
    assert file.add({"title": "x"})["id"] == "T-002"
    assert path.read_bytes().startswith(whole + b'{"id":"T-002","ti\n{"id":"T-002"')
    listing = file.read()
    assert [str(p) for p in listing.problems] == ["line 2: not JSON: Input data was truncated"]
    assert [t.id for t in listing.backlog.tasks] == ["T-001", "T-002"]


def test_what_an_agent_appends_without_a_lock_survives(file: TaskFile, workspace: Path) -> None:
    path = write(workspace, {"id": "a"})
    file.update("a", lambda _: {"title": "t"})
    with path.open("a") as other:
        other.write('{"id":"b"}\n')
    file.compact()
    assert [t.id for t in TaskFile(str(workspace)).read().backlog.tasks] == ["a", "b"]


def test_a_lock_that_is_never_given_back_is_told(
    file: TaskFile, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An agent can hold a lock too: nobody waits for ever, and reading goes on."""
    path = write(workspace, {"id": "a"})
    path.write_bytes(path.read_bytes().rstrip())
    monkeypatch.setattr(task_file, "_PATIENCE", 0.05)
    monkeypatch.setattr(task_file, "_MOMENT", 0.05)
    with path.open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert len(file.read().backlog.tasks) == 1
        with pytest.raises(ConfigError, match="another process holds its lock") as refused:
            file.update("a", lambda _: {"title": "x"})
        assert "fuser" in refused.value.remedy
    file.update("a", lambda _: {"title": "x"})


def test_compaction_keeps_mode_and_waits_for_nobody_else(file: TaskFile, workspace: Path) -> None:
    path = write(workspace, {"id": "a"})
    path.chmod(0o660)
    file.update("a", lambda _: {"title": "x"})
    file.compact()
    assert path.stat().st_mode & 0o777 == 0o660
    inode = path.stat().st_ino
    file.compact()
    assert path.stat().st_ino == inode, "nothing was to be left out"


def test_a_line_that_comes_in_the_middle_of_a_compaction_stays(
    file: TaskFile, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From somebody without a lock: it is in the old file, and has to go into the new one."""
    path = write(workspace, {"id": "a"})
    file.update("a", lambda _: {"title": "t"})
    really = os.replace

    def replace(new: str, old: str) -> None:
        with path.open("a") as other:
            other.write('{"id":"b"}\n')
        really(new, old)

    monkeypatch.setattr(os, "replace", replace)
    file.compact()
    assert titles(TaskFile(str(workspace))) == ["t", ""]


def test_a_new_list_is_on_the_disk_before_it_takes_the_old_ones_place(
    file: TaskFile, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a machine that loses its power may be left with an empty list."""
    write(workspace, {"id": "a"})
    file.update("a", lambda _: {"title": "t"})
    done: list[str] = []

    def noted(name: str) -> Callable[..., None]:
        really = getattr(os, name)

        def call(*words: object) -> None:
            done.append(name)
            really(*words)

        return call

    for name in ("fsync", "replace"):
        monkeypatch.setattr(os, name, noted(name))
    file.compact()
    assert done == ["fsync", "replace"]


def test_who_waited_for_the_lock_writes_the_list_that_is_there_by_then(
    file: TaskFile, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever had it may have compacted: what goes into the old file is lost."""
    path, waited = write(workspace, {"id": "a"}), list[int]()

    def locked(opened: int, kind: int, patience: float) -> bool:
        waited.append(opened)
        if len(waited) == 1:
            new = path.with_name("new")
            new.write_bytes(path.read_bytes())
            new.replace(path)
        return lock(opened, kind, patience)

    monkeypatch.setattr(task_file, "lock", locked)
    file.update("a", lambda _: {"title": "t"})
    assert titles(TaskFile(str(workspace))) == ["t"]


# ------------------------------------------------------------------ what stands in the way


def make_directory(path: Path) -> None:
    path.mkdir()


def make_pipe(path: Path) -> None:
    os.mkfifo(path)


def make_link(path: Path) -> None:
    path.symlink_to(path.parent / "elsewhere.jsonl")
    (path.parent / "elsewhere.jsonl").write_text('{"id":"a"}\n')


def make_device(path: Path) -> None:
    path.symlink_to("/dev/zero")


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (make_directory, "Is a directory"),
        (make_pipe, "not a regular file"),
        (make_link, "it is a link"),
        (make_device, "it is a link"),
    ],
)
def test_what_is_no_file_is_told_and_not_waited_for(
    file: TaskFile,
    workspace: Path,
    make: Callable[[Path], None],
    why: str,
) -> None:
    make(path_of(workspace))
    problem = file.read().backlog.problem
    assert problem is not None
    assert problem.startswith(f"cannot read .ralph/tasks.jsonl: {why}. ")
    for act in (
        lambda: file.add({"title": "x"}),
        lambda: file.update("a", lambda _: {"title": "x"}),
        file.compact,
    ):
        with pytest.raises(ConfigError, match=why):
            act()


def test_a_directory_that_may_not_be_written(file: TaskFile, workspace: Path) -> None:
    (workspace / ".ralph").write_text("in the way")
    with pytest.raises(ConfigError, match="cannot write"):
        file.add({"title": "x"})


@pytest.mark.skipif(os.getuid() == 0, reason="root may do everything")
def test_a_file_that_may_not_be_written(file: TaskFile, workspace: Path) -> None:
    path = write(workspace, {"id": "a"})
    path.chmod(0o400)
    assert titles(file) == [""]
    with pytest.raises(ConfigError, match="Permission denied"):
        file.update("a", lambda _: {"title": "x"})
    path.chmod(0)
    assert "Permission denied" in str(TaskFile(str(workspace)).read().backlog.problem)


FULL = """
import resource, signal, sys
from ralph.loops.backlog.store.task_file import TaskFile
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
file = TaskFile(sys.argv[1])
file.read()
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]),) * 2)
file.compact() if sys.argv[3] == "compact" else file.update("a", lambda _: {"title": "x" * 500})
"""


@pytest.mark.parametrize(
    ("act", "room"), [("update", 0), ("update", 1), ("update", 10), ("compact", -400)]
)
def test_a_full_disk_leaves_the_file_as_it_was(workspace: Path, act: str, room: int) -> None:
    """A torn half line is taken away again."""
    path = write(workspace, {"id": "a"}, {"id": "a", "updatedAt": "x", "title": "y" * 400})
    before = path.read_bytes()
    limit = str(len(before) + room)
    done = subprocess.run(
        [sys.executable, "-c", FULL, str(workspace), limit, act], capture_output=True, check=False
    )
    assert b"ConfigError: cannot write .ralph/tasks.jsonl: " in done.stderr
    assert path.read_bytes() == before
    assert [p.name for p in path.parent.iterdir() if p.name.endswith("tmp")] == []


# ------------------------------------------------------------------ who wrote it


def test_a_witness_hears_before_it_is_written(workspace: Path) -> None:
    heard: list[tuple[str, bytes, int]] = []
    path = path_of(workspace)

    def witness(lines: Sequence[tuple[str, bytes]]) -> None:
        heard.extend((task, line, path.stat().st_size) for task, line in lines)

    file = TaskFile(str(workspace), witness=witness)
    added = file.add({"title": "x"})
    size = path.stat().st_size
    changed = file.update("T-001", lambda _: {"status": "done"})
    assert heard == [
        ("T-001", encoded(added), 0),
        ("T-001", encoded(changed), size),
    ]


def test_a_witness_that_objects_is_heeded(workspace: Path) -> None:
    def witness(*_: object) -> None:
        raise StateError("no room")

    file = TaskFile(str(workspace), witness=witness)
    with pytest.raises(StateError):
        file.add({"title": "x"})
    assert file.read() == Listing()


def test_lines_are_remembered_by_their_hash(tmp_path: Path) -> None:
    project = tmp_path / "state" / "project"
    assert known(str(project)) == set()
    note(str(project), [("T-1", b'{"id":"T-1"}')])
    path = project / "edits.jsonl"
    with path.open("ab") as torn:
        torn.write(b'nonsense\n[]\n{"id":1}\n{"id"')
    note(str(project), [("é", b"abc")])
    abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert ("é", abc) in known(str(project))
    assert len(known(str(project))) == 2
    assert path.stat().st_mode & 0o777 == 0o600


def test_what_cannot_be_remembered_is_told(tmp_path: Path) -> None:
    (tmp_path / "project").write_text("in the way")
    with pytest.raises(StateError, match="cannot write the state directory"):
        note(str(tmp_path / "project"), [("a", b"")])
    assert known(str(tmp_path / "project")) == set()
