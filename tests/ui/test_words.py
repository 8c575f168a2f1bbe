"""Numbers and times in the formats of H §Formatter."""

import time
from collections.abc import Iterator

import pytest

from ralph.text.words import counted, duration, elapsed, money, number
from ralph.ui.lines import clock_time, coming_time


@pytest.fixture
def central_europe(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A place where local time is UTC + 1."""
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "CET-1")
        time.tzset()
        yield
    time.tzset()


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0, "0"),
        (999, "999"),
        (1000, "1K"),
        (1234, "1.2K"),
        (9949, "9.9K"),
        (9999, "10K"),
        (45_000, "45K"),
        (850_000, "850K"),
        (999_499, "999K"),
        (999_900, "1M"),
        (1_200_000, "1.2M"),
        (2_000_000_000, "2B"),
        (5_000_000_000_000, "5000B"),
    ],
)
def test_numbers(value: int, shown: str) -> None:
    assert number(value) == shown


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (-1.0, "0.0s"),
        (0.31, "0.3s"),
        (3.4, "3.4s"),
        (9.94, "9.9s"),
        (9.96, "10s"),
        (12.2, "12s"),
        (59.7, "1m"),
        (367.0, "6m7s"),
        (3599.9, "1h"),
        (3725.0, "1h2m"),
        (90_000.0, "25h"),
    ],
)
def test_durations(seconds: float, shown: str) -> None:
    assert duration(seconds) == shown


@pytest.mark.parametrize(
    ("dollars", "shown"), [(5.76, "$5.76"), (0.0, "$0.00"), (0.004, "<$0.01"), (0.01, "$0.01")]
)
def test_money(dollars: float, shown: str) -> None:
    assert money(dollars) == shown


def test_one_is_singular() -> None:
    assert [counted(n, "line") for n in (0, 1, 2)] == ["0 lines", "1 line", "2 lines"]


@pytest.mark.usefixtures("central_europe")
def test_times_are_local_and_name_another_day() -> None:
    evening = 1_700_000_000.0  # Tuesday 2023-11-14 22:13:20 UTC
    assert clock_time(evening) == "23:13:20"
    assert coming_time(evening + 60, evening) == "23:14:20"
    assert coming_time(evening + 3600, evening) == "Wed 00:13:20"


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(-1, "0s"), (0.9, "0s"), (9.99, "9s"), (41, "41s"), (130.7, "2m10s"), (3720, "1h2m")],
)
def test_time_that_is_watched_passing(seconds: float, shown: str) -> None:
    assert elapsed(seconds) == shown
