"""A scheduler and workers of Dask on loopback, each a process of its own, whose attempts play
scripts."""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Self

NODE = Path(__file__).with_name("node.py")
SCHEDULER = "scheduler"


class Cluster:
    """Its processes can be killed, stopped and started again."""

    def __init__(self, folder: Path, workers: int = 1) -> None:
        self.folder = folder
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self.workers = [f"w{number}" for number in range(workers)]
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.address = f"tcp://127.0.0.1:{free.getsockname()[1]}"

    def __enter__(self) -> Self:
        self.mend()
        return self

    def __exit__(
        self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None
    ) -> None:
        for name in [*self._processes]:
            self.kill(name)

    def mend(self) -> None:
        """Let everybody run who should; returns when all who were started are there."""
        missing = [name for name in (SCHEDULER, *self.workers) if name not in self._processes]
        for name in self._processes:
            self.signal(name, signal.SIGCONT)
        for name in missing:
            self._start(name)
        for name in missing:
            self._await(name)

    def start(self, name: str, *more: str) -> None:
        """Start the scheduler, or a worker by that name; returns when it is there."""
        self._start(name, *more)
        self._await(name)

    def _start(self, name: str, *more: str) -> None:
        with self._log(name).open("ab") as file:
            self._processes[name] = subprocess.Popen(
                [sys.executable, str(NODE), self.address, name, *more],
                stdout=subprocess.PIPE,
                stderr=file,
                cwd=self.folder,
            )

    def _await(self, name: str) -> None:
        said = self._processes[name].stdout
        assert said is not None
        assert said.readline() == b"ready\n", self._log(name).read_text("utf-8")

    def _log(self, name: str) -> Path:
        return self.folder / f"{name}.log"

    def signal(self, name: str, number: int) -> None:
        os.kill(self._processes[name].pid, number)

    def kill(self, name: str) -> None:
        """End it without a word."""
        process = self._processes.pop(name)
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()

    def stop_workers(self) -> None:
        """Their machines hang."""
        for name in self.workers:
            self.signal(name, signal.SIGSTOP)
