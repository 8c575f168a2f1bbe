"""S §Integration Tests, with the real `ralph supervise`: "Test with real agent execution", "Test
process group cleanup", "Test timeout handling". The real claude and codex: tests/e2e/agents."""

import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from run_support import Running, assert_clear, is_alive, prepare, program, prompts, ralph

from kits.thorough import dealt
from ralph.loops.supervise.bus import Bus
from ralph.loops.supervise.run_info import RunInfo, read_run_info
from ralph.testing.scripted_agent.install import calls

TASK = "shop/login"
PATIENCE = 30.0  # seconds until a test gives up; nothing is measured by it
# It hears nothing. Beside DONE, `pids` holds everyone like it so far.
DEAF = """trap '' INT TERM HUP
echo $$ >> "$TASK_FOLDER/pids"
while :; do sleep 0.1; done"""
# One in the agent's group, one in a session of its own. `survivors` are those of earlier attempts.
LEAVE_TWO = """cd "$TASK_FOLDER"
touch pids
before=$(wc -l < pids)
for pid in $(cat pids); do if kill -0 $pid 2>/dev/null; then echo $pid >> survivors; fi; done
../../deaf.sh &
setsid ../../deaf.sh &
until [ "$(wc -l < pids)" -eq $((before + 2)) ]; do sleep 0.02; done
"""


@pytest.fixture
def messy(workspace: Path) -> Path:
    """A workspace with a program that does not want to end; each step of ending it is short."""
    prepare(workspace, endGrace=0.2)
    program(workspace / "deaf.sh", DEAF)
    return workspace


def folder(workspace: Path) -> Path:
    return workspace / TASK


def supervised(*arguments: str) -> tuple[str, ...]:
    """The command, for a task that is not delayed."""
    return ("supervise", "--task-dir", TASK, "--restart-delay", "0", *arguments)


def runs(workspace: Path) -> list[RunInfo]:
    """Every attempt, in order."""
    found = (read_run_info(str(path)) for path in sorted((folder(workspace) / "runs").iterdir()))
    return [info for info in found if info is not None]


def told(workspace: Path) -> list[str]:
    """What the task's bus says."""
    return [message.body for message in Bus(str(folder(workspace) / "TASK-MESSAGE-BUS.md")).read()]


def pids(workspace: Path) -> list[int]:
    """Everyone who was left behind on purpose."""
    file = folder(workspace) / "pids"
    return [int(line) for line in file.read_text().split()] if file.exists() else []


def assert_nobody_left(workspace: Path) -> None:
    alive = [number for number in pids(workspace) if is_alive(number)]
    assert not alive
    assert not (folder(workspace) / "survivors").exists(), "alive when the next attempt began"


# ------------------------------------------------------------------ real agent execution


def test_with_real_agent_execution(workspace: Path) -> None:
    """It fails twice, once without a word, and then writes DONE."""
    mark = {"name": "Bash", "run": 'echo done > "$TASK_FOLDER/DONE"'}
    agent = prepare(
        workspace, {"exit": 1, "text": "x"}, {"exit": 3}, {"tools": [mark], "text": "k"}
    )
    done = ralph(*supervised("-p", "Build the login page"))
    assert_clear(
        done,
        0,
        "Attempt 1: Agent failed (exit 1), restarting...",
        "Attempt 2: Agent failed (exit 3), restarting...",
        "Attempt 3: Agent succeeded",
        "Done       DONE marker present",
    )
    task = "Build the login page"
    again = f"Continue working on the following:\n\n{task}"
    assert prompts(agent) == [task, again, again]
    assert (folder(workspace) / "TASK.md").read_text() == task
    assert_told_its_task(workspace, agent)
    assert [(i.exit_code, i.status) for i in runs(workspace)] == [
        (1, "failed"),
        (3, "failed"),
        (0, "completed"),
    ]
    assert told(workspace) == [
        "Attempt 1: Agent failed (exit 1), restarting...",
        "Attempt 2: Agent failed (exit 3), restarting...",
        "Attempt 3: Agent succeeded",
        "task completed (DONE marker present, no active children)",
    ]
    (fact,) = Bus(str(folder(workspace).parent / "PROJECT-MESSAGE-BUS.md")).read()
    assert (fact.type, fact.body.split()[:3]) == ("FACT", ["task", "login", "completed"])


def assert_told_its_task(workspace: Path, agent: str) -> None:
    """Each attempt finds its task and its own run in the environment."""
    task, infos = str(folder(workspace)), runs(workspace)
    for call, info in zip(calls(agent), infos, strict=True):
        env = call["env"]
        assert "TASK_FOLDER" in env
        assert (env["RALPH_RUN"], env["RALPH_TASK_DIR"]) == (info.run_id, task)
        assert env["RALPH_BUS"] == os.path.join(task, "TASK-MESSAGE-BUS.md")
        assert (call["pid"], env["RALPH_PARENT_RUN"]) == (info.pid, "")


