"""Runs as `ralph status` shows them to people: one in full, or many in a table."""

from collections.abc import Iterator
from typing import Any

from ralph.journal.life import Life
from ralph.kernel.events import Usage
from ralph.kernel.findings import Finding
from ralph.kernel.limits import Limits, Spent
from ralph.kernel.value import replace
from ralph.kernel.verdict import is_interrupted
from ralph.kernel.world import Signals
from ralph.text.plain import clean, columns, first_line, one_line, shorten
from ralph.text.redact import redact
from ralph.text.words import counted, duration, money, number
from ralph.ui.closing import closing_lines
from ralph.ui.lines import Briefing, Line
from ralph.ui.proof import owed_lines, proof_words
from ralph.ui.replay import briefing_of, tidy
from ralph.ui.status.report import Report, age, doing_words
from ralph.ui.style import Style, Tone

_LABEL = 11  # columns
_LINE_SHOWN = 4096
_NARROWEST = 20
_CUT = ("Task", "Last", "Workers")  # words of others, of any length
_TONES = {
    Life.RUNNING: Tone.CALL,
    Life.WAITING: Tone.NOTICE,
    Life.PAUSED: Tone.NOTICE,
    Life.CRASHED: Tone.BAD,
    Life.UNKNOWN: Tone.BAD,
}
_HEADINGS = ("RUN", "STATE", "PROFILE", "TURNS", "SPENT", "AGE", "WORKSPACE")
_ENDLESS = 10_000  # columns where nothing has to fit
_LEAST_WORKSPACE = 10


def report_lines(report: Report, style: Style) -> list[str]:
    """The run, a line for each thing worth knowing; the most important at the top, and at the
    bottom what to do next. The agent's words are cut to the terminal, paths never."""
    rows = [line for label, lines in _fields(report) for line in _labelled(label, lines, style)]
    lines = (*rows, *_last_words(report))
    return [style.paint(redact(clean(each.text)).replace("\n", " "), each.tone) for each in lines]


def _fields(report: Report) -> Iterator[tuple[str, list[Line]]]:
    started, state = report.started, report.state
    profile = f" ({started.profile})" if started else ""
    yield "Run", [Line(f"{report.run}{profile}")]
    yield "State", [Line(f"{report.life}: {doing_words(report)}", _tone(report))]
    pausing = report.asked.paused and report.life is not Life.PAUSED
    if report.live and (report.asked.cancels or pausing):
        yield "Asked", [Line(_asked_words(report.asked), Tone.NOTICE)]
    if report.problem:
        yield "Problem", [Line(report.problem, Tone.BAD)]
    if started:
        yield "Workspace", [Line(started.workspace)]
        model = f", model {started.model}" if started.model else ""
        yield "Agent", [Line(f"{started.agent or 'unknown'}{model}")]
    if report.assignment:
        task = report.assignment
        title = f": {task.title}" if task.title else ""
        mode = f" ({task.mode})" if task.mode != "implement" else ""
        yield "Task", [Line(f"{task.task}{mode}{title}")]
    if started and report.is_crew:
        yield "Workers", [_worker_line(worker) for worker in report.workers]
        yield "Tasks", [Line(report.tally.words)] if report.state.stop is None else []
    if started:
        turn = _briefing(report).turn.capitalize()
        yield (
            f"{turn}s" if report.is_crew else turn,
            [Line(_against(str(report.iteration), report.limits.iterations))],
        )
        yield "Spent", [Line(_spent_words(report))]
    proof = proof_words(state)
    yield "Proven", [Line(proof)] if proof else []
    yield "SCM", list(owed_lines(state)) if state.stop is None else []
    yield "Found", [_finding_line(finding) for finding in state.findings]
    yield "Last", [Line(action, Tone.FAINT) for action in report.last_actions]
    if report.tree:
        yield "Processes", _tree_lines(report.tree, report.pid)


def _last_words(report: Report) -> Iterator[Line]:
    stop = report.state.stop
    if stop is not None:
        state = replace(report.state, spent=report.spent)  # with those who were in the middle
        yield from closing_lines(stop, state, _briefing(report))
        return
    yield Line(f"Journal: {report.journal}")
    name = f" {report.run}" if report.sent else ""
    if report.live:
        yield Line(f"Follow it: ralph logs -f{name}     End it: ralph stop")
    elif report.life is Life.CRASHED:
        yield Line(f"What it did: ralph logs{name}. Go on: ralph resume")


def _labelled(label: str, lines: list[Line], style: Style) -> Iterator[Line]:
    """The label stands before the first line, blanks before the others."""
    room = max(_NARROWEST, style.width - _LABEL) if style.width and label in _CUT else None
    for line in lines:
        text = shorten(tidy(line.text, _LINE_SHOWN), _LINE_SHOWN, room, "...")
        yield Line(f"{label:<{_LABEL}}{text}", line.tone)
        label = ""


def _tone(report: Report) -> Tone:
    stop = report.state.stop
    if stop is None:
        return _TONES[report.life]
    return Tone.GOOD if stop.reason.exit_code == 0 else Tone.NOTICE


def _briefing(report: Report) -> Briefing:
    if report.started is None:
        return Briefing(journal=report.journal)
    return briefing_of(report.started, report.journal)


