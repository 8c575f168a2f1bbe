"""B §Concurrency: several tasks at once. The foreman chooses the tasks; each worker has the policy
of a backlog of one task, and merges what it has proven."""

from collections.abc import Callable
from dataclasses import field

from ralph.kernel.case import Case, Ladder, Rule
from ralph.kernel.facts import Ended, Fact, Resting, Step
from ralph.kernel.limits import least
from ralph.kernel.ports import Gate, Policy, TodaysRules
from ralph.kernel.rules import Objections, Patience, RunLimit, UsedUp, carry_on, unreadable
from ralph.kernel.tasks.select import next_task
from ralph.kernel.tasks.task import Task
from ralph.kernel.value import replace, value
from ralph.kernel.verdict import Answer, Cut, Park, Reason, Stop, Wait
from ralph.loops.backlog.parallel.budget import Budget
from ralph.loops.backlog.policy import (
    Bounds,
    Publishing,
    Settlement,
    SettleTask,
    opening,
    tasks,
)
from ralph.loops.backlog.prompt import Material
from ralph.loops.backlog.rules import TaskLimit, all_worked, recalled

_PATIENCE = 2.0  # seconds between two looks at the budget
USED_UP = "used_up"  # the rule below
_OF_OTHERS = "it looked at what other workers had spent, or did at that moment"


@value
class WorkerContext:
    """The things that a worker shares with the others."""

    worker: str
    budget: Budget
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

    budget: Budget = field(repr=False)

    def __call__(self, case: Case) -> Answer | None:
        budget = self.budget
        if budget.left() != 0:
            return None
        return Stop(Reason.LIMIT, f"${budget.limit:g} used up (spent ${budget.spent:.2f})")


@value
class Leased:
    """No turn begins without a lease: others may hold all that is left."""

    context: WorkerContext = field(repr=False)

    def __call__(self, case: Case) -> Answer | None:
        if self.context.budget.lease(self.context.worker):
            return None
        return Wait(case.now + _PATIENCE, "others hold what is left of the run's money")


@value
class Placed:
    """No turn begins without a place: others may have taken it while CI was waited for."""

    context: WorkerContext = field(repr=False)

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
    settle: SettleTask,
    bounds: Bounds,
    context: WorkerContext,
    *,
    patience: Patience,
    gates: tuple[Gate, ...],
    law: tuple[Gate, ...] = (),
    about: Callable[[Task], Material],
) -> Policy:
    """The policy of one task, which `settle` merges into the project, or publishes."""
    own = replace(_without_money(bounds), stop_on_failure=False)
    policy = tasks(settle.settlement, own, patience=patience, gates=gates, law=law, about=about)
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

    free = (Placed(context), Leased(context))
    return replace(
        policy,
        opening=(unreadable, all_worked, *policy.opening[:-1], limit, *free, carry_on),
        retaking=(*policy.retaking, limit),
        watching=(*policy.watching, ShareLeft(context)),
        closing=_before(Objections, closing, not_again),
        allowance=allowance,
        settle=settle,
    )


def todays_rules(
    settlement: Settlement, bounds: Bounds, patience: Patience, *, is_worker: bool
) -> TodaysRules:
    """The rules that judge a foreman's run, or a worker's, again. Those that look at the others
    answer nothing here."""
    budget = Budget(None, 1)
    if not is_worker:
        return TodaysRules(foreman(bounds, budget), {SharedLimit.__name__: _OF_OTHERS})
    policy = worker(
        SettleTask(settlement, TaskLimit(bounds.task), (), (), Publishing()),
        bounds,
        WorkerContext("", budget),
        patience=patience,
        gates=(),
        about=lambda _: Material(),
    )
    others = (SharedLimit.__name__, USED_UP, Leased.__name__, Placed.__name__)
    return TodaysRules(policy, dict.fromkeys(others, _OF_OTHERS))


def _without_money(bounds: Bounds) -> Bounds:
    """The same bounds, except for the money, which is shared."""
    return replace(bounds, run=replace(bounds.run, dollars=None), day=None)


def _before(kind: type, ladder: Ladder, rule: Rule) -> Ladder:
    """The ladder with a rule before the first of that kind."""
    here = next(n for n, known in enumerate(ladder) if isinstance(known, kind))
    return (*ladder[:here], rule, *ladder[here:])
