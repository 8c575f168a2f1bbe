"""`from ralph import Supervisor`: the seven unit cases of S §Testing, and what else it promises."""

import os
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from ralph import (
    Cancelled,
    DoneIsDirectory,
    MaxRestartsExceeded,
    Supervisor,
    SupervisorError,
)
from ralph.journal.run_id import timestamp
from ralph.loops.supervise.bus import Bus, new_message
from ralph.loops.supervise.run_info import RunInfo, read_run_info, write_run_info
from ralph.testing.fakes import FakeClock

PATIENCE = 30.0  # seconds until a test gives up; nothing is measured by it
Act = Callable[[threading.Event], object]


@dataclass
class Script:
    """A runner that does one thing after another, the last for ever, and remembers its calls."""

    acts: tuple[object, ...]  # an exit code, an exception or something to do
    attempts: list[int] = field(default_factory=list)
    events: list[threading.Event] = field(default_factory=list)

    def __call__(self, attempt: int, cancelled: threading.Event) -> Any:  # noqa: ANN401  also wrong ones
        self.attempts.append(attempt)
        self.events.append(cancelled)
        act = self.acts[min(attempt, len(self.acts) - 1)]
        if isinstance(act, BaseException):
            raise act
        return act(cancelled) if callable(act) else act


def script(*acts: object) -> Script:
    return Script(acts)


@pytest.fixture
def task(tmp_path: Path) -> Path:
    """The folder of the task `login` of the project `shop`."""
    folder = tmp_path / "shop" / "login"
    folder.mkdir(parents=True)
    return folder


def supervisor(folder: Path, runner: Script, **more: Any) -> Supervisor:  # noqa: ANN401
    """Without a delay, unless one is given."""
    return Supervisor(folder, runner=runner, **{"restart_delay": 0, "poll_interval": 0.01, **more})


def done(task: Path, code: object = 0) -> Act:
    """Write DONE and end."""

    def act(_: threading.Event) -> object:
        (task / "DONE").write_text("done\n")
        return code

    return act


def posted(file: Path) -> list[tuple[str, str]]:
    """Type and body of each message."""
    return [(m.type, m.body) for m in Bus(str(file)).read()]


def told(task: Path) -> list[tuple[str, str]]:
    return posted(task / "TASK-MESSAGE-BUS.md")


# ------------------------------------------------------------------ S §Unit Tests


def test_run_with_immediate_success_exit_0(task: Path) -> None:
    """S: "Run with immediate success (exit 0)": with DONE. Its end is told on both buses."""
    runner = script(done(task))
    assert supervisor(task, runner).run() == "completed"
    assert runner.attempts == [0]
    assert told(task) == [
        ("INFO", "Attempt 1: Agent succeeded"),
        ("INFO", "task completed (DONE marker present, no active children)"),
    ]
    fact = "task login completed (DONE marker present, no active children)"
    assert posted(task.parent / "PROJECT-MESSAGE-BUS.md") == [("FACT", fact)]


def test_run_with_eventual_success_after_n_restarts(task: Path) -> None:
    """S: "Run with eventual success (after N restarts)"; "exit code 0 does NOT stop the loop"."""
    runner = script(1, ValueError("a bug\nof many lines"), 0, None, -15, done(task))
    assert supervisor(task, runner).run() == "completed"
    assert runner.attempts == [0, 1, 2, 3, 4, 5]
    assert told(task)[:-1] == [
        ("WARNING", "Attempt 1: Agent failed (exit 1), restarting..."),
        ("WARNING", "Attempt 2: Agent failed (ValueError: a bug), restarting..."),
        ("INFO", "Attempt 3: Agent succeeded without DONE, restarting..."),
        ("INFO", "Attempt 4: Agent succeeded without DONE, restarting..."),
        ("WARNING", "Attempt 5: Agent failed (exit -15), restarting..."),
        ("INFO", "Attempt 6: Agent succeeded"),
    ]


def test_run_with_max_restarts_exceeded(task: Path) -> None:
    """S: "Run with max restarts exceeded": `max_restarts` is the number of attempts (ADR 19)."""
    last = ValueError("the third")
    runner = script(1, 0, last)
    with pytest.raises(MaxRestartsExceeded, match=r"^max restarts \(3\) exceeded$") as raised:
        supervisor(task, runner, max_restarts=3).run()
    assert raised.value.__cause__ is last
    assert runner.attempts == [0, 1, 2]
    assert told(task)[-1] == ("ERROR", "task failed: max restarts (3) exceeded")


