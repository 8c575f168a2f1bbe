"""B's hooks: a person's callables and commands that are told what happens in a run of tasks.

None of them can end the run: what goes wrong with a hook is told once.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ralph.kernel.events import AgentEvent, ToolStart
from ralph.kernel.facts import Began, Decided, Ended, Fact, Settled
from ralph.kernel.state import NEW, Phase, RunState, fold
from ralph.kernel.value import value
from ralph.kernel.verdict import Accept, Boundary, Cut, Park, Verdict, Wait
from ralph.loops.backlog.actions import action_of
from ralph.loops.backlog.anomalies import JOURNAL, Anomaly, anomalies_in, costly
from ralph.loops.backlog.outcome import outcome
from ralph.loops.backlog.store.records import Records
from ralph.processes.child import Starter, start
from ralph.processes.user_command import PATIENCE, Aside
from ralph.text.plain import plain

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


# The names in the settings, by the names of the fields.
NAMES = {
    "on_task_start": "onTaskStart",
    "on_iteration_start": "onIterationStart",
    "on_action": "onAction",
    "on_iteration_end": "onIterationEnd",
    "on_task_end": "onTaskEnd",
    "on_anomaly": "onAnomaly",
}


# ------------------------------------------------------------------ commands


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
    """Hooks that run the commands of the settings (`{"onTaskStart": "command"}`), each with a
    JSON object on its standard input."""
    chosen = {name: command for name, command in settings.items() if command}
    if not chosen:
        return Hooks()
    run = _Commands(chosen, Aside(workspace, environ, start, patience, hurry), tell)
    return Hooks(
        on_task_start=lambda task: run.begin("onTaskStart", task),
        on_iteration_start=lambda task, number: run.begin("onIterationStart", task, number),
        on_action=lambda action: run("onAction", action=action),
        on_iteration_end=lambda task, number, result: run(
            "onIterationEnd", task=task, iteration=number, result=result
        ),
        on_task_end=lambda task, success: run("onTaskEnd", task=task, success=success),
        on_anomaly=lambda anomaly: run("onAnomaly", anomaly=anomaly),
    )


class _Commands:
    """Runs them, and knows which task and iteration it is about."""

    def __init__(
        self, chosen: Mapping[str, str], aside: Aside, tell: Callable[[str], None]
    ) -> None:
        self._chosen = dict(chosen)
        self._aside = aside
        self._tell = tell
        self._about: Json = {"task": None}
        self._told: set[str] = set()

    def begin(self, name: str, task: Json, iteration: int | None = None) -> None:
        """From now on it is about this task."""
        self._about = (
            {"task": task} if iteration is None else {"task": task, "iteration": iteration}
        )
        self(name)

    def __call__(self, name: str, **more: object) -> None:
        if name not in self._chosen:
            return
        trouble = self._aside.run(self._chosen[name], {"hook": name, **self._about, **more})
        if trouble is None:
            return
        # The agent's stream waits for this one: it must not do so a hundred times.
        dropped = trouble.late and name == "onAction"
        if name not in self._told:
            self._told.add(name)
            after = "It is not called again" if dropped else "The run goes on"
            self._tell(f"The hook {name} failed: {trouble.words}. {after}.")
        if dropped:
            del self._chosen[name]


# ------------------------------------------------------------------ the reader


class HookReader:
    """A reader of facts that calls hooks, and finds and records what a person should look at.

    It hears each fact once, as it is recorded. `task_of` gives a task as the task file has it;
    `state` is where a run goes on.
    """

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
        self._hooks = tuple(hooks)
        self._task_of = task_of
        self._records = records
        self._tell = tell
        self._state = state
        self._journal_intact = journal_intact
        self._edited = False  # the journal, and this was told
        self._begun = {_task_under_work(state)} - {None}
        self._costs: dict[str, list[float]] = {}  # of a task's iterations
        self._failed: set[tuple[int, str]] = set()  # hooks that failed, and this was told

    def on_fact(self, fact: Fact) -> None:
        """Call the hooks that are for it."""
        before, self._state = self._state, fold(self._state, fact)
        for anomaly in anomalies_in(fact, before):
            self._odd(anomaly, fact)
        match fact:
            case Began():
                self._on_began(again=before.again)
            case Ended():
                self._on_ended(fact)
            case Decided(boundary=Boundary.CLOSING, verdict=verdict):
                self._on_judged(verdict)
            case Settled(verdict=Accept() | Park() as verdict):
                self._begun.discard(self._task_id)
                self._tell_of_task("on_task_end", isinstance(verdict, Accept))
            case _:
                pass

    def on_events(self, events: Sequence[AgentEvent]) -> None:
        """Tell of each action."""
        if all(hooks.on_action is None for hooks in self._hooks):
            return
        for event in events:
            kind = action_of(event) if isinstance(event, ToolStart) else None
            if kind is not None and isinstance(event, ToolStart):
                told = {"type": kind, "tool": event.name, "summary": plain(event.summary)}
                self._call("on_action", {**told, **self._where()})

    def _on_began(self, *, again: bool) -> None:
        task = self._task_id
        if task not in self._costs:
            self._costs[task] = _costs_in(self._records.progress_of(task))
        if task not in self._begun:
            self._begun.add(task)
            self._tell_of_task("on_task_start")
        if not again:
            self._tell_of_task("on_iteration_start", self._number)

    def _on_ended(self, fact: Ended) -> None:
        if not self._edited and not self._journal_intact():
            self._edited = True
            self._odd(JOURNAL, fact)
        cost, earlier = fact.turn.cost_usd, self._costs.setdefault(self._task_id, [])
        if cost:
            for anomaly in costly(cost, earlier):
                self._odd(anomaly, fact)
            earlier.append(cost)

    def _on_judged(self, verdict: Verdict) -> None:
        """A turn that waits, or was not judged since someone asked to stop, has not ended."""
        turn = self._state.turn
        if turn is None or isinstance(verdict, Wait) or self._state.unjudged:
            return
        result = outcome(turn, verdict, self._state.findings).result()
        self._tell_of_task("on_iteration_end", self._number, result)

    def _odd(self, anomaly: Anomaly, fact: Fact) -> None:
        where, detail = self._where(), plain(anomaly.detail)
        task, number = self._task_id, self._number
        if anomaly.kind not in _TOLD_ANYWAY:
            self._tell(f"Anomaly ({anomaly.kind}) in {task}, iteration {number}: {detail}")
        # By the run's own count: a task may be taken up twice in a run.
        key = f"{task}/{self._state.iteration}/{anomaly.kind}/{detail}"
        self._records.anomaly(task, number, anomaly.kind, detail, time=fact.time, key=key)
        self._call("on_anomaly", {"kind": anomaly.kind, "detail": detail, **where})

    @property
    def _task_id(self) -> str:
        assignment = self._state.assignment
        return assignment.task if assignment is not None else ""

    @property
    def _number(self) -> int:
        """The number of the task's iteration, from 1."""
        return self._state.task_iteration

    def _where(self) -> Json:
        return {"taskId": self._task_id, "iteration": self._number}

    def _task(self) -> Json:
        try:
            return self._task_of(self._task_id)
        except Exception:  # noqa: BLE001  the task file may be gone; the hook is called all the same
            return {"id": self._task_id}

    def _tell_of_task(self, name: str, *arguments: object) -> None:
        """To look a task up takes a while in a long list: only for who wants to know."""
        if any(getattr(hooks, name) is not None for hooks in self._hooks):
            self._call(name, self._task(), *arguments)

    def _call(self, name: str, *arguments: object) -> None:
        for number, hooks in enumerate(self._hooks):
            hook = getattr(hooks, name)
            try:
                if hook is not None:
                    hook(*arguments)
            except Exception as error:  # noqa: BLE001  a person's code must not end the run
                self._say_once(number, name, error)

    def _say_once(self, number: int, name: str, error: Exception) -> None:
        if (number, name) not in self._failed:
            self._failed.add((number, name))
            why = plain(f"{type(error).__name__}: {error}")
            self._tell(f"The hook {NAMES[name]} failed: {why}. The run goes on.")


def _task_under_work(state: RunState) -> str | None:
    """The task whose start was told before the run was cut off."""
    if state.assignment is None or state.assignment.task in state.done:
        return None
    parked = any(task == state.assignment.task for task, _ in state.parked)
    return None if parked and state.phase is Phase.OPENING else state.assignment.task


def _costs_in(progress: Sequence[Json]) -> list[float]:
    costs = [entry.get("cost") for entry in progress if entry.get("type") == "iteration"]
    return [cost for cost in costs if isinstance(cost, int | float) and 0 < cost < 1e9]
