"""Rates with their intervals."""

import math
from collections.abc import Sequence

from ralph.kernel.value import value

_Z = 1.959964  # of 95 %


@value
class Rate:
    """So many of so many, and the interval in which the true rate lies 95 times of 100."""

    count: int
    of: int
    low: float
    high: float

    @property
    def share(self) -> float:
        """0.0 where there was nothing to count."""
        return self.count / self.of if self.of else 0.0


def rate(count: int, of: int) -> Rate:
    """The rate with Wilson's interval, which is right for few trials and near 0 and 1 too."""
    if not of:
        return Rate(0, 0, 0.0, 1.0)
    share, square = count / of, _Z * _Z
    middle = (share + square / (2 * of)) / (1 + square / of)
    spread = share * (1 - share) / of + square / (4 * of * of)
    half = _Z * math.sqrt(spread) / (1 + square / of)
    # At the ends the interval ends there too, but for rounding.
    low = 0.0 if count == 0 else max(0.0, middle - half)
    high = 1.0 if count == of else min(1.0, middle + half)
    return Rate(count, of, low, high)


def median(numbers: Sequence[float]) -> float | None:
    """The number in the middle; None of none."""
    ordered, middle = sorted(numbers), len(numbers) // 2
    if not ordered:
        return None
    return (
        (ordered[middle] + ordered[-middle - 1]) / 2 if len(ordered) % 2 == 0 else ordered[middle]
    )
