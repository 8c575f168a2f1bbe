"""What `make test` leaves to `make test-all`: most hands of an enumeration, most examples."""

import os
from collections.abc import Iterable

import pytest
from _pytest.mark import ParameterSet

ALL = bool(os.environ.get("RALPH_TEST_ALL"))
_SHARE = 5  # of the examples of a property, `make test` tries every fifth


def examples(number: int) -> int:
    """How many examples of a property are tried."""
    return number if ALL else max(number // _SHARE, 10)


def dealt(hands: Iterable[object], quick: int) -> list[ParameterSet]:
    """The hands to which an enumeration is dealt: `quick` of them, evenly apart, are in
    `make test`, the others are slow. A tuple holds several parameters."""
    every = list(hands)
    at_once = {number * len(every) // quick for number in range(quick)}
    return [
        pytest.param(
            *(hand if isinstance(hand, tuple) else (hand,)),
            marks=() if number in at_once else pytest.mark.slow,
        )
        for number, hand in enumerate(every)
    ]
