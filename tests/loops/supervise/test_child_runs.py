"""Child runs (S): who counts as one, and who is spared."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from children_support import Start, add, make_folder, starting, write_lock

from kits.adapters import await_that, is_alive
from ralph.journal.run_id import timestamp
from ralph.loops.supervise import child_runs
from ralph.loops.supervise.child_runs import (
    ChildRun,
    _calls_job,
    active_children,
    dead_runs,
    job_pids,
)
from ralph.loops.supervise.folder import TaskFolder, folder_at
from ralph.loops.supervise.run_info import RunInfo, write_run_info
from ralph.processes.procfs import start_time

HOUR = 3600.0


@pytest.fixture
def folder(tmp_path: Path) -> TaskFolder:
    return make_folder(tmp_path)


@pytest.fixture
def start() -> Iterator[Start]:
    with starting() as begin:
        yield begin


def names(found: list[ChildRun]) -> list[str]:
    return [child.info.run_id for child in found]


# ------------------------------------------------------------------ who is active


def test_a_run_without_an_end_whose_process_lives_is_active(
    folder: TaskFolder, start: Start
) -> None:
    """S: "active children are runs without an end whose process lives"."""
    pid = start("sleep 60").pid
    add(folder, "b", pid=pid)
    add(folder, "a", pid=pid)
    add(folder, "ended", pid=pid, end_time=timestamp(time.time()))
    add(folder, "not-yet")
    Path(folder.run_dir("empty")).mkdir()
    Path(folder.runs, "a-file").touch()
    found = active_children(folder)
    assert names(found) == ["a", "b"]
    assert [child.directory for child in found] == [folder.run_dir("a"), folder.run_dir("b")]
    assert names(active_children(folder, but={"a"})) == ["b"]


def test_a_task_without_runs_has_no_children(tmp_path: Path) -> None:
    assert active_children(folder_at(str(tmp_path / "nowhere"))) == []
    (tmp_path / "runs").touch()
    assert active_children(folder_at(str(tmp_path))) == []


def test_a_process_that_is_gone_or_a_zombie_is_not_active(folder: TaskFolder, start: Start) -> None:
    zombie = start("exit 0")
    await_that(lambda: not is_alive(zombie.pid))
    add(folder, "zombie", pid=zombie.pid)
    gone = subprocess.Popen(["true"])
    gone.wait()
    add(folder, "gone", pid=gone.pid)
    assert active_children(folder) == []


@pytest.mark.parametrize("pid", [0, 1, -1, 2**31, 9_999_999_999])
def test_a_number_that_can_be_nobodys_is_not_active(folder: TaskFolder, pid: int) -> None:
    add(folder, "strange", pid=pid)
    assert active_children(folder) == []


def test_neither_we_nor_whoever_is_above_us_is_a_child(folder: TaskFolder) -> None:
    """An agent that writes our own pid must not make us wait for ourselves."""
    add(folder, "us", pid=os.getpid())
    add(folder, "above", pid=os.getppid())
    write_lock(add(folder, "locked", pid=5), os.getpid(), start_time(os.getpid()))
    assert active_children(folder) == []
    assert dead_runs(folder) == [], "we live, and so does whoever is above us"


def test_our_keeper_is_nobodys_child(folder: TaskFolder, start: Start) -> None:
    keeper, child = start("sleep 60").pid, start("sleep 60").pid
    add(folder, "keeper", pid=keeper)
    add(folder, "child", pid=child)
    assert names(active_children(folder, keeper=keeper)) == ["child"]
    assert job_pids(folder, lambda: [child], keeper=keeper) == (child,)


def test_a_run_is_known_by_its_directory_and_by_nothing_else(
    folder: TaskFolder, start: Start
) -> None:
    """An agent that gives its run the id of another must not pass for it."""
    pid = start("sleep 60").pid
    write_run_info(add(folder, "mine", pid=pid), RunInfo("../../yours", pid=pid))
    assert names(active_children(folder)) == ["mine"]
    assert names(active_children(folder, but={"../../yours"})) == ["mine"]


def test_a_link_is_no_run_of_this_task(folder: TaskFolder, start: Start, tmp_path: Path) -> None:
    directory = add(folder, "real", pid=start("sleep 60").pid)
    add(folder, "real-dead", pid=2**22)
    other = folder_at(str(tmp_path / "other"))
    os.makedirs(other.runs)
    os.symlink(directory, other.run_dir("linked"))
    os.symlink(folder.run_dir("real-dead"), other.run_dir("linked-dead"))
    assert active_children(other) == dead_runs(other) == []


def test_a_run_without_an_end_whose_process_is_gone_is_dead(
    folder: TaskFolder, start: Start
) -> None:
    pid = start("sleep 60").pid
    gone = subprocess.Popen(["true"])
    gone.wait()
    add(folder, "alive", pid=pid)
    add(folder, "above", pid=os.getppid())
    add(folder, "ended", pid=gone.pid, end_time=timestamp(time.time()))
    directory = add(folder, "gone", pid=gone.pid)
    write_run_info(directory, RunInfo("alive", pid=gone.pid))
    add(folder, "never-started")
    write_lock(add(folder, "owner-gone", pid=pid), gone.pid, "12345")
    found = dead_runs(folder)
    assert names(found) == ["gone", "never-started", "owner-gone"]
    assert found[0].directory == directory
    assert dead_runs(folder_at("/nowhere")) == []


def test_a_process_that_began_later_is_someone_elses(folder: TaskFolder, start: Start) -> None:
    """A pid may have been given to someone else since."""
    pid = start("sleep 60").pid
    before = timestamp(time.time() - HOUR)
    add(folder, "an-hour-ago", pid=pid, start_time=before)
    add(folder, "in-another-zone", pid=pid, start_time=before.replace("Z", "+00:00"))
    add(folder, "without-zone", pid=pid, start_time=before.removesuffix("Z"))
    assert active_children(folder) == []
    add(folder, "later", pid=pid, start_time=timestamp(time.time() + HOUR))
    add(folder, "nobody-knows", pid=pid, start_time="")
    add(folder, "nonsense", pid=pid, start_time="yesterday")
    assert names(active_children(folder)) == ["later", "nobody-knows", "nonsense"]


def test_where_a_lock_names_an_owner_it_must_live(folder: TaskFolder, start: Start) -> None:
    """ "that owner must be alive with its start time"; then its pid is the run's."""
    pid = start("sleep 60").pid
    write_lock(add(folder, "owned", pid=pid), pid, start_time(pid))
    write_lock(add(folder, "reused", pid=pid), pid, "12345")
    write_lock(add(folder, "other-pid", pid=2**22), pid, start_time(pid))
    Path(add(folder, "given-back", pid=pid), "run.lock").touch()
    found = active_children(folder)
    assert names(found) == ["given-back", "other-pid", "owned"]
    assert {child.pid for child in found} == {pid}


