"""The tools that only look: nothing here writes, or changes what a run does (ADR 38)."""

import time
from typing import Any

from ralph.journal.life import Account, Life
from ralph.journal.outline import Costs
from ralph.journal.runs import Following, Run, account_of, look_again
from ralph.kernel.facts import Started
from ralph.kernel.value import replace
from ralph.kernel.verdict import Reason
from ralph.loops.backlog.ahead import ahead_of
from ralph.loops.backlog.store.task_file import TaskFile
from ralph.mcp import tools
from ralph.mcp.asking import is_asking
from ralph.mcp.pending import News, PendingAnswer, ToolAnswer, cut, known
from ralph.mcp.scope import Scope
from ralph.text.words import counted
from ralph.ui.status.listing import Entry, listing
from ralph.ui.status.reading import entry_of, report_of
from ralph.ui.status.report import Report, doing_words, report_dict, report_lines
from ralph.ui.style import Style

_PLAIN = Style()
_MOST_RUNS = 20
_MOST_FINDINGS = 5
_FIRST_NEWS, _NEWS_EVERY = 1.0, 5.0  # seconds
_TOLD = (  # of what `ralph status --json` tells
    *("run", "profile", "doing", "reason", "exit", "why", "task", "title", "iteration"),
    *("max_iterations", "spent", "limits", "asked", "agent", "model", "workspace"),
    *("last_actions", "tasks", "problem"),
)


def status(scope: Scope, wish: tools.WhichInput) -> ToolAnswer:
    """One run in full, or a line for each of the newest."""
    if wish.run:
        report = _report_of(scope.run(wish.run))
        data = {**_reported(report), "next": next_step(report)}
        return ToolAnswer("\n".join([*report_lines(report, _PLAIN), f"Next: {data['next']}"]), data)
    runs, now, costs = scope.runs(), time.time(), Costs()
    shown = [run for number, run in enumerate(runs) if number < _MOST_RUNS or run.live]
    entries = [entry_of(run, now, costs) for run in shown]
    told = [_entry(entry) for entry in entries]
    after = "`wait` for one that goes on." if any(run.live for run in runs) else "`start` a run."
    after = "`questions` says what is asked." if any(entry.asks for entry in entries) else after
    data = {"root": scope.root, "runs": told, "more": len(runs) - len(shown), "next": after}
    quiet = [replace(entry, asks=()) for entry in entries]  # our words for it are others
    lines = listing(quiet, now, _PLAIN) if entries else ["There are no runs yet."]
    lines += [f"{each.run} asks: {', '.join(each.asks)}" for each in entries if each.asks]
    lines += [f"and {data['more']} older"] if data["more"] else []
    return ToolAnswer("\n".join([*lines, f"Next: {after}"]), data)


def wait(scope: Scope, wish: tools.WaitInput) -> PendingAnswer:
    run = scope.run(wish.run)  # a worker ends with its task; who asks waits for the run
    return RunWait(run.lead or run, wish.seconds, asks=not wish.ignore_questions)


class RunWait:
    """Waits for the end of a run, or a question of it."""

    def __init__(self, run: Run, seconds: float, *, asks: bool) -> None:
        self._run, self._seconds, self._asks = run, seconds, asks
        self._began = time.monotonic()
        self._told_at = self._began - _NEWS_EVERY + _FIRST_NEWS
        self._following = Following(run)

    def look(self) -> ToolAnswer | None:
        run = self._run = look_again(self._run)  # before its journal: the end is in that, then
        account, why = self._following.look(), ""
        if not run.live:
            why = "ended"
        elif self._asks and _unanswered(account.asks, account.started):
            why = "question"
        elif time.monotonic() - self._began >= self._seconds:
            why = "time"
        return _waited(run, why) if why else None

    def news(self) -> News | None:
        now = time.monotonic()
        if now - self._told_at < _NEWS_EVERY:
            return None
        self._told_at = now
        report = report_of(self._run, time.time(), actions=False, accounts=self._account)
        return News(now - self._began, self._seconds, _doing(report))

    def hurry(self) -> None:
        self._seconds = 0.0

    def cancel(self) -> None:
        self._seconds = 0.0

    def _account(self, run: Run) -> Account:
        return self._following.look() if run.id == self._run.id else account_of(run)


def _waited(run: Run, why: str) -> ToolAnswer:
    report = _report_of(run)
    data = {"returned": why, **_reported(report), "next": next_step(report)}
    words = {
        "ended": f"Run {run.id} does not run any more: {_doing(report)}.",
        "question": f"Run {run.id} asks something ({counted(len(report.asks), 'task')}).",
        "time": f"Run {run.id} has not ended: {_doing(report)}.",
    }
    lines = [words[why]]
    if report.state.stop is not None and report.state.stop.why:
        lines.append(report.state.stop.why)
    return ToolAnswer("\n".join([*lines, f"Next: {data['next']}"]), data)


def _doing(report: Report) -> str:
    """What a run does, in words that need no state before them."""
    words = doing_words(report)
    return f"paused {words}" if report.life is Life.PAUSED else words


def _report_of(run: Run) -> Report:
    report = report_of(run, time.time(), ahead=ahead_of)
    return replace(report, asks=_unanswered(report.asks, report.started))


def _unanswered(asks: tuple[str, ...], started: Started | None) -> tuple[str, ...]:
    """The tasks that still ask by the list of them: a run hears of answers before its next turn."""
    if not asks or started is None:
        return asks
    backlog = TaskFile(started.workspace).read().backlog
    open_ones = {task.id for task in backlog.tasks if is_asking(task)}
    return tuple(task for task in asks if backlog.problem or task in open_ones)


def _reported(report: Report) -> dict[str, Any]:
    """A run for programs: the part of `ralph status --json` that is short."""
    told = report_dict(report)
    found = [finding["text"] for finding in told["findings"][:_MOST_FINDINGS]]
    stop = report.state.stop
    data = {
        "state": stop.reason.value if stop else report.life.value,
        **{name: told[name] for name in _TOLD},
        "notes": [cut(note["text"]) for note in told["notes"][:_MOST_FINDINGS]],
        "asks": list(report.asks),
        "findings": [cut(text) for text in found],
    }
    return known(data)


def next_step(report: Report) -> str:
    """What to call next."""
    stop = report.state.stop
    if report.live and report.asks:
        return f"read `questions`, then `answer` (task {', '.join(report.asks[:_MOST_FINDINGS])})."
    if report.life is Life.PAUSED:
        return "`resume` lets it go on."
    if report.live:
        return "`wait` until it ends or asks."
    if stop is None:
        return "`log` tells what it did; `resume` goes on with it."
    match stop.reason:
        case Reason.COMPLETED:
            return "`report` tells what it did."
        case Reason.BLOCKED:
            return "read `questions` and `answer`, then `resume`; `report` tells the rest."
        case Reason.LIMIT:
            return '`resume` with a higher limit (such as max_iterations "+10"), or `report`.'
        case _:
            return "`log` or `report` tells why; `resume` goes on with it."


def _entry(entry: Entry) -> dict[str, Any]:
    told = entry.as_dict()
    left_out = ("state_dir", "pid", "turns_of_unknown_cost")
    return known({name: said for name, said in told.items() if name not in left_out})
