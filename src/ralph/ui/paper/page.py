"""The report of one run or several as one HTML file: nothing is fetched, nothing is executed."""

from base64 import b64encode
from collections.abc import Sequence
from functools import cache
from hashlib import sha256
from importlib.resources import files

from ralph import __version__
from ralph.text.words import counted
from ralph.ui.paper.achieved import achieved
from ralph.ui.paper.compare import comparison
from ralph.ui.paper.head import about, claims, figures, hero, shapes, strip, title_of, to_you
from ralph.ui.paper.iteration import iteration_part, room_of
from ralph.ui.paper.markup import EMPTY, Markup, clock, escaped, folded, joined, table, tag
from ralph.ui.paper.plots.catalog import plots_of
from ralph.ui.paper.plots.svg import Plot
from ralph.ui.paper.words import readable
from ralph.ui.recap.values import Recap

GENERATOR = "ralph report"  # by which the file is known as ours
_ROOM = 1_300_000  # bytes for what others wrote
_MOST = 1_900_000  # characters of the whole, and hardly any has two bytes
_LARGEST, _SMALLEST = 90_000, 600  # of one iteration
_SHEETS = ("style.css", "plots.css")


def page(recaps: Sequence[Recap]) -> str:
    """The page. What it shows of each iteration becomes shorter until it has its size."""
    assert recaps
    recaps = [readable(recap) for recap in recaps]
    count = sum(len(recap.iterations) for recap in recaps)
    each = max(_SMALLEST, min(_LARGEST, _ROOM // max(1, count)))
    while len(text := _page(recaps, each)) > _MOST and each:
        each = int(each * min(0.8, 0.9 * _MOST / len(text))) if each > _SMALLEST else 0
    return text


def style() -> str:
    return _sheets()[0]


@cache
def _sheets() -> tuple[str, str]:
    """The style of the page, and the hash by which the page allows it and no other."""
    here = files("ralph.ui.paper")
    css = "\n".join(here.joinpath(name).read_text("utf-8") for name in _SHEETS)
    return css, b64encode(sha256(css.encode()).digest()).decode()


def document(title: Markup, main: Markup, made: float, generator: str = GENERATOR) -> str:
    """A page in the style of a report, which fetches and executes nothing."""
    css, digest = _sheets()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    head = (
        tag("meta", charset="utf-8"),
        tag("meta", name="generator", content=f"{generator} {__version__}"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="referrer", content="no-referrer"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", title),
        Markup(f"<style>{css}</style>"),
    )
    foot = tag("footer", f"Made by ralph {__version__}, ", clock(made, "%Y-%m-%d %H:%M %Z"))
    body = tag("body", shapes(), tag("main", main), foot)
    return f"<!doctype html>\n{tag('html', tag('head', *head), body, lang='en')}\n"


def _page(recaps: Sequence[Recap], room: int) -> str:
    several = len(recaps) > 1
    title = escaped(f"{len(recaps)} runs of Ralph") if several else title_of(recaps[0])
    if several:
        top = tag("header", tag("h1", counted(len(recaps), "run"), class_="outcome"), class_="hero")
        runs = joined(
            tag("article", _run(recap, f"r{place}-", "h2", room), id=f"r{place}")
            for place, recap in enumerate(recaps)
        )
        main = joined((tag("section", top, comparison(recaps)), runs))
    else:
        main = tag("article", _run(recaps[0], "", "h1", room))
    return document(title, main, max(recap.now for recap in recaps))


def _run(recap: Recap, prefix: str, level: str, room: int) -> Markup:
    """A run from its outcome to where its journal lies."""
    limits = room_of(room)
    work, waits = (to_you(recap), achieved(recap)), bool(recap.left or recap.yours)
    iterations = joined(
        iteration_part(recap, each, f"{prefix}i{place}", limits)
        for place, each in enumerate(recap.iterations)
    )
    if iterations:
        left_out = "There are too many to show more than the verdict of each: ralph logs --events"
        note = tag("p", left_out, class_="gap") if limits.is_bare else EMPTY
        iterations = tag("section", tag("h2", "Iterations"), note, iterations, class_="iterations")
    return joined(
        (
            hero(recap, level),
            figures(recap),
            strip(recap, prefix),
            claims(recap, prefix),
            *(work if waits else work[::-1]),
            _plots(recap),
            iterations,
            about(recap),
        )
    )


def _plots(recap: Recap) -> Markup:
    drawn = joined(map(figure, plots_of(recap)))
    return (
        tag("section", tag("h2", "How it went"), tag("div", drawn, class_="plots"))
        if drawn
        else EMPTY
    )


def figure(plot: Plot) -> Markup:
    """A plot under its title, with its numbers in a fold."""
    caption = tag("figcaption", tag("b", plot.title), " ", tag("span", plot.gist))
    numbers = (
        folded("Numbers", table(plot.head, plot.rows), class_="numbers") if plot.rows else EMPTY
    )
    drawing = tag("div", plot.svg, class_="drawing")
    return tag("figure", caption, drawing, numbers, class_="is-wide" if plot.is_wide else None)
