"""Requests to a run: SIGINT, SIGTERM and SIGHUP, counted, and files (ADR 7)."""

import os
import signal
import time
from contextlib import suppress
from types import FrameType
from typing import Self

from ralph.kernel.world import Signals

_NOTICE = b"Received signal, shutting down...\n"


def ending_signals() -> tuple[signal.Signals, ...]:
    """Signals that ask us to end. Under nohup a hangup does not: the terminal may go."""
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    ignored = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    return numbers[:2] if ignored else numbers


class SignalCounter:
    """Counts requests to end. The first lets the current operation finish, the second does not.

    SIGHUP counts as both: the terminal is gone and nobody will ask again.
    """

    def __init__(self) -> None:
        self._cancels = 0
        self._cancelled_at: float | None = None
        self._before: dict[int, object] = {}

    def __enter__(self) -> Self:
        for number in ending_signals():
            self._before[number] = signal.signal(number, self._handle)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]  # it came from there

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
        if not names:
            return Signals()
        cancels = 2 if self.NOW in names else int(self.STOP in names)
        since = self._since() if cancels else None
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

    def _since(self) -> float:
        for name in (self.STOP, self.NOW):
            try:
                return os.stat(os.path.join(self._directory, name)).st_mtime
            except OSError:
                continue
        return time.time()
