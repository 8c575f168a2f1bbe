"""A forecast in words for people, and as an object for programs."""

from typing import Any

from ralph.journal.forecast import Bound, Forecast, Range, plural
from ralph.text.words import counted, duration, elapsed, money

_BRIEFLY = (
    (False, "{} will likely not be enough"),
    (None, "{} may not be enough"),
    (True, "within the limits"),
)
_EXACT = 120  # seconds, from which minutes are enough
_LIMITS = (
    (False, "{} will likely not hold"),
    (None, "it is uncertain whether {} will hold"),
    (True, "{} will likely hold"),
)


def forecast_words(forecast: Forecast, *, more: bool = True) -> str:
    """`4 to 9 more iterations (about 6), 12m to 40m, $1.20 to $3.80; the limit of $5 will likely
    hold (by 34 earlier runs)`; or why nobody can tell. Where nothing has begun there is no more."""
    if forecast.iterations is None:
        return forecast.why
    if not forecast.iterations.high:
        return "nothing is left to do"
    amounts = (
        _iterations(forecast.iterations, "more iteration" if more else "iteration"),
        _between(forecast.seconds, _about),
        _between(forecast.cost_usd, money),
    )
    limits = _limits(forecast.bounds)
    words = ", ".join(filter(None, amounts)) + (f"; {limits}" if limits else "")
    return f"{words} (by {counted_units(forecast)})"


def brief_words(forecast: Forecast) -> str:
    """The same on a line of a terminal: `4-9 more iterations, 12m-40m, $1.20-$3.80; within the
    limits`."""
    if forecast.iterations is None or not forecast.iterations.high:
        return forecast_words(forecast)
    words = ", ".join(
        filter(
            None,
            (
                _iterations(forecast.iterations, "more iteration").partition(" (")[0],
                _between(forecast.seconds, _about),
                _between(forecast.cost_usd, money),
            ),
        )
    ).replace(" to ", "-")
    for holds, said in _BRIEFLY:
        if named := [bound.words for bound in forecast.bounds if bound.holds is holds]:
            return f"{words}; {said.format(' and '.join(named))}"
    return words


def counted_units(forecast: Forecast) -> str:
    number, unit = forecast.observations, forecast.unit
    return f"{number} earlier {unit if number == 1 else plural(unit)}"


def _iterations(range_: Range, noun: str) -> str:
    low, median, high = (int(number) for number in (range_.low, range_.median, range_.high))
    if low == high:
        return counted(low, noun)
    return f"{low} to {high} {noun}s (about {median})"


def _about(seconds: float) -> str:
    """A time that is a guess, and is not said to the second."""
    if seconds < _EXACT:
        return elapsed(round(seconds)) if seconds >= 1 else duration(seconds)
    step = 60 if seconds < 3600 else 300
    return duration(round(seconds / step) * step)


def _between(range_: Range | None, said: Any) -> str:  # noqa: ANN401
    if range_ is None or not range_.high:
        return ""
    low, high = said(range_.low), said(range_.high)
    return f"about {low}" if low == high else f"{low} to {high}"


def _limits(bounds: tuple[Bound, ...]) -> str:
    """The limits that matter most: those that will not hold, else those that may not."""
    for holds, words in _LIMITS:
        if named := [bound.words for bound in bounds if bound.holds is holds]:
            some = f"the limit of {named[0]}" if len(named) == 1 else _several(named, holds)
            return words.format(some)
    return ""


def _several(named: list[str], holds: bool | None) -> str:
    return "the limits" if holds else f"the limits of {' and '.join(named)}"


def forecast_dict(forecast: Forecast | None) -> dict[str, Any]:
    """The forecast for programs, always an object; null is what nobody can tell."""
    if forecast is None:
        return dict.fromkeys(("iterations", "seconds", "cost_usd", "limit_holds"))
    after = forecast.after
    return {
        "iterations": _range(forecast.iterations, 0),
        "seconds": _range(forecast.seconds, 1),
        "cost_usd": _range(forecast.cost_usd, 4),
        "limit_holds": forecast.limit_holds,
        "after": {
            "iterations": after.iterations,
            "seconds": round(after.seconds, 1),
            "cost_usd": round(after.dollars, 4),
        },
        "observations": forecast.observations,
        "of": plural(forecast.unit),
        "words": forecast_words(forecast),
    }


def _range(range_: Range | None, places: int) -> dict[str, float] | None:
    if range_ is None:
        return None
    found = {"low": range_.low, "median": range_.median, "high": range_.high}
    return {name: round(x, places) if places else int(x) for name, x in found.items()}
