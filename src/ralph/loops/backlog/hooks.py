"""B's hooks: the user's callables and commands that are told what happens in a run of tasks.

None of them can end the run: what goes wrong with a hook is told once.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from ralph.kernel.events import AgentEvent, ToolStart
from ralph.kernel.facts import Began, Decided, Ended, Fact, Settled
from ralph.kernel.limits import Spent
from ralph.kernel.state import NEW, Phase, RunState, fold
from ralph.kernel.value import value
from ralph.kernel.verdict import Accept, Boundary, Cut, Park, Wait
from ralph.loops.backlog.actions import action_of
from ralph.loops.backlog.anomalies import FORECAST, JOURNAL, Anomaly, anomalies_in, costly, outside
from ralph.loops.backlog.outcome import outcome
from ralph.loops.backlog.store.records import Records
from ralph.processes.child import Starter, start
from ralph.processes.user_command import PATIENCE, UserCommands
from ralph.text.plain import plain

if TYPE_CHECKING:
    from ralph.journal.forecast import Forecast

Json = dict[str, Any]
_TOLD_ANYWAY = ("task_file", "protected", "near_miss", "stalled")  # by the facts themselves


@value
class Hooks:
    """Callables for the moments of a run (B §Hooks, `LoopHooks`); each is optional."""

    on_task_start: Callable[[Json], object] | None = None
    on_iteration_start: Callable[[Json, int], object] | None = None
    on_action: Callable[[Json], object] | None = None
    on_iteration_end: Callable[[Json, int, Json], object] | None = None
    on_task_end: Callable[[Json, bool], object] | None = None
    on_anomaly: Callable[[Json], object] | None = None


_ARGUMENTS = {  # as the JSON that a command reads names them
    "on_task_start": ("task",),
    "on_iteration_start": ("task", "iteration"),
    "on_action": ("action",),
    "on_iteration_end": ("task", "iteration", "result"),
    "on_task_end": ("task", "success"),
    "on_anomaly": ("anomaly",),
}
NAMES = {name: f"on{name[2:].title().replace('_', '')}" for name in _ARGUMENTS}  # onTaskStart


def commands(
    settings: Mapping[str, str | None],
    workspace: str,
    environ: Mapping[str, str],
    tell: Callable[[str], None],
    *,
    start: Starter = start,
    patience: float = PATIENCE,
    hurry: Callable[[], Cut | None] = lambda: None,
) -> Hooks:
    """Hooks that run the commands of the settings, each with a JSON object on standard input."""
    chosen = {name: command for name, command in settings.items() if command}
    if not chosen:
        return Hooks()
    run = UserCommands(workspace, environ, start, patience, hurry).run
    about: Json = {"task": None}  # the task and the iteration that are under way
    failed: set[str] = set()  # and this was told

    def call(hook: str, *arguments: object) -> None:
        nonlocal about
        name, more = NAMES[hook], dict(zip(_ARGUMENTS[hook], arguments, strict=True))
        if hook in ("on_task_start", "on_iteration_start"):
            about = more
        trouble = run(chosen[name], {"hook": name, **about, **more}) if name in chosen else None
        if trouble is None:
            return
        # The agent's stream waits for this one: it must not do so a hundred times.
        dropped = trouble.late and hook == "on_action"
        if name not in failed:
            failed.add(name)
            after = "It is not called again" if dropped else "The run goes on"
            tell(f"The hook {name} failed: {trouble.words}. {after}.")
        if dropped:
            del chosen[name]

    return Hooks(**{name: partial(call, name) for name in NAMES})


class HookReader:
    """A reader of facts that calls hooks, and finds and records what a person should look at.
    `task_of` gives a task as the task file has it; `state` is where a run goes on."""

    def __init__(
        self,
        hooks: Sequence[Hooks],
        task_of: Callable[[str], Json],
        records: Records,
        tell: Callable[[str], None],
        *,
        state: RunState = NEW,
        journal_intact: Callable[[], bool] = lambda: True,
    ) -> None:
        self._hooks, self._task_of = tuple(hooks), task_of
        self._records, self._tell = records, tell
        self._state, self._journal_intact = state, journal_intact
        self._edited = False  # the journal, and this was told
        task = self._state.task  # whose start was told before the run was cut off
        parked = state.phase is Phase.OPENING and task in dict(state.parked)
        self._begun = set() if parked or task in {"", *state.done} else {task}
        self._costs: dict[str, list[float]] = {}  # of a task's iterations
        self._expected: dict[str, Forecast | None] = {}  # of a task; None: nothing more is said
        self._failed: set[tuple[int, str]] = set()  # hooks that failed, and this was told

    def on_fact(self, fact: Fact) -> None:
        before, self._state = self._state, fold(self._state, fact)
        for anomaly in anomalies_in(fact, before):
            self._odd(anomaly, fact)
        match fact:
            case Began():
                self._on_began(fact, again=before.again)
            case Ended():
                self._on_ended(fact)
            case Decided(boundary=Boundary.CLOSING, verdict=verdict):
                # One that waits, or was not judged since someone asked to stop, has not ended.
                turn = self._state.turn
                if turn and not isinstance(verdict, Wait) and not self._state.unjudged:
                    result = outcome(turn, verdict, self._state.findings).result()
                    self._tell_of_task("on_iteration_end", self._state.task_iteration, result)
            case Settled(verdict=Accept() | Park() as verdict):
                self._begun.discard(self._state.task)
                self._tell_of_task("on_task_end", isinstance(verdict, Accept))

    def on_events(self, events: Sequence[AgentEvent]) -> None:
        if all(hooks.on_action is None for hooks in self._hooks):
            return
        for event in events:
            if isinstance(event, ToolStart) and (kind := action_of(event)) is not None:
                told = {"type": kind, "tool": event.name, "summary": plain(event.summary)}
                self._call("on_action", {**told, **self._where()})

    def _on_began(self, fact: Began, *, again: bool) -> None:
        task = self._state.task
        if task not in self._costs:
            past = self._records.progress_of(task)
            costs = (entry.get("cost") for entry in past if entry.get("type") == "iteration")
            known = [cost for cost in costs if isinstance(cost, int | float) and 0 < cost < 1e9]
            self._costs[task] = known
            told = any(entry.get("kind") == FORECAST for entry in past)
            self._expected[task] = None if told else self._forecast(task)
        self._look_outside(fact)
        if task not in self._begun:
            self._begun.add(task)
            self._tell_of_task("on_task_start")
        if not again:
            self._tell_of_task("on_iteration_start", self._state.task_iteration)

    def _on_ended(self, fact: Ended) -> None:
        if not self._edited and not self._journal_intact():
            self._edited = True
            self._odd(JOURNAL, fact)
        cost, earlier = fact.turn.cost_usd, self._costs.setdefault(self._state.task, [])
        if cost:
            for anomaly in costly(cost, earlier):
                self._odd(anomaly, fact)
            earlier.append(cost)
        self._look_outside(fact)

    def _forecast(self, task: str) -> "Forecast | None":
        """What this task will likely take; None where too few tell."""
        efforts = self._records.efforts()
        if not efforts:
            return None
        from ralph.journal.forecast import Waiting, forecast
        from ralph.loops.backlog.learning import size_of

        record = self._looked_up(task)
        kind, size = record.get("type") or "", size_of(record.get("estimate"))
        found = forecast(efforts, waiting=[Waiting(kind, size)], unit="task")
        return found if found.iterations else None

    def _look_outside(self, fact: Fact) -> None:
        """Tell once of a task that has left its interval."""
        expected, state = self._expected.get(self._state.task), self._state
        if expected is None:
            return
        spent, before = state.spent, state.spent_before_task
        used = Spent(
            state.task_iteration, spent.seconds - before.seconds, spent.dollars - before.dollars
        )
        for anomaly in outside(used, expected):
            self._odd(anomaly, fact)
            self._expected[state.task] = None

    def _odd(self, anomaly: Anomaly, fact: Fact) -> None:
        detail, task, number = plain(anomaly.detail), self._state.task, self._state.task_iteration
        if anomaly.kind not in _TOLD_ANYWAY:
            self._tell(f"Anomaly ({anomaly.kind}) in {task}, iteration {number}: {detail}")
        # By the run's own count: a task may be taken up twice in a run.
        key = f"{task}/{self._state.iteration}/{anomaly.kind}/{detail}"
        where = self._where()
        entry = {**where, "time": fact.time, "key": key}
        self._records.anomaly(entry, anomaly.kind, detail)
        self._call("on_anomaly", {"kind": anomaly.kind, "detail": detail, **where})

    def _where(self) -> Json:
        return {"taskId": self._state.task, "iteration": self._state.task_iteration}

    def _tell_of_task(self, name: str, *arguments: object) -> None:
        """To look a task up takes a while in a long list: only for who wants to know."""
        if all(getattr(hooks, name) is None for hooks in self._hooks):
            return
        self._call(name, self._looked_up(self._state.task), *arguments)

    def _looked_up(self, task: str) -> Json:
        try:
            return self._task_of(task)
        except Exception:  # noqa: BLE001  the task file may be gone; hooks are called all the same
            return {"id": task}

    def _call(self, name: str, *arguments: object) -> None:
        for number, hooks in enumerate(self._hooks):
            hook = getattr(hooks, name)
            try:
                if hook is not None:
                    hook(*arguments)
            except Exception as error:  # noqa: BLE001  a person's code must not end the run
                if (number, name) not in self._failed:
                    self._failed.add((number, name))
                    why = plain(f"{type(error).__name__}: {error}")
                    self._tell(f"The hook {NAMES[name]} failed: {why}. The run goes on.")
