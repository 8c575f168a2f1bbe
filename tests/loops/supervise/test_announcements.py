"""A task's child runs and its buses, when it ends (S §DONE File Detection)."""

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ralph.journal.run_id import timestamp
from ralph.kernel.facts import Began, Decided, Ended, Fact
from ralph.kernel.tasks.task import Assignment
from ralph.kernel.turn import Turn
from ralph.kernel.verdict import Boundary, Continue, Reason, Stop
from ralph.loops.supervise.announcements import BusReader, TaskChildRuns
from ralph.loops.supervise.bus import Bus
from ralph.loops.supervise.folder import TaskFolder, folder_at
from ralph.loops.supervise.run_info import RunInfo, read_run_info, write_run_info

RUN = "20261115-140000-abcd"
DONE = Stop(Reason.COMPLETED, "DONE marker present")


@pytest.fixture
def folder(tmp_path: Path) -> TaskFolder:
    (tmp_path / "shop" / "login").mkdir(parents=True)
    return folder_at(str(tmp_path / "shop" / "login"))


@pytest.fixture
def child(folder: TaskFolder) -> Iterator["subprocess.Popen[bytes]"]:
    """A registered child run that goes on."""
    env = {**os.environ, "RALPH_TASK_DIR": folder.path}
    with subprocess.Popen(["sleep", "600"], env=env) as process:
        directory = folder.run_dir("job")
        os.makedirs(directory)
        begun = timestamp(time.time())
        write_run_info(directory, RunInfo("job", pid=process.pid, start_time=begun))
        yield process
        process.kill()


def child_runs(
    folder: TaskFolder, told: list[str] | None = None, *, resumed: bool = False
) -> TaskChildRuns:
    tell = (told if told is not None else []).append
    return TaskChildRuns(folder, RUN, 0.02, 0.2, tell=tell, resumed=resumed)


def never() -> bool:
    return False


def test_nobody_is_there(folder: TaskFolder) -> None:
    told: list[str] = []
    assert child_runs(folder, told).wait_for_children(60, never) == "no active children"
    assert told == []


def test_a_child_is_waited_for(folder: TaskFolder, child: "subprocess.Popen[bytes]") -> None:
    looks = 0

    def look() -> bool:
        nonlocal looks
        looks += 1
        if looks == 3:
            child.kill()
            child.wait()
        return False

    told: list[str] = []
    assert child_runs(folder, told).wait_for_children(60, look) == "no active children"
    assert told == ["DONE: waiting for 1 child run to end, 1m at most: job"]


def test_our_own_attempts_are_not_waited_for(
    folder: TaskFolder, child: "subprocess.Popen[bytes]"
) -> None:
    """They are runs of the task too, and one that a kill left without an end may seem alive."""
    for name in ("job", f"{RUN}-001"):
        begun = timestamp(time.time())
        os.makedirs(folder.run_dir(name), exist_ok=True)
        write_run_info(folder.run_dir(name), RunInfo(name, pid=child.pid, start_time=begun))
    told: list[str] = []
    child_runs(folder, told).wait_for_children(0.05, never)
    assert told == ["DONE: waiting for 1 child run to end, 0.1s at most: job"]


def test_no_secret_is_posted(folder: TaskFolder) -> None:
    """ADR 13: "One redactor stands before every sink"."""
    key = f"sk-ant-{'a1' * 12}"
    assert child_runs(folder).announce(Stop(Reason.FAILING, f"the key {key} is wrong"), "") == ""
    [message] = Bus(folder.bus).read()
    assert message.body == "task failed: the key [redacted] is wrong"


def test_after_the_timeout_it_is_ended(
    folder: TaskFolder, child: "subprocess.Popen[bytes]"
) -> None:
    said = child_runs(folder).wait_for_children(0.05, never)
    assert said == "1 child run ended after 0.1s: job"
    assert child.wait(5) != 0
    info = read_run_info(folder.run_dir("job"))
    assert info is not None
    assert (info.status, info.end_time is None) == ("stopped", False)


def test_a_signal_ends_the_wait(folder: TaskFolder, child: "subprocess.Popen[bytes]") -> None:
    child_runs(folder).wait_for_children(60, lambda: True)
    assert child.poll() is None, "whoever ends the run ends it"


@pytest.mark.parametrize(
    ("stop", "children", "task", "project"),
    [
        (
            DONE,
            "no active children",
            ("INFO", "task completed (DONE marker present, no active children)"),
            ("FACT", "task login completed (DONE marker present, no active children)"),
        ),
        (
            Stop(Reason.LIMIT, "max restarts (3) exceeded"),
            "",
            ("ERROR", "task failed: max restarts (3) exceeded"),
            None,
        ),
        (Stop(Reason.BLOCKED, "waiting"), "", ("INFO", "task stopped: waiting"), None),
        (Stop(Reason.INTERRUPTED, "asked to stop"), "", None, None),
    ],
)
def test_the_end_is_told_once(
    folder: TaskFolder,
    stop: Stop,
    children: str,
    task: tuple[str, str] | None,
    project: tuple[str, str] | None,
) -> None:
    """A run that goes on after a crash looks first whether it told that before."""
    for resumed in (False, True):
        assert child_runs(folder, resumed=resumed).announce(stop, children) == ""
    said = [(m.type, m.body) for m in Bus(folder.bus).read()]
    assert said == ([task] if task else [])
    said = [(m.type, m.body) for m in Bus(folder.project_bus).read()]
    assert said == ([project] if project else [])


def test_what_cannot_be_told_is_named(folder: TaskFolder) -> None:
    os.mkdir(folder.bus)
    assert folder.bus in child_runs(folder).announce(DONE, "no active children")
    assert len(Bus(folder.project_bus).read()) == 1


def attempt(folder: TaskFolder) -> None:
    facts: list[Fact] = [
        Began(1.0, 1, Assignment("prompt")),
        Ended(2.0, Turn(exit_code=1)),
        Decided(3.0, Boundary.CLOSING, Continue(after=1.0)),
    ]
    reader = BusReader(folder, RUN, runs=3)
    for fact in facts:
        reader.on_fact(fact)


def test_an_attempt_is_told(folder: TaskFolder) -> None:
    attempt(folder)
    [message] = Bus(folder.bus).read()
    assert (message.type, message.run_id) == ("WARNING", f"{RUN}-001")
    assert message.body == "Attempt 1: Agent failed (exit 1), restarting..."


def test_a_bus_that_cannot_be_written_is_left_alone(folder: TaskFolder) -> None:
    os.mkdir(folder.bus)
    attempt(folder)
