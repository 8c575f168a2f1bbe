"""The forecast of a run: by its own state, its list as it is now, and what earlier work took."""

import json
import os
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ralph.errors import RalphError
from ralph.files.state_dir import stamp_of
from ralph.journal.runs import NONSENSE, Run
from ralph.kernel.facts import Started
from ralph.kernel.limits import Spent
from ralph.kernel.state import Phase, RunState
from ralph.kernel.tasks.task import Task
from ralph.kernel.value import replace, value
from ralph.kernel.verdict import Reason
from ralph.runner.kept import loop_of

if TYPE_CHECKING:
    from ralph.journal.forecast import Begun, Effort, Forecast
    from ralph.runner.plan import Loop, Plan

UNITS = {"harness": "run", "tasks": "task", "reviewed": "story"}  # by profile
_PROFILES = {"prompt": "harness", "backlog": "tasks", "stories": "reviewed"}  # by loop


@value
class Standing:
    """A run as a forecast sees it. `workers` are at work for it; `day` is the most money of a day,
    and what other runs have spent of it."""

    profile: str
    state: RunState
    tasks: Sequence[Task] = ()
    workers: tuple[RunState, ...] = ()
    at_once: int = 1  # tasks
    day: tuple[float, float] | None = None


class Forecasts:
    """The forecasts of runs, for who looks again and again: what has not changed is read once."""

    def __init__(self) -> None:
        self._kept: dict[str, tuple[Loop | None, Mapping[str, Any]]] = {}
        self._histories: dict[tuple[str, ...], tuple[object, Sequence[Effort]]] = {}
        self._days: dict[str, tuple[object, float]] = {}

    def __call__(
        self,
        run: Run,
        started: Started | None,
        state: RunState,
        workers: Sequence[RunState] = (),
    ) -> "Forecast | None":
        """What is likely left of a run that goes on, or could; None of one that is complete, of a
        worker, of a loop without forecasts, and where files make no sense."""
        if started is None or started.profile not in UNITS or run.lead is not None:
            return None
        is_complete = state.stop is not None and state.stop.reason is Reason.COMPLETED
        if is_complete or (UNITS[started.profile] == "run" and state.done):
            return None
        try:
            tasks = self._tasks(run, started)
            day = self._day(run, started) if started.profile == "tasks" else None
        except (OSError, RalphError, LookupError, *NONSENSE):  # of another time
            return None
        standing = Standing(started.profile, state, tasks, tuple(workers), started.workers, day)
        return made(standing, self._history(run, started, state.task))

    def _tasks(self, run: Run, started: Started) -> Sequence[Task]:
        """Its list as it is now; a prompt has none, and its loop need not be loaded."""
        if UNITS[started.profile] == "run":
            return ()
        if run.directory not in self._kept:
            self._kept[run.directory] = loop_of(run.directory)
        loop, kept = self._kept[run.directory]
        return loop.tasks(kept, started.workspace) if loop is not None else ()

    def _history(self, run: Run, started: Started, task: str) -> "Sequence[Effort]":
        path = history_at(started.profile, run.project, started.workspace)
        key, stamp = (path, run.id, task), stamp_of(path)
        known = self._histories.get(key)
        if known is None or known[0] != stamp:
            known = stamp, history(started.profile, path, run.id, task)
            self._histories = {key: known}  # one run is looked at, or a few in turn
        return known[1]

    def _day(self, run: Run, started: Started) -> tuple[float, float] | None:
        """The money of a day, where settings limit it, and what others have spent of it."""
        most = (json.loads(started.settings).get("loop") or {}).get("maxCostPerDay")
        if not isinstance(most, int | float):
            return None
        from ralph.journal.ledger import FILE, spent_today

        stamp = stamp_of(os.path.join(run.project, FILE)), time.localtime()[:3]
        known = self._days.get(run.id)
        if known is None or known[0] != stamp:
            known = self._days[run.id] = stamp, spent_today(run.project, run.id)
        return float(most), known[1]


class LiveForecasts(Forecasts):
    """Those of runs that go on, for who looks at all: of others there may be thousands."""

    def __call__(
        self,
        run: Run,
        started: Started | None,
        state: RunState,
        workers: Sequence[RunState] = (),
    ) -> "Forecast | None":
        """None of a run whose process is gone."""
        return super().__call__(run, started, state, workers) if run.live else None


