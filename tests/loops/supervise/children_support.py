"""What the tests of child runs share: a task, its runs, and processes that may be its."""

import ctypes
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from kits.adapters import await_that, is_alive
from ralph.journal.run_id import timestamp
from ralph.kernel.value import replace
from ralph.loops.supervise.child_runs import is_below
from ralph.loops.supervise.folder import TaskFolder, folder_at
from ralph.loops.supervise.run_info import RunInfo, read_run_info, write_run_info

Start = Callable[..., "subprocess.Popen[bytes]"]
Stranger = Callable[..., int]
_STRANGER = """
import os, subprocess, sys
if os.fork():
    os._exit(0)
os.setsid()
env = {"PATH": os.environ["PATH"], **eval(sys.argv[1])}
process = subprocess.Popen(sys.argv[2:], env=env, stdout=subprocess.DEVNULL)
print(process.pid, flush=True)
os._exit(0)
"""


def make_folder(tmp_path: Path) -> TaskFolder:
    (tmp_path / "project" / "task" / "runs").mkdir(parents=True)
    return folder_at(str(tmp_path / "project" / "task"))


_PR_SET_CHILD_SUBREAPER = 36


@contextmanager
def starting() -> Iterator[Start]:
    """Starts processes right below us, and ends them when the test is over."""
    started: list[subprocess.Popen[bytes]] = []

    def begin(script: str, **options: Any) -> "subprocess.Popen[bytes]":  # noqa: ANN401
        started.append(subprocess.Popen(["sh", "-c", script], **options))
        return started[-1]

    yield begin
    for process in started:
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


@contextmanager
def estranging() -> Iterator[Stranger]:
    """Starts processes that are not below us, with nothing but this in their environment."""
    pids: list[int] = []
    # Another test of this worker may have made it adopt orphans.
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)

    def begin(*words: str, **env: str) -> int:
        call = [sys.executable, "-c", _STRANGER, repr(env), *(words or ("sleep", "60"))]
        pids.append(int(subprocess.check_output(call)))
        await_that(lambda: not is_below(pids[-1], os.getpid()))
        return pids[-1]

    yield begin
    for pid in pids:
        with suppress(ProcessLookupError):
            if is_alive(pid):
                os.kill(pid, signal.SIGKILL)


def add(folder: TaskFolder, name: str, **fields: Any) -> str:  # noqa: ANN401
    """A run of the task; it has just begun, unless said otherwise."""
    directory = folder.run_dir(name)
    os.makedirs(directory)
    info = RunInfo(name, start_time=timestamp(time.time()))
    write_run_info(directory, replace(info, **fields))
    return directory


def write_lock(directory: str, pid: int, start: str) -> None:
    """What a lock's owner writes into it, and whoever wants to be taken for one."""
    named = {"pid": pid, "start": start, "run": os.path.basename(directory), "since": 0.0}
    Path(directory, "run.lock").write_text(json.dumps(named))


def info_of(directory: str) -> RunInfo:
    info = read_run_info(directory)
    assert info is not None
    return info
