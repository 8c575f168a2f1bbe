"""Several runs beside each other."""

from collections.abc import Sequence

from ralph.text.words import counted, duration, money, number
from ralph.ui.paper.markup import EMPTY, Markup, foreign, joined, table, tag
from ralph.ui.paper.plots.svg import (
    BOTTOM,
    HEIGHT,
    LEFT,
    RIGHT,
    TOP,
    Plot,
    Scale,
    grid,
    label,
    path,
    picture,
    thinned,
    ticks,
    whole_ticks,
)
from ralph.ui.paper.words import cost, cut, headline, who
from ralph.ui.recap.values import Point, Recap, TaskState

HEAD = ("Run", "Outcome", "Tasks", "Iterations", "Time", "Cost", "Tokens", "Agent", "Not believed")
_WIDTH = 980.0
_COLOURS = 6  # lines with a colour and a dash of their own
_MOST_LINES = 12


def row_of(recap: Recap) -> tuple[str, ...]:
    """The cells of a run, in the order of `HEAD`."""
    done = sum(task.state is TaskState.DONE for task in recap.tasks)
    spent, usage = recap.spent, recap.spent.usage
    uncounted = (
        f" + {spent.uncounted} unknown" if spent.uncounted and spent.dollars is not None else ""
    )
    claims = sum(bool(i.judgement and i.judgement.is_disbelieved) for i in recap.iterations)
    return (
        recap.run,
        headline(recap)[1],
        f"{done} of {len(recap.tasks)}" if recap.tasks else "–",
        str(spent.iterations),
        duration(spent.seconds),
        f"{cost(spent.dollars)}{uncounted}",
        f"{number(usage.all_input)} / {number(usage.output)}" if usage.all_input else "–",
        who(recap) or "–",
        str(claims) if claims else "–",
    )


def comparison(recaps: Sequence[Recap]) -> Markup:
    """A row for each run that leads to it, and what each got for its money or its time."""
    rows = []
    for place, recap in enumerate(recaps):
        name, outcome, *others = row_of(recap)
        tone = headline(recap)[0]
        run = tag("a", tag("code", cut(name, 60)), href=f"#r{place}")
        cells = (tag("td", foreign(cut(other, 80)), class_="n") for other in others)
        rows.append([tag("td", run), tag("td", tag("b", outcome, class_=tone)), *cells])
    plot = compared(recaps)
    figure = EMPTY
    if plot is not None:
        caption = tag("figcaption", tag("b", plot.title), " ", plot.gist)
        figure = tag("figure", caption, tag("div", plot.svg, class_="drawing"), class_="is-wide")
    return joined((table(HEAD, rows, class_="compare"), figure))


def compared(recaps: Sequence[Recap]) -> Plot | None:
    """Tasks done, against money where every run's is known, else against time; or money over
    time where no run has several tasks."""
    lines = [(recap, recap.points) for recap in recaps if len(recap.points) > 1][:_MOST_LINES]
    if len(lines) < 2:
        return None
    has_tasks = any(point.done > 1 for _, points in lines for point in points)
    priced = all(points[-1].dollars > 0 for _, points in lines)
    if not (has_tasks or priced):
        return None
    by_money = has_tasks and priced

    def place(point: Point, first: Point) -> tuple[float, float]:
        across = point.dollars if by_money else point.time - first.time
        return across, float(point.done if has_tasks else point.dollars)

    drawn = [
        (recap, [place(points[n], points[0]) for n in thinned(points)]) for recap, points in lines
    ]
    across = max(x for _, places in drawn for x, _ in places)
    up = max(y for _, places in drawn for _, y in places)
    if not (across > 0 and up > 0):
        return None
    of = "tasks done" if has_tasks else "money spent"
    over = "money" if by_money else "time"
    title = f"{of.capitalize()}, against {over}"
    gist = f"{counted(len(lines), 'run')}: {of} against {over}."
    marks = whole_ticks(up) if has_tasks else ticks(up)
    below = ticks(across, 6)
    x = Scale(0.0, below[-1] if by_money else across, LEFT, _WIDTH - RIGHT)
    y = Scale(0.0, marks[-1], HEIGHT - BOTTOM, TOP)
    words = money if by_money else duration
    inner = (
        grid(y, marks, lambda m: f"{m:g}" if has_tasks else money(m), _WIDTH - RIGHT),
        joined(
            label(x(m), HEIGHT - 8, words(m) if m else "0", "tick", "middle" if m else "start")
            for m in below
            if m <= x.high
        ),
        joined(_line(recap, places, n, x, y) for n, (recap, places) in enumerate(drawn)),
    )
    return Plot("comparison", title, gist, picture(gist, *inner, width=_WIDTH), is_wide=True)


def _line(recap: Recap, places: list[tuple[float, float]], n: int, x: Scale, y: Scale) -> Markup:
    """A run's line, and the last letters of its id at its end."""
    ends = x(places[-1][0]), y(places[-1][1])
    colour = f"run-{n % _COLOURS}"
    drawn = tag("path", d=path((x(a), y(b)) for a, b in places), class_=f"line {colour}")
    anchor = "end" if ends[0] > _WIDTH - 120 else "start"
    shift = -6 if anchor == "end" else 8
    above = -8 if ends[1] > TOP + 14 else 16
    name = label(
        ends[0] + shift,
        ends[1] + above,
        cut(recap.run.partition("-")[2] or recap.run, 40),
        f"end {colour}",
        anchor,
    )
    dot = tag(
        "circle", tag("title", recap.run), cx=ends[0], cy=ends[1], r=4, class_=f"dot {colour}"
    )
    return joined((drawn, dot, name))
