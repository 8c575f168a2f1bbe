"""A real `ralph fleet up` in a process of its own, and what is below it."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

from ralph.processes.keeper_main import descendants

Json = dict[str, Any]
_PATIENCE = 120.0  # a machine may be very busy


def ralph(*arguments: str, stdin: str | None = None) -> "subprocess.CompletedProcess[str]":
    """Run a command to its end."""
    words = [sys.executable, "-m", "ralph", *arguments]
    return subprocess.run(
        words, input=stdin, capture_output=True, text=True, timeout=_PATIENCE, check=False
    )


def until(there: Callable[[], object]) -> None:
    """Wait until it is so."""
    end = time.monotonic() + _PATIENCE
    while not there():
        assert time.monotonic() < end, "it did not come"
        time.sleep(0.02)


def command_line(pid: int) -> str:
    """The words of a process; "" where it is gone, or waits for its parent."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_text("utf-8").replace("\0", " ")
    except OSError:
        return ""


class Started:
    """A command of `ralph fleet` that stays, until it is ended. It does not outlive the tests."""

    all: ClassVar[list["Started"]] = []

    def __init__(self, said: Path, *words: str) -> None:
        self.said = said
        with said.open("wb") as errors:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "ralph", "fleet", *words],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                env=dict(os.environ),
            )
        self.all.append(self)
        self.seen: set[int] = set()

    def first_line(self) -> str:
        assert self.process.stdout is not None
        line = self.process.stdout.readline().decode().strip()
        assert line, self.said.read_text()
        return line

    def has_said(self, words: str, times: int = 1) -> None:
        """Wait until it has said so on stderr."""
        until(lambda: self.said.read_text().count(words) >= times)

    def below(self) -> list[int]:
        """Every process below it; they are remembered."""
        found = descendants(self.process.pid)
        self.seen |= set(found)
        return found

    def is_gone(self) -> bool:
        """True when nothing that was ever seen below it lives."""
        return not any(map(command_line, self.seen))

    def end(self, number: int = signal.SIGINT) -> int:
        self.below()
        self.process.send_signal(number)
        return self.process.wait(_PATIENCE)

    @classmethod
    def end_all(cls) -> None:
        while cls.all:
            started = cls.all.pop()
            if started.process.poll() is None:
                started.below()
                started.process.kill()
            started.process.wait()
            if started.process.stdout is not None:
                started.process.stdout.close()
            until(started.is_gone)


class Up(Started):
    """`ralph fleet up` with these flags, whose workers are ready."""

    def __init__(self, said: Path, *flags: str, workers: int = 1) -> None:
        super().__init__(said, "up", "--workers", str(workers), *flags)
        self.address = self.first_line()
        if workers:
            self.has_said("ready.")

    def members(self) -> list[int]:
        """The scheduler's pid, then its workers'."""
        (nest,) = [pid for pid in self.below() if self._is_nest(pid)][:1]
        children = Path(f"/proc/{nest}/task/{nest}/children").read_text("utf-8")
        return sorted(map(int, children.split()))

    def nest(self) -> int:
        return next(pid for pid in self.below() if self._is_nest(pid))

    def keeper(self) -> int:
        return next(pid for pid in self.below() if "keeper_main" in command_line(pid))

    @staticmethod
    def _is_nest(pid: int) -> bool:
        return "cluster.begin" in command_line(pid)
