"""The real clock."""

import time
from collections.abc import Callable

_LOOK_EVERY = 0.25
# Of the clock that also counts while the machine is suspended; that of macOS does not.
_BOOTTIME = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def boottime() -> float:
    """Seconds since this machine was started. Nobody sets this clock."""
    return time.clock_gettime(_BOOTTIME)


class SystemClock:
    """Unix time. Sleep is by wall-clock, so that a laptop's sleep counts as waiting."""

    def now(self) -> float:
        return time.time()

    def rest(self, until: float | None, stirred: Callable[[], bool]) -> None:
        while not stirred():
            left = _LOOK_EVERY if until is None else until - time.time()
            if left <= 0:
                return
            time.sleep(min(left, _LOOK_EVERY))
