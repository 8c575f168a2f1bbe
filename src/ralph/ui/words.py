"""Numbers and times as people read them: 1.2M, $5.76, 14:03:09."""

import time

from ralph.kernel.turn import Turn
from ralph.text.words import duration

_UNITS = ((1_000_000_000, "B"), (1_000_000, "M"), (1_000, "K"))


def number(value: int) -> str:
    """999, 1.2K, 45K, 1.2M."""
    for size, unit in _UNITS:
        scaled = value / size
        if scaled >= 0.9995:  # what rounds to 1000K is 1M
            shown = f"{scaled:.1f}" if scaled < 9.95 else f"{scaled:.0f}"
            return f"{shown.removesuffix('.0')}{unit}"
    return str(value)


def money(dollars: float) -> str:
    """$5.76; less than a cent is said to be that, and not nothing."""
    return "<$0.01" if 0 < dollars < 0.01 else f"${dollars:.2f}"


def elapsed(seconds: float) -> str:
    """Time that is watched passing, in whole seconds: 3s, 41s, 2m10s, 1h2m."""
    whole = max(0, int(seconds))
    return f"{whole}s" if whole < 10 else duration(whole)


def clock_time(moment: float) -> str:
    """The local time of day, as HH:MM:SS."""
    return time.strftime("%H:%M:%S", time.localtime(moment))


def coming_time(moment: float, now: float) -> str:
    """The local time of a moment to come, with the day of the week if that is not today."""
    there = time.localtime(moment)
    today = time.localtime(now)
    same_day = (there.tm_year, there.tm_yday) == (today.tm_year, today.tm_yday)
    return time.strftime("%H:%M:%S" if same_day else "%a %H:%M:%S", there)


def service_words(turn: Turn | None) -> str:
    """What the provider does to a turn that is taken again; "" where it does nothing."""
    failure = turn.failure if turn else None
    if failure is None or not failure.passes:
        return ""
    return "rate limited" if failure.limited else "provider not available"