def _worker_line(worker: Report) -> Line:
    """`T-003 2/10: the agent works since 3m, $0.10`."""
    assert worker.assignment is not None, "a worker is sent to a task"
    head, stop = one_line(clean(worker.assignment.task)), worker.state.stop
    if worker.state.task_iteration:
        head += f" {_briefing(worker).number(worker.state)}"
    if worker.life is Life.RUNNING:
        words = doing_words(worker)
    elif worker.life is Life.CRASHED or is_interrupted(stop):
        words = "in the middle" if worker.state.iteration else "not begun"
    elif stop is not None:
        words = stop.reason.value
    else:
        words = f"{worker.life}: {doing_words(worker)}"
    cost = _cost_words(worker.spent, Limits())
    return Line(f"{head}: {worker.problem or words}{', ' if cost else ''}{cost}", _tone(worker))


def _spent_words(report: Report) -> str:
    spent, limits = report.spent, report.limits
    parts = [_against(duration(spent.seconds), limits.seconds and duration(limits.seconds))]
    if cost := _cost_words(spent, limits):
        parts.append(cost)
    if spent.usage != Usage():
        all_in = spent.usage.input + spent.usage.cache_read + spent.usage.cache_write
        parts.append(f"{number(all_in)} tokens in, {number(spent.usage.output)} out")
    if report.state.waited >= 1:
        parts.append(f"{duration(report.state.waited)} of waiting beside it")
    return ", ".join(parts)


def _cost_words(spent: Spent, limits: Limits) -> str:
    """`$5.00 of $20.00 and 2 turns of unknown cost`; nothing where there was no cost at all."""
    parts = []
    if spent.dollars or limits.dollars:
        parts.append(_against(money(spent.dollars), limits.dollars and money(limits.dollars)))
    if spent.uncounted and (parts or spent.usage != Usage()):
        parts.append(f"{counted(spent.uncounted, 'turn')} of unknown cost")
    return " and ".join(parts)


def _against(spent: str, limit: str | float | None) -> str:
    return f"{spent} of {limit}" if limit else spent


def _finding_line(finding: Finding) -> Line:
    if finding.code is None:
        return Line(f"{finding.gate}: {first_line(finding.text)}", Tone.BAD)
    log = f", output in {finding.log}" if finding.log else ""
    return Line(f"{finding.gate}: exit code {finding.code}{log}", Tone.BAD)


def _tree_lines(tree: dict[str, Any], pid: int | None) -> list[Line]:
    below = f"{tree['processes']} of the agent and its checks: {_load_words(tree)}"
    own = f"ralph itself (pid {pid}): {_load_words(tree['ralph'])}"
    return [Line(below), Line(own)] if tree["processes"] else [Line(own)]


def _load_words(load: dict[str, Any]) -> str:
    return f"{load['cpu_percent']:.0f}% CPU, {number(load['rss_bytes'])}B"


def _asked_words(asked: Signals) -> str:
    if asked.cancels:
        return "to stop at once" if asked.cancels > 1 else "to stop after the current operation"
    return "to pause before the next turn"


# ------------------------------------------------------------------ many runs


def table_lines(reports: list[Report], style: Style) -> list[str]:
    """Runs as a table that fits the terminal, if there is one; below it what cannot be read."""
    rows = [_HEADINGS, *(_row(report) for report in reports)]
    tones = [Tone.FAINT, *(_tone(report) for report in reports)]
    table = _fitted(rows, style.width or _ENDLESS)
    wrong = [f"{r.run}: {tidy(r.problem, _LINE_SHOWN)}" for r in reports if r.problem]
    return [
        *(style.paint(row, tone) for row, tone in zip(table, tones, strict=True)),
        *(style.paint(line, Tone.BAD) for line in wrong),
    ]


def _fitted(rows: list[tuple[str, ...]], width: int) -> list[str]:
    """Aligned, with less between the columns where there is little room for the last."""
    widths = [max(columns(row[i]) for row in rows) for i in range(len(_HEADINGS) - 1)]
    rooms = {gap: width - sum(widths) - gap * len(widths) for gap in (2, 1)}
    gap = 2 if rooms[2] >= _LEAST_WORKSPACE else 1
    room = max(_LEAST_WORKSPACE, rooms[gap])
    return [shorten(_aligned(row, widths, room, " " * gap), width, width, "...") for row in rows]


def _row(report: Report) -> tuple[str, ...]:
    started, stop = report.started, report.state.stop
    most = report.limits.iterations
    spent = duration(report.spent.seconds)
    if report.spent.dollars:
        # As in `--spending`: with a +, where some turns did not tell, it was at least that.
        spent += f" {money(report.spent.dollars)}{'+' if report.spent.uncounted else ''}"
    return (
        report.run,
        stop.reason.value if stop else report.life,
        started.profile if started else "-",
        f"{report.iteration}/{most}" if most else str(report.iteration),
        spent,
        age(report.now - started.time) if started else "-",
        tidy(started.workspace, _LINE_SHOWN) if started else "-",
    )


def _aligned(row: tuple[str, ...], widths: list[int], room: int, gap: str) -> str:
    *cells, last = row
    padded = [
        f"{cell}{' ' * (width - columns(cell))}" for cell, width in zip(cells, widths, strict=True)
    ]
    if columns(last) > room:  # the end of a path tells more than its beginning
        last = f"...{last[-(room - 3) :]}"
    return gap.join([*padded, last])
