"""The top of a report: how the run stands, what was asked, its figures, its iterations as a strip,
the claims that were not believed, and what is left to a person."""

from collections import Counter
from collections.abc import Iterator

from ralph.kernel.world import PAUSE
from ralph.text.words import counted, duration, money, number
from ralph.ui.paper.looks import LOOKS, look_of
from ralph.ui.paper.markup import (
    EMPTY,
    Content,
    Markup,
    clock,
    escaped,
    foreign,
    joined,
    several,
    tag,
)
from ralph.ui.paper.words import (
    agents_words,
    cost,
    counts_by_task,
    cut,
    disbelief,
    excerpt,
    headline,
    mark,
    quoted,
    turn_words,
    who,
)
from ralph.ui.recap.values import Recap, TaskState

_MOST = 30  # entries of a list
_ASKED = 600  # characters


def hero(recap: Recap, level: str) -> Markup:
    """The outcome, in large."""
    tone, words = headline(recap)
    agents = who(recap)
    about = [
        tag("span", "ralph ", cut(recap.command, 40)),
        tag("code", recap.run),
        foreign(cut(agents, 80)) if agents else None,
        clock(recap.started, "%-d %B %Y, %H:%M") if recap.started else None,
    ]
    return tag(
        "header",
        tag("p", *_spaced(about), class_="about"),
        tag(level, tag("span", words, class_=tone), class_="outcome"),
        tag("p", foreign(excerpt(recap.outcome, 600).head), class_="sentence"),
        tag("p", foreign(cut(recap.problem, 400)), class_="problem") if recap.problem else None,
        _asked(recap.asked),
        class_="hero",
    )


def _spaced(parts: list[Markup | None]) -> Iterator[Content]:
    known = [part for part in parts if part]
    for place, part in enumerate(known):
        yield from (tag("span", "·", class_="dot-between"), part) if place else (part,)


def _asked(asked: str) -> Markup:
    """The task of the run; a long prompt is folded."""
    if not asked.strip():
        return EMPTY
    if len(asked) <= _ASKED:
        inner = tag("div", foreign(asked.strip()), class_="text")
    else:
        rest = tag("details", tag("summary", "All of it"), quoted(asked, 20_000))
        inner = joined((tag("div", foreign(excerpt(asked, 300).head), class_="text"), rest))
    return tag("blockquote", tag("b", "Asked"), inner)


def figures(recap: Recap) -> Markup:
    """A tile for each figure that is known, with a bar where there is a limit."""
    return tag("dl", *_tiles(recap), class_="figures-row")


def _tiles(recap: Recap) -> Iterator[Markup]:
    spent = recap.spent
    if recap.tasks:
        done = sum(task.state is TaskState.DONE for task in recap.tasks)
        noun = "Stories" if recap.profile == "reviewed" else "Tasks"
        yield _tile(
            noun, f"{done}", f"of {len(recap.tasks)} done", _meter(done, len(recap.tasks), "good")
        )
    turns, most = spent.iterations, spent.max_iterations
    yield _tile("Iterations", f"{turns}", f"of {most}" if most else "", _meter(turns, most))
    of = f"of {duration(spent.max_seconds)}" if spent.max_seconds else ""
    waited = f"and {duration(spent.waited)} of waiting" if spent.waited >= 1 else ""
    words = ", ".join(filter(None, (of, waited)))
    yield _tile("Time", duration(spent.seconds), words, _meter(spent.seconds, spent.max_seconds))
    if spent.dollars is not None:
        limit = f"of {money(spent.max_dollars)}" if spent.max_dollars else ""
        unknown = f"{counted(spent.uncounted, 'turn')} of unknown cost" if spent.uncounted else ""
        words = ", ".join(filter(None, (limit, unknown)))
        yield _tile("Money", money(spent.dollars), words, _meter(spent.dollars, spent.max_dollars))
    if spent.usage.all_input or spent.usage.output:
        read, written = number(spent.usage.all_input), number(spent.usage.output)
        yield _tile("Tokens", read, f"read, {written} written")
    if any(task.files for task in recap.tasks):
        added = sum(task.added for task in recap.tasks)
        removed = sum(task.removed for task in recap.tasks)
        yield _tile("Lines", f"+{number(added)}", f"and −{number(removed)}" if removed else "")


def _tile(name: str, amount: str, words: str, meter: Markup = EMPTY) -> Markup:
    return tag("div", tag("dt", name), tag("dd", tag("b", amount), " ", tag("small", words), meter))


def _meter(used: float, most: float | None, class_: str = "used") -> Markup:
    """A bar of how much of a limit is used."""
    if not most:
        return EMPTY
    share = max(0.0, min(1.0, used / most))
    full = tag("rect", width=100, height=4, class_="rest")
    part = tag("rect", width=100 * share, height=4, class_=class_)
    stretched = {"view_box": "0 0 100 4", "preserveAspectRatio": "none"}
    return tag("svg", full, part, class_="meter", aria_hidden="true", **stretched)


