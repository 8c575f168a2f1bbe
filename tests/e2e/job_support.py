"""What the tests of `ralph job` share: a task, its runs, and jobs under way."""

import os
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from run_support import RALPH, Done, ralph

from ralph.loops.supervise.run_info import RunInfo, read_run_info


def make_task(workspace: Path) -> Path:
    """A task's folder."""
    directory = workspace.parent / "project" / "task"
    directory.mkdir(parents=True)
    return directory


def job(task: Path, *command: str, **options: Any) -> Done:  # noqa: ANN401
    return ralph("job", "--task-dir", str(task), "--", *command, **options)


def runs(task: Path) -> list[Path]:
    return sorted((task / "runs").glob("*"))


def only_run(task: Path) -> Path:
    (run,) = runs(task)
    return run


def info_of(run: Path) -> RunInfo:
    info = read_run_info(str(run))
    assert info is not None, sorted(os.listdir(run))
    return info


def await_that(happened: Callable[[], object]) -> None:
    deadline = time.monotonic() + 30
    while not happened():
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.01)


def said(path: Path) -> str:
    return path.read_text() if path.exists() else ""


class Jobs:
    """Real jobs under way; whatever is left of them is ended with the test."""

    def __init__(self) -> None:
        self._started: list[subprocess.Popen[bytes]] = []

    def start(
        self, task: Path, script: str, env: Mapping[str, str] | None = None
    ) -> "subprocess.Popen[bytes]":
        words = [*RALPH, "job", "--task-dir", str(task), "--", "sh", "-c", script]
        return self.popen(words, env={**os.environ, **(env or {})})

    def popen(self, words: list[str], **options: Any) -> "subprocess.Popen[bytes]":  # noqa: ANN401
        streams = {"stdin": subprocess.DEVNULL, "stdout": -1, "stderr": -1}
        process = subprocess.Popen(words, **{**streams, **options})
        self._started.append(process)
        return process

    def close(self) -> None:
        for process in self._started:
            process.kill()  # its keeper ends the rest
            process.communicate()
