"""Times, counts, lists, numbers and money as people read them."""

from collections.abc import Sequence

_SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86_400}
DURATION = r"([0-9]+(?:\.[0-9]+)?)([smhd]?)"
_UNITS = ((1_000_000_000, "B"), (1_000_000, "M"), (1_000, "K"))


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


def seconds_of(text: str) -> float | None:
    """The seconds of a duration as people write it: 90, 90s, 30m, 1.5h, 2d."""
    import re  # hooks have no need of it

    found = re.fullmatch(DURATION, text)
    return float(found[1]) * _SECONDS[found[2]] if found else None


def written(seconds: float) -> str:
    """The same as text that `seconds_of` reads: 90s, 30m, 8h."""
    for unit in ("h", "m"):
        if seconds and seconds % _SECONDS[unit] == 0:
            return f"{seconds / _SECONDS[unit]:g}{unit}"
    return f"{seconds:g}s"


def counted(count: int, noun: str) -> str:
    """1 line, 2 lines."""
    return f"{count} {noun if count == 1 else noun + 's'}"


def listed(names: Sequence[str], most: int = 10, between: str = ", ") -> str:
    """a, b and 3 more."""
    shown = between.join(names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"


def quoted(text: str, most: int = 60) -> str:
    """The first line of a text in quotes, cut where it is long."""
    first = next(iter(text.strip().splitlines()), "")
    return f'"{first}"' if len(first) <= most else f'"{first[: most - 3]}..."'


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
