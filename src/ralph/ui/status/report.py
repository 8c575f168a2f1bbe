"""One run as `ralph status` knows it, in words and for programs; many runs as a table."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any, assert_never

from ralph.journal.forecast import Forecast
from ralph.journal.life import Account, Life, life_of
from ralph.journal.way_on import WayOn, way_on
from ralph.kernel.events import Usage
from ralph.kernel.facts import Checking, Launching, Started
from ralph.kernel.findings import Finding
from ralph.kernel.limits import Limits, Spent
from ralph.kernel.state import NEW, Phase, RunState
from ralph.kernel.tasks.task import Assignment
from ralph.kernel.turn import Role
from ralph.kernel.value import replace, value
from ralph.kernel.verdict import Accept, Bench, is_interrupted
from ralph.kernel.world import NOTE, PAUSE, STOP, STOP_NOW, Request, Signals
from ralph.text.plain import clean, columns, one_line, safe, shorten
from ralph.text.words import counted, duration, money, number
from ralph.ui.closing import (
    closing_lines,
    cost_words,
    found_lines,
    owed_lines,
    proof_dict,
    proof_words,
)
from ralph.ui.forecast_words import forecast_dict, forecast_words
from ralph.ui.lines import Briefing, Line, coming_time
from ralph.ui.live.activity import Tally, with_workers
from ralph.ui.replay import briefing_of, tidy
from ralph.ui.style import Style, Tone, aligned

_DAY = 86_400
_LABEL = 11  # columns
_LINE_SHOWN = 4096
_NOTE_SHOWN = 200
_NARROWEST = 20
_EVER = float("inf")
_CUT = ("Task", "Last", "Workers", "Notes")  # words of others, of any length
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


@value
class Report:
    """A run as it is known at one moment. `tree` is what its processes use, as JSON has it."""

    run: str
    directory: str
    journal: str
    now: float
    state: RunState = NEW
    started: Started | None = None
    doing: Launching | Checking | None = None
    heard_at: float | None = None  # when the agent last printed something
    pid: int | None = None
    asked: Signals = Signals()
    last_actions: tuple[str, ...] = ()
    tree: dict[str, Any] | None = None
    problem: str = ""
    sent: Assignment | None = None  # of a worker: what it was sent to do
    workers: "tuple[Report, ...]" = ()  # those who are at work for it, or were when it ended
    ahead: frozenset[str] | None = None  # the tasks of its list that are not done, where known
    asks: tuple[str, ...] = ()  # tasks that wait for an answer
    forecast: Forecast | None = None  # what is likely left of it, where anybody has looked

    @property
    def live(self) -> bool:
        return self.pid is not None

    @property
    def life(self) -> Life:
        """Its state. One that has workers pauses by them."""
        account = Account(state=self.state, problem=self.problem)
        life = life_of(account, self.asked, self.now, live=self.live)
        if life is Life.ENDED or not (self.is_crew and self.live and self.asked.paused):
            return life
        lives = {worker.life for worker in self.workers}
        return life if lives & {Life.RUNNING, Life.WAITING} else Life.PAUSED

    @property
    def limits(self) -> Limits:
        return self.state.limits

    @property
    def spent(self) -> Spent:
        """All that it has used up to now, with what its workers have."""
        own = self.state.spent_at(self.now) if self.live else self.state.spent
        return with_workers(own, [worker.spent for worker in self.workers])

    @property
    def is_crew(self) -> bool:
        """True if it works on its tasks by workers, several at once or with what waits for CI."""
        return self.started is not None and (self.started.workers > 1 or self.state.sent > 0)

    @property
    def assignment(self) -> Assignment | None:
        """The one task that it is at."""
        return None if self.is_crew else self.state.assignment or self.sent

    @property
    def iteration(self) -> int:
        return self.spent.iterations if self.is_crew else self.state.iteration

    @property
    def benches(self) -> tuple[Bench, ...]:
        """Its agents that are not asked now."""
        over = self.state.stop is not None
        return tuple(b for b in self.state.benches if not over and (b.until or _EVER) > self.now)

    @property
    def tally(self) -> Tally:
        ahead = self.ahead or frozenset()
        left = tuple(parked for parked in self.state.parked if parked[0] not in ahead)
        return Tally.of(replace(self.state, parked=left), self.ahead)


def phase_of(report: Report) -> str | None:
    """One word for what it is doing, or what it did when it was cut off; None once it has ended."""
    if report.life in (Life.WAITING, Life.PAUSED):
        return report.life.value
    if report.life is Life.ENDED:
        return None
    if report.started is None:
        return "starting"
    return "checking" if isinstance(report.doing, Checking) else report.state.phase.value


def doing_words(report: Report) -> str:
    """The words for what it is doing now, or how it ended."""
    state, now = report.state, report.now
    ago = f", {age(now - state.time)} ago" if state.time else ""
    match report.life:
        case Life.ENDED:
            assert state.stop is not None
            return f"{state.stop.reason.value}, exit code {state.stop.reason.exit_code}{ago}"
        case Life.CRASHED:
            return f"its process is gone without a last word{ago}"
        case Life.UNKNOWN:
            return "no process of it is seen and its journal cannot be read"
        case Life.PAUSED:
            last = max((state.time, *(worker.state.time for worker in report.workers)))
            return f"for {duration(now - last)}; ralph resume goes on"
        case Life.WAITING:
            return _waiting_words(report)
        case Life.RUNNING:
            return _working_words(report)
        case _:
            assert_never(report.life)


def _waiting_words(report: Report) -> str:
    state = report.state
    until = state.wakes or report.now
    when = f"until {coming_time(until, report.now)} ({duration(until - report.now)} left)"
    failure = state.turn.failure if state.turn else None
    if failure is not None and failure.limited:
        return f"for the rate limit {when}"
    if state.asleep is not None and state.asleep.why:
        return f"{when}: {state.asleep.why}"
    return f"{when}, then the next turn starts"


def _working_words(report: Report) -> str:
    state, doing = report.state, report.doing
    if report.started is None:
        return "just starting"
    if report.is_crew:
        return f"{counted(len(report.workers), 'worker')} at work"
    if isinstance(doing, Checking):
        where = " on the merged tree" if report.sent and state.phase is Phase.SETTLING else ""
        return f"checking `{doing.gate}`{where} for {duration(report.now - doing.time)}"
    if isinstance(doing, Launching):
        return _agent_words(report, doing)
    if state.phase is Phase.SETTLING and report.sent and isinstance(state.verdict, Accept):
        # To merge takes no time beside waiting for others who do: one at a time can.
        words = "merging" if state.steps else "waiting for its turn to merge"
        return f"{words} for {duration(report.now - state.time)}"
    if state.phase is Phase.SETTLING:
        return f"putting the verdict into effect for {duration(report.now - state.time)}"
    if state.phase is Phase.TURN and state.attempt is not None:
        words = f"{one_line(clean(state.host))} prepares" if state.host else "waiting for a machine"
        return f"{words} for {duration(report.now - state.time)}"
    return "starts the next turn" if state.phase is Phase.OPENING else "between two steps"


def _agent_words(report: Report, launch: Launching) -> str:
    what = {Role.REVIEW: "reviewed", Role.MESSAGE: "been writing a commit message"}
    time = duration(report.now - launch.time)
    heard = "no output yet"
    if report.heard_at is not None:
        heard = f"last output {duration(report.now - report.heard_at)} ago"
    where = f" on {one_line(clean(report.state.host))}" if report.state.host else ""
    return f"the agent has {what.get(launch.role, 'worked')} for {time}{where}, {heard}"


def age(seconds: float) -> str:
    """A time that has passed, short: 12s, 5m, 3h, 2d, 1y; a clock that was set back makes it 0s."""
    whole = max(0, int(seconds))
    for size, unit in ((365 * _DAY, "y"), (_DAY, "d"), (3600, "h"), (60, "m")):
        if whole >= size:
            return f"{whole // size}{unit}"
    return f"{whole}s"


def report_lines(report: Report, style: Style) -> list[str]:
    """The run, a line for each thing worth knowing; the most important at the top, and at the
    bottom what to do next. The agent's words are cut to the terminal, paths never."""
    rows = [line for label, lines in _fields(report) for line in _labelled(label, lines, style)]
    lines = (*rows, *_last_words(report))
    return [style.paint(safe(each.text).replace("\n", " "), each.tone) for each in lines]


