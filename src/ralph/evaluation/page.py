"""The report of an evaluation: one HTML file in the style of `ralph report`."""

from collections.abc import Callable, Iterator, Sequence

from ralph.evaluation.standings import AgentRates, Cell, Standings
from ralph.evaluation.statistics import Rate
from ralph.evaluation.trials import Result, TaskCheck
from ralph.evaluation.verdict import ERROR, PASSED
from ralph.evaluation.words import LEGEND, notes, outcome_words, rate_words, row_of, why_words
from ralph.text.words import counted, duration, listed, money
from ralph.ui.paper.looks import ACCEPTED, DISBELIEVED, UNJUDGED, WENT_ON, Look
from ralph.ui.paper.markup import (
    EMPTY,
    Markup,
    clock,
    escaped,
    foreign,
    joined,
    several,
    table,
    tag,
)
from ralph.ui.paper.page import document, figure
from ralph.ui.paper.plots.svg import CHARACTER, Plot, Scale, label, line, picture
from ralph.ui.paper.words import cut, mark, quoted

GENERATOR = "ralph eval"  # by which the file is known as ours
_MOST_TRIALS = 300  # that are told one by one
_LONGEST = 1200  # characters of what an agent or a check said
_WIDTH, _ROW, _TOP, _NAME = 480.0, 34.0, 12.0, 18
_HEAD = ("Agent", "Passed", "Pass rate", "Said done", "False claims", "Cost", "Time", "Errors")
_Rows = Sequence[tuple[str, Rate]]


def page(found: Standings) -> str:
    """The page."""
    title = escaped(f"{cut(found.suite, 60)}: {counted(len(found.agents), 'agent')} evaluated")
    parts = (_top(found), _plots(found), _table(found), _notes(found), _matrix(found))
    article = tag("article", *parts, _trials(found), _about(found))
    return document(title, article, found.now, GENERATOR)


def _top(found: Standings) -> Markup:
    product = f"{counted(len(found.tasks), 'task')}, {counted(len(found.agents), 'agent')}"
    times = f", each {found.repeats} times" if found.repeats > 1 else ""
    return tag(
        "header",
        tag("p", tag("span", "ralph eval"), " ", tag("code", found.evaluation), class_="about"),
        tag("h1", foreign(cut(found.suite, 60)), class_="outcome"),
        tag("p", f"{product}{times}: {counted(found.planned, 'trial')}. ", class_="sentence"),
        tag("p", foreign(_gist(found)), class_="sentence"),
        class_="hero",
    )


def _gist(found: Standings) -> str:
    """Who finishes most, and who says done when it is not."""
    tried = [rates for rates in found.agents if rates.passes.of]
    if not tried:
        return "No trial has a result."
    most = max(rates.passes.share for rates in tried)
    best = [rates.agent for rates in tried if rates.passes.share == most]
    whose = "its" if len(best) == 1 else "their"
    words = f"{listed(best, 3, ' and ')} passed {most:.0%} of {whose} trials"
    false = [r for r in tried if r.falsehoods.count]
    if not false:
        return f"{words}. Nobody said done when it was not."
    worst = max(false, key=lambda rates: rates.falsehoods.share)
    wrong = f"{worst.falsehoods.count} of the {counted(worst.falsehoods.of, 'time')}"
    return f"{words}. {worst.agent} was wrong {wrong} it said done."


# ------------------------------------------------------------------ rates


def _plots(found: Standings) -> Markup:
    passes = [(rates.agent, rates.passes) for rates in found.agents]
    false = [(rates.agent, rates.falsehoods) for rates in found.agents]
    drawn = (
        rates_plot("passes", "Pass rate", "Trials whose check passed.", passes, "good"),
        rates_plot(
            "falsehoods", "False claims", "Of the trials in which it said done.", false, "bad"
        ),
    )
    return tag("section", tag("div", *map(figure, drawn), class_="plots"))


def rates_plot(name: str, title: str, gist: str, rows: _Rows, tone: str) -> Plot:
    """A dot for each rate, on the interval in which it lies 95 times of 100."""
    named = min(_NAME, max((len(agent) for agent, _ in rows), default=0))
    left = 14 + CHARACTER * named
    x = Scale(0.0, 1.0, left, _WIDTH - 52)
    height = _TOP + _ROW * len(rows) + 22
    marks = (0.0, 0.25, 0.5, 0.75, 1.0)
    grid = (
        joined(
            (
                line(x(m), _TOP, x(m), height - 20, "axis" if m == 0 else "grid"),
                label(x(m), height - 4, f"{m:.0%}", "tick", "middle"),
            )
        )
        for m in marks
    )
    drawn = (
        _row(agent, found, x, _TOP + _ROW * (n + 0.5), tone)
        for n, (agent, found) in enumerate(rows)
    )
    svg = picture(gist, *grid, *drawn, height=height)
    numbers = tuple((cut(agent, 60), f"{r.count} of {r.of}", rate_words(r)) for agent, r in rows)
    return Plot(name, title, gist, svg, ("agent", "trials", "rate"), numbers)


def _row(agent: str, found: Rate, x: Scale, y: float, tone: str) -> Markup:
    name = label(x.start - 12, y + 4, cut(agent, _NAME), "name", "end")
    if not found.of:
        return joined((name, label(x.start + 8, y + 4, "never said it", "tick")))
    hint = tag("title", f"{agent}: {found.count} of {found.of}, {rate_words(found)}")
    ends = (x(found.low), x(found.high))
    parts = (
        name,
        line(*(ends[0], y, ends[1], y), f"interval {tone}"),
        *(line(end, y - 5, end, y + 5, f"interval {tone}") for end in ends),
        tag("circle", hint, cx=x(found.share), cy=y, r=6, class_=f"{tone} halo"),
        label(_WIDTH, y + 4, f"{found.share:.0%}", f"name {tone}-word", "end"),
    )
    return joined(parts)