def test_run_with_done_file_detection(task: Path) -> None:
    """S: "Checked **before** the first run and **after** every run"; whatever the exit code."""
    runner = script(1, done(task, 7))
    assert supervisor(task, runner).run() == "completed"
    assert runner.attempts == [0, 1]
    assert supervisor(task, runner, max_restarts=0).run() == "completed"
    assert runner.attempts == [0, 1]
    assert (task / "DONE").exists()


def test_run_with_context_cancellation(task: Path) -> None:
    """S: "Context Canceled: no restart"; the runner is told by its event."""

    def work(cancelled: threading.Event) -> int:
        supervised.cancel()
        return 0 if cancelled.wait(PATIENCE) else 1

    runner = script(1, work)
    supervised = supervisor(task, runner)
    with pytest.raises(Cancelled):
        supervised.run()
    assert runner.attempts == [0, 1]
    assert [event.is_set() for event in runner.events] == [False, True]
    assert told(task) == [("WARNING", "Attempt 1: Agent failed (exit 1), restarting...")]


@pytest.mark.parametrize("kind", [FileNotFoundError, PermissionError])
def test_run_with_fatal_error(task: Path, kind: type[OSError]) -> None:
    """S: "Executable not found", "Permission denied": "stop loop, return error"."""
    error = kind(2, "no such agent", "agent.sh")
    runner = script(1, error)
    with pytest.raises(kind) as raised:
        supervisor(task, runner).run()
    assert raised.value is error
    assert runner.attempts == [0, 1]
    kind_of_message, body = told(task)[-1]
    assert kind_of_message == "ERROR"
    assert body.startswith(f"task failed: {kind.__name__}: ")


def test_run_with_restart_delay(task: Path) -> None:
    """S: "Sleep before restart (even if exit code was 0)"; not after DONE."""
    clock = FakeClock()
    runner = script(1, 0, done(task))
    supervised = supervisor(task, runner, restart_delay=5, _clock=clock)
    clock.during_rest = lambda: runner.attempts.append(-1)
    assert supervised.run() == "completed"
    assert clock.rests == [1005.0, 1010.0]
    assert runner.attempts == [0, -1, 1, -1, 2]


# ------------------------------------------------------------------ wait without restart


def test_exit_code_42_stops(task: Path) -> None:
    """S §Wait-Without-Restart, option 1."""
    runner = script(1, 42)
    assert supervisor(task, runner).run() == "stopped"
    assert runner.attempts == [0, 1]
    assert told(task)[-1] == ("INFO", "task stopped: waiting without restart: exit code 42")


def test_a_bus_message_stops(task: Path) -> None:
    """S §Wait-Without-Restart, option 2; one that is older than the run does not."""

    def ask(_: object = None) -> int:
        message = new_message("wait_without_restart", "for a word", project="", task="", now=1.0)
        Bus(str(task / "TASK-MESSAGE-BUS.md")).post(message)
        return 0

    ask()
    runner = script(0, ask)
    assert supervisor(task, runner).run() == "stopped"
    assert runner.attempts == [0, 1]


def test_a_marker_stops(task: Path) -> None:
    """S §Wait-Without-Restart, option 3; one that is older than the run does not."""
    marker = task / "WAIT_WITHOUT_RESTART"
    marker.touch()

    def ask(_: threading.Event) -> int:
        marker.unlink()
        (task / "new").touch()
        (task / "new").rename(marker)
        return 0

    runner = script(0, ask)
    assert supervisor(task, runner).run() == "stopped"
    assert runner.attempts == [0, 1]


# ------------------------------------------------------------------ DONE


@pytest.mark.parametrize("before", [True, False])
def test_a_done_directory_is_an_error(task: Path, *, before: bool) -> None:
    """S: "DONE is a directory"."""

    def make(_: object = None) -> int:
        (task / "DONE").mkdir()
        return 0

    if before:
        make()
    runner = script(make)
    with pytest.raises(DoneIsDirectory, match="Remove it"):
        supervisor(task, runner).run()
    assert len(runner.attempts) == (0 if before else 1)


def test_a_done_that_cannot_be_looked_at_is_an_error(task: Path) -> None:
    (task / "DONE").symlink_to("DONE")
    with pytest.raises(SupervisorError, match="cannot look at") as raised:
        supervisor(task, script(0)).run()
    assert type(raised.value) is SupervisorError


@pytest.mark.parametrize("after", [0, 7, ValueError("cut"), FileNotFoundError("gone already")])
def test_a_runner_that_goes_on_after_done_is_asked_to_end(task: Path, after: object) -> None:
    """ADR 19: the wait timeout bounds "the agent itself when DONE appears while it works". However
    it then ends, the task is done."""

    def work(cancelled: threading.Event) -> object:
        done(task)(cancelled)
        cancelled.wait(PATIENCE)
        if isinstance(after, Exception):
            raise after
        return after

    runner = script(work)
    assert supervisor(task, runner, wait_timeout=0).run() == "completed"
    assert [event.is_set() for event in runner.events] == [True]


