"""A forecast on one line for people, and as an object for programs (ADR 46)."""

import json

import pytest

from ralph.journal.forecast import NOTHING, Bound, Forecast, Range
from ralph.kernel.limits import Spent
from ralph.text.plain import columns
from ralph.ui.forecast_words import brief_words, forecast_dict, forecast_words

KNOWN = Forecast(
    34,
    "run",
    Range(4, 6, 9),
    Range(700.0, 1100.0, 2400.0),
    Range(1.2, 2.0, 3.8),
    after=Spent(3, 300.0, 0.5),
    bounds=(Bound("$5", holds=True),),
)
BOUNDS = {
    "": (),
    "; the limit of $5 will likely hold": (Bound("$5", holds=True),),
    "; the limits will likely hold": (Bound("$5", holds=True), Bound("2h", holds=True)),
    "; the limit of $5 will likely not hold": (Bound("2h", holds=None), Bound("$5", holds=False)),
    "; it is uncertain whether the limit of 2h will hold": (
        Bound("2h", holds=None),
        Bound("$5", holds=True),
    ),
    "; the limits of 9 iterations and $5 will likely not hold": (
        Bound("9 iterations", holds=False),
        Bound("$5", holds=False),
    ),
}


def made(**fields: object) -> Forecast:
    return Forecast(
        **{name: getattr(KNOWN, name) for name in Forecast.__match_args__} | fields  # type: ignore[arg-type]
    )


def test_all_of_it_is_one_line() -> None:
    assert forecast_words(KNOWN) == (
        "4 to 9 more iterations (about 6), 12m to 40m, $1.20 to $3.80; "
        "the limit of $5 will likely hold (by 34 earlier runs)"
    )
    assert brief_words(KNOWN) == "4-9 more iterations, 12m-40m, $1.20-$3.80; within the limits"
    assert columns(brief_words(KNOWN)) < 80


def test_of_a_run_that_begins_there_is_no_more() -> None:
    assert forecast_words(KNOWN, more=False).startswith("4 to 9 iterations (about 6), ")


@pytest.mark.parametrize(("words", "bounds"), BOUNDS.items())
def test_the_limit_that_matters_most_is_named(words: str, bounds: tuple[Bound, ...]) -> None:
    assert f"$3.80{words} (by" in forecast_words(made(bounds=bounds))


@pytest.mark.parametrize(
    ("holds", "words"),
    [
        (False, "; 9 iterations and $5 will likely not be enough"),
        (None, "; 9 iterations and $5 may not be enough"),
        (True, "; within the limits"),
    ],
)
def test_the_same_briefly(holds: bool | None, words: str) -> None:
    bounds = (Bound("9 iterations", holds), Bound("$5", holds))
    assert brief_words(made(bounds=bounds)).endswith(words)


def test_briefly_without_limits() -> None:
    assert brief_words(made(bounds=())) == "4-9 more iterations, 12m-40m, $1.20-$3.80"


def test_what_is_certain_is_no_interval() -> None:
    found = made(iterations=Range(1, 1, 1), seconds=Range(3599.0, 3600.0, 3601.0), cost_usd=None)
    assert forecast_words(found).startswith("1 more iteration, about 1h; ")


@pytest.mark.parametrize(
    ("low", "high", "words"),
    [
        (0.4, 0.9, "0.4s to 0.9s"),
        (9.1, 119.0, "9s to 1m59s"),
        (209.0, 1955.0, "3m to 33m"),
        (3700.0, 86_000.0, "1h to 23h55m"),
    ],
)
def test_times_are_not_said_more_exactly_than_they_are_known(
    low: float, high: float, words: str
) -> None:
    assert f", {words}, " in forecast_words(made(seconds=Range(low, low, high)))


def test_nothing_left_and_nobody_knows() -> None:
    nothing = Forecast(9, "task", NOTHING, NOTHING, NOTHING)
    unknown = Forecast(2, "run", why="too few runs to tell (2 of 5)")
    for words in (forecast_words, brief_words):
        assert words(nothing) == "nothing is left to do"
        assert words(unknown) == "too few runs to tell (2 of 5)"


@pytest.mark.parametrize(
    ("count", "unit", "words"),
    [
        (1, "run", "1 earlier run"),
        (7, "task", "7 earlier tasks"),
        (2, "story", "2 earlier stories"),
    ],
)
def test_it_says_on_what_it_stands(count: int, unit: str, words: str) -> None:
    assert forecast_words(made(observations=count, unit=unit)).endswith(f"(by {words})")


def test_the_object() -> None:
    """The names are fixed: iterations, seconds, cost_usd with low, median, high; limit_holds."""
    found = forecast_dict(KNOWN)
    assert json.loads(json.dumps(found)) == {
        "iterations": {"low": 4, "median": 6, "high": 9},
        "seconds": {"low": 700.0, "median": 1100.0, "high": 2400.0},
        "cost_usd": {"low": 1.2, "median": 2.0, "high": 3.8},
        "limit_holds": True,
        "after": {"iterations": 3, "seconds": 300.0, "cost_usd": 0.5},
        "observations": 34,
        "of": "runs",
        "words": forecast_words(KNOWN),
    }
    nothing = forecast_dict(None)
    assert nothing == {"iterations": None, "seconds": None, "cost_usd": None, "limit_holds": None}


def test_what_nobody_knows_is_null() -> None:
    found = forecast_dict(Forecast(2, "task", why="too few tasks to tell (2 of 5)"))
    assert found is not None
    assert [found[name] for name in ("iterations", "seconds", "cost_usd", "limit_holds")] == [
        None
    ] * 4
    assert (found["observations"], found["of"]) == (2, "tasks")
