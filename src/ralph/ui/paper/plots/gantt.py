"""Workers side by side: a row for each that there is room for, a bar for each task."""

import math

from ralph.kernel.value import value
from ralph.text.words import counted, duration
from ralph.ui.paper.looks import look_of
from ralph.ui.paper.markup import EMPTY, Markup, clock, joined, tag
from ralph.ui.paper.plots.svg import (
    CHARACTER,
    Plot,
    Scale,
    box,
    label,
    line,
    picture,
    time_axis,
    time_ticks,
)
from ralph.ui.paper.words import cut, turn_words
from ralph.ui.recap.values import Iteration, Lane, Recap

_WIDTH, _LEFT, _TOP, _ROW, _BAR = 980.0, 30.0, 8.0, 38.0, 26.0
_MOST_ROWS = 32
_OUTCOMES = {"done": "good", "parked": "notice", "": "active"}


@value
class _Bar:
    """A lane with a known end, in its row."""

    row: int
    lane: Lane
    ended: float

    @property
    def class_(self) -> str:
        return _OUTCOMES.get(self.lane.outcome, "bad")


def gantt_plot(recap: Recap) -> Plot | None:
    """The tasks of each worker over time."""
    placed = _placed(recap)
    bars = [bar for bar in placed if bar.row < _MOST_ROWS]
    rows = 1 + max((bar.row for bar in bars), default=0)
    if len(bars) < 2 or (rows < 2 and recap.workers < 2):
        return None
    start, end = min(bar.lane.began for bar in bars), max(bar.ended for bar in bars)
    if not end > start:
        return None
    x = Scale(start, end, _LEFT, _WIDTH - 6)
    height = _TOP + _ROW * rows + 24
    busy = sum(bar.ended - bar.lane.began for bar in bars) / (end - start)
    tasks = counted(len(bars), "task")
    if len(placed) > len(bars):
        tasks = f"The first {len(bars)} of {counted(len(placed), 'task')}"
    gist = f"{tasks} in {duration(end - start)}, {busy:.1f} at once on average."
    lines = (
        line(x(start + t), _TOP, x(start + t), height - 24, "grid") for t in time_ticks(end - start)
    )
    inner = (
        joined(lines),
        joined(label(0, _TOP + _ROW * row + 18, str(row + 1), "name") for row in range(rows)),
        joined(_drawn(bar, recap, x) for bar in bars),
        time_axis(x, height),
    )
    svg = picture(gist, *inner, width=_WIDTH, height=height)
    told = tuple(
        (
            b.row + 1,
            b.lane.task,
            clock(b.lane.began),
            duration(b.ended - b.lane.began),
            b.lane.outcome or "at work",
        )
        for b in bars
    )
    head = ("row", "task", "from", "took", "outcome")
    return Plot("workers", "Workers", gist, svg, head, told, is_wide=True)


def _placed(recap: Recap) -> list[_Bar]:
    """The lanes in as few rows as hold them."""
    free: list[float] = []
    bars = []
    for lane in sorted(recap.lanes, key=lambda lane: lane.began):
        ended = recap.now if lane.ended is None else lane.ended
        if not (math.isfinite(lane.began) and math.isfinite(ended)):
            continue
        ended = max(ended, lane.began)
        row = next((n for n, since in enumerate(free) if since <= lane.began), len(free))
        free[row : row + 1] = [ended]
        bars.append(_Bar(row, lane, ended))
    return bars


def _drawn(bar: _Bar, recap: Recap, x: Scale) -> Markup:
    """The bar with its task, and the ends of its iterations."""
    left, right, y = x(bar.lane.began), x(bar.ended), _TOP + _ROW * bar.row
    took = duration(bar.ended - bar.lane.began)
    own = [each for each in recap.iterations if each.worker == bar.lane.worker]
    titles = [each.title for each in own if each.task == bar.lane.task and each.title][:1]
    outcome = bar.lane.outcome or "at work"
    turns = counted(len(own), "iteration")
    hint = f"{': '.join([bar.lane.task, *titles])}. {outcome}, {took}, {turns}."
    room = int((right - left - 8) / CHARACTER)
    words = {"good": "✓ ", "notice": "? ", "bad": "✕ "}.get(bar.class_, "") + bar.lane.task
    name = label(left + 6, y + 17, cut(words, room), "bar-word") if room > 3 else EMPTY
    marks = joined(_mark(recap, each, x, y) for each in own[:40])
    size = max(2.0, right - left - 1.5), _BAR
    return joined((box((left, y), size, f"bar {bar.class_}", hint), name, marks))


def _mark(recap: Recap, iteration: Iteration, x: Scale, y: float) -> Markup:
    """The end of an iteration below its bar: a diamond if a claim was not believed."""
    if iteration.ended is None or not math.isfinite(iteration.ended):
        return EMPTY
    across, below, look = x(iteration.ended), y + _BAR + 4, look_of(iteration)
    hint = tag("title", f"{turn_words(recap, iteration)}: {look.words}")
    if look.name == "disbelieved":
        d = f"M{across - 5:.1f} {below - 4:.1f}l5 5 5-5-5-5z"
        return tag("path", hint, d=d, class_="bad halo")
    return tag("circle", hint, cx=across - 2.5, cy=below, r=2.2, class_="ink")
