"""Money and tokens over time."""

from ralph.text.words import duration, money, number
from ralph.ui.paper.markup import EMPTY, Markup, joined, tag
from ralph.ui.paper.plots.svg import (
    BOTTOM,
    HEIGHT,
    LEFT,
    RIGHT,
    TOP,
    WIDTH,
    Plot,
    Scale,
    grid,
    known,
    label,
    line,
    over_time,
    path,
    picture,
    thinned,
    ticks,
    time_axis,
)
from ralph.ui.recap.values import Point, Recap

_NEAR = 0.2  # of the limit: what is spent of it is worth seeing beside it
_ROWS = 40
_FLOOR = HEIGHT - BOTTOM


def money_plot(recap: Recap) -> Plot | None:
    """Dollars over time, and the limit where it is near."""
    points = known(recap.points)
    if len(points) < 2 or not (spent := max(point.dollars for point in points)) > 0:
        return None
    limit = recap.spent.max_dollars
    near = limit is not None and spent >= _NEAR * limit
    marks = ticks(max(spent, limit if near and limit else 0.0))
    x, y = over_time(points, marks[-1])
    of = f" of {money(limit)}" if limit is not None else ""
    gist = f"{money(spent)}{of} spent in {duration(x.high - x.low)}."
    inner = [
        grid(y, marks, lambda mark: f"${mark:g}", WIDTH - RIGHT),
        time_axis(x),
        _line(points, "dollars", x, y),
    ]
    if near and limit is not None:
        inner.append(line(LEFT, y(limit), WIDTH - RIGHT, y(limit), "limit"))
        inner.append(label(LEFT + 6, y(limit) - 5, f"limit {money(limit)}", "limit-word"))
    elif limit is not None:
        words = f"limit {money(limit)}, far above ↑"
        inner.append(label(WIDTH - RIGHT, TOP - 8, words, "limit-word", "end"))
    inner.append(_end(x(points[-1].time), y(spent), money(spent), "money"))
    rows = tuple((duration(point.time - x.low), money(point.dollars)) for point in _some(points))
    return Plot("money", "Money", gist, picture(gist, *inner), ("after", "spent"), rows)


def tokens_plot(recap: Recap) -> Plot | None:
    """Tokens over time, read and written."""
    points = known(recap.points)
    if len(points) < 2 or not (most := max(p.tokens_in for p in points)):
        return None
    last = points[-1]
    marks = ticks(most)
    x, y = over_time(points, marks[-1])
    gist = f"{number(last.tokens_in)} tokens read and {number(last.tokens_out)} written."
    read = _end(x(last.time), y(last.tokens_in), f"{number(last.tokens_in)} read", "in")
    written = _end(x(last.time), y(last.tokens_out), f"{number(last.tokens_out)} written", "out")
    inner = (
        grid(y, marks, lambda mark: number(round(mark)), WIDTH - RIGHT),
        time_axis(x),
        _line(points, "tokens_in", x, y),
        _line(points, "tokens_out", x, y),
        read,
        written,
    )
    rows = tuple(
        (duration(p.time - x.low), number(p.tokens_in), number(p.tokens_out)) for p in _some(points)
    )
    head = ("after", "read", "written")
    return Plot("tokens", "Tokens", gist, picture(gist, *inner), head, rows)


def _some(points: list[Point]) -> list[Point]:
    return [points[place] for place in thinned(points, _ROWS)]


def _line(points: list[Point], name: str, x: Scale, y: Scale) -> Markup:
    """A line in steps; below that of money the area is tinted."""
    class_ = {"dollars": "money", "tokens_in": "in", "tokens_out": "out"}[name]
    places = [(x(points[n].time), y(getattr(points[n], name))) for n in thinned(points)]
    area = tag("path", d=path(places, _FLOOR), class_="area") if name == "dollars" else EMPTY
    return joined((area, tag("path", d=path(places), class_=f"line {class_}")))


def _end(across: float, up: float, words: str, class_: str) -> Markup:
    """The dot at a line's end, with its words."""
    above = up - 9 if up > 18 else up + 18
    return joined(
        (
            tag("circle", cx=across, cy=up, r=3.5, class_=f"dot {class_}"),
            label(across - 2, above, words, f"end {class_}", "end"),
        )
    )
