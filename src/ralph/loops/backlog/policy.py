"""B: work through a backlog, one task at a time, each proven complete, committed and recorded."""

from collections.abc import Callable, Generator, Iterator
from typing import Protocol

from ralph.kernel import rules
from ralph.kernel.case import Case, Ladder
from ralph.kernel.contracts import CompleteClaim, said_failed
from ralph.kernel.facts import Fact, Moved, Settled, Step
from ralph.kernel.limits import Limits, least, left
from ralph.kernel.ports import Committed, Gate, Policy, Ports, Publish, survey
from ralph.kernel.prompt import cut_off, place
from ralph.kernel.proving import committed
from ralph.kernel.state import RunState, fold
from ralph.kernel.tasks.select import next_task
from ralph.kernel.tasks.task import Task
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
    unplaced,
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


@value
class Publishing:
    """How tasks that are done are published, if at all."""

    publish: Publish | None = None
    each: bool = True  # every task has a pull request of its own; else the run has one
    parks: bool = False  # the run goes on with others, where a person must look at one


def tasks(
    settlement: Settlement,
    bounds: Bounds = Bounds(),
    *,
    patience: rules.Patience = rules.Patience(stall_after=3),
    gates: tuple[Gate, ...] = (),
    law: tuple[Gate, ...] = (),
    about: Callable[[Task], Material] = lambda _: Material(),
    publishing: Publishing = Publishing(),
) -> Policy:
    """The policy of `ralph tasks run`. A task's completion check is one of the gates; `about`
    gives the context of a task."""
    contract, within = CompleteClaim(), bounds.within
    of_run = rules.allowance(within)
    settle = SettleTask(settlement, TaskLimit(bounds.task), gates, law, publishing)

    def compose(case: Case) -> str:
        """The task, the words that complete it, its context, and feedback."""
        task, state = case.task, case.state
        most = limits_of_task(case, bounds.task).iterations
        iteration = task.used.iterations + state.task_iteration
        text = task_prompt(task, about(task), iteration, most)
        return place(text, (*state.feedback, *cut_off(state)))

    def allow(case: Case) -> float | None:
        """The least dollars that are left of the task's, the run's and the day's."""
        of_task = left(limits_of_task(case, bounds.task).dollars, spent_on_task(case).dollars)
        return least(of_run(case), of_task)

    return Policy(
        name="tasks",
        select=next_task,
        compose=compose,
        opening=opening(bounds),
        watching=(*rules.watching(within, patience), TaskTimeLeft(bounds.task), unplaced),
        stopping=(rules.release,),
        retaking=(rules.cancelled, rules.RunLimit(within)),
        closing=closing(bounds, patience, contract),
        gates={Boundary.CLOSING: gates},
        law=law,
        allowance=allow,
        prepare=settle.prepare,
        land=settle.land,
        settle=settle,
        notes=lambda case: contract.near_misses(case.turn),
    )


def opening(bounds: Bounds) -> Ladder:
    return (
        rules.cancelled,
        rules.paused,
        rules.unreadable,
        *((Halt(),) if bounds.stop_on_failure else ()),
        broken,
        all_worked,
        none_ready,
        TasksLimit(bounds.tasks),
        *((bounds.day,) if bounds.day else ()),
        rules.RunLimit(bounds.run),
        rules.carry_on,
    )


def closing(bounds: Bounds, patience: rules.Patience, contract: CompleteClaim) -> Ladder:
    day = (bounds.day,) if bounds.day else ()
    return (
        rules.interrupted,
        rules.unstartable,
        *rules.next_agent(patience),
        rules.refused,
        lost,
        rules.RateLimit(patience.max_wait),
        rules.UsedUp(bounds.within),
        withdrawn,
        proven,
        rules.Asks(park=True),
        rules.Believed(contract),
        rules.barred,
        rules.Failing(patience.fail_after, park=True),
        TaskLimit(bounds.task),
        *day,
        rules.RunLimit(bounds.run),
        rules.Stalled(patience.stall_after, park=True),
        rules.Objections(contract, patience.fail_delay),
        rules.carry_on,
    )


