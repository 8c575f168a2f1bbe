"""The tools that only look: nothing here writes, or changes what a run does (ADR 38)."""

import os
import time
from collections.abc import Iterable, Iterator
from threading import Thread
from typing import Any

from ralph.errors import ConfigError
from ralph.journal.life import Account, Life
from ralph.journal.outline import Costs
from ralph.journal.runs import Following, Run, account_of, look_again, runs_of
from ralph.kernel.case import Case
from ralph.kernel.state import NEW
from ralph.kernel.tasks.select import blockers
from ralph.kernel.tasks.task import ENDED, Task
from ralph.kernel.value import replace, value
from ralph.kernel.verdict import Boundary, Reason
from ralph.kernel.world import ANSWER, Signals
from ralph.loops.backlog.ahead import ahead_of
from ralph.loops.backlog.store.task_file import TaskFile
from ralph.mcp import tools
from ralph.mcp.pending import Command, Ended, News, Pending, Told
from ralph.mcp.scope import Place, Scope
from ralph.runner.kept import loop_of
from ralph.text.plain import clean, plain, shorten
from ralph.text.words import counted
from ralph.ui.status.listing import Entry, listing
from ralph.ui.status.reading import entry_of, report_of
from ralph.ui.status.report import Report, doing_words, report_dict, report_lines
from ralph.ui.style import Style
from ralph.web.positions import Cursor, cursor_at, is_position, position_of
from ralph.web.spool import Place as Source
from ralph.web.spool import Row
from ralph.web.tail import Tail

_PLAIN = Style()
_MOST_RUNS = 20
_MOST_TASKS = 100
_MOST_QUESTIONS = 50
_MOST_FINDINGS = 5
_LONGEST_TEXT = 2_000  # characters of a text of somebody
_LONGEST_LOG = 16_000
_LONGEST_REPORT = 20_000
_USUAL_LINES = 40
_READ_AT_ONCE = 500
_FIRST_NEWS, _NEWS_EVERY = 1.0, 5.0  # seconds
_TOLD = (  # of what `ralph status --json` tells
    *("run", "profile", "doing", "reason", "exit", "why", "task", "title", "iteration"),
    *("max_iterations", "spent", "limits", "asked", "agent", "model", "workspace"),
    *("last_actions", "tasks", "problem"),
)


# ------------------------------------------------------------------ status and wait


def status(scope: Scope, wish: tools.Which) -> Told:
    """One run in full, or a line for each of the newest."""
    if wish.run:
        report = _report_of(scope.run(wish.run))
        data = {**_reported(report), "next": next_step(report)}
        return Told("\n".join([*report_lines(report, _PLAIN), f"Next: {data['next']}"]), data)
    runs, now, costs = scope.runs(), time.time(), Costs()
    shown = [run for number, run in enumerate(runs) if number < _MOST_RUNS or run.live]
    entries = [entry_of(run, now, costs) for run in shown]
    told = [_entry(entry) for entry in entries]
    after = "`wait` for one that goes on." if any(run.live for run in runs) else "`start` a run."
    data = {"root": scope.root, "runs": told, "more": len(runs) - len(shown), "next": after}
    quiet = [replace(entry, asks=()) for entry in entries]  # our words for it are others
    lines = listing(quiet, now, _PLAIN) if entries else ["There are no runs yet."]
    lines += [f"{each.run} asks: {', '.join(each.asks)}" for each in entries if each.asks]
    lines += [f"and {data['more']} older"] if data["more"] else []
    return Told("\n".join([*lines, f"Next: {after}"]), data)


def wait(scope: Scope, wish: tools.Wait) -> Pending:
    return Waiting(scope.run(wish.run), wish.seconds, asks=not wish.ignore_questions)


class Waiting:
    """Waits for the end of a run, or a question of it."""

    def __init__(self, run: Run, seconds: float, *, asks: bool) -> None:
        self._run, self._seconds, self._asks = run, seconds, asks
        self._began = time.monotonic()
        self._told_at = self._began - _NEWS_EVERY + _FIRST_NEWS
        self._following = Following(run)

    def look(self) -> Told | None:
        run = self._run = look_again(self._run)  # before its journal: the end is in that, then
        account, why = self._following.look(), ""
        if not run.live:
            why = "ended"
        elif self._asks and _unanswered(account.asks, run.asked()):
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
        return News(now - self._began, self._seconds, doing_words(report))

    def hurry(self) -> None:
        self._seconds = 0.0

    def cancel(self) -> None:
        self._seconds = 0.0

    def _account(self, run: Run) -> Account:
        return self._following.look() if run.id == self._run.id else account_of(run)