@pytest.mark.parametrize(
    ("script", "code", "words"),
    [
        ("exit 0", 1, "max restarts (2) exceeded"),
        ("exit 42", 3, "waiting without restart: exit code 42"),
        ("touch $TASK_FOLDER/WAIT_WITHOUT_RESTART", 3, "waiting without restart"),
        ("mkdir $TASK_FOLDER/DONE", 2, "DONE is a directory"),
        ("touch $TASK_FOLDER/DONE; exit 7", 0, "Agent failed (exit 7)"),
    ],
)
def test_with_real_command_execution(workspace: Path, script: str, code: int, words: str) -> None:
    """ADR 19: what stops a supervised task, and nothing else; `-- COMMAND…` needs no prompt."""
    agent = program(workspace / "agent.sh", script)
    assert_clear(ralph(*supervised("--max-restarts", "2", "--", agent)), code, words)


# ------------------------------------------------------------------ process group cleanup


def test_process_group_cleanup(messy: Path) -> None:
    """S §Cleanup Flow: what an attempt leaves behind is ended before the next one begins, also
    what ignores signals and what has left the group."""
    last = "test $(wc -l < pids) -lt 6 || touch DONE"
    agent = program(messy / "agent.sh", f"{LEAVE_TWO}\n{last}\nexit 1")
    assert_clear(ralph(*supervised("--", agent)), 0, "Attempt 3: Agent failed (exit 1)")
    assert len(pids(messy)) == 6
    assert_nobody_left(messy)


def interrupt_twice(running: Running) -> None:
    running.interrupt()
    running.send(signal.SIGINT)


def kill(running: Running) -> None:
    running.send(signal.SIGKILL)


@pytest.mark.parametrize(("end", "code"), [(interrupt_twice, 130), (kill, -signal.SIGKILL)])
def test_process_group_cleanup_when_ralph_ends(
    messy: Path, end: Callable[[Running], None], code: int
) -> None:
    """S §Design Goals: "Kill all child processes on exit"; on Linux also when it is killed."""
    agent = program(messy / "agent.sh", f"{LEAVE_TWO}\n../../deaf.sh")
    running = Running(messy, *supervised("--", agent))
    running.await_that(lambda: len(pids(messy)) == 3)
    end(running)
    assert running.end().code == code
    give_up = time.monotonic() + PATIENCE
    while any(map(is_alive, pids(messy))) and time.monotonic() < give_up:
        time.sleep(0.02)  # whoever is killed takes a moment to be gone
    assert_nobody_left(messy)


# ------------------------------------------------------------------ timeout handling


@pytest.mark.parametrize(
    ("flag", "why"),
    dealt([("--timeout", "timed out after 1.0s"), ("--idle-timeout", "silent for 1.0s")], 1),
)
def test_timeout_handling(messy: Path, flag: str, why: str) -> None:
    """S §Timeout Behavior: the process group is killed; "treat as restart condition"."""
    second = 'case $RALPH_RUN in *-002) touch "$TASK_FOLDER/DONE"; exit;; esac'
    agent = program(messy / "agent.sh", f"{second}\n{LEAVE_TWO}\n../../deaf.sh")
    done = ralph(*supervised(flag, "1", "--", agent))
    assert_clear(done, 0, f"Attempt 1: Agent failed ({why}), restarting...", "Agent succeeded")
    assert [(i.status, i.error_summary) for i in runs(messy)] == [
        ("failed", why),
        ("completed", ""),
    ]
    assert_nobody_left(messy)


def test_timeout_handling_after_done(messy: Path) -> None:
    """ADR 19: the wait timeout bounds "the agent itself when DONE appears while it works"."""
    agent = program(messy / "agent.sh", f"{LEAVE_TWO}\ntouch DONE\n../../deaf.sh")
    done = ralph(*supervised("--wait-timeout", "0.5", "--", agent))
    assert_clear(
        done, 0, "Attempt 1: Agent was ended: still running 0.5s", "Done       DONE marker present"
    )
    assert_nobody_left(messy)


def test_timeout_handling_of_children(messy: Path) -> None:
    """ADR 19: it "bounds the wait for children after DONE"; then they are ended, not orphaned."""
    job = f'"{sys.executable}" -m ralph job -- ./deaf.sh >/dev/null 2>&1 &'
    wait = 'until [ -s "$TASK_FOLDER/pids" ]; do sleep 0.02; done'
    agent = program(messy / "agent.sh", f'{job}\n{wait}\ntouch "$TASK_FOLDER/DONE"')
    done = ralph(*supervised("--wait-timeout", "0.5", "--", agent))
    assert_clear(done, 0, "waiting for 1 child run to end, 0.5s at most")
    assert "1 child run ended after 0.5s" in told(messy)[-1]
    assert {i.status for i in runs(messy)} == {"completed", "stopped"}
    assert_nobody_left(messy)
