"""A lock whose owner is dead is taken over, and what its run left behind is ended (ADR 10)."""

import os
import signal
from pathlib import Path

import pytest
from run_support import Here, Running, is_alive, prepare, program


@pytest.fixture
def here(capsys: pytest.CaptureFixture[str]) -> Here:
    return Here(capsys)


def test_what_a_dead_run_left_is_ended_before_the_next_begins(workspace: Path, here: Here) -> None:
    """Ralph and its keeper both killed: nobody else would end the agent."""
    pid = workspace / "pid"
    agent = program(workspace.parent / "agent", f"echo $$ > {pid}; exec sleep 600")
    running = Running(workspace, "-p", "x", "--agent", agent)
    running.await_that(lambda: pid.exists() and pid.read_text())
    orphan = int(pid.read_text())
    keeper = int(Path(f"/proc/{orphan}/stat").read_text().rpartition(")")[2].split()[1])
    os.kill(running.process.pid, signal.SIGSTOP)
    os.kill(keeper, signal.SIGKILL)
    os.kill(running.process.pid, signal.SIGKILL)
    running.process.wait()
    assert is_alive(orphan), "or this test shows nothing"
    prepare(workspace, {"response": "DONE"})
    assert here("-p", "x").code == 0
    assert not is_alive(orphan)