def _fields(report: Report) -> Iterator[tuple[str, list[Line]]]:
    started, state = report.started, report.state
    profile = f" ({started.profile})" if started else ""
    yield "Run", [Line(f"{report.run}{profile}")]
    yield "State", [Line(f"{report.life}: {doing_words(report)}", _tone(report))]
    yield "Asked", _asked_lines(report)
    yield "Notes", [Line(_note_words(each, report.now)) for each in waiting_notes(report)]
    if report.problem:
        yield "Problem", [Line(report.problem, Tone.BAD)]
    if started:
        yield "Workspace", [Line(started.workspace)]
        model = f", model {started.model}" if started.model else ""
        yield "Agent", [Line(f"{started.agent or 'unknown'}{model}{_last_by(report)}")]
        yield "Benched", [Line(bench_words(bench, report.now)) for bench in report.benches]
    if report.assignment:
        task = report.assignment
        title = f": {task.title}" if task.title else ""
        mode = f" ({task.mode})" if task.mode != "implement" else ""
        yield "Task", [Line(f"{task.task}{mode}{title}")]
    if started and report.is_crew:
        yield "Workers", [_worker_line(worker) for worker in report.workers]
        yield "Tasks", [Line(report.tally.words)] if report.state.stop is None else []
    if started:
        turn = briefing_for(report).turn.capitalize()
        yield (
            f"{turn}s" if report.is_crew else turn,
            [Line(_against(str(report.iteration), report.limits.iterations))],
        )
        yield "Spent", [Line(_spent_words(report))]
    if report.forecast and (report.live or report.forecast.iterations):
        yield "Forecast", [Line(forecast_words(report.forecast), _forecast_tone(report.forecast))]
    proof = proof_words(state)
    yield "Proven", [Line(proof)] if proof else []
    yield "SCM", list(owed_lines(state)) if state.stop is None else []
    yield "Found", list(found_lines(state)) if state.stop is None else []
    if command := resume_command(report):
        yield "Resume", [Line(f"{_way_on(report).words}: {command}")]
    yield "Last", [Line(action, Tone.FAINT) for action in report.last_actions]
    if tree := report.tree:
        below = f"{tree['processes']} of the agent and its checks: {_load_words(tree)}"
        own = Line(f"ralph itself (pid {report.pid}): {_load_words(tree['ralph'])}")
        yield "Processes", [Line(below), own] if tree["processes"] else [own]


