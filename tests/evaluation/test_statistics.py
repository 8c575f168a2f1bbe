"""Rates and their intervals."""

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ralph.evaluation.statistics import median, rate


@pytest.mark.parametrize(
    ("count", "of", "low", "high"),
    [  # by the formula as Wilson gave it, with z = 1.96; the first and last are often printed
        (0, 10, 0.0, 0.2775),
        (1, 10, 0.0179, 0.4042),
        (5, 10, 0.2366, 0.7634),
        (10, 10, 0.7225, 1.0),
        (30, 100, 0.2189, 0.3958),
        (0, 0, 0.0, 1.0),
    ],
)
def test_known_intervals(count: int, of: int, low: float, high: float) -> None:
    found = rate(count, of)
    assert (found.low, found.high) == pytest.approx((low, high), abs=1e-4)
    assert found.share == (count / of if of else 0.0)


@given(st.integers(1, 500).flatmap(lambda of: st.tuples(st.integers(0, of), st.just(of))))
def test_an_interval_holds_its_rate_and_the_bounds_of_the_score_test(pair: tuple[int, int]) -> None:
    count, of = pair
    found = rate(count, of)
    assert 0.0 <= found.low <= found.share <= found.high <= 1.0
    for bound in (found.low, found.high):
        if 0.0 < bound < 1.0:  # there the score statistic is just what 95 % allow
            error = math.sqrt(bound * (1 - bound) / of)
            assert abs(found.share - bound) / error == pytest.approx(1.959964, abs=1e-3)


def test_the_true_rate_lies_in_it_about_95_times_of_100() -> None:
    chance = random.Random(7)
    hits = 0
    for _ in range(2000):
        found = rate(sum(chance.random() < 0.3 for _ in range(40)), 40)
        hits += found.low <= 0.3 <= found.high
    assert 0.93 <= hits / 2000 <= 0.98


@pytest.mark.parametrize(
    ("numbers", "middle"), [([], None), ([3.0], 3.0), ([5, 1, 2], 2), ([4, 1, 2, 9], 3.0)]
)
def test_medians(numbers: list[float], middle: float | None) -> None:
    assert median(numbers) == middle
