"""B §Concurrency: several tasks at once. The foreman chooses the tasks; each worker has the policy
of a backlog of one task, and merges what it has proven."""

from collections.abc import Callable, Generator, Iterator
from typing import Protocol

from ralph.kernel.case import Case, Ladder, Rule
from ralph.kernel.facts import Ended, Fact, Moved, Resting, Step
from ralph.kernel.limits import least
from ralph.kernel.ports import Gate, Merge, Policy, Ports
from ralph.kernel.proving import checked_again
from ralph.kernel.rules import Objections, Patience, RunLimit, UsedUp, carry_on, unreadable
from ralph.kernel.state import RunState, fold
from ralph.kernel.tasks.select import next_task
from ralph.kernel.tasks.task import Task
from ralph.kernel.value import replace, value
from ralph.kernel.verdict import Accept, Answer, Cut, Feedback, Park, Reason, Stop, Wait
from ralph.loops.backlog.parallel.budget import Budget
from ralph.loops.backlog.policy import (
    Bounds,
    Publishing,
    Settlement,
    SettleTask,
    commit_step,
    opening,
    tasks,
)
from ralph.loops.backlog.prompt import Material
from ralph.loops.backlog.rules import TaskLimit, all_worked, recalled
from ralph.text.words import listed

_PATIENCE = 2.0  # seconds between two looks at the budget
_MOST_CONFLICTS = 3  # of one task, each with other work
_MOST_MERGES = 5  # of one task, while somebody else commits all the time
# The first line is for people, who read no more of it.
_BUSY = "others commit here all the time"
_AFTER_MERGE = (
    "with what others have merged, {} does not pass\n"
    "Other tasks were merged while you worked. With their work and yours together:\n{}"
)


class MergedSettlement(Settlement, Protocol):
    """Settles a task by merging it into a project that others change too."""

    def keep(self, state: RunState) -> None:
        """Save the task's work as it is; nobody has to wait for that."""

    def merge(self, state: RunState) -> Merge:
        """Put the task's work on top of what others have merged. May be asked again."""

    def is_current(self, state: RunState) -> bool:
        """True if nobody has merged or committed anything since."""

    def land(self, state: RunState) -> str:
        """Move the project to the task's commit. Returns why it cannot, or ""."""

    def has_landed(self, state: RunState) -> bool:
        """True if a run that was killed had landed the task."""


@value
class WorkerContext:
    """The things that a worker shares with the others."""

    worker: str
    budget: Budget
    enter_merge: Callable[[], None]  # waits until no other worker merges
    leave_merge: Callable[[], None]  # lets the next one in, if this one is in
    takes_place: Callable[[], bool] = lambda: True  # it has one of so many places to work at
    rests: Callable[[], None] = lambda: None  # it needs none while it waits for CI

    def on_fact(self, fact: Fact) -> None:
        """Pay for turns, and make room while nothing is done."""
        if isinstance(fact, Ended):
            self.budget.paid(self.worker, fact.turn.cost_usd or 0.0)
        elif isinstance(fact, Step) and fact.cost_usd:
            self.budget.paid(self.worker, fact.cost_usd)
        elif isinstance(fact, Resting):
            self.rests()

    def on_events(self, events: object) -> None: ...


@value
class SharedLimit:
    """The money of all workers is used up."""

    budget: Budget

    def __call__(self, case: Case) -> Answer | None:
        budget = self.budget
        if budget.left() != 0:
            return None
        return Stop(Reason.LIMIT, f"${budget.limit:g} used up (spent ${budget.spent:.2f})")


@value
class Leased:
    """No turn begins without a lease: others may hold all that is left."""

    context: WorkerContext

    def __call__(self, case: Case) -> Answer | None:
        if self.context.budget.lease(self.context.worker):
            return None
        return Wait(case.now + _PATIENCE, "others hold what is left of the run's money")


@value
class Placed:
    """No turn begins without a place: others may have taken it while CI was waited for."""

    context: WorkerContext

    def __call__(self, case: Case) -> Answer | None:
        if self.context.takes_place():
            return None
        return Wait(case.now + _PATIENCE, "others are at work")


@value
class ShareLeft:
    """The turn's lease is used up while the agent works."""

    context: WorkerContext

    def __call__(self, case: Case) -> Answer | None:
        lease = self.context.budget.held(self.context.worker)
        assert case.pulse is not None
        if lease is None or case.finished or case.pulse.dollars < lease:
            return None
        return Cut(f"the turn's share of ${lease:.2f} of the run's money is used up")


def not_again(case: Case) -> Answer | None:
    """A task sent back from its merge had one more turn to pass."""
    if not case.state.sent_back or not case.findings or case.turn.failed:
        return None
    first = case.findings[0]
    return Park(f"it cannot be merged: {first.gate}: {first.text}".split("\n", 1)[0])


def foreman(bounds: Bounds, budget: Budget) -> Policy:
    """The policy that hands out tasks; it takes no turns of its own."""
    asked, waits, *others = opening(_without_money(bounds))
    return Policy(
        name="tasks",
        select=next_task,
        compose=lambda _: "",
        opening=_before(RunLimit, (asked, waits, recalled, *others), SharedLimit(budget)),
        watching=(),
        stopping=(),
        closing=(),
    )