def _last_by(report: Report) -> str:
    """`; the last turn by codex`, where that is not the run's first agent."""
    return f"; the last turn by {report.state.who}" if report.state.place else ""


def bench_words(bench: Bench, now: float) -> str:
    """`claude until 05:00:00 (4h left)`."""
    if bench.until is None:
        return f"{bench.agent}, for the rest of the run"
    left = duration(bench.until - now)
    return f"{bench.agent} until {coming_time(bench.until, now)} ({left} left)"


def _asked_lines(report: Report) -> list[Line]:
    """`to stop after the current operation (web, 3m ago)`; none if nobody asks for an end or a
    pause."""
    request, asked = asked_word(report.asked), report.asked
    left = next((each for each in asked.requests if each.request == request), None)
    is_done = report.life is Life.PAUSED and request == PAUSE
    if request is None or not report.live or (is_done and left is None):
        return []
    words = {
        STOP: "to stop after the current operation",
        STOP_NOW: "to stop at once",
        PAUSE: "to pause" if is_done else "to pause before the next turn",
    }[request]
    if left is not None:
        words += f" ({left.origin}, {age(report.now - left.time)} ago)"
        words += f": {left.text}" if left.text else ""  # why it could not go on
    return [Line(words, Tone.NOTICE)]


def waiting_notes(report: Report) -> list[Request]:
    """The notes that no prompt holds yet."""
    state, left = report.state, [r for r in report.asked.requests if r.request == NOTE]
    is_turn = report.live and state.phase is not Phase.OPENING
    heard = [note for note in state.notes if not is_turn or note.task not in ("", state.task)]
    return [*heard, *(note for note in left if note.id not in state.heard)]


