"""One run as `ralph status` knows it: what it is doing, in words, and all of it for programs."""

from dataclasses import asdict
from typing import Any, assert_never

from ralph.journal.life import Life
from ralph.kernel.events import Usage
from ralph.kernel.facts import Checking, Launching, Started
from ralph.kernel.limits import Limits, Spent
from ralph.kernel.state import NEW, Phase, RunState
from ralph.kernel.tasks.task import Assignment
from ralph.kernel.turn import Role
from ralph.kernel.value import value
from ralph.kernel.verdict import Accept
from ralph.kernel.world import Signals
from ralph.text.plain import clean
from ralph.text.redact import redact
from ralph.text.words import counted, duration
from ralph.ui.lines import coming_time
from ralph.ui.live.board import Tally, with_workers
from ralph.ui.proof import owed_dicts, proof_dict

_DAY = 86_400


@value
class Report:
    """A run as it is known at one moment. `tree` is what its processes use, as JSON has it."""

    run: str
    life: Life
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

    @property
    def live(self) -> bool:
        """True if its process runs."""
        return self.pid is not None

    @property
    def limits(self) -> Limits:
        return self.started.limits if self.started else Limits()

    @property
    def spent(self) -> Spent:
        """All that it has used up to now, with what its workers have."""
        own = self.state.spent_at(self.now) if self.live else self.state.spent
        return with_workers(own, [worker.spent for worker in self.workers])

    @property
    def is_crew(self) -> bool:
        """True if it works on several tasks at once, by workers."""
        return self.started is not None and self.started.workers > 1

    @property
    def assignment(self) -> Assignment | None:
        """The one task that it is at."""
        return None if self.is_crew else self.state.assignment or self.sent

    @property
    def iteration(self) -> int:
        """The number of turns that have begun."""
        return self.spent.iterations if self.is_crew else self.state.iteration

    @property
    def tally(self) -> Tally:
        return Tally.of(self.state, self.ahead)


# ------------------------------------------------------------------ what it is doing


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
            return f"since {duration(now - last)}; ralph resume goes on"
        case Life.WAITING:
            return _waiting_words(report)
        case Life.RUNNING:
            return _working_words(report)
        case _:
            assert_never(report.life)


def _waiting_words(report: Report) -> str:
    state = report.state
    until = state.wake or report.now
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
        return f"checks `{doing.gate}`{where} since {duration(report.now - doing.time)}"
    if isinstance(doing, Launching):
        return _agent_words(report, doing)
    if state.phase is Phase.SETTLING and report.sent and isinstance(state.verdict, Accept):
        # To merge takes no time beside waiting for others who do: one at a time can.
        words = "merges" if state.steps else "waits for its turn to merge"
        return f"{words} since {duration(report.now - state.time)}"
    if state.phase is Phase.SETTLING:
        return f"puts the verdict into effect since {duration(report.now - state.time)}"
    return "starts the next turn" if state.phase is Phase.OPENING else "between two steps"


def _agent_words(report: Report, launch: Launching) -> str:
    what = {Role.REVIEW: "the agent reviews", Role.MESSAGE: "the agent writes a commit message"}
    since = duration(report.now - launch.time)
    heard = "no output yet"
    if report.heard_at is not None:
        heard = f"last output {duration(report.now - report.heard_at)} ago"
    return f"{what.get(launch.role, 'the agent works')} since {since}, {heard}"


def age(seconds: float) -> str:
    """A time that has passed, short: 12s, 5m, 3h, 2d, 1y; a clock that was set back makes it 0s."""
    whole = max(0, int(seconds))
    for size, unit in ((365 * _DAY, "y"), (_DAY, "d"), (3600, "h"), (60, "m")):
        if whole >= size:
            return f"{whole // size}{unit}"
    return f"{whole}s"


# ------------------------------------------------------------------ for programs


def report_dict(report: Report) -> dict[str, Any]:
    """The run as one JSON object; null is what is not known, or not yet."""
    started, state, stop = report.started, report.state, report.state.stop
    assignment, limits = report.assignment, report.limits
    asked = "pause" if report.asked.paused else None
    if report.asked.cancels:
        asked = "stop-now" if report.asked.cancels > 1 else "stop"
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
        },
        "pid": report.pid,
        "wake_at": state.wake if report.life is Life.WAITING else None,
        "asked": asked,
        "agent": (started.agent or None) if started else None,
        "model": (started.model or None) if started else None,
        "workspace": started.workspace if started else None,
        "started_at": started.time if started else None,
        "ended_at": state.time if stop else None,
        "evidence": list(stop.evidence) if stop else [],
        "proof": proof_dict(state),
        "scm_failed": owed_dicts(state),
        "findings": [
            {"gate": f.gate, "code": f.code, "log": f.log or None, "text": redact(clean(f.text))}
            for f in state.findings
        ],
        "last_actions": list(report.last_actions),
        "tree": report.tree,
        "state_dir": report.directory,
        "journal": report.journal,
        "problem": report.problem or None,
        # `total` is null where the list cannot be read, or the run is over: lists change.
        "tasks": asdict(report.tally) if report.is_crew else None,
        "workers": [report_dict(worker) for worker in report.workers],
    }


def _spent_dict(spent: Spent) -> dict[str, Any]:
    return {
        "iterations": spent.iterations,
        "seconds": round(spent.seconds, 3),
        "cost_usd": spent.dollars or None,
        "uncounted": spent.uncounted,
        "tokens": asdict(spent.usage) if spent.usage != Usage() else None,
    }
