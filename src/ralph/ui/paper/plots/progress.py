"""Tasks that are left over time, and reviews."""

from collections.abc import Iterator

from ralph.text.words import counted, duration
from ralph.ui.paper.markup import Markup, clock, joined, tag
from ralph.ui.paper.plots.svg import (
    CHARACTER,
    RIGHT,
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
    time_axis,
    whole_ticks,
)
from ralph.ui.paper.words import cut
from ralph.ui.recap.values import Point, Recap, ReviewRow

_ROW = 24.0  # pixels of a story
_MOST_STORIES = 24
_MOST_REVIEWS = 14  # of one story
_NAME = 20  # characters


def burndown_plot(recap: Recap) -> Plot | None:
    """Tasks that are left, or where the list is not known those that are done."""
    points = known(recap.points)
    falls = bool(points) and all(point.open is not None for point in points)
    amounts = [(p.open or 0) if falls else p.done for p in points]
    if len(points) < 2 or len(set(amounts)) < 2 or max(amounts) < 2:
        return None
    noun = "story" if recap.profile == "reviewed" else "task"
    nouns = "stories" if noun == "story" else "tasks"
    marks = whole_ticks(max(amounts))
    x, y = over_time(points, marks[-1])
    some = list(thinned(points))
    last, took = amounts[-1], duration(x.high - x.low)
    gist = f"{last} of {max(amounts)} {nouns} left after {took}."
    if not falls:
        gist = f"{last} {noun if last == 1 else nouns} done in {took}."
    ending = "left" if falls else "done"
    inner = (
        grid(y, marks, lambda mark: f"{mark:g}", WIDTH - RIGHT),
        time_axis(x),
        tag("path", d=path((x(points[n].time), y(amounts[n])) for n in some), class_="line done"),
        joined(_steps(points, amounts, x, y)),
        label(WIDTH - RIGHT, y(last) - 9, f"{last} {ending}", "end done", "end"),
    )
    title = f"{nouns.capitalize()} left to do" if falls else f"{nouns.capitalize()} done"
    rows = tuple((duration(points[n].time - x.low), amounts[n]) for n in some[:60])
    return Plot("burndown", title, gist, picture(gist, *inner), ("after", ending), rows)


def _steps(points: list[Point], amounts: list[int], x: Scale, y: Scale) -> Iterator[Markup]:
    """A dot where one was finished; too many would be a stripe."""
    changes = [n for n in range(1, len(points)) if amounts[n] != amounts[n - 1]]
    for n in changes if len(changes) <= 60 else ():
        hint = f"{amounts[n]} after {duration(points[n].time - x.low)}"
        yield tag(
            "circle",
            tag("title", hint),
            cx=x(points[n].time),
            cy=y(amounts[n]),
            r=3.5,
            class_="dot done",
        )


def reviews_plot(recap: Recap) -> Plot | None:
    """A row for each story, a mark for each of its reviews."""
    stories: dict[str, list[ReviewRow]] = {}
    for review in recap.reviews:
        stories.setdefault(review.story, []).append(review)
    if len(recap.reviews) < 2:
        return None
    shown = dict([*stories.items()][:_MOST_STORIES])
    named = max(len(cut(story, _NAME)) for story in shown)
    left = 12 + CHARACTER * named
    room = min(34.0, (WIDTH - left - 60) / _MOST_REVIEWS)
    approved = sum(each[-1].outcome == "approved" for each in stories.values())
    gist = (
        f"{counted(len(recap.reviews), 'review')}: {approved} of "
        f"{len(stories)} {'story' if len(stories) == 1 else 'stories'} approved."
    )
    height = 14 + _ROW * len(shown)
    inner = joined(
        _story(story, reviews, 20 + _ROW * place, left, room)
        for place, (story, reviews) in enumerate(shown.items())
    )
    rows = tuple(
        (story, clock(each.time), each.outcome.replace("_", " "), cut(each.feedback, 120))
        for story, reviews in shown.items()
        for each in reviews[:_MOST_REVIEWS]
    )
    svg = picture(gist, inner, height=height)
    return Plot(
        "reviews", "Reviews per story", gist, svg, ("story", "at", "outcome", "feedback"), rows
    )


def _story(story: str, reviews: list[ReviewRow], y: float, left: float, room: float) -> Markup:
    """Its name, its reviews in a row, and their number."""
    shown = reviews[-_MOST_REVIEWS:]
    end = left + room * len(shown)
    parts = [
        label(left - 12, y + 4, cut(story, _NAME), "name", "end"),
        line(left, y, end - room / 2, y, "grid"),
        *(_review(each, left + room * (n + 0.25), y) for n, each in enumerate(shown)),
        label(end + 4, y + 4, str(len(reviews)), "tick"),
    ]
    return joined(parts)


def _review(review: ReviewRow, x: float, y: float) -> Markup:
    """A dot with a tick if it approved; a diamond if it asks for changes."""
    hint = tag("title", f"{review.outcome.replace('_', ' ')}: {cut(review.feedback, 200)}")
    if review.outcome == "approved":
        tick = f"M{x - 3.4:.1f} {y:.1f}l2.4 2.6 4.4-5"
        dot = tag("circle", hint, cx=x, cy=y, r=7.5, class_="good")
        return joined((dot, tag("path", d=tick, class_="tick-mark")))
    return tag("path", hint, d=f"M{x:.1f} {y - 8:.1f}l8 8-8 8-8-8z", class_="bad")