def first_words(plan: "Plan[Any]", run: str, state: RunState) -> list[str]:
    """The line about what is likely ahead of a run that begins or goes on; none where too few runs
    tell. A project without a history pays for one look whether there is a file."""
    if plan.loop_name not in _PROFILES or plan.task:
        return []
    profile = _PROFILES[plan.loop_name]
    path = history_at(profile, plan.project, plan.home)
    efforts = history(profile, path, run, state.task)
    if not efforts:
        return []
    tasks = plan.backlog().tasks if profile != "harness" else ()
    state = replace(state, limits=plan.limits)
    found = made(Standing(profile, state, tasks, at_once=plan.workers, day=_day_of(plan)), efforts)
    if found.iterations is None or found.iterations == found.iterations.times(0):
        return []
    from ralph.ui.forecast_words import forecast_words

    return [f"Forecast: {forecast_words(found, more=state.iteration > 0)}."]


def _day_of(plan: "Plan[Any]") -> tuple[float, float] | None:
    bounds = getattr(plan.work, "bounds", None)
    return (bounds.day.dollars, bounds.day.before) if bounds and bounds.day else None


def history_at(profile: str, project: str, workspace: str) -> str:
    """The file that tells what earlier work of this kind took."""
    if profile == "tasks":
        return os.path.join(workspace, ".ralph", "learning.jsonl")
    return os.path.join(project, "efforts.jsonl")


def history(profile: str, path: str, run: str, task: str) -> "Sequence[Effort]":
    """The newest of them, without the effort that is under way."""
    if stamp_of(path) is None:
        return ()
    if profile == "tasks":
        from ralph.runner.plan import loop_named

        efforts = loop_named("backlog").efforts
        assert efforts is not None
        return efforts(path)
    from ralph.journal.efforts import read_efforts

    return read_efforts(path, profile, (run, task if profile == "reviewed" else ""))


def made(standing: Standing, efforts: "Sequence[Effort]") -> "Forecast":
    """The forecast of a run by all that is known of it."""
    from ralph.journal.forecast import Begun, Waiting, forecast, judged

    state, unit = standing.state, UNITS[standing.profile]
    limits, spent = state.limits, spent_before_turn(state)
    if unit == "run":
        mine = Begun(spent.iterations, spent.seconds, None if spent.uncounted else spent.dollars)
        return judged(forecast(efforts, begun=[mine]), limits, spent)
    left = [task for task in standing.tasks if task.open]
    busy = {each.task: each for each in standing.workers or (state,) if each.task_iteration}
    begun = [_begun(busy[task.id]) for task in left if task.id in busy]
    waiting = [Waiting(task.kind, task.size) for task in left if task.id not in busy]
    found = forecast(efforts, waiting=waiting, begun=begun, workers=standing.at_once, unit=unit)
    if limits.tasks is not None:
        taken = len(state.done) + len(state.parked)
        limits = replace(limits, tasks=max(0, limits.tasks - taken))
    return judged(found, limits, spent, units=len(left), day=standing.day)


def _begun(state: RunState) -> "Begun":
    """What the iterations of a task took that are over."""
    from ralph.journal.forecast import Begun

    spent, before = spent_before_turn(state), state.spent_before_task
    dollars = max(0.0, spent.dollars - before.dollars)
    return Begun(
        state.task_iteration - _in_turn(state),
        max(0.0, spent.seconds - before.seconds),
        dollars if spent.uncounted == before.uncounted else None,
    )


def _in_turn(state: RunState) -> bool:
    """True if the iteration that has begun is not over: a forecast counts it as left."""
    is_open = state.again or state.unjudged or state.phase is not Phase.OPENING
    return is_open and state.iteration > 0


def spent_before_turn(state: RunState) -> Spent:
    """Spent by the iterations that are over."""
    spent, turn = state.spent, state.turn
    if not _in_turn(state):
        return spent
    if turn is not None and state.phase is not Phase.OPENING:
        seconds = max(0.0, spent.seconds - turn.seconds)
        dollars = max(0.0, spent.dollars - (turn.cost_usd or 0.0))
        spent = replace(spent, seconds=seconds, dollars=dollars)
    return replace(spent, iterations=max(0, spent.iterations - 1))