def _note_words(note: Request, now: float) -> str:
    task = f", for {one_line(clean(note.task))}" if note.task else ""
    words = shorten(" ".join(safe(note.text).split()), _NOTE_SHOWN, None, "...")
    return f"{words} ({note.origin}, {age(now - note.time)} ago{task})"


def _last_words(report: Report) -> Iterator[Line]:
    stop = report.state.stop
    if stop is not None:
        state = replace(report.state, spent=report.spent)  # with those who were in the middle
        yield from closing_lines(stop, state, briefing_for(report))
        return
    yield Line(f"{'Journal':<{_LABEL}}{report.journal}")
    name = f" {report.run}" if report.sent else ""
    if report.live:
        yield Line(f"Follow it: ralph logs -f{name}     End it: ralph stop")
    elif report.life is Life.CRASHED:
        yield Line(f"What it did: ralph logs{name}. Go on: ralph resume")


def _way_on(report: Report) -> WayOn:
    return way_on(report.state, report.started.profile if report.started else "")


def resume_command(report: Report) -> str:
    """The command that goes on with the run; "" where it needs none, or none can."""
    on_its_own = report.live or report.sent is not None or report.problem
    if on_its_own or report.started is None or not _way_on(report).possible:
        return ""
    return f"ralph resume {report.run} {_way_on(report).flags}".rstrip()


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


def briefing_for(report: Report) -> Briefing:
    started, journal = report.started, report.journal
    return briefing_of(started, journal, report.state) if started else Briefing(journal=journal)


def _worker_line(worker: Report) -> Line:
    """`T-003 2/10: the agent has worked for 3m, $0.10`."""
    assert worker.assignment is not None, "a worker is sent to a task"
    head, stop = one_line(clean(worker.assignment.task)), worker.state.stop
    if worker.state.task_iteration:
        head += f" {briefing_for(worker).number(worker.state)}"
    if worker.life is Life.RUNNING:
        words = doing_words(worker)
    elif worker.life is Life.CRASHED or is_interrupted(stop):
        words = "in the middle" if worker.state.iteration else "not begun"
    elif stop is not None:
        words = stop.reason.value
    else:
        words = f"{worker.life}: {doing_words(worker)}"
    cost = cost_words(worker.spent)
    return Line(f"{head}: {worker.problem or words}{', ' if cost else ''}{cost}", _tone(worker))


def _spent_words(report: Report) -> str:
    spent, limits = report.spent, report.limits
    parts = [_against(duration(spent.seconds), limits.seconds and duration(limits.seconds))]
    if cost := cost_words(spent, limits):
        parts.append(cost)
    if spent.usage != Usage():
        parts.append(f"{number(spent.usage.all_input)} tokens in, {number(spent.usage.output)} out")
    if report.state.waited >= 1:
        parts.append(f"{duration(report.state.waited)} of waiting beside it")
    return ", ".join(parts)


def _forecast_tone(forecast: Forecast) -> Tone:
    if forecast.iterations is None:
        return Tone.FAINT
    return Tone.NOTICE if forecast.limit_holds is False else Tone.PLAIN


def _load_words(load: dict[str, Any]) -> str:
    return f"{load['cpu_percent']:.0f}% CPU, {number(load['rss_bytes'])}B"


def _against(spent: str, limit: str | float | None) -> str:
    return f"{spent} of {limit}" if limit else spent


