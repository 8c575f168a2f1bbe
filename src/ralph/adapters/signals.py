"""SIGINT, SIGTERM and SIGHUP, counted (ADR 7)."""

import os
import signal
import time
from types import FrameType
from typing import Self

from ralph.core.world import Signals

_NOTICE = b"Received signal, shutting down...\n"


class SignalCounter:
    """Counts requests to end. The first lets the current operation finish, the second does not.

    SIGHUP counts as both: the terminal is gone and nobody will ask again.
    """

    def __init__(self) -> None:
        self._cancels = 0
        self._cancelled_at: float | None = None
        self._before: dict[int, object] = {}

    def __enter__(self) -> Self:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if number == signal.SIGHUP and signal.getsignal(number) is signal.SIG_IGN:
                continue  # nohup: the terminal may go
            self._before[number] = signal.signal(number, self._handle)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]  # it came from there

    def signals(self) -> Signals:
        """What was asked for up to now."""
        return Signals(self._cancels, self._cancelled_at)

    def _handle(self, number: int, _: FrameType | None) -> None:
        if self._cancelled_at is None:
            self._cancelled_at = time.time()
            _say(_NOTICE)
        self._cancels += 2 if number == signal.SIGHUP else 1


def _say(notice: bytes) -> None:
    try:
        os.write(2, notice)
    except OSError:
        pass  # nobody is there to read it
