"""Ending child runs (S): who is ended, who is left alone, and what is told of them."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from children_support import (
    Start,
    Stranger,
    add,
    estranging,
    info_of,
    make_folder,
    starting,
    write_lock,
)

from kits.adapters import await_that, has_ended, is_alive
from ralph.loops.supervise.child_runs import ChildRun, active_children, end_children
from ralph.loops.supervise.folder import TaskFolder, folder_at
from ralph.loops.supervise.run_info import RunInfo, write_run_info
from ralph.processes.procfs import holds_lock, start_time

HOLDS = """
import sys, time
from ralph.journal.lock import Lock
Lock(sys.argv[1]).acquire("run", 0.0)
time.sleep(60)
"""


@pytest.fixture
def folder(tmp_path: Path) -> TaskFolder:
    return make_folder(tmp_path)


@pytest.fixture
def start() -> Iterator[Start]:
    with starting() as begin:
        yield begin


@pytest.fixture
def stranger() -> Iterator[Stranger]:
    with estranging() as begin:
        yield begin


def of_task(folder: TaskFolder) -> dict[str, str]:
    """An environment that proves it."""
    return {**os.environ, "RALPH_TASK_DIR": folder.path}


def holder(stranger: Stranger, path: str) -> int:
    """A stranger that holds this lock."""
    pid = stranger(sys.executable, "-c", HOLDS, path)
    await_that(lambda: holds_lock(pid, path))
    return pid


def test_children_are_asked_to_end_and_their_end_is_told(folder: TaskFolder, start: Start) -> None:
    process = start("exec sleep 60", env=of_task(folder))
    directory = add(folder, "child", pid=process.pid)
    assert end_children(active_children(folder), grace=20) == []
    assert process.wait() == -signal.SIGTERM
    info = info_of(directory)
    assert (info.status, info.exit_code) == ("stopped", None)
    assert info.end_time is not None
    assert info.start_time < info.end_time


def test_whoever_does_not_listen_is_killed(folder: TaskFolder, start: Start) -> None:
    script = "trap '' TERM; echo; while :; do sleep 0.01; done"
    process = start(script, stdout=subprocess.PIPE, env=of_task(folder))
    assert process.stdout is not None
    process.stdout.read(1)
    directory = add(folder, "child", pid=process.pid)
    end_children(active_children(folder), grace=0.1)
    assert process.wait() == -signal.SIGKILL
    assert info_of(directory).status == "stopped"


def test_an_end_that_was_told_stands(folder: TaskFolder, start: Start) -> None:
    """ "where it did not do so itself"."""
    tell = "trap 'echo run_id: child > i; echo end_time: x >> i; mv i run-info.yaml; exit' TERM; "
    directory = add(folder, "child")
    script = f"{tell} echo; while :; do sleep 0.01; done"
    process = start(script, cwd=directory, stdout=-1, env=of_task(folder))
    assert process.stdout is not None
    process.stdout.read(1)
    write_run_info(directory, RunInfo("child", pid=process.pid))
    end_children(active_children(folder), grace=20)
    info = info_of(directory)
    assert (info.end_time, info.status) == ("x", "running")


def test_no_children_need_no_ending() -> None:
    assert end_children([], grace=60) == []


@pytest.mark.parametrize("other", [{}, {"TASK_FOLDER": "/tmp"}, {"RALPH_TASK_DIR": ""}])
def test_whoever_does_not_prove_to_be_of_the_task_is_left_alone(
    folder: TaskFolder, stranger: Stranger, other: dict[str, str]
) -> None:
    """ "the agent can write any pid into run-info"."""
    pid = stranger(**other)
    directory = add(folder, "claimed", pid=pid)
    (child,) = active_children(folder)
    assert end_children([child], grace=0.1) == [child]
    assert is_alive(pid)
    assert info_of(directory).end_time is None


def test_the_environment_is_a_proof(folder: TaskFolder, stranger: Stranger, tmp_path: Path) -> None:
    """RALPH_TASK_DIR, which nobody but Ralph sets; people export TASK_FOLDER."""
    (tmp_path / "link").symlink_to(folder.path)
    pid = stranger(RALPH_TASK_DIR=str(tmp_path / "link"))
    add(folder, "child", pid=pid)
    assert end_children(active_children(folder), grace=20) == []
    assert has_ended(pid)


def test_whoever_holds_the_lock_is_of_the_task(folder: TaskFolder, stranger: Stranger) -> None:
    """A job that a person started by hand: neither its environment nor its place tells."""
    directory = add(folder, "child")
    pid = holder(stranger, os.path.join(directory, "run.lock"))
    assert end_children(active_children(folder), grace=20) == []
    assert has_ended(pid)
    assert info_of(directory).status == "stopped"


def test_what_stands_in_a_lock_proves_nothing(folder: TaskFolder, stranger: Stranger) -> None:
    """The agent can write anybody's pid and start time into it."""
    pid = stranger()
    directory = add(folder, "child", pid=pid)
    write_lock(directory, pid, start_time(pid))
    (child,) = active_children(folder)
    assert end_children([child], grace=0.1) == [child]
    assert is_alive(pid)
    assert info_of(directory).end_time is None