def _waited(run: Run, why: str) -> Told:
    report = _report_of(run)
    data = {"returned": why, **_reported(report), "next": next_step(report)}
    words = {
        "ended": f"Run {run.id} does not run any more: {doing_words(report)}.",
        "question": f"Run {run.id} asks something ({counted(len(report.asks), 'task')}).",
        "time": f"Run {run.id} goes on: {doing_words(report)}.",
    }
    lines = [words[why]]
    if report.state.stop is not None and report.state.stop.why:
        lines.append(report.state.stop.why)
    return Told("\n".join([*lines, f"Next: {data['next']}"]), data)


def _report_of(run: Run) -> Report:
    report = report_of(run, time.time(), ahead=ahead_of)
    return replace(report, asks=_unanswered(report.asks, report.asked))


def _unanswered(asks: Iterable[str], asked: Signals) -> tuple[str, ...]:
    """The tasks that still wait: a run hears of an answer before its next turn."""
    told = {each.task for each in asked.requests if each.request == ANSWER}
    return tuple(task for task in asks if task not in told)


def _reported(report: Report) -> dict[str, Any]:
    """A run for programs: the part of `ralph status --json` that is short."""
    told = report_dict(report)
    found = [finding["text"] for finding in told["findings"][:_MOST_FINDINGS]]
    stop = report.state.stop
    data = {
        "state": stop.reason.value if stop else report.life.value,
        **{name: told[name] for name in _TOLD},
        "notes": [_cut(note["text"]) for note in told["notes"][:_MOST_FINDINGS]],
        "asks": list(report.asks),
        "findings": [_cut(text) for text in found],
    }
    return _known(data)


def _known(told: dict[str, Any]) -> dict[str, Any]:
    """What is known of it: a model reads the rest for nothing."""
    pairs = ((key, _known(each) if isinstance(each, dict) else each) for key, each in told.items())
    return {key: each for key, each in pairs if each not in (None, "", [], {})}


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
    return _known({name: said for name, said in told.items() if name not in left_out})


# ------------------------------------------------------------------ questions and tasks


@value
class Question:
    """What somebody wants to know. Without a task it is a run's, which has ended with it."""

    place: Place
    text: str
    task: str = ""
    title: str = ""
    run: str = ""


def asked(scope: Scope) -> Iterator[Question]:
    """The open questions below the root: of tasks, and of last runs that have none."""
    for place in scope.places():
        runs = runs_of(place.project)
        tasks = TaskFile(place.workspace).read().backlog.tasks
        open_ones = [task for task in tasks if task.question and task.status not in ENDED]
        by = next((run.id for run in runs if _has_tasks(run)), "") if open_ones else ""
        for task in open_ones:
            yield Question(place, task.question, task.id, task.title, by)
        if not runs or runs[0].live or _has_tasks(runs[0]):
            continue
        stop = account_of(runs[0]).state.stop
        if stop is not None and stop.reason is Reason.BLOCKED:
            yield Question(place, stop.why, run=runs[0].id)


def _has_tasks(run: Run) -> bool:
    """True for a run whose tasks can be answered."""
    loop, _ = loop_of(run.directory)
    return loop is not None and loop.answer is not None


def questions(scope: Scope, wish: tools.Questions) -> Told:
    found = list(asked(scope))
    told = [
        _known(
            {
                "task": each.task,
                "title": each.title,
                "run": each.run,
                "question": _cut(each.text),
                "directory": each.place.workspace,
            }
        )
        for each in found[:_MOST_QUESTIONS]
    ]
    after = "`answer` each, or ask the person you work for." if told else "nothing is asked."
    data = {"questions": told, "more": len(found) - len(told), "next": after}
    lines = [f"{each.task or each.run}: {_cut(each.text)}" for each in found[:_MOST_QUESTIONS]]
    lines += [f"and {data['more']} more"] if data["more"] else []
    return Told("\n".join([*lines, f"Next: {after}"]), data)


def tasks_list(scope: Scope, wish: tools.TasksList) -> Told:
    """The tasks behind one, as many as fit."""
    directory = scope.within(wish.directory)
    file = TaskFile(directory)
    backlog = file.load().backlog
    tasks = list(backlog.tasks)
    if wish.after is not None:
        file.needed(wish.after)
        tasks = tasks[[task.id for task in tasks].index(wish.after) + 1 :]
    tasks = [task for task in tasks if wish.status in (None, task.status.value)]
    case = Case(Boundary.OPENING, NEW, time.time(), backlog=backlog)
    shown, more = tasks[:_MOST_TASKS], max(0, len(tasks) - _MOST_TASKS)
    told = [_task(task, blockers(task, case)) for task in shown]
    after = f'the rest: `tasks_list` with after "{shown[-1].id}".' if more else ""
    after = after or ("`start` with loop." if tasks else "`tasks_add` adds one.")
    data = {"directory": directory, "tasks": told, "more": more, "next": after}
    lines = [f"{task.id} {task.status.value}: {plain(task.title)}" for task in shown]
    return Told("\n".join([*lines, f"Next: {after}"]), data)


