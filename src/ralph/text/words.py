"""Formats times, counts and lists for people."""

from collections.abc import Sequence


def duration(seconds: float) -> str:
    """3.4s, 12s, 6m7s, 30m, 1h2m."""
    if seconds < 9.95:
        return f"{max(0.0, seconds):.1f}s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole}s"
    size, large, small = (60, "m", "s") if whole < 3600 else (3600, "h", "m")
    rest = whole % size // (size // 60)
    return f"{whole // size}{large}" + (f"{rest}{small}" if rest else "")


def counted(count: int, noun: str) -> str:
    """1 line, 2 lines."""
    return f"{count} {noun if count == 1 else noun + 's'}"


def listed(names: Sequence[str], most: int = 10, between: str = ", ") -> str:
    """a, b and 3 more."""
    shown = between.join(names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"