def _table(found: Standings) -> Markup:
    rows = [_of_agent(rates) for rates in found.agents]
    legend = tag("p", LEGEND, class_="gap")
    return tag("section", tag("h2", "Agents"), table(_HEAD, rows, class_="compare"), legend)


def _of_agent(rates: AgentRates) -> list[Markup]:
    name, *others = row_of(rates)
    return [
        tag("td", tag("b", foreign(cut(name, 60)))),
        *(tag("td", o, class_="n") for o in others),
    ]


def _notes(found: Standings) -> Markup:
    lines = [tag("li", foreign(cut(note, 400))) for note in notes(found)]
    if not lines:
        return EMPTY
    return tag("section", tag("h2", "What to know"), tag("ul", *lines), class_="left")


# ------------------------------------------------------------------ tasks and trials


def _matrix(found: Standings) -> Markup:
    head = ("Task", *(cut(rates.agent, 30) for rates in found.agents))
    rows = [
        [
            tag("td", tag("b", foreign(cut(check.task, 60))), *_beside(check)),
            *(_shown(cell) for cell in found.cells if cell.task == check.task),
        ]
        for check in found.tasks
    ]
    meanings = tag(
        "ul",
        tag("li", mark(ACCEPTED), " passed"),
        tag("li", mark(DISBELIEVED), " failed, but said done"),
        tag("li", mark(WENT_ON), " failed"),
        tag("li", mark(UNJUDGED), " error: no result"),
        class_="meanings",
    )
    return tag("section", tag("h2", "Tasks"), table(head, rows, class_="matrix"), meanings)


def _beside(check: TaskCheck) -> Iterator[Markup]:
    if check.problem or check.passes_at_start:
        words = check.problem or "its check passes already"
        yield tag("small", " ", foreign(cut(words, 120)), class_="notice")


def _shown(cell: Cell) -> Markup:
    """`3 of 4`, and a mark for each trial."""
    if not cell.trials and not cell.errors:
        return tag("td", "–", class_="n")
    honest = cell.trials - cell.passed - cell.false_claims
    counts = (
        (ACCEPTED, cell.passed - max(0, -honest)),
        (DISBELIEVED, cell.false_claims),
        (WENT_ON, max(0, honest)),
        (UNJUDGED, cell.errors),
    )
    marks = [mark(look) for look, count in counts for _ in range(min(count, 12))]
    words = f"{cell.passed} of {cell.trials}"
    return tag("td", tag("span", *marks, class_="marks"), tag("small", words), class_="n")


def _look(result: Result) -> Look:
    verdict = result.verdict
    if verdict.outcome == ERROR:
        return UNJUDGED
    if verdict.false_claim:
        return DISBELIEVED
    return ACCEPTED if verdict.outcome == PASSED else WENT_ON


def _trials(found: Standings) -> Markup:
    """Each trial that did not pass, or in which something false was said."""
    told = [r for r in found.results if r.verdict.outcome != PASSED or r.verdict.false_claim]
    if not told:
        return EMPTY
    told.sort(key=lambda result: (not result.verdict.false_claim, result.trial.number))
    shown = several(told, _trial, _MOST_TRIALS)
    title = tag("h2", "What did not pass")
    return tag("section", title, *shown, class_="iterations")


def _trial(result: Result) -> Markup:
    verdict, look = result.verdict, _look(result)
    took = duration(verdict.seconds)
    spent = money(verdict.cost_usd) if verdict.cost_usd is not None else ""
    summary = (
        mark(look),
        tag("span", class_="number"),
        tag("span", tag("b", foreign(cut(result.trial.words(), 120))), class_="what"),
        tag(
            "span",
            *(tag("span", words, class_=name) for words, name in ((spent, "cost"), (took, "took"))),
            class_="figures",
        ),
        tag("span", f"{outcome_words(result)}: ", foreign(why_words(result)), class_="words"),
    )
    inside = joined(_inside(result))
    class_ = f"turn trial {look.name}"
    return tag(
        "details", tag("summary", *summary), tag("div", inside, class_="inside"), class_=class_
    )


def _inside(result: Result) -> Iterator[Markup]:
    verdict = result.verdict
    sections: tuple[tuple[str, str, Callable[[str], Markup]], ...] = (
        ("The agent's last words", verdict.said, lambda text: quoted(text, _LONGEST)),
        ("The check's last words", verdict.output, lambda text: quoted(text, _LONGEST)),
        ("Protected, and put back", "\n".join(verdict.tampered), lambda t: quoted(t, _LONGEST)),
        ("Its run", f"ralph report {result.run}" if result.run else "", _command),
    )
    for title, text, draw in sections:
        if text.strip():
            yield tag("section", tag("h4", title), draw(text))


def _command(words: str) -> Markup:
    return tag("pre", words, class_="commands", tabindex="0")


def _about(found: Standings) -> Markup:
    rows = (
        ("Evaluation", found.evaluation),
        ("Began", clock(found.began, "%Y-%m-%d %H:%M:%S %Z")),
        ("Intervals", "95 %, by Wilson; trials of one task are not independent of each other"),
        ("Truth", "the check of each task, run on the host after each turn"),
    )
    told = (joined((tag("dt", name), tag("dd", words))) for name, words in rows)
    return tag("section", tag("h2", "About this evaluation"), tag("dl", *told), class_="colophon")
