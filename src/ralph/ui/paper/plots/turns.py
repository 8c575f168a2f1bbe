"""The time of each iteration, split into the agent's, the gates' and waiting."""

import math
from collections.abc import Iterator

from ralph.kernel.value import value
from ralph.text.words import counted, duration
from ralph.ui.paper.markup import Content, Markup, joined
from ralph.ui.paper.plots.svg import (
    BOTTOM,
    HEIGHT,
    LEFT,
    RIGHT,
    TOP,
    WIDTH,
    Plot,
    Scale,
    box,
    grid,
    label,
    legend,
    picture,
    seconds,
    time_ticks,
    whole_ticks,
)
from ralph.ui.paper.words import counts_by_task, turn_words
from ralph.ui.recap.values import Iteration, Recap

_MOST_BARS = 120
_KINDS = (("agent", "agent"), ("gates", "checks"), ("waiting", "waiting"))


@value
class _Bar:
    """One iteration; of a long run the mean of several that follow each other. They are counted
    through, whatever task they are of."""

    name: str  # of the first
    first: int
    last: int
    parts: tuple[float, float, float]

    @property
    def total(self) -> float:
        return sum(self.parts)

    @property
    def hint(self) -> str:
        several = self.name
        if self.last > self.first:
            several = f"Iterations {self.first} to {self.last}, on average"
        shown = ", ".join(
            f"{words} {duration(took)}"
            for (_, words), took in zip(_KINDS, self.parts, strict=True)
            if took
        )
        return f"{several}: {shown or 'no time'}"


def turns_plot(recap: Recap) -> Plot | None:
    """A bar for each iteration."""
    bars = list(_bars(recap))
    longest = max((bar.total for bar in bars), default=0.0)
    if len(bars) < 2 or not longest > 0:
        return None
    sums = [sum(part) for part in zip(*(_parts(i) for i in recap.iterations), strict=True)]
    gist = "In all " + ", ".join(
        f"{duration(took)} {words}"
        for took, words in zip(sums, ("of the agent", "of checks", "of waiting"), strict=True)
        if took >= 0.05
    )
    marks = time_ticks(longest, 4)
    y = Scale(0.0, max(longest, marks[-1]), HEIGHT - BOTTOM, TOP)
    x = Scale(0.0, float(len(bars)), LEFT, WIDTH - RIGHT)
    drawn = joined(_drawn(bar, place, x, y) for place, bar in enumerate(bars))
    used = [kind for kind, took in zip(_KINDS, sums, strict=True) if took >= 0.05]
    inner = (
        legend(used),
        grid(y, marks, seconds, WIDTH - RIGHT),
        drawn,
        _numbers(bars, x),
    )
    rows: tuple[tuple[Content, ...], ...] = tuple(
        (bar.first, *(duration(part) for part in bar.parts)) for bar in bars
    )
    head = ("iteration", "agent", "checks", "waiting")
    svg = picture(f"{gist}.", *inner)
    words = f"{gist}, in {counted(len(recap.iterations), 'iteration')}."
    return Plot("turns", "Time per iteration", words, svg, head, rows)


def _parts(iteration: Iteration) -> tuple[float, float, float]:
    given = (iteration.agent_seconds, iteration.gate_seconds, iteration.wait_seconds)
    agent, gates, wait = (max(0.0, each) if math.isfinite(each) else 0.0 for each in given)
    return agent, gates, wait


def _bars(recap: Recap) -> Iterator[_Bar]:
    iterations, by_task = recap.iterations, counts_by_task(recap)
    size = math.ceil(len(iterations) / _MOST_BARS) or 1
    for start in range(0, len(iterations), size):
        several = iterations[start : start + size]
        agent, gates, wait = zip(*map(_parts, several), strict=True)
        count = len(several)
        means = (sum(agent) / count, sum(gates) / count, sum(wait) / count)
        first, last = several[0].number, several[-1].number
        if by_task:
            first, last = start + 1, start + count
        yield _Bar(turn_words(recap, several[0]), first, last, means)


def _drawn(bar: _Bar, place: int, x: Scale, y: Scale) -> Markup:
    """Its parts on top of each other."""
    gap = min(3.0, 0.25 * (x(1) - x(0)))
    width = min(40.0, x(place + 1) - x(place) - gap)
    left = x(place + 0.5) - width / 2
    parts, below = [], 0.0
    for (class_, _), took in zip(_KINDS, bar.parts, strict=True):
        if took > 0:
            top = y(below + took)
            parts.append(box((left, top), (width, y(below) - top), class_, bar.hint))
        below += took
    return joined(parts)


def _numbers(bars: list[_Bar], x: Scale) -> Markup:
    """A few of the iterations' numbers, below."""
    wanted = {max(1.0, mark) for mark in whole_ticks(bars[-1].last, 5)}
    return joined(
        label(x(place + 0.5), HEIGHT - 8, str(bar.first), "tick", "middle")
        for place, bar in enumerate(bars)
        if any(bar.first <= mark <= bar.last for mark in wanted)
    )