def report_dict(report: Report) -> dict[str, Any]:
    """The run as one JSON object; null is what is not known, or not yet."""
    started, state, stop = report.started, report.state, report.state.stop
    assignment, limits = report.assignment, report.limits
    return {
        "run": report.run,
        "profile": started.profile if started else None,
        "state": report.life.value,
        "phase": phase_of(report),
        "doing": doing_words(report),
        "reason": stop.reason.value if stop else None,
        "exit": stop.reason.exit_code if stop else None,
        "why": (stop.why or None) if stop else None,
        "task": assignment.task if assignment else None,
        "title": (assignment.title or None) if assignment else None,
        "iteration": report.iteration,
        "max_iterations": limits.iterations,
        "spent": _spent_dict(report.spent),
        "limits": {
            "iterations": limits.iterations,
            "seconds": limits.seconds,
            "cost_usd": limits.dollars,
            "tasks": limits.tasks,
        },
        "forecast": forecast_dict(report.forecast),
        "pid": report.pid,
        "resume": _resume_dict(report),
        "wake_at": state.wakes if report.life is Life.WAITING else None,
        **_steering_dict(report),
        "agent": (started.agent or None) if started else None,
        "model": (started.model or None) if started else None,
        "by": state.who or None,
        "benched": [{"agent": b.agent, "until": b.until} for b in report.benches],
        "workspace": started.workspace if started else None,
        "started_at": started.time if started else None,
        "ended_at": state.time if stop else None,
        "evidence": list(stop.evidence) if stop else [],
        **proof_dict(state),
        "findings": [_finding_dict(finding) for finding in state.findings],
        "last_actions": list(report.last_actions),
        "tree": report.tree,
        "state_dir": report.directory,
        "journal": report.journal,
        "problem": report.problem or None,
        # `total` is null where the list cannot be read, or the run is over: lists change.
        "tasks": asdict(report.tally) if report.is_crew else None,
        "workers": [report_dict(worker) for worker in report.workers],
    }


def _finding_dict(found: Finding) -> dict[str, Any]:
    return {
        "gate": found.gate,
        "code": found.code,
        "log": found.log or None,
        "text": safe(found.text),
    }


def asked_word(signals: Signals) -> str | None:
    """The request that the run has not carried out yet, as `ralph` has it."""
    if signals.cancels:
        return STOP_NOW if signals.cancels > 1 else STOP
    return PAUSE if signals.paused else None


def _steering_dict(report: Report) -> dict[str, Any]:
    """The requests of people, their origin, and the notes that no prompt holds yet."""
    asked, requests = asked_word(report.asked), report.asked.requests
    return {
        "asked": asked,
        "asked_by": next((each.origin for each in requests if each.request == asked), None),
        "notes": [
            {"text": safe(n.text), "task": n.task or None, "origin": n.origin, "time": n.time}
            for n in waiting_notes(report)
        ],
    }


def _resume_dict(report: Report) -> dict[str, str] | None:
    """What `ralph resume` would do; null where there is nothing to resume."""
    command = resume_command(report)
    return {"command": command, "would": _way_on(report).words} if command else None


def _spent_dict(spent: Spent) -> dict[str, Any]:
    return {
        "iterations": spent.iterations,
        "seconds": round(spent.seconds, 3),
        "cost_usd": spent.dollars or None,
        "uncounted": spent.uncounted,
        "tokens": asdict(spent.usage) if spent.usage != Usage() else None,
    }


def table_lines(reports: list[Report], style: Style) -> list[str]:
    """Runs as a table that fits the terminal, if there is one; below it what cannot be read."""
    rows = [_HEADINGS, *(_row(report) for report in reports)]
    tones = [Tone.FAINT, *(_tone(report) for report in reports)]
    wrong = [f"{r.run}: {tidy_path(r.problem)}" for r in reports if r.problem]
    return [*fitted(rows, tones, style), *(style.paint(line, Tone.BAD) for line in wrong)]


def fitted(rows: Sequence[tuple[str, ...]], tones: Sequence[Tone], style: Style) -> list[str]:
    """A table that fits the terminal; of its last column, which is a path, the end is shown."""
    width, lines = style.width or _ENDLESS, list[str]()
    for gap in ("  ", " "):  # less between the columns where there is little room for the last
        heads = aligned([row[:-1] for row in rows], gap=gap)
        room = width - columns(heads[0] + gap)
        if room >= _LEAST_WORKSPACE:
            break
    room = max(_LEAST_WORKSPACE, room)
    for head, (*_, last), tone in zip(heads, rows, tones, strict=True):
        # The end of a path tells more than its beginning.
        end = last if columns(last) <= room else f"...{last[-(room - 3) :]}"
        lines.append(style.paint(shorten(head + gap + end, width, width, "..."), tone))
    return lines


def tidy_path(text: str) -> str:
    """A path, or what is wrong with one, on a line and safe to show."""
    return tidy(text, _LINE_SHOWN)


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
        tidy_path(started.workspace) if started else "-",
    )
