"""A plot's parts: scales, round ticks, the frame with its axes."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence

from ralph.kernel.value import value
from ralph.text.words import duration
from ralph.ui.paper.markup import EMPTY, Content, Markup, joined, tag
from ralph.ui.recap.values import Point

WIDTH, HEIGHT = 480.0, 232.0
LEFT, RIGHT, TOP, BOTTOM = 46.0, 10.0, 22.0, 26.0  # room around the drawing
CHARACTER = 7.2  # the width of one, on average
MOST_POINTS = 240  # of a line: more is less than a pixel apart
_SPANS = (
    *(0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800),
    *(3600, 7200, 10_800, 21_600, 43_200, 86_400, 172_800, 604_800),
)


@value
class Plot:
    """A drawing with its title, the gist in a sentence, and the numbers behind it."""

    name: str
    title: str
    gist: str
    svg: Markup
    head: tuple[str, ...] = ()
    rows: tuple[tuple[Content, ...], ...] = ()
    is_wide: bool = False


@value
class Scale:
    """Leads from a range of values to a range of the drawing."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, number: float) -> float:
        span = self.high - self.low
        share = (number - self.low) / span if span > 0 else 0.0
        return self.start + min(1.0, max(0.0, share)) * (self.end - self.start)


def picture(gist: str, *inside: Content, width: float = WIDTH, height: float = HEIGHT) -> Markup:
    """The drawing as a whole."""
    return tag(
        "svg",
        tag("title", gist),
        *inside,
        view_box=f"0 0 {width:g} {height:g}",
        role="img",
        aria_label=gist,
        class_="plot",
    )


def ticks(high: float, most: int = 4) -> list[float]:
    """Round numbers from 0 on, the last at or above `high`."""
    if not (high > 0 and math.isfinite(high)):
        return [0.0, 1.0]
    power = 10.0 ** math.floor(math.log10(high / most))
    step = next(s * power for s in (1, 2, 3, 5, 10, 20) if s * power * most >= high * 0.999)
    return [step * n for n in range(math.ceil(round(high / step, 6)) + 1)]


def whole_ticks(high: float, most: int = 4) -> list[float]:
    """The same for what is counted."""
    return ticks(high, most) if high >= most else [float(n) for n in range(math.ceil(high) + 1)]


def time_ticks(seconds: float, most: int = 5) -> list[float]:
    """Round durations from 0 up to so many seconds."""
    step = next((s for s in _SPANS if s * most >= seconds), math.ceil(seconds / most))
    return [step * n for n in range(int(seconds / step) + 1)] if seconds > 0 else [0.0]


def label(x: float, y: float, words: str, class_: str = "", anchor: str = "") -> Markup:
    return tag("text", words, x=x, y=y, class_=class_ or None, text_anchor=anchor or None)


def line(x1: float, y1: float, x2: float, y2: float, class_: str) -> Markup:
    return tag("line", x1=x1, y1=y1, x2=x2, y2=y2, class_=class_)


def box(
    corner: tuple[float, float], size: tuple[float, float], class_: str, hint: str = ""
) -> Markup:
    """A rectangle, with a hint where somebody points at it."""
    inner = tag("title", hint) if hint else EMPTY
    width, height = (max(0.0, each) for each in size)
    return tag("rect", inner, x=corner[0], y=corner[1], width=width, height=height, class_=class_)


def grid(y: Scale, marks: Sequence[float], words: Callable[[float], str], right: float) -> Markup:
    """Lines across the drawing with their values at the left."""
    return joined(
        part
        for mark in marks
        for part in (
            line(LEFT, y(mark), right, y(mark), "axis" if mark == 0 else "grid"),
            label(LEFT - 6, y(mark) + 4, words(mark), "tick", "end"),
        )
    )


def seconds(mark: float) -> str:
    """A round duration: 5s, where `duration` says 5.0s."""
    return f"{mark:g}s" if 0 < mark < 60 else duration(mark) if mark else "0"


def time_axis(x: Scale, height: float = HEIGHT) -> Markup:
    """Durations since the beginning, below the drawing."""
    marks = time_ticks(x.high - x.low)
    return joined(
        label(x(x.low + mark), height - 8, seconds(mark), "tick", "middle" if n else "start")
        for n, mark in enumerate(marks)
    )


def known(points: Iterable[Point]) -> list[Point]:
    """The points in order, without those that no run makes: a journal may have been edited."""
    found = [p for p in points if math.isfinite(p.time) and math.isfinite(p.dollars)]
    return sorted(found, key=lambda point: point.time)


def over_time(points: Sequence[Point], high: float) -> tuple[Scale, Scale]:
    """The scales of amounts up to so many over the time of these points."""
    x = Scale(points[0].time, points[-1].time, LEFT, WIDTH - RIGHT)
    return x, Scale(0.0, high, HEIGHT - BOTTOM, TOP)


def path(points: Iterable[tuple[float, float]], base: float | None = None) -> str:
    """A line in steps: a value holds until the next is known. With a base, the area above it."""
    words: list[str] = []
    first = 0.0
    for px, py in points:
        first = first if words else px
        words.append(f"H{px:.1f}V{py:.1f}" if words else f"M{px:.1f} {py:.1f}")
    if base is not None and words:
        words.append(f"V{base:.1f}H{first:.1f}Z")
    return "".join(words)


def thinned(items: Sequence[object], most: int = MOST_POINTS) -> Iterator[int]:
    """The places of so many of them at most, evenly, the first and the last among them."""
    count = len(items)
    if count <= most:
        yield from range(count)
        return
    yield from sorted({round(n * (count - 1) / (most - 1)) for n in range(most)})


def legend(entries: Iterable[tuple[str, str]], x: float = LEFT) -> Markup:
    """Small boxes with their words, in a row above the drawing."""
    parts: list[Markup] = []
    for class_, words in entries:
        parts += [box((x, 5), (9, 9), class_), label(x + 14, 13, words, "key")]
        x += 14 + CHARACTER * len(words) + 18
    return joined(parts)