# ------------------------------------------------------------------ who is spared


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("python /usr/bin/ralph job -- x", True),
        ("python -m ralph job --task-dir d -- x", True),
        ("python -X dev -m ralph job", True),
        ("ralph job", True),
        ("ralph -C dir job -- x", True),
        ("python -m ralph run job", False),
        ("python -m ralph", False),
        ("ralph run -p job", False),
        ("sh -c ralph_job", False),
        ("vim job ralph", False),
        ("", False),
    ],
)
def test_a_job_is_known_by_its_command_line(words: str, expected: bool) -> None:
    argv = words.split(" ")
    assert any(_calls_job(argv[at:]) for at in range(len(argv))) is expected


def test_active_children_are_spared_with_what_is_below_them(
    folder: TaskFolder, start: Start
) -> None:
    child = start("sleep 60 & wait")
    add(folder, "child", pid=child.pid)
    mine = start("sleep 60")
    add(folder, "attempt", pid=mine.pid)
    looks: list[int] = []

    def below() -> list[int]:
        looks.append(1)
        from ralph.processes.keeper_main import descendants

        return [child.pid, *descendants(child.pid)]

    assert job_pids(folder, below, but={"attempt"}) == (child.pid,)
    assert len(looks) == 1, "nobody is there whom to wait for"


def test_nobody_below_is_nobody_to_wait_for(folder: TaskFolder, start: Start) -> None:
    elsewhere = start("sleep 60")
    add(folder, "elsewhere", pid=elsewhere.pid)
    assert job_pids(folder, list, but=()) == (elsewhere.pid,)


def test_a_zombie_is_nobody_to_wait_for(folder: TaskFolder, start: Start) -> None:
    zombie = start("exit 0")
    await_that(lambda: not is_alive(zombie.pid))
    looks: list[int] = []
    assert job_pids(folder, lambda: looks.append(1) or [zombie.pid], but=()) == ()  # type: ignore[func-returns-value]
    assert len(looks) == 1


def test_a_job_that_is_just_starting_is_waited_for(folder: TaskFolder, start: Start) -> None:
    """ "waited for, up to 3 s": by its command line, long after anything else was given up."""
    script = f"import time; time.sleep(60)  # {'x' * 10}"
    job = subprocess.Popen([sys.executable, "-c", script, "-m", "ralph", "job"])
    looks: list[float] = []

    def below() -> list[int]:
        looks.append(time.monotonic())
        if looks[-1] - looks[0] > 0.5 and not os.path.exists(folder.run_dir("job")):
            add(folder, "job", pid=job.pid)
        return [job.pid]

    try:
        assert job_pids(folder, below, but=()) == (job.pid,)
    finally:
        job.kill()
        job.wait()


def test_a_job_that_never_registers_is_given_up(
    folder: TaskFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(child_runs, "_STARTING", 0.2)
    job = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)", "ralph", "job"])
    try:
        assert job_pids(folder, lambda: [job.pid], but=()) == ()
    finally:
        job.kill()
        job.wait()


def test_anything_else_has_a_moment_to_become_a_job(folder: TaskFolder, start: Start) -> None:
    """A shell that is about to start one."""
    process = start("sleep 60")
    looks: list[int] = []

    def below() -> list[int]:
        looks.append(1)
        if len(looks) == 2:
            add(folder, "job", pid=process.pid)
        return [process.pid]

    assert job_pids(folder, below, but=()) == (process.pid,)
    assert len(looks) == 2
    assert job_pids(folder, lambda: [start("sleep 60").pid], but=()) == (process.pid,)
