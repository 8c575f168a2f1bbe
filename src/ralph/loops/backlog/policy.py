"""B: work through a backlog, one task at a time, each proven complete, committed and recorded."""

from collections.abc import Callable, Generator, Iterator
from functools import partial
from typing import Protocol

from ralph.kernel.case import Case, Ladder
from ralph.kernel.committing import committed
from ralph.kernel.contracts import CompleteClaim, said_failed
from ralph.kernel.facts import Fact, Settled, Step
from ralph.kernel.limits import Limits, least, left
from ralph.kernel.patience import Patience, allowance, watching
from ralph.kernel.ports import Committed, Gate, Policy, Ports, survey
from ralph.kernel.prompt import cut_off, place
from ralph.kernel.rules import (
    Asks,
    Believed,
    Failing,
    Objections,
    RateLimit,
    RunLimit,
    Stalled,
    UsedUp,
    barred,
    cancelled,
    carry_on,
    interrupted,
    paused,
    refused,
    release,
    unreadable,
    unstartable,
)
from ralph.kernel.state import RunState
from ralph.kernel.tasks.select import next_task
from ralph.kernel.tasks.task import Task
from ralph.kernel.turn import Allowance
from ralph.kernel.value import replace, value
from ralph.kernel.verdict import (
    Accept,
    Boundary,
    Cause,
    Continue,
    Feedback,
    Park,
    Reason,
    Stop,
    Verdict,
    is_interrupted,
)
from ralph.loops.backlog.prompt import Material, task_prompt
from ralph.loops.backlog.rules import (
    CHECK,
    DayLimit,
    Halt,
    TaskLimit,
    TasksLimit,
    TaskTimeLeft,
    all_worked,
    broken,
    limits_of_task,
    lost,
    none_ready,
    proven,
    spent_on_task,
    withdrawn,
)
from ralph.text.words import listed

DISCARDED = "The changes of the failed iteration were discarded: the files are as before it."
TASK_LIMITS = Limits(iterations=10, seconds=1800.0, dollars=5.0)  # B §Per-Task Limits
_MOST_REFUSALS = 3  # of commits in a row
RUN_LIMITS = Limits(seconds=14_400.0, dollars=50.0)  # B §Global Limits


class Settlement(Protocol):
    """Settles tasks; every method is idempotent for one iteration."""

    def take_up(self, state: RunState) -> str:
        """Mark the task as in progress, after discarding what a turn that was cut off has left.
        Returns where that is saved."""

    def undo_edits(self, state: RunState) -> str:
        """Put back illegal changes of the turn to the task list. Returns what they were."""

    def record(self, state: RunState, verdict: Verdict, saved: str = "") -> None:
        """Write status, progress and learning, and where undone work is saved."""

    def commit(self, state: RunState) -> Committed:
        """Commit the task's work under its id, exactly as it was proven."""

    def sync(self, state: RunState) -> tuple[bool, str]:
        """Tell the tracker that the task came from. Returns success, and a sentence."""

    def restore(self, state: RunState, *, whole_task: bool) -> str:
        """Discard this turn's changes, or all of the task's. Returns where they are saved."""

    def reopen(self, tasks: tuple[str, ...]) -> None:
        """Leave these parked tasks to the next run: nothing is wrong with them."""

    def end(self) -> None:
        """Clean up: the run is over for good."""


@value
class Bounds:
    """The limits of one task, one run and one day."""

    task: Limits = TASK_LIMITS
    run: Limits = RUN_LIMITS
    tasks: int = 50
    day: DayLimit | None = None
    stop_on_failure: bool = False

    @property
    def within(self) -> Limits:
        """The run's limits, and no more money than the day has left."""
        if self.day is None:
            return self.run
        rest = left(self.day.dollars, self.day.before)
        return replace(self.run, dollars=least(self.run.dollars, rest))