def _task(task: Task, waits_for: Iterable[str]) -> dict[str, Any]:
    return _known(
        {
            "id": task.id,
            "title": _cut(task.title),
            "status": task.status.value,
            "priority": task.priority,
            "waits_for": list(waits_for),
            "question": _cut(task.question),
            "reason": _cut(task.reason),
        }
    )


def _cut(text: str) -> str:
    return shorten(clean(text), _LONGEST_TEXT, None, "...")


# ------------------------------------------------------------------ log and report


def log(scope: Scope, wish: tools.Log) -> Pending:
    run = scope.run(wish.run)
    if wish.since is not None and not is_position(wish.since):
        message = f"{wish.since!r} is no position"
        raise ConfigError(message, 'Pass that of an answer, or "0.0" for the beginning.')
    return Logging(run, scope.tails, wish.since, events=wish.events)


class Logging:
    """Reads a run's log up to now, and tells what is behind a position. What a line says and where
    it comes from follows from the files alone (ADR 40): so positions hold in the next server."""

    def __init__(
        self, run: Run, tails: dict[str, Tail], since: str | None, *, events: bool
    ) -> None:
        self._run, self._tails, self._since, self._events = run, tails, since, events
        self._tail = tails.pop(run.id) if run.id in tails else Tail(run, lambda: None)
        self._reader = Thread(target=self._tail.look, daemon=True)  # the first time takes long
        self._reader.start()

    def look(self) -> Told | None:
        if self._reader.is_alive():
            return None
        told = self._told()
        for other in self._tails.values():
            other.close()
        self._tails.clear()
        self._tails[self._run.id] = self._tail  # who asks again is told sooner
        return told

    def news(self) -> News | None:
        return None

    def hurry(self) -> None:
        """It reads as fast as it can."""

    def cancel(self) -> None:
        """What was read is kept, for the next who asks."""

    def _told(self) -> Told:
        spool, total = self._tail.spool, self._tail.spool.total
        if self._since is None:
            begin = Cursor(0, self._last_lines(total))
        else:
            begin = cursor_at(self._since, spool, self._tail.told) or Cursor(0, 0)
        lines, cursor = self._lines(begin, total)
        more, live = cursor.lines < total, look_again(self._run).live
        position = position_of(cursor, spool)
        step = "`log`" if more else "`wait`" if live else "`report`"
        data = {
            "run": self._run.id,
            "lines": lines,
            "position": position,
            "more": more,
            "goes_on": live,
            "next": f'{step}; what comes after this is behind since "{position}".',
        }
        return Told("\n".join([*lines, f"Next: {data['next']}"]), data)

    def _last_lines(self, total: int) -> int:
        """Where the last lines begin that are to be told."""
        found, at = 0, total
        while at > 0 and found < _USUAL_LINES:
            first = max(0, at - _READ_AT_ONCE)
            for place, _ in reversed(self._tail.spool.read(first, at - first)):
                at -= 1
                found += self._wanted(place)
                if found == _USUAL_LINES:
                    break
        return at

    def _lines(self, begin: Cursor, total: int) -> tuple[list[str], Cursor]:
        """The lines behind a place, as many as fit, and the place behind them."""
        lines, size, at, journal = list[str](), 0, begin.lines, begin.journal
        spool = self._tail.spool
        while at < total and size <= _LONGEST_LOG:
            for place, row in spool.read(at, min(_READ_AT_ONCE, total - at)):
                if self._wanted(place):
                    line = _line(row)
                    size += len(line) + 1
                    if size > _LONGEST_LOG and lines:
                        break
                    lines.append(line)
                at, journal = at + 1, place[0]
        is_whole = spool.after((journal, 0)) <= at  # all lines up to that fact are behind us
        return lines, Cursor(journal if is_whole else begin.journal, at)

    def _wanted(self, place: Source) -> bool:
        """Of what the agent said, the place tells where in its stream."""
        return self._events or not place[1]


def _line(row: Row) -> str:
    stamp = time.strftime("%H:%M:%S ", time.localtime(row.time)) if row.time else ""
    return f"{stamp}{row.text}"


def report(scope: Scope, wish: tools.Report) -> Pending:
    run = scope.run(wish.run)

    def told(ended: Ended) -> Told:
        if ended.code:
            raise ConfigError(f"there is no report of {run.id}: {ended.said()}", "See: `log`")
        part = ended.out[wish.offset : wish.offset + _LONGEST_REPORT]
        behind = wish.offset + len(part)
        left = max(0, len(ended.out) - behind)
        after = f"the rest: `report` with offset {behind}." if left else "that is all of it."
        data = {"run": run.id, "markdown": part, "left": left, "next": after}
        return Told(f"{part}\nNext: {after}" if left else part, data)

    words = ("report", "--format", "md", "-o", "-", "--", run.id)
    return Command(words, os.path.sep, scope.environ, told)