# ------------------------------------------------------------------ cancelling


@pytest.mark.parametrize("marked", [False, True])
def test_cancelled_before_it_runs(task: Path, *, marked: bool) -> None:
    """And it stays cancelled."""
    if marked:
        (task / "DONE").touch()
    runner = script(0)
    supervised = supervisor(task, runner)
    supervised.cancel()
    for _ in range(2):
        with pytest.raises(Cancelled):
            supervised.run()
    assert (runner.attempts, told(task)) == ([], [])


def cancel_when_told(supervised: Supervisor, task: Path) -> None:
    """Call cancel() from another thread when the first attempt is judged."""

    def wait() -> None:
        give_up = time.monotonic() + PATIENCE
        while not told(task) and time.monotonic() < give_up:
            time.sleep(0.01)
        supervised.cancel()

    threading.Thread(target=wait, daemon=True).start()


def test_a_cancel_ends_the_delay(task: Path) -> None:
    """With the real clock; the delay is longer than a test may take."""
    runner = script(0)
    supervised = supervisor(task, runner, restart_delay=3600)
    cancel_when_told(supervised, task)
    with pytest.raises(Cancelled):
        supervised.run()
    assert runner.attempts == [0]


@pytest.fixture
def child(task: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """A child run whose process proves by its environment that it is of the task."""
    directory = task / "runs" / "child"
    directory.mkdir(parents=True)
    environ = {**os.environ, "RALPH_TASK_DIR": str(task)}
    with subprocess.Popen(["sleep", "600"], env=environ) as process:
        info = RunInfo("child", pid=process.pid, start_time=timestamp(time.time()))
        write_run_info(str(directory), info)
        yield process
        process.kill()


def test_a_cancel_ends_the_wait_for_children(task: Path, child: "subprocess.Popen[bytes]") -> None:
    """They are ended, and nobody is told that the task is complete."""
    supervised = supervisor(task, script(done(task)), wait_timeout=3600)
    cancel_when_told(supervised, task)
    with pytest.raises(Cancelled):
        supervised.run()
    assert child.wait(PATIENCE) < 0
    assert told(task) == [("INFO", "Attempt 1: Agent succeeded")]


def test_children_are_ended_when_they_take_too_long(
    task: Path, child: "subprocess.Popen[bytes]"
) -> None:
    """S §DONE File Detection: "waits for any active child runs ... (up to `waitTimeout`)"."""
    assert supervisor(task, script(done(task)), wait_timeout=0).run() == "completed"
    assert child.wait(PATIENCE) < 0
    info = read_run_info(str(task / "runs" / "child"))
    assert info is not None
    assert info.status == "stopped"
    assert "1 child run ended after 0.0s: child" in told(task)[-1][1]


# ------------------------------------------------------------------ what a runner may do


class OwnSignal(BaseException):
    """Such as KeyboardInterrupt, which pytest would take for its own."""


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(3), OwnSignal()])
def test_what_asks_to_end_the_program_goes_through(task: Path, error: BaseException) -> None:
    with pytest.raises(type(error)) as raised:
        supervisor(task, script(error)).run()
    assert raised.value is error


@pytest.mark.parametrize("result", [True, False, "0", 0.0, b"", object()])
def test_a_result_that_is_no_exit_code_is_fatal(task: Path, result: object) -> None:
    """An exit code is an int or None; no restart mends that."""
    runner = script(result)
    with pytest.raises(TypeError, match=f"an int or None, not {type(result).__name__}"):
        supervisor(task, runner).run()
    assert runner.attempts == [0]


def test_a_supervisor_runs_once_at_a_time_and_again_when_it_has_ended(task: Path) -> None:
    def again(cancelled: threading.Event) -> object:
        with pytest.raises(RuntimeError, match="running already"):
            supervised.run()
        return done(task)(cancelled)

    runner = script(1, again)
    supervised = supervisor(task, runner, max_restarts=2)
    assert supervised.run() == "completed"
    (task / "DONE").unlink()
    assert supervised.run() == "completed"
    assert runner.attempts == [0, 1, 0, 1]


def test_an_old_error_is_forgotten(task: Path) -> None:
    runner = script(FileNotFoundError("agent"))
    supervised = supervisor(task, runner, max_restarts=1)
    with pytest.raises(FileNotFoundError):
        supervised.run()
    runner.acts = (1,)
    with pytest.raises(MaxRestartsExceeded) as raised:
        supervised.run()
    assert raised.value.__cause__ is None