@pytest.mark.parametrize("how", ["symbolic", "hard", "directory"])
def test_a_link_to_a_lock_that_a_stranger_holds_proves_nothing(
    folder: TaskFolder, stranger: Stranger, tmp_path: Path, how: str
) -> None:
    elsewhere = folder_at(str(tmp_path / "elsewhere"))
    there = add(elsewhere, "child")
    pid = holder(stranger, os.path.join(there, "run.lock"))
    here = folder.run_dir("child")
    if how == "directory":
        os.symlink(there, here)
    else:
        make = os.symlink if how == "symbolic" else os.link
        make(os.path.join(there, "run.lock"), os.path.join(add(folder, "child"), "run.lock"))
    child = ChildRun(RunInfo("child", pid=pid), here)
    assert end_children([child], grace=0.1) == [child]
    assert is_alive(pid)


def test_to_be_below_us_proves_nothing(folder: TaskFolder, start: Start) -> None:
    """In the library we are the host's program, and its other children are its own."""
    process = start("sleep 60")
    add(folder, "child", pid=process.pid)
    (child,) = active_children(folder)
    assert end_children([child], grace=0.1) == [child]
    assert process.poll() is None


def test_to_be_below_the_keeper_is_a_proof_and_the_keeper_is_nobodys_child(
    folder: TaskFolder, start: Start
) -> None:
    keeper = start("sleep 60 & echo $!; wait; exec sleep 60", stdout=subprocess.PIPE)
    assert keeper.stdout is not None
    pid = int(keeper.stdout.readline())
    claimed = add(folder, "claimed", pid=keeper.pid)
    add(folder, "child", pid=pid)
    children = active_children(folder)
    left = end_children(children, grace=0.1, keeper=keeper.pid)
    assert [child.directory for child in left] == [claimed]
    assert has_ended(pid)
    assert info_of(claimed).end_time is None


@pytest.mark.parametrize(
    "pid", [0, 1, -1, os.getpid(), os.getppid()], ids=["0", "1", "-1", "us", "above"]
)
def test_some_are_never_signalled(folder: TaskFolder, pid: int) -> None:
    """ "Never pid <= 1 or our own pid or our ancestors": whatever stands in a run's directory."""
    directory = add(folder, "child", pid=pid)
    if pid > 1:
        write_lock(directory, pid, start_time(pid))
    heard: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, _: heard.append(number))
    try:
        end_children([ChildRun(info_of(directory), directory)], grace=0.1)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert heard == []


def test_a_run_directory_that_is_gone_does_not_matter(folder: TaskFolder, start: Start) -> None:
    process = start("exec sleep 60", env=of_task(folder))
    directory = add(folder, "child", pid=process.pid)
    found = active_children(folder)
    Path(directory, "run-info.yaml").unlink()
    os.rmdir(directory)
    assert end_children(found, grace=20) == []
    assert process.wait() == -signal.SIGTERM
    assert not os.path.exists(directory)
