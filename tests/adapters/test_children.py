"""Child runs (S): who counts as one, who is spared, who is ended, and who is left alone."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from adapter_support import await_that, has_ended, is_alive

from ralph.adapters import children
from ralph.adapters.children import (
    ChildRun,
    _calls_job,
    active_children,
    end_children,
    is_below,
    job_pids,
)
from ralph.adapters.lock import start_time
from ralph.adapters.run_info import RunInfo, read_run_info, timestamp, write_run_info
from ralph.adapters.task_folder import TaskFolder, folder_at
from ralph.core.value import replace

Start = Callable[..., "subprocess.Popen[bytes]"]
HOUR = 3600.0


@pytest.fixture
def folder(tmp_path: Path) -> TaskFolder:
    (tmp_path / "project" / "task" / "runs").mkdir(parents=True)
    return folder_at(str(tmp_path / "project" / "task"))


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts processes, and ends them when the test is over."""
    started: list[subprocess.Popen[bytes]] = []

    def begin(script: str, **options: Any) -> "subprocess.Popen[bytes]":  # noqa: ANN401
        started.append(subprocess.Popen(["sh", "-c", script], **options))
        return started[-1]

    yield begin
    for process in started:
        process.kill()
        process.wait()


def add(folder: TaskFolder, name: str, **fields: Any) -> str:  # noqa: ANN401
    """A run of the task; it has just begun, unless said otherwise."""
    directory = folder.run_dir(name)
    os.makedirs(directory)
    info = RunInfo(name, start_time=timestamp(time.time()))
    write_run_info(directory, replace(info, **fields))
    return directory


def lock(directory: str, pid: int, start: str) -> None:
    named = {"pid": pid, "start": start, "run": os.path.basename(directory), "since": 0.0}
    Path(directory, "run.lock").write_text(json.dumps(named))


def info_of(directory: str) -> RunInfo:
    info = read_run_info(directory)
    assert info is not None
    return info


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
    lock(add(folder, "locked", pid=5), os.getpid(), start_time(os.getpid()))
    assert active_children(folder) == []


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
    lock(add(folder, "owned", pid=pid), pid, start_time(pid))
    lock(add(folder, "reused", pid=pid), pid, "12345")
    lock(add(folder, "other-pid", pid=2**22), pid, start_time(pid))
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
        from ralph.adapters.keeper_process import descendants

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
    monkeypatch.setattr(children, "_STARTING", 0.2)
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


# ------------------------------------------------------------------ ending


def test_children_are_asked_to_end_and_their_end_is_told(folder: TaskFolder, start: Start) -> None:
    process = start("sleep 60")
    directory = add(folder, "child", pid=process.pid)
    end_children(active_children(folder), grace=20)
    assert process.wait() == -signal.SIGTERM
    info = info_of(directory)
    assert (info.status, info.exit_code) == ("stopped", None)
    assert info.end_time is not None
    assert info.start_time < info.end_time