@value
class SettleTask:
    """Accept: record, commit, sync. Park, Stop: restore, record. A failed turn: discard, record.

    A run that ends in the middle of a task leaves a clean tree, and the task's work in git. It
    cleans up before its end is recorded: afterwards nobody would.
    """

    settlement: Settlement
    limit: TaskLimit
    gates: tuple[Gate, ...]
    law: tuple[Gate, ...]
    publishing: Publishing

    def prepare(self, ports: Ports, state: RunState) -> Iterator[Fact]:
        """Take the task up, on files as they were before its turn."""
        if state.cut_off:
            yield from self.land(ports, state)
        saved = self.settlement.take_up(state)
        if saved:
            yield Step(ports.clock.now(), "cut off", detail=saved)

    def land(self, ports: Ports, state: RunState) -> Iterator[Fact]:
        """Undo illegal edits of the task list before anything is judged by that list."""
        undone = self.settlement.undo_edits(state)
        if undone:
            yield Step(ports.clock.now(), "tasks.jsonl", detail=undone)

    def __call__(self, ports: Ports, state: RunState, verdict: Verdict) -> Iterator[Fact]:
        match verdict:
            case Accept():
                yield from self._accept(ports, state, verdict)
            case Park():
                if verdict.cause is Cause.CRASH:
                    yield from self._restore(ports, state, "discard", whole_task=False)
                saved = yield from self._restore(ports, state, "restore", whole_task=True)
                yield from self._record(ports, state, "record", verdict, saved)
                if not self.publishing.parks and any(p.task == state.task for p in state.pulls):
                    self.settlement.end()  # what comes next would stand on what CI did not let pass
                    yield Settled(ports.clock.now(), verdict.stop)
            case Continue() if _has_failed(state):
                saved = yield from self._restore(ports, state, "discard", whole_task=False)
                yield from self._record(ports, state, "record", verdict, saved)
                told = (*verdict.feedback, Feedback(DISCARDED))
                yield Settled(ports.clock.now(), replace(verdict, feedback=told))
            case Continue():
                yield from self._record(ports, state, "record", verdict)
            case Stop():
                yield from self._stop(ports, state, verdict)

    def _stop(self, ports: Ports, state: RunState, verdict: Stop) -> Iterator[Fact]:
        asked = is_interrupted(verdict)  # then the turn is judged when the run goes on
        if state.turn is not None and state.task_iteration:
            if _has_failed(state) and not state.step("record"):
                yield from self._restore(ports, state, "discard", whole_task=False)
            if not asked:
                saved = yield from self._restore(ports, state, "restore", whole_task=True)
                yield from self._record(ports, state, "end", verdict, saved)
        elif verdict.reason is Reason.FAILING and not state.step("pending again"):
            self.settlement.reopen(state.barren)
            words = f"{listed(state.barren)} (fix the agent and run again)"
            yield Step(ports.clock.now(), "pending again", detail=words)
        if not asked:
            self.settlement.end()

    def _accept(self, ports: Ports, state: RunState, verdict: Accept) -> Iterator[Fact]:
        yield from self._record(ports, state, "record", verdict)
        step = state.step("commit")
        if step is None:
            state, made = yield from self._commit(ports, state, verdict)
            step = commit_step(ports, made)
            yield step
            if step.ok:
                state = fold(state, step)
        if not step.ok:
            yield from self._refused(ports, state, step.detail)
            return
        answer = yield from self._published(ports, state)
        if answer is not None:
            yield from self._sent_on(ports, state, answer)
        elif not state.step("sync"):
            ok, said = self.settlement.sync(state)
            yield Step(ports.clock.now(), "sync", ok=ok, detail=said)

    def _published(self, ports: Ports, state: RunState) -> Generator[Fact, None, Verdict | None]:
        """What became of it where it was published; None if it stays done. The one pull request of
        a run is complete with the last task."""
        if self.publishing.publish is None:
            return None
        after = replace(state, done=state.done | {state.task}, task_iteration=0)
        case = survey(ports, after, Boundary.OPENING)
        finished = self.publishing.each or next_task(case) is None
        return (yield from self.publishing.publish(ports, state, finished=finished))

    def _sent_on(self, ports: Ports, state: RunState, answer: Verdict) -> Iterator[Fact]:
        """Back to the agent, or to a person. It is published, so nothing is undone."""
        if isinstance(answer, Continue):
            parked = self.limit(survey(ports, state, Boundary.CLOSING))
            answer = Park(f"{parked.why}, and CI is red", Cause.REVIEW) if parked else answer
        if isinstance(answer, Continue):  # it goes on from what is published
            yield Moved(ports.clock.now(), ports.world.checkpoint())
        yield from self._record(ports, state, "reopen", answer)
        if isinstance(answer, Park) and not self.publishing.parks:
            answer = Stop(Reason.BLOCKED, f"{state.task} is blocked: {answer.why}")
        if isinstance(answer, Stop):
            self.settlement.end()
        yield Settled(ports.clock.now(), answer)

    def _commit(
        self, ports: Ports, state: RunState, verdict: Accept
    ) -> Generator[Fact, None, tuple[RunState, Committed]]:
        return committed(
            ports,
            state,
            self.settlement.commit,
            self.gates,
            self.law,
            proven_again=lambda proven: self._record(ports, proven, "record again", verdict),
        )

    def _refused(self, ports: Ports, state: RunState, refusal: str) -> Iterator[Fact]:
        """The user's own git hook has the last word: the task is open again (ADR 21). The agent is
        told; what it cannot fix would refuse every other task too."""
        in_a_row = state.refusals + (state.step("commit") is None)
        told = Feedback(f"The commit was refused:\n{refusal}")
        last = (refusal.strip().splitlines() or ["no reason given"])[-1]
        hopeless = told in state.feedback or in_a_row >= _MOST_REFUSALS
        end = Stop(Reason.BLOCKED, f"the commit was refused: {last}")
        yield from self._reopen(ports, state, told, end, hopeless=hopeless)

    def _reopen(
        self, ports: Ports, state: RunState, told: Feedback, end: Park | Stop, *, hopeless: bool
    ) -> Iterator[Fact]:
        """Send the task back to its agent, if that is not hopeless and its limits allow it."""
        verdict: Verdict = end if hopeless else Continue((told,))
        if not hopeless and (parked := self.limit(survey(ports, state, Boundary.CLOSING))):
            verdict = Park(f"{parked.why}; {end.why}")
        saved = ""
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
    return Step(ports.clock.now(), "commit", ok=made.ok, detail=made.said, commit=made.commit)


def _has_failed(state: RunState) -> bool:
    """True if the turn crashed, timed out or said that it failed, and is not taken again."""
    turn = state.turn
    return turn is not None and not state.again and (turn.failed or said_failed(turn))
