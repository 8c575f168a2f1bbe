"""B: work through a backlog, one task at a time, each proven complete, committed and recorded."""

from collections.abc import Callable, Iterator
from typing import Protocol

from ralph.core.case import Case, Ladder
from ralph.core.claims import CompleteClaim, said_failed
from ralph.core.facts import Fact, Settled, Step
from ralph.core.limits import Limits, least, left
from ralph.core.prompt import cut_off, place
from ralph.core.rules import (
    Asks,
    Believed,
    Failing,
    Objections,
    RateLimit,
    RunLimit,
    Stalled,
    Stuck,
    UsedUp,
    cancelled,
    carry_on,
    interrupted,
    nothing_left,
    paused,
    refused,
    release,
    unreadable,
    unstartable,
)
from ralph.core.rules_tasks import (
    TaskLimit,
    TasksLimit,
    TaskTimeLeft,
    limits_of_task,
    proven,
    spent_on_task,
)
from ralph.core.select import next_task
from ralph.core.state import RunState
from ralph.core.turn import Allowance
from ralph.core.value import replace, value
from ralph.core.verdict import (
    Accept,
    Boundary,
    Continue,
    Feedback,
    Park,
    Stop,
    Verdict,
)
from ralph.ports import Gate, Policy, Ports, survey
from ralph.profiles.shared import Patience, allowance, watching

DISCARDED = "The changes of the failed iteration were discarded: the files are as before it."
TASK_LIMITS = Limits(iterations=10, seconds=1800.0, dollars=5.0)  # B §Per-Task Limits
RUN_LIMITS = Limits(seconds=14_400.0, dollars=50.0)  # B §Global Limits


class Workbench(Protocol):
    """What settling a task needs; every method is idempotent for one iteration."""

    def record(self, state: RunState, verdict: Verdict) -> None:
        """Write status, progress and learning."""

    def commit(self, state: RunState) -> str | None:
        """Commit the task's work under its id; what the user's own git hook said against it."""

    def sync(self, state: RunState) -> None:
        """Tell the tracker the task came from."""

    def restore(self, state: RunState, *, whole_task: bool) -> None:
        """Discard this turn's changes, or all of the task's; what stood there is saved first."""


def tasks(
    workbench: Workbench,
    *,
    task_limits: Limits = TASK_LIMITS,
    run_limits: Limits = RUN_LIMITS,
    most_tasks: int = 50,
    patience: Patience = Patience(stall_after=3),
    gates: tuple[Gate, ...] = (),
) -> Policy:
    """The policy of `ralph tasks run`. A task's completion check is one of the gates."""
    contract = CompleteClaim()
    return Policy(
        name="tasks",
        select=next_task,
        compose=compose,
        opening=(
            cancelled,
            paused,
            unreadable,
            nothing_left,
            Stuck(next_task),
            TasksLimit(most_tasks),
            RunLimit(run_limits),
            carry_on,
        ),
        watching=(*watching(run_limits, patience), TaskTimeLeft(task_limits)),
        stopping=(release,),
        retaking=(cancelled, RunLimit(run_limits)),
        closing=closing(task_limits, run_limits, patience, contract),
        gates={Boundary.CLOSING: gates},
        allowance=_allowance(task_limits, run_limits, patience),
        settle=Settle(workbench, TaskLimit(task_limits)),
        notes=lambda case: contract.near_misses(case.turn),
    )


def closing(task: Limits, run: Limits, patience: Patience, contract: CompleteClaim) -> Ladder:
    """After a turn."""
    return (
        interrupted,
        unstartable,
        refused,
        RateLimit(patience.max_wait),
        UsedUp(run),
        Failing(patience.fail_after),
        Asks(park=True),
        proven,
        Believed(contract),
        TaskLimit(task),
        RunLimit(run),
        Stalled(patience.stall_after, park=True),
        Objections(contract),
        carry_on,
    )


def _allowance(task: Limits, run: Limits, patience: Patience) -> Callable[[Case], Allowance]:
    of_run = allowance(run, patience)

    def allow(case: Case) -> Allowance:
        whole, limits, spent = of_run(case), limits_of_task(case, task), spent_on_task(case)
        return Allowance(
            least(whole.seconds, left(limits.seconds, spent.seconds)),
            whole.idle,
            least(whole.dollars, left(limits.dollars, spent.dollars)),
        )

    return allow


def compose(case: Case) -> str:
    """The task, the words that complete it, and what came back."""
    task = case.task
    rule = (
        f"It is complete when this check passes: {task.check}"
        if task.check
        else f"When it is complete, and only then, say {CompleteClaim().marker}."
    )
    stop = "If you need a person, say <promise>BLOCKED: why</promise>."
    text = f"Task {task.id}: {task.title}\n\n{task.text}\n\n{rule} {stop}"
    return place(text, (*case.state.feedback, *cut_off(case.state)))


@value
class Settle:
    """Accept: record, commit, sync. Park: restore, record. A failed turn: discard."""

    workbench: Workbench
    limit: TaskLimit

    def __call__(self, ports: Ports, state: RunState, verdict: Verdict) -> Iterator[Fact]:
        match verdict:
            case Accept():
                yield from self._accept(ports, state, verdict)
            case Park():
                yield from self._restore(ports, state, "restore", whole_task=True)
                yield from self._record(ports, state, "record", verdict)
            case Continue() | Stop() if _has_failed(state):
                yield from self._restore(ports, state, "discard", whole_task=False)
                if isinstance(verdict, Continue):
                    told = (*verdict.feedback, Feedback(DISCARDED))
                    yield Settled(ports.clock.now(), replace(verdict, feedback=told))
            case _:
                pass

    def _accept(self, ports: Ports, state: RunState, verdict: Accept) -> Iterator[Fact]:
        yield from self._record(ports, state, "record", verdict)
        committed = state.step("commit")
        if committed is None:
            refusal = self.workbench.commit(state)
            now = ports.clock.now()
            committed = Step(now, "commit", ok=refusal is None, detail=refusal or "")
            yield committed
        if not committed.ok:
            yield from self._refused(ports, state, committed.detail)
        elif not state.step("sync"):
            self.workbench.sync(state)
            yield Step(ports.clock.now(), "sync")

    def _refused(self, ports: Ports, state: RunState, refusal: str) -> Iterator[Fact]:
        """The user's own git hook has the last word: the task is open again (ADR 21)."""
        told = Feedback(f"The commit was refused:\n{refusal}")
        verdict = self.limit(survey(ports, state, Boundary.CLOSING)) or Continue((told,))
        if isinstance(verdict, Park):
            yield from self._restore(ports, state, "restore", whole_task=True)
        yield from self._record(ports, state, "reopen", verdict)
        yield Settled(ports.clock.now(), verdict)

    def _restore(
        self, ports: Ports, state: RunState, key: str, *, whole_task: bool
    ) -> Iterator[Fact]:
        if not state.step(key):
            self.workbench.restore(state, whole_task=whole_task)
            yield Step(ports.clock.now(), key)

    def _record(self, ports: Ports, state: RunState, key: str, verdict: Verdict) -> Iterator[Fact]:
        if not state.step(key):
            self.workbench.record(state, verdict)
            yield Step(ports.clock.now(), key)


def _has_failed(state: RunState) -> bool:
    """The turn crashed, timed out or said so itself; one that is taken again has not failed."""
    turn = state.turn
    return turn is not None and not state.again and (turn.failed or said_failed(turn))
