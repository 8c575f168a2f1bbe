"""Many runs, a line for each."""

import shlex
from typing import Any

from ralph.journal.life import Life
from ralph.kernel.facts import Started
from ralph.kernel.value import value
from ralph.kernel.verdict import Stop
from ralph.text.words import money
from ralph.ui.status.report import Report, age, fitted, tidy_path
from ralph.ui.style import Style, Tone

COMMANDS = {  # by profile
    "harness": "run",
    "supervise": "supervise",
    "tasks": "tasks run",
    "plan": "tasks plan",
    "reviewed": "prd run",
}
ASKING = "asking"  # at work, or not, and a task of it waits for an answer
_HEADINGS = ("RUN", "COMMAND", "STATE", "TURNS", "COST", "WHEN", "WORKSPACE")
_TONES = {"running": Tone.CALL, "completed": Tone.GOOD, "crashed": Tone.BAD, "unknown": Tone.BAD}


def command_of(profile: str) -> str:
    return COMMANDS.get(profile, profile)


@value
class Entry:
    """A run in a list. `state` is what it does now, or how it ended."""

    run: str
    state: str
    directory: str
    started: Started | None = None
    stop: Stop | None = None
    iterations: int = 0
    most: int | None = None  # its limit of them
    cost_usd: float | None = None
    uncounted: int = 0  # turns that did not tell their cost
    time: float = 0.0  # when it was last heard of
    asks: tuple[str, ...] = ()  # tasks
    pid: int | None = None
    problem: str = ""

    @property
    def command(self) -> str | None:
        return command_of(self.started.profile) if self.started else None

    def as_dict(self) -> dict[str, Any]:
        """The same for programs; null is what is not known, or not yet."""
        started, stop = self.started, self.stop
        return {
            "run": self.run,
            "command": self.command,
            "workspace": started.workspace if started else None,
            "state": self.state,
            "reason": stop.reason.value if stop else None,
            "exit": stop.reason.exit_code if stop else None,
            "asks": list(self.asks),
            "iterations": self.iterations,
            "max_iterations": self.most,
            "cost_usd": self.cost_usd,
            "turns_of_unknown_cost": self.uncounted,
            "agent": (started.agent or None) if started else None,
            "model": (started.model or None) if started else None,
            "started_at": started.time if started else None,
            "ended_at": self.time if stop else None,
            "pid": self.pid,
            "state_dir": self.directory,
            "problem": self.problem or None,
        }


def tone_of(state: str) -> Tone:
    """The tone of a state that `state_word` gives, or of how a run ended."""
    return _TONES.get(state, Tone.NOTICE)


def state_word(report: Report, asks: tuple[str, ...]) -> str:
    """The state of a run that has not ended, of which these tasks wait for an answer."""
    is_at_rest = report.life is Life.PAUSED or not report.live
    return ASKING if asks and not is_at_rest else report.life.value


def listing(entries: list[Entry], now: float, style: Style) -> list[str]:
    """The table; below it what is wrong with some, and what waits for an answer."""
    rows = [_HEADINGS, *(_row(entry, now) for entry in entries)]
    tones = [Tone.FAINT, *(tone_of(entry.state) for entry in entries)]
    lines = fitted(rows, tones, style)
    wrong = [f"{e.run}: {tidy_path(e.problem)}" for e in entries if e.problem]
    lines += [style.paint(line, Tone.BAD) for line in wrong]
    for entry in entries:
        for task in entry.asks:
            where = shlex.quote(entry.started.workspace) if entry.started else "."
            lines.append(tidy_path(f'{entry.run} asks: ralph tasks -C {where} answer {task} "..."'))
    return lines


def _row(entry: Entry, now: float) -> tuple[str, ...]:
    started = entry.started
    turns = f"{entry.iterations}/{entry.most}" if entry.most else str(entry.iterations)
    cost = "-" if entry.cost_usd is None else money(entry.cost_usd)
    cost += "+" if entry.uncounted and entry.cost_usd else ""  # it was at least that
    return (
        entry.run,
        entry.command or "-",
        entry.state,
        turns,
        cost,
        f"{age(now - entry.time)} ago" if entry.time else "-",
        tidy_path(started.workspace) if started else "-",
    )