def test_whoever_does_not_listen_is_killed(folder: TaskFolder, start: Start) -> None:
    process = start("trap '' TERM; echo; while :; do sleep 0.01; done", stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.read(1)
    directory = add(folder, "child", pid=process.pid)
    end_children(active_children(folder), grace=0.1)
    assert process.wait() == -signal.SIGKILL
    process.stdout.close()
    assert info_of(directory).status == "stopped"


def test_an_end_that_was_told_stands(folder: TaskFolder, start: Start) -> None:
    """ "where it did not do so itself"."""
    tell = "trap 'echo run_id: child > i; echo end_time: x >> i; mv i run-info.yaml; exit' TERM; "
    directory = add(folder, "child")
    process = start(f"{tell} echo; while :; do sleep 0.01; done", cwd=directory, stdout=-1)
    assert process.stdout is not None
    process.stdout.read(1)
    write_run_info(directory, RunInfo("child", pid=process.pid))
    end_children(active_children(folder), grace=20)
    process.stdout.close()
    info = info_of(directory)
    assert (info.end_time, info.status) == ("x", "running")


def test_no_children_need_no_ending() -> None:
    end_children([], grace=60)


STRANGER = """
import os, subprocess, sys
if os.fork():
    os._exit(0)
os.setsid()
env = {"PATH": os.environ["PATH"], **eval(sys.argv[1])}
process = subprocess.Popen(["sleep", "60"], env=env, stdout=subprocess.DEVNULL)
print(process.pid, flush=True)
os._exit(0)
"""


@pytest.fixture
def stranger() -> Iterator[Callable[..., int]]:
    """Starts a process that is not below us, with nothing but this in its environment."""
    pids: list[int] = []

    def begin(**env: str) -> int:
        words = [sys.executable, "-c", STRANGER, repr(env)]
        pids.append(int(subprocess.check_output(words)))
        await_that(lambda: not is_below(pids[-1], os.getpid()))
        return pids[-1]

    yield begin
    for pid in pids:
        if is_alive(pid):
            os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize("other", [{}, {"TASK_FOLDER": "/tmp"}, {"RALPH_TASK_DIR": ""}])
def test_whoever_does_not_prove_to_be_of_the_task_is_left_alone(
    folder: TaskFolder, stranger: Callable[..., int], other: dict[str, str]
) -> None:
    """ "the agent can write any pid into run-info"."""
    pid = stranger(**other)
    directory = add(folder, "claimed", pid=pid)
    (child,) = active_children(folder)
    end_children([child], grace=0.1)
    assert is_alive(pid)
    assert info_of(directory).end_time is None


@pytest.mark.parametrize("name", ["TASK_FOLDER", "RALPH_TASK_DIR"])
def test_the_environment_is_a_proof(
    folder: TaskFolder, stranger: Callable[..., int], tmp_path: Path, name: str
) -> None:
    (tmp_path / "link").symlink_to(folder.path)
    pid = stranger(**{name: str(tmp_path / "link")})
    add(folder, "child", pid=pid)
    end_children(active_children(folder), grace=20)
    assert has_ended(pid)


def test_the_lock_is_a_proof(folder: TaskFolder, stranger: Callable[..., int]) -> None:
    pid = stranger()
    directory = add(folder, "child", pid=pid)
    lock(directory, pid, start_time(pid))
    end_children(active_children(folder), grace=20)
    assert has_ended(pid)
    assert info_of(directory).status == "stopped"


def test_a_lock_that_names_someone_else_proves_nothing(
    folder: TaskFolder, stranger: Callable[..., int], start: Start
) -> None:
    pid, owner = stranger(), start("sleep 60").pid
    directory = add(folder, "child", pid=pid)
    lock(directory, owner, start_time(owner))
    end_children([ChildRun(info_of(directory), directory)], grace=0.1)
    assert is_alive(pid)
    assert is_alive(owner)


@pytest.mark.parametrize("pid", [0, 1, -1, os.getpid(), os.getppid()])
def test_some_are_never_signalled(folder: TaskFolder, pid: int) -> None:
    """ "Never pid <= 1 or our own pid or our ancestors": whatever stands in a run's directory."""
    directory = add(folder, "child", pid=pid)
    if pid > 1:
        lock(directory, pid, start_time(pid))
    heard: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, _: heard.append(number))
    try:
        end_children([ChildRun(info_of(directory), directory)], grace=0.1)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert heard == []


def test_a_run_directory_that_is_gone_does_not_matter(folder: TaskFolder, start: Start) -> None:
    process = start("sleep 60")
    directory = add(folder, "child", pid=process.pid)
    found = active_children(folder)
    Path(directory, "run-info.yaml").unlink()
    os.rmdir(directory)
    end_children(found, grace=20)
    assert process.wait() == -signal.SIGTERM
    assert not os.path.exists(directory)
