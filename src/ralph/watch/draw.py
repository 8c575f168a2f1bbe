"""A view as lines of text, painted by a style: both front ends show these.

Everything that others wrote is cleaned; no line is wider than asked for.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from ralph.journal.life import Life
from ralph.kernel.value import replace, value
from ralph.text.plain import columns, one_line, safe, shorten, without_escapes
from ralph.text.words import counted, duration, elapsed, money, number
from ralph.ui.closing import closing_lines
from ralph.ui.forecast_words import brief_words
from ralph.ui.lines import Line
from ralph.ui.live.region import fitted
from ralph.ui.replay import tidy
from ralph.ui.status.listing import Entry, tone_of
from ralph.ui.status.report import age, doing_words
from ralph.ui.style import Mark, Style, Tone
from ralph.watch.model import GateView, View
from ralph.watch.wrap import wrapped

_LONGEST = 1000  # characters of others' words
NARROWEST = 10  # columns
_STATE = 11
_LABEL = 12
_GATE_ROWS = (2, 6)  # where there is little room, and where there is more
_ASKED, _ROWS = 2, 3  # questions that are shown, and rows of each
_BAR = 12  # columns
_GAP = "   "
_FULL, _EMPTY = ("█", "#"), ("░", ".")
Said = Callable[[Any], str]
_OK, _BAD, _RUNS = ("✓", "ok"), ("✗", "FAILED"), ("…", "...")


def head(
    view: View, style: Style, width: int, most: int, frame: int = 0, *, airy: bool = False
) -> list[str]:
    """The lines above the log, or beside it: the run, its budget, gates, questions, and in about
    `most` lines in all, what goes on or how it ended. `airy` has empty lines."""
    parts = [
        [_title(view, style, width), *_about(view, style, width)],
        [
            *_gauge_lines(view, style, width, airy=airy),
            *_ahead(view, style, width, airy=airy),
            *_gates(view, style, width, airy=airy),
        ],
        list(_asked(view, style, width)),
    ]
    room = max(3, most - sum(len(part) + airy for part in parts))
    parts.append(list(_moments(view, style, width, room, frame)))
    gap = [""] if airy else []
    return [line for part in parts if part for line in (*part, *gap)]


def _title(view: View, style: Style, width: int) -> str:
    report = view.report
    state, tone = view.state, tone_of(view.state)
    since = report.started.time if report.started else report.now
    until = report.state.time if report.state.stop is not None else report.now
    if report.life is Life.ENDED:
        state = f"{state}, {age(report.now - report.state.time)} ago"
    elif report.live:
        state += f" {elapsed(until - since)}"
    name = f"{report.run}  {view.command}" if view.command else report.run
    name = shorten(name, _LONGEST, max(1, width - columns(state) - 2), style.mark(Mark.ELLIPSIS))
    gap = " " * max(1, width - columns(name) - columns(state))
    return style.paint(name, Tone.HEAD) + gap + style.paint(state, tone)


def _about(view: View, style: Style, width: int) -> Iterator[str]:
    """The directory, the agent, and what it is to do."""
    report = view.report
    if report.problem:
        yield _cut(report.problem, Tone.BAD, style, width)
    if report.started is None:
        yield _cut("just starting" if view.caught_up else "reading", Tone.FAINT, style, width)
        return
    started = report.started
    between = style.mark(Mark.BETWEEN)
    agent = " ".join(filter(None, (started.agent, started.model)))
    agent = report.state.who if report.state.place else agent
    words = [_home(started.workspace), agent]
    task = report.assignment
    if task is not None:
        words.append(f"{task.task}: {task.title}" if task.title else task.task)
    yield _cut(between.join(filter(None, words)), Tone.FAINT, style, width)


def _home(path: str) -> str:
    home = os.path.expanduser("~")
    return f"~{path[len(home) :]}" if path.startswith(f"{home}/") else path


@value
class Gauge:
    """An amount, and its share of what may be; None where there is no limit."""

    name: str
    words: str
    share: float | None = None

    @classmethod
    def of(cls, name: str, amount: float, limit: float | None, said: Said) -> "Gauge":
        if not limit:
            return cls(name, said(amount))
        words = f"{said(amount)}/{said(limit)}"
        return cls(name, words, min(1.0, max(0.0, amount / limit)))


def _gauges(view: View) -> Iterator[Gauge]:
    """Iterations, time and money against their limits, and what is counted beside."""
    report, spent, limits = view.report, view.spent, view.report.limits
    if report.started is None:
        return
    turns = spent.iterations if report.is_crew else report.iteration
    name = view.briefing.turn.capitalize() + ("s" if report.is_crew else "")
    yield Gauge.of(name, turns, limits.iterations, str)
    yield Gauge.of("Time", spent.seconds, limits.seconds, elapsed)
    if spent.dollars or limits.dollars:
        found = Gauge.of("Money", spent.dollars, limits.dollars, money)
        more = f", {counted(spent.uncounted, 'turn')} unknown" if spent.uncounted else ""
        yield replace(found, words=found.words + more)
    if tokens := spent.usage.all_input + spent.usage.output:
        yield Gauge("Tokens", number(tokens))
    if view.briefing.tasks:
        yield Gauge("Tasks", report.tally.words)


def _gauge_lines(view: View, style: Style, width: int, *, airy: bool) -> list[str]:
    """Side by side as far as they fit, or one below the other."""
    gauges = list(_gauges(view))
    if not airy:
        return packed([f"{each.name} {each.words}{_bar(each, style)}" for each in gauges], width)
    widest = max((len(each.words) for each in gauges if each.share is not None), default=0)
    return [
        f"{each.name:<{_LABEL}}{each.words:<{widest}}{_bar(each, style)}".rstrip()
        for each in gauges
    ]


def _ahead(view: View, style: Style, width: int, *, airy: bool) -> Iterator[str]:
    """What is likely left, on one line, or beside the log on a few."""
    found = view.forecast
    if found is None or found.iterations is None or view.report.state.stop is not None:
        return
    tone = Tone.NOTICE if found.limit_holds is False else Tone.FAINT
    label = f"{'Forecast':<{_LABEL}}" if airy else ""
    rows = wrapped(brief_words(found), max(1, width - _LABEL)) if airy else [brief_words(found)]
    for row in rows:
        yield _cut(label + row, tone, style, width)
        label = " " * len(label)


def _bar(gauge: Gauge, style: Style) -> str:
    share = gauge.share
    if share is None:
        return ""
    full, look = int(share * _BAR + 0.5) or int(share > 0), 0 if style.emoji else 1
    tone = Tone.BAD if share >= 0.95 else Tone.NOTICE if share >= 0.8 else Tone.GOOD
    rest = style.paint(_EMPTY[look] * (_BAR - full), Tone.FAINT)
    return f" {style.paint(_FULL[look] * full, tone)}{rest}"


def _gates(view: View, style: Style, width: int, *, airy: bool) -> list[str]:
    if not view.gates:
        return []
    label = f"{'Gates':<{_LABEL if airy else 7}}"
    # Of many, those that passed are given up first.
    gates = sorted(view.gates, key=lambda gate: (gate.ok, gate.since is None))
    words = [_gate(gate, view.report.now, style) for gate in gates]
    first, *more = packed(words, width - len(label), "  ")[: _GATE_ROWS[airy]]
    return [style.paint(label, Tone.FAINT) + first, *(" " * len(label) + row for row in more)]


def _gate(gate: GateView, now: float, style: Style) -> str:
    look = 0 if style.emoji else 1
    name = tidy(gate.name, 40)
    if gate.since is not None:
        return style.paint(f"{_RUNS[look]} {name} {elapsed(now - gate.since)}", Tone.CALL)
    mark, tone = (_OK, Tone.GOOD) if gate.ok else (_BAD, Tone.BAD)
    return style.paint(f"{mark[look]} {name} {duration(gate.seconds)}", tone)


def _asked(view: View, style: Style, width: int) -> Iterator[str]:
    """The requests of people that are not heard yet, and the questions to them."""
    report = view.report
    if not report.live:
        return
    asked = report.asked
    if asked.cancels or (asked.paused and report.life is not Life.PAUSED):
        how = "at once" if asked.cancels > 1 else "after the current operation"
        words = f"stops {how}" if asked.cancels else "pauses before the next turn"
        yield _cut(f"Asked: it {words}", Tone.NOTICE, style, width)
    if view.notes:
        yield _cut(f"{counted(view.notes, 'note')} for the next prompt", Tone.NOTICE, style, width)
    for asks in view.asks[:_ASKED]:
        rows = wrapped(tidy(f"{asks.task} asks: {asks.text}", _LONGEST), width)
        shown = rows if len(rows) <= _ROWS else [*rows[: _ROWS - 1], " ".join(rows[_ROWS - 1 :])]
        yield from (_cut(row, Tone.NOTICE, style, width) for row in shown)


def _moments(view: View, style: Style, width: int, most: int, frame: int) -> Iterator[str]:
    """The work that goes on: a line for the run or for each worker; or how it ended."""
    report = view.report
    stop = report.state.stop
    if stop is not None:
        state = replace(report.state, spent=report.spent)
        yield from _shown(closing_lines(stop, state, view.briefing), style, width)
        return
    if report.life is Life.CRASHED:
        lost = Line(f"Crashed: {doing_words(report)}", Tone.BAD)
        yield from _shown((lost, Line(f"Go on: ralph resume {report.run}")), style, width)
        return
    shown = view.moments if len(view.moments) <= most else view.moments[: most - 1]
    for moment in shown:
        more = tuple(tidy(words, _LONGEST) for words in moment.more)
        what, which = tidy(moment.what, _LONGEST), tidy(moment.which, _LONGEST)
        yield fitted(replace(moment, what=what, which=which, more=more), frame, style, width)
    if hidden := len(view.moments) - len(shown):
        yield _cut(f"and {counted(hidden, 'more worker')}", Tone.FAINT, style, width)


def _shown(lines: Iterable[Line], style: Style, width: int) -> Iterator[str]:
    for line in lines:
        yield _cut(line.text, line.tone, style, width)


def _cut(text: str, tone: Tone, style: Style, width: int) -> str:
    words = one_line(safe(text[: 4 * _LONGEST]))
    return style.paint(shorten(words, _LONGEST, max(1, width), style.mark(Mark.ELLIPSIS)), tone)


def packed(parts: Sequence[str], width: int, gap: str = _GAP) -> list[str]:
    """Parts side by side, on as many lines as they need."""
    lines: list[str] = []
    for part in parts:
        joined = f"{lines[-1]}{gap}{part}" if lines else part
        if lines and columns(without_escapes(joined)) <= width:
            lines[-1] = joined
        else:
            lines.append(part)
    return lines


def list_rows(entries: Sequence[Entry], now: float, style: Style, width: int) -> list[str]:
    """A row for each run: what matters most stands first, and the end of its directory last."""
    return [_list_row(entry, now, style, width) for entry in entries]


def _list_row(entry: Entry, now: float, style: Style, width: int) -> str:
    turns = f"{entry.iterations}/{entry.most}" if entry.most else str(entry.iterations)
    cost = "-" if entry.cost_usd is None else money(entry.cost_usd)
    since = age(now - entry.time) if entry.time else "-"
    before = f" {entry.run[:20]:<20}  {entry.command or '-':<9}  "
    after = f" {turns:>6} {cost:>7} {since:>4}  "
    room = max(0, width - columns(before + after) - _STATE)
    place = tidy(
        entry.problem or _home(entry.started.workspace if entry.started else "-"), _LONGEST
    )
    dots = style.mark(Mark.ELLIPSIS)
    if columns(place) > room:  # the end of a path tells more than its beginning
        while place and columns(dots + place) > room:
            place = place[1:]
        place = dots + place if room > len(dots) else ""
    return before + style.paint(f"{entry.state:<{_STATE}}", tone_of(entry.state)) + after + place


def list_heading(style: Style, width: int) -> str:
    state = f"{'STATE':<{_STATE}}"
    words = f" {'RUN':<20}  {'COMMAND':<9}  {state} {'TURNS':>6} {'COST':>7} {'AGO':>4}  WORKSPACE"
    return style.paint(words[:width], Tone.FAINT)


def short_lines(view: View, style: Style) -> list[str]:
    """The state of the run, for the normal screen after the watch is over."""
    report = view.report
    width, whole = style.width or 80, 10 * _LONGEST
    if report.state.stop is not None:
        state = replace(report.state, spent=report.spent)
        lines = closing_lines(report.state.stop, state, view.briefing)
        return [_cut(line.text, line.tone, style, whole) for line in lines]
    is_so = "crashed" if report.life is Life.CRASHED else f"is {report.life.value}"
    words = f"Run {report.run} {is_so}: {doing_words(report)}"
    shown = [_cut(words, tone_of(view.state), style, whole)]
    shown += _gauge_lines(view, style, width, airy=False)
    shown += [_cut(f"{a.task} asks: {a.text}", Tone.NOTICE, style, whole) for a in view.asks]
    if report.live:
        return [*shown, f"Watch it: ralph watch {report.run}", f"End it:   ralph stop {report.run}"]
    return [*shown, f"Go on: ralph resume {report.run}"]