def worker(
    settlement: MergedSettlement,
    bounds: Bounds,
    context: WorkerContext,
    *,
    patience: Patience,
    gates: tuple[Gate, ...],
    law: tuple[Gate, ...] = (),
    about: Callable[[Task], Material],
    after_merge: tuple[Gate, ...],
    publishing: Publishing = Publishing(),
) -> Policy:
    """The policy of one task. `after_merge` are the gates that must pass on the merged tree too;
    what is published is not merged."""
    own = replace(_without_money(bounds), stop_on_failure=False)
    policy = tasks(settlement, own, patience=patience, gates=gates, law=law, about=about)
    limit = SharedLimit(context.budget)

    def used_up(case: Case) -> Answer | None:
        """A turn that failed because that money ran out is at a limit, and has not failed."""
        return limit(case) if case.turn.failed else None

    # The shared money is judged where one run's would be, and gates of a task that was sent back
    # are judged more strictly.
    closing = _before(UsedUp, policy.closing, used_up)
    closing = _before(RunLimit, closing, limit)

    def allowance(case: Case) -> float | None:
        """No more money than the turn's lease."""
        return least(policy.allowance(case), context.budget.held(context.worker))

    merge = MergeTask(settlement, TaskLimit(bounds.task), after_merge, law, Publishing(), context)
    publish = SettleTask(settlement, TaskLimit(bounds.task), gates, law, publishing)
    free = (Placed(context), Leased(context))
    return replace(
        policy,
        opening=(unreadable, all_worked, *policy.opening[:-1], limit, *free, carry_on),
        retaking=(*policy.retaking, limit),
        watching=(*policy.watching, ShareLeft(context)),
        closing=_before(Objections, closing, not_again),
        allowance=allowance,
        settle=merge if publishing.publish is None else publish,
    )


def _without_money(bounds: Bounds) -> Bounds:
    """The same bounds, except for the money, which is shared."""
    return replace(bounds, run=replace(bounds.run, dollars=None), day=None)


def _before(kind: type, ladder: Ladder, rule: Rule) -> Ladder:
    """The ladder with a rule before the first of that kind."""
    here = next(n for n, known in enumerate(ladder) if isinstance(known, kind))
    return (*ladder[:here], rule, *ladder[here:])


@value
class MergeTask(SettleTask):
    """Accept: merge, check again, record, commit, sync; the rest as in every backlog.

    What cannot be merged goes back to the agent once, and is parked then. One worker at a time.
    """

    settlement: MergedSettlement
    context: WorkerContext

    def _accept(self, ports: Ports, state: RunState, verdict: Accept) -> Iterator[Fact]:
        if not state.step("record"):
            self.settlement.keep(state)
        self.context.enter_merge()
        try:
            ready: RunState | None = state
            if not state.step("commit"):
                ready = yield from self._landed(ports, state, verdict)
            if ready is not None:
                yield from SettleTask._accept(self, ports, ready, verdict)  # noqa: SLF001
        finally:
            self.context.leave_merge()

    def _landed(
        self, ports: Ports, state: RunState, verdict: Accept
    ) -> Generator[Fact, None, RunState | None]:
        """The state in which the project has the task, or its commit was refused; None if it was
        sent back. A commit of others in the project, while a hook looks at ours, starts it over."""
        refusal = _BUSY
        for _ in range(_MOST_MERGES):
            there = state.step("record") is not None and self.settlement.has_landed(state)
            merged = state if there else (yield from self._merged(ports, state))
            if merged is None:
                return None
            state = merged
            for fact in self._record(ports, state, "record", verdict):
                yield fact
                state = fold(state, fact)
            state, made = yield from self._commit(ports, state, verdict)
            refusal = self.settlement.land(state) if made.ok else ""
            if not refusal:
                committed = commit_step(ports, made)
                yield committed
                return fold(state, committed)
            if self.settlement.is_current(state):  # nobody has committed: it is something else
                break
        yield from self._sent_back(ports, state, Merge(refusal=refusal, hopeless=True))
        return None

    def _merged(self, ports: Ports, state: RunState) -> Generator[Fact, None, RunState | None]:
        """The state in which the task can be committed; None if it was sent back."""
        refused = state.step("merge")
        if refused is not None:
            yield from self._sent_back(ports, state, Merge(refusal=refused.detail))
            return None
        for _ in range(_MOST_MERGES):
            merge = self.settlement.merge(state)
            if merge.checkpoint:
                moved = Moved(ports.clock.now(), merge.checkpoint)
                yield moved
                state = fold(state, moved)
            why = merge.refusal
            if not why and merge.checkpoint:
                state, why = yield from self._checked(ports, state)
            if why:
                refused = Step(ports.clock.now(), "merge", ok=False, detail=why)
                yield refused
                sent_back = replace(merge, refusal=why)
                yield from self._sent_back(ports, fold(state, refused), sent_back)
                return None
            if self.settlement.is_current(state):
                return state
        yield from self._sent_back(ports, state, Merge(refusal=_BUSY, hopeless=True))
        return None

    def _checked(
        self, ports: Ports, state: RunState
    ) -> Generator[Fact, None, tuple[RunState, str]]:
        """The gates' objections to the merged tree, or "". Protected files are right as the merge
        left them: whoever committed them to the project may."""
        merged = replace(state, snapshot=ports.world.snapshot())
        case = checked_again(ports, merged, self.gates, self.law)
        if case.proof is not None:
            yield case.proof
            state = fold(state, case.proof)
        found = case.findings
        gates = listed(tuple(dict.fromkeys(finding.gate for finding in found)))
        texts = "\n".join(finding.text for finding in found)
        return state, _AFTER_MERGE.format(gates, texts) if found else ""

    def _sent_back(self, ports: Ports, state: RunState, merge: Merge) -> Iterator[Fact]:
        """Back to the agent, once for each conflict: one with work merged since is another."""
        first, _, _ = merge.refusal.partition("\n")
        hopeless = merge.hopeless or state.sent_back > (_MOST_CONFLICTS if merge.fresh else 1)
        told, end = Feedback(merge.refusal), Park(f"it cannot be merged: {first}")
        yield from self._reopen(ports, state, told, end, hopeless=hopeless)