def tasks(
    settlement: Settlement,
    bounds: Bounds = Bounds(),
    *,
    patience: Patience = Patience(stall_after=3),
    gates: tuple[Gate, ...] = (),
    law: tuple[Gate, ...] = (),
    about: Callable[[Task], Material] = lambda _: Material(),
) -> Policy:
    """The policy of `ralph tasks run`. A task's completion check is one of the gates; `about`
    gives the context of a task."""
    contract, within = CompleteClaim(), bounds.within
    return Policy(
        name="tasks",
        select=next_task,
        compose=partial(compose, about, bounds.task),
        opening=opening(bounds),
        watching=(*watching(within, patience), TaskTimeLeft(bounds.task)),
        stopping=(release,),
        retaking=(cancelled, RunLimit(within)),
        closing=closing(bounds, patience, contract),
        gates={Boundary.CLOSING: gates},
        law=law,
        allowance=task_allowance(bounds, patience),
        prepare=partial(prepare, settlement),
        land=partial(land, settlement),
        settle=SettleTask(settlement, TaskLimit(bounds.task), gates, law),
        notes=lambda case: contract.near_misses(case.turn),
    )


def opening(bounds: Bounds) -> Ladder:
    """Before a turn."""
    return (
        cancelled,
        paused,
        unreadable,
        *((Halt(),) if bounds.stop_on_failure else ()),
        broken,
        all_worked,
        none_ready,
        TasksLimit(bounds.tasks),
        *((bounds.day,) if bounds.day else ()),
        RunLimit(bounds.run),
        carry_on,
    )


def closing(bounds: Bounds, patience: Patience, contract: CompleteClaim) -> Ladder:
    """After a turn."""
    day = (bounds.day,) if bounds.day else ()
    return (
        interrupted,
        unstartable,
        refused,
        lost,
        RateLimit(patience.max_wait),
        UsedUp(bounds.within),
        withdrawn,
        proven,
        Asks(park=True),
        Believed(contract, silent=CHECK),
        barred,
        Failing(patience.fail_after, park=True),
        TaskLimit(bounds.task),
        *day,
        RunLimit(bounds.run),
        Stalled(patience.stall_after, park=True),
        Objections(contract, patience.fail_delay),
        carry_on,
    )


def task_allowance(bounds: Bounds, patience: Patience) -> Callable[[Case], Allowance]:
    """The allowance of a turn: the least of the turn's, the task's, the run's and the day's
    limits."""
    of_run = allowance(bounds.within, patience)

    def allow(case: Case) -> Allowance:
        whole, limits = of_run(case), limits_of_task(case, bounds.task)
        spent = spent_on_task(case)
        return Allowance(
            least(whole.seconds, left(limits.seconds, spent.seconds)),
            whole.idle,
            least(whole.dollars, left(limits.dollars, spent.dollars)),
        )

    return allow


def compose(about: Callable[[Task], Material], limits: Limits, case: Case) -> str:
    """The task, the words that complete it, its context, and feedback."""
    task, state = case.task, case.state
    most = limits_of_task(case, limits).iterations
    iteration = task.used.iterations + state.task_iteration
    text = task_prompt(task, about(task), iteration, most)
    return place(text, (*state.feedback, *cut_off(state)))


def prepare(settlement: Settlement, ports: Ports, state: RunState) -> Iterator[Fact]:
    """Take the task up, on files as they were before its turn."""
    if state.cut_off:
        yield from land(settlement, ports, state)
    saved = settlement.take_up(state)
    if saved:
        yield Step(ports.clock.now(), "cut off", detail=saved)


def land(settlement: Settlement, ports: Ports, state: RunState) -> Iterator[Fact]:
    """Undo illegal edits of the task list before anything is judged by that list."""
    undone = settlement.undo_edits(state)
    if undone:
        yield Step(ports.clock.now(), "tasks.jsonl", detail=undone)


