"""`from ralph import Supervisor` in programs: values, files, Ctrl+C, signal handlers, imports."""

import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ralph import Cancelled, DoneIsDirectory, MaxRestartsExceeded, Supervisor, SupervisorError
from ralph.loops.supervise.bus import Bus

GUIDE = Path(__file__).resolve().parents[3] / "docs" / "library.md"
Runner = Callable[[int, threading.Event], int | None]


@pytest.fixture
def task(tmp_path: Path) -> Path:
    """The folder of the task `login` of the project `shop`."""
    folder = tmp_path / "shop" / "login"
    folder.mkdir(parents=True)
    return folder


def second_time_lucky(task: Path) -> Runner:
    """Fails once, then writes DONE."""

    def runner(attempt: int, cancelled: threading.Event) -> int | None:
        if attempt == 0:
            return 1
        (task / "DONE").touch()
        return None

    return runner


def run_program(text: str, *arguments: object, cwd: Path | None = None) -> str:
    """What a Python program prints; it must end by itself, and well."""
    command = [sys.executable, "-c", text, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, cwd=cwd)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


# ------------------------------------------------------------------ values


@pytest.mark.parametrize(
    ("values", "error", "words"),
    [
        ({"max_restarts": -1}, ValueError, "max_restarts must be 0 or more, not -1"),
        ({"max_restarts": 2.0}, TypeError, "max_restarts must be an int, not 2.0"),
        ({"max_restarts": True}, TypeError, "max_restarts must be an int, not True"),
        ({"wait_timeout": -0.1}, ValueError, "wait_timeout must be 0 seconds or more"),
        ({"poll_interval": float("nan")}, ValueError, "poll_interval must be 0 seconds or more"),
        ({"restart_delay": float("inf")}, ValueError, "restart_delay must be .* finite"),
        ({"restart_delay": "1"}, TypeError, "restart_delay must be a number of seconds, not '1'"),
        ({"restart_delay": False}, TypeError, "restart_delay must be a number of seconds"),
        ({"runner": "agent.sh"}, TypeError, r"runner must be callable: runner\(attempt, cancelled"),
        ({"task_dir": "missing"}, FileNotFoundError, "task_dir is no directory: 'missing'"),
        ({"task_dir": ""}, FileNotFoundError, "task_dir is no directory: ''"),
        ({"task_dir": os.devnull}, NotADirectoryError, "task_dir is no directory"),
    ],
)
def test_values_are_checked(
    task: Path, values: dict[str, Any], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        Supervisor(**{"task_dir": task, "runner": second_time_lucky(task), **values})


@pytest.mark.parametrize("kind", [Cancelled, DoneIsDirectory, MaxRestartsExceeded])
def test_its_errors_are_supervisor_errors(kind: type[Exception]) -> None:
    assert issubclass(kind, SupervisorError)
    assert issubclass(SupervisorError, Exception)


def test_the_names_of_the_library() -> None:
    import ralph

    assert all(hasattr(ralph, name) for name in ralph.__all__)
    assert not hasattr(ralph, "Supervisors")


# ------------------------------------------------------------------ files


def test_it_writes_nothing_but_the_buses_and_says_nothing(
    task: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    supervised = Supervisor(task, restart_delay=0, runner=second_time_lucky(task))
    assert supervised.run() == "completed"
    assert sorted(os.listdir(task)) == ["DONE", "TASK-MESSAGE-BUS.md"]
    assert sorted(os.listdir(task.parent)) == ["PROJECT-MESSAGE-BUS.md", "login"]
    assert os.listdir(os.environ["RALPH_STATE_DIR"]) == []
    assert capfd.readouterr() == ("", "")


def test_a_bus_that_cannot_be_written_fails_no_task(task: Path) -> None:
    """S: "a failure to post never fails the task"."""
    (task / "TASK-MESSAGE-BUS.md").mkdir()
    (task.parent / "PROJECT-MESSAGE-BUS.md").mkdir()
    supervised = Supervisor(task, restart_delay=0, runner=second_time_lucky(task))
    assert supervised.run() == "completed"


@pytest.mark.parametrize(
    ("names", "seen"),
    [
        ({}, ("shop", "login")),
        ({"project": "other"}, ("other", "login")),
        ({"project": "p", "task": "Task 1"}, ("p", "Task 1")),
    ],
)
def test_messages_name_project_and_task(
    task: Path, names: dict[str, str], seen: tuple[str, str]
) -> None:
    """Names are taken as they are."""
    Supervisor(task, restart_delay=0, runner=second_time_lucky(task), **names).run()  # type: ignore[arg-type]
    messages = Bus(str(task / "TASK-MESSAGE-BUS.md")).read()
    assert {(m.project_id, m.task_id) for m in messages} == {seen}


def test_a_relative_folder_stays_where_it_was(task: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(task.parent)
    supervised = Supervisor("login", restart_delay=0, runner=second_time_lucky(task))
    monkeypatch.chdir("/")
    assert supervised.run() == "completed"


# ------------------------------------------------------------------ programs

CTRL_C = """
import os, signal, sys, threading
from ralph import Supervisor

signal.signal(signal.SIGINT, signal.default_int_handler)
may_end, ended = threading.Event(), threading.Event()

def say(line):
    sys.stdout.write(line + "\\n")  # in one piece: two threads speak

def runner(attempt, cancelled):
    os.kill(os.getpid(), signal.SIGINT)
    say(f"cancelled: {cancelled.wait(30)}")
    may_end.wait(30)
    ended.set()

supervised = Supervisor(sys.argv[1], runner=runner)
for _ in range(2):
    try:
        supervised.run()
    except (KeyboardInterrupt, RuntimeError) as error:
        say(repr(error))
may_end.set()
say(f"ended: {ended.wait(30)}")
"""


def test_an_interrupted_run_cancels_its_runner(task: Path) -> None:
    """It does not wait for it; and nobody starts another one beside it."""
    printed = run_program(CTRL_C, task).splitlines()
    assert sorted(printed[:3]) == [
        "KeyboardInterrupt()",
        "RuntimeError('the runner of an interrupted run() has not returned yet')",
        "cancelled: True",
    ]
    assert printed[3:] == ["ended: True"]


HANDLER = """
import os, signal, sys, threading
from ralph import Cancelled, Supervisor

def runner(attempt, cancelled):
    while not cancelled.is_set():
        os.kill(os.getpid(), signal.SIGTERM)  # again and again: wherever run() is just then
    return 0

supervised = Supervisor(sys.argv[1], runner=runner)
signal.signal(signal.SIGTERM, lambda *_: supervised.cancel())
try:
    supervised.run()
except Cancelled:
    print("cancelled")
"""


def test_a_signal_handler_may_cancel(task: Path) -> None:
    assert run_program(HANDLER, task) == "cancelled\n"


GUEST = """
import ctypes, os, signal, sys, threading
from ralph import Supervisor

def habits():
    numbers = sorted(signal.valid_signals())
    subreaper = ctypes.c_int(-1)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(37, ctypes.byref(subreaper), 0, 0, 0)  # PR_GET_CHILD_SUBREAPER
    return ([signal.getsignal(n) for n in numbers], subreaper.value, threading.active_count(),
            os.getcwd(), dict(os.environ))

def runner(attempt, cancelled):
    open(os.path.join(sys.argv[1], "DONE"), "w").close()
    return 0

before = habits()
print(Supervisor(sys.argv[1], runner=runner).run(), habits() == before, before[1] in (0, -1))
"""


def test_it_leaves_its_host_as_it_was(task: Path) -> None:
    """No signal handlers, no thread left, and never a subreaper: it would adopt the host's."""
    assert run_program(GUEST, task) == "completed True True\n"


IMPORT = "import sys; seen = set(sys.modules); import ralph; print(set(sys.modules) - seen)"


def test_the_package_imports_nothing_before_it_is_asked() -> None:
    assert run_program(IMPORT) == "{'ralph'}\n"


AGENT = """#!/bin/sh
echo tried >> "$TASK_FOLDER/tries"
test "$(wc -l < "$TASK_FOLDER/tries")" -ge 3 || exit 1
touch "$TASK_FOLDER/DONE"
"""


def test_the_example_in_the_guide_runs(tmp_path: Path) -> None:
    """With an agent that fails twice and then writes DONE."""
    section = GUIDE.read_text("utf-8").partition("## Supervise a function\n")[2]
    example = re.search(r"```python[^\n]*\n(.*?)```", section, re.DOTALL)
    assert example is not None
    task = tmp_path / "tasks" / "login"
    task.mkdir(parents=True)
    (tmp_path / "agent.sh").write_text(AGENT)
    (tmp_path / "agent.sh").chmod(0o755)
    assert run_program(example[1], cwd=tmp_path) == "completed\n"
    bodies = [message.body for message in Bus(str(task / "TASK-MESSAGE-BUS.md")).read()]
    assert bodies == [
        "Attempt 1: Agent failed (exit 1), restarting...",
        "Attempt 2: Agent failed (exit 1), restarting...",
        "Attempt 3: Agent succeeded",
        "task completed (DONE marker present, no active children)",
    ]
    for body in bodies:
        assert body in section
