"""Requests to a run: SIGINT, SIGTERM and SIGHUP, counted, and files (ADR 7)."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Self

from ralph.files.state_dir import lstat
from ralph.kernel.world import Signals

_NOTICE = (
    b"[ralph] Received signal, shutting down after this turn. Press Ctrl+C again to stop now.\n"
)


@contextmanager
def ending_by(handler: Callable[[int, FrameType | None], object]) -> Iterator[None]:
    """Handle the signals that would end us. Under nohup a hangup does not: the terminal may go."""
    numbers = [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        numbers.append(signal.SIGHUP)
    before = [signal.signal(number, handler) for number in numbers]
    try:
        yield
    finally:
        for number, old in zip(numbers, before, strict=True):
            signal.signal(number, old)


class SignalCounter:
    """Counts requests to end. The first lets the current operation finish, the second does not.
    SIGHUP counts as both: the terminal is gone and nobody will ask again."""

    def __init__(self) -> None:
        self._cancels = 0
        self._cancelled_at: float | None = None
        self._handled = ending_by(self._handle)

    def __enter__(self) -> Self:
        self._handled.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._handled.__exit__(None, None, None)

    def signals(self) -> Signals:
        return Signals(self._cancels, self._cancelled_at)

    def _handle(self, number: int, _: FrameType | None) -> None:
        if self._cancelled_at is None:
            self._cancelled_at = time.time()
            with suppress(OSError):  # nobody is there to read it
                os.write(2, _NOTICE)
        self._cancels += 2 if number == signal.SIGHUP else 1


class SignalFiles:
    """Requests from other terminals, by files in a run's `signals/` (`ralph stop`, `pause`)."""

    STOP, NOW, PAUSE = "stop", "stop-now", "pause"

    def __init__(self, run_dir: str) -> None:
        self._directory = os.path.join(run_dir, "signals")

    def signals(self) -> Signals:
        """The requests now. A directory that is gone asks for nothing."""
        try:
            names = os.listdir(self._directory)
        except OSError:
            names = []
        cancels, since = 0, None
        if asked := [name for name in (self.STOP, self.NOW) if name in names]:
            cancels = 2 if self.NOW in names else 1
            seen = lstat(os.path.join(self._directory, asked[0]))
            since = seen.st_mtime if seen else time.time()
        return Signals(cancels, cancelled_at=since, paused=self.PAUSE in names)

    def ask(self, name: str) -> None:
        """Leave a request. It stands until it is taken back, or the run ends."""
        path = os.path.join(self._directory, name)
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600))

    def take_back(self, name: str) -> bool:
        """Remove a request; False if there was none."""
        try:
            os.unlink(os.path.join(self._directory, name))
        except FileNotFoundError:
            return False
        return True

    def forget(self) -> None:
        """Remove every request: a run that goes on is not asked to stop any more."""
        for name in (self.STOP, self.NOW, self.PAUSE):
            self.take_back(name)