def strip(recap: Recap, prefix: str) -> Markup:
    """A mark for each iteration that leads to it, and what the marks mean."""
    if not recap.iterations:
        return EMPTY
    marks = []
    for place, each in enumerate(recap.iterations):
        look = look_of(each)
        task = f", {cut(each.task, 40)}" if each.task and not counts_by_task(recap) else ""
        name = f"{turn_words(recap, each)}{task}: {look.words}"
        marks.append(tag("li", tag("a", mark(look, name), href=f"#{prefix}i{place}")))
    seen = Counter(look_of(each).name for each in recap.iterations)
    meanings = [
        tag("li", mark(look), f" {seen[look.name]} {look.words}")
        for look in LOOKS
        if seen[look.name]
    ]
    return tag(
        "section",
        tag("h2", "Every iteration, by its verdict"),
        tag("ol", *marks, class_="strip"),
        tag("ul", *meanings, class_="meanings"),
        class_="timeline",
    )


def claims(recap: Recap, prefix: str) -> Markup:
    """The claims that nobody believed, and why."""
    found = [
        tag(
            "li",
            mark(look_of(each)),
            tag("a", foreign(turn_words(recap, each)), href=f"#{prefix}i{place}"),
            tag("b", foreign(cut(each.task, 40)))
            if each.task and not counts_by_task(recap)
            else None,
            tag("span", disbelief(each.judgement)),
        )
        for place, each in enumerate(recap.iterations)
        if each.judgement is not None and each.judgement.is_disbelieved
    ]
    if not found:
        return EMPTY
    were = "claim was" if len(found) == 1 else "claims were"
    shown = several(found, lambda entry: entry, _MOST)
    return tag(
        "section",
        tag("h2", f"{len(found)} {were} not believed"),
        tag("ul", *shown),
        class_="claims",
    )


def to_you(recap: Recap) -> Markup:
    """The work that waits for a person, and the commands to type."""
    parts = [
        _list("Left to you", recap.left, "open"),
        _list("Yours, and left alone", recap.yours, "yours"),
    ]
    if recap.next:
        commands = "\n".join(recap.next[:_MOST])
        parts.append(
            joined((tag("h3", "Next"), tag("pre", commands, class_="commands", tabindex="0")))
        )
    shown = [part for part in parts if part]
    title = "What is left" if recap.left or recap.yours else "What to do next"
    return tag("section", tag("h2", title), *shown, class_="left") if shown else EMPTY


def _list(title: str, lines: tuple[str, ...], class_: str) -> Markup:
    if not lines:
        return EMPTY
    entries = several(lines, lambda line: tag("li", foreign(cut(line, 400))), _MOST)
    return joined((tag("h3", title), tag("ul", *entries, class_=class_)))


def about(recap: Recap) -> Markup:
    """The places of everything, and the requests of people."""
    requests = [
        tag(
            "li",
            clock(each.time, "%H:%M:%S"),
            " ",
            tag(
                "b",
                "stays paused" if each.request == PAUSE and each.text else cut(each.request, 40),
            ),
            f" by {cut(each.origin, 40)}",
            f", for {cut(each.task, 60)}" if each.task else None,
            joined((": ", foreign(cut(each.text, 300)))) if each.text else None,
            "" if each.heard else " (not heard yet)",
        )
        for each in recap.steered[:_MOST]
    ]
    asked = (
        joined((tag("h3", "What people asked of it"), tag("ol", *requests))) if requests else EMPTY
    )
    rows = [
        joined((tag("dt", name), tag("dd", told if isinstance(told, Markup) else foreign(told))))
        for name, told in _facts(recap)
        if told
    ]
    return tag("section", tag("h2", "About this run"), asked, tag("dl", *rows), class_="colophon")


def _facts(recap: Recap) -> Iterator[tuple[str, str]]:
    yield "Run", recap.run
    yield "Works for", recap.lead
    yield "Workspace", recap.workspace
    yield "Branch", recap.branch
    yield "Commit", recap.commit
    yield "Proven tree", recap.tree
    yield "Evidence", "; ".join(recap.evidence[:_MOST])
    yield "Workers", str(recap.workers) if recap.workers > 1 else ""
    yield "Began", clock(recap.started, "%Y-%m-%d %H:%M:%S %Z") if recap.started else ""
    yield "Ended", clock(recap.ended, "%Y-%m-%d %H:%M:%S %Z") if recap.ended else ""
    yield "Exit code", "" if recap.exit is None else str(recap.exit)
    yield "Cost", cost(recap.spent.dollars)
    yield "Agents", "; ".join(agents_words(recap))
    yield "Asked of it, not heard yet", recap.pending
    yield "Journal", recap.journal


def shapes() -> Markup:
    """The drawings of all looks, to be used by their names."""
    drawn = joined(
        tag("symbol", Markup(look.shape), id=f"look-{look.name}", view_box="0 0 16 16")
        for look in LOOKS
    )
    return tag("svg", drawn, class_="shapes", aria_hidden="true", width=0, height=0)


def title_of(recap: Recap) -> Markup:
    return escaped(f"{headline(recap)[1]}: {cut(recap.command, 40)} {cut(recap.run, 80)}")
