"""A lock whose owner is dead is taken over, and what its run left behind is ended (ADR 10)."""

import os
import shlex
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from job_support import await_that, said
from run_support import RALPH, Here, Running, is_alive, prepare, program

from ralph.processes.keeper import end_orphans
from ralph.processes.keeper_main import descendants
from ralph.processes.procfs import command_line, environment


@pytest.fixture
def here(capsys: pytest.CaptureFixture[str]) -> Here:
    return Here(capsys)


@pytest.fixture
def left() -> Iterator[list[int]]:
    """Processes that must be gone after the test."""
    pids: list[int] = []
    yield pids
    for pid in filter(is_alive, pids):
        os.kill(pid, signal.SIGKILL)


def test_what_a_dead_run_left_is_ended_before_the_next_begins(
    workspace: Path, here: Here, left: list[int]
) -> None:
    """Ralph and its keeper both killed: nobody else would end the agent."""
    pid = workspace / "pid"
    agent = program(workspace.parent / "agent", f"echo $$ > {pid}; exec sleep 600")
    running = Running(workspace, "-p", "x", "--agent", agent)
    running.await_that(lambda: pid.exists() and pid.read_text())
    orphan = int(pid.read_text())
    left.append(orphan)
    keeper = int(Path(f"/proc/{orphan}/stat").read_text().rpartition(")")[2].split()[1])
    os.kill(running.process.pid, signal.SIGSTOP)
    os.kill(keeper, signal.SIGKILL)
    os.kill(running.process.pid, signal.SIGKILL)
    running.process.wait()
    assert is_alive(orphan), "or this test shows nothing"
    prepare(workspace, {"response": "DONE"})
    assert here("-p", "x").code == 0
    assert not is_alive(orphan)


def kill_ralphs(first: int) -> list[int]:
    """Kill a Ralph, its jobs and all their keepers at once; who is left below them."""
    below = descendants(first)
    ralphs = [first, *filter(is_ralph, below)]
    for pid in ralphs:
        os.kill(pid, signal.SIGSTOP)  # or they would end what is below whoever dies first
    await_that(lambda: all(state_of(pid) == "T" for pid in ralphs))
    for pid in reversed(ralphs):
        os.kill(pid, signal.SIGKILL)
    return [pid for pid in below if pid not in ralphs]


def is_ralph(pid: int) -> bool:
    words = command_line(pid)
    return words[1:3] == ["-m", "ralph"] or any(w.endswith("keeper_main.py") for w in words)


def state_of(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def test_a_job_of_a_job_is_ended_too(workspace: Path, here: Here, left: list[int]) -> None:
    """Its environment names the run at the top, although neither that run nor an attempt of it
    has started it."""
    pid = workspace / "pid"
    inner = shlex.join([*RALPH, "job", "--", "sh", "-c", f"echo $$ > {pid}; exec sleep 600"])
    outer = shlex.join([*RALPH, "job", "--", "sh", "-c", f"{inner} & exec sleep 600"])
    agent = program(workspace.parent / "agent", f"{outer} & exec sleep 600")
    running = Running(workspace, "supervise", "--task-dir", "t", "--", agent)
    running.await_that(lambda: said(pid) and sleeping(running.process.pid) == 3)
    left += kill_ralphs(running.process.pid)
    running.process.wait()
    assert (len(left), int(said(pid)) in left) == (3, True)
    assert all(map(is_alive, left)), "or this test shows nothing"
    done = program(workspace.parent / "done", 'touch "$TASK_FOLDER/DONE"')
    assert here("supervise", "--task-dir", "t", "--", done).code == 0
    assert not any(map(is_alive, left))


def sleeping(top: int) -> int:
    return sum(command_line(pid)[0] == "sleep" for pid in descendants(top))


def test_a_run_without_a_name_has_no_orphans(workspace: Path) -> None:
    """The environment of a job that was started by hand says that it is below no run."""
    env = {**os.environ, "RALPH_RUN": "", "RALPH_PARENT_RUN": "", "RALPH_ROOT_RUN": ""}
    with subprocess.Popen(["sleep", "60"], env=env) as process:
        await_that(lambda: b"RALPH_ROOT_RUN=" in environment(process.pid))
        end_orphans("")
        assert process.poll() is None
        process.kill()