@value
class SettleTask:
    """Accept: record, commit, sync. Park, Stop: restore, record. A failed turn: discard, record.

    The run cleans up before its end is recorded: afterwards nobody would.
    """

    settlement: Settlement
    limit: TaskLimit
    gates: tuple[Gate, ...]
    law: tuple[Gate, ...]

    def __call__(self, ports: Ports, state: RunState, verdict: Verdict) -> Iterator[Fact]:
        match verdict:
            case Accept():
                yield from self._accept(ports, state, verdict)
            case Park():
                if verdict.cause is Cause.CRASH:
                    yield from self._restore(ports, state, "discard", whole_task=False)
                saved = yield from self._restore(ports, state, "restore", whole_task=True)
                yield from self._record(ports, state, "record", verdict, saved)
            case Continue():
                yield from self._go_on(ports, state, verdict)
            case Stop() if is_interrupted(verdict):  # the turn is judged when the run goes on
                if _has_failed(state) and not state.step("record"):
                    yield from self._restore(ports, state, "discard", whole_task=False)
            case Stop() if state.turn is not None and state.task_iteration:
                yield from self._end(ports, state, verdict)
            case Stop(reason=Reason.FAILING) if not state.step("pending again"):
                self.settlement.reopen(state.barren)
                words = f"{listed(state.barren)} (fix the agent and run again)"
                yield Step(ports.clock.now(), "pending again", detail=words)
            case _:
                pass
        if isinstance(verdict, Stop) and not is_interrupted(verdict):
            self.settlement.end()

    def _go_on(self, ports: Ports, state: RunState, verdict: Continue) -> Iterator[Fact]:
        failed, saved = _has_failed(state), ""
        if failed:
            saved = yield from self._restore(ports, state, "discard", whole_task=False)
        yield from self._record(ports, state, "record", verdict, saved)
        if failed:
            told = (*verdict.feedback, Feedback(DISCARDED))
            yield Settled(ports.clock.now(), replace(verdict, feedback=told))

    def _end(self, ports: Ports, state: RunState, verdict: Stop) -> Iterator[Fact]:
        """The run ends in the middle of a task: leave a clean tree, and the task's work in git."""
        if _has_failed(state) and not state.step("record"):
            yield from self._restore(ports, state, "discard", whole_task=False)
        saved = yield from self._restore(ports, state, "restore", whole_task=True)
        yield from self._record(ports, state, "end", verdict, saved)

    def _accept(self, ports: Ports, state: RunState, verdict: Accept) -> Iterator[Fact]:
        yield from self._record(ports, state, "record", verdict)
        step = state.step("commit")
        if step is None:
            state, made = yield from self._commit(ports, state, verdict)
            step = commit_step(ports, made)
            yield step
        if not step.ok:
            yield from self._refused(ports, state, step.detail)
        elif not state.step("sync"):
            ok, said = self.settlement.sync(state)
            yield Step(ports.clock.now(), "sync", ok=ok, detail=said)

    def _commit(
        self, ports: Ports, state: RunState, verdict: Accept
    ) -> Generator[Fact, None, tuple[RunState, Committed]]:
        def recorded(proven: RunState) -> Iterator[Fact]:
            return self._record(ports, proven, "record again", verdict)

        commit = self.settlement.commit
        return committed(ports, state, commit, self.gates, self.law, proven_again=recorded)

    def _refused(self, ports: Ports, state: RunState, refusal: str) -> Iterator[Fact]:
        """The user's own git hook has the last word: the task is open again (ADR 21). The agent is
        told; what it cannot fix would refuse every other task too."""
        in_a_row = state.refusals + (state.step("commit") is None)
        told = Feedback(f"The commit was refused:\n{refusal}")
        last = (refusal.strip().splitlines() or ["no reason given"])[-1]
        why, saved = f"the commit was refused: {last}", ""
        verdict: Verdict = Continue((told,))
        if told in state.feedback or in_a_row >= _MOST_REFUSALS:
            verdict = Stop(Reason.BLOCKED, why)
        elif (parked := self.limit(survey(ports, state, Boundary.CLOSING))) is not None:
            verdict = Park(f"{parked.why}; {why}")
        if not isinstance(verdict, Continue):
            saved = yield from self._restore(ports, state, "restore", whole_task=True)
        yield from self._record(ports, state, "reopen", verdict, saved)
        if isinstance(verdict, Stop):
            self.settlement.end()
        yield Settled(ports.clock.now(), verdict)

    def _restore(
        self, ports: Ports, state: RunState, key: str, *, whole_task: bool
    ) -> Generator[Fact, None, str]:
        step = state.step(key)
        if step is None:
            saved = self.settlement.restore(state, whole_task=whole_task)
            step = Step(ports.clock.now(), key, detail=saved)
            yield step
        return step.detail

    def _record(
        self, ports: Ports, state: RunState, key: str, verdict: Verdict, saved: str = ""
    ) -> Iterator[Fact]:
        if not state.step(key):
            self.settlement.record(state, verdict, saved)
            yield Step(ports.clock.now(), key)


def commit_step(ports: Ports, made: Committed) -> Step:
    """A commit as a step."""
    return Step(ports.clock.now(), "commit", ok=made.ok, detail=made.said, commit=made.commit)


def _has_failed(state: RunState) -> bool:
    """True if the turn crashed, timed out or said that it failed, and is not taken again."""
    turn = state.turn
    return turn is not None and not state.again and (turn.failed or said_failed(turn))
