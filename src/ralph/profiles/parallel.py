"""B §Concurrency: several tasks at once. Each worker has the policy of a backlog of one task, and
merges what it has proven; the foreman's policy says which task is next."""

from collections.abc import Callable, Generator, Iterator
from typing import Protocol

from ralph.core.backlog_prompt import Material
from ralph.core.case import Case, Ladder, Rule
from ralph.core.facts import Fact, Moved, Settled, Step
from ralph.core.limits import least
from ralph.core.rules import Objections, RunLimit, UsedUp, cancelled, carry_on, paused, unreadable
from ralph.core.rules_tasks import (
    Halt,
    TaskLimit,
    TasksLimit,
    all_worked,
    broken,
    none_ready,
    recalled,
)
from ralph.core.select import next_task
from ralph.core.state import RunState, fold
from ralph.core.task import Task
from ralph.core.turn import Allowance
from ralph.core.value import replace, value
from ralph.core.verdict import (
    Accept,
    Answer,
    Boundary,
    Continue,
    Cut,
    Feedback,
    Park,
    Reason,
    Stop,
    Verdict,
    Wait,
)
from ralph.core.words import listed
from ralph.ports import Gate, Merge, Policy, Ports, survey
from ralph.profiles.committing import checked_again
from ralph.profiles.shared import Patience
from ralph.profiles.tasks import Bounds, Settle, Workbench, commit_step, tasks

_PATIENCE = 2.0  # seconds between two looks at the purse
_MOST_CONFLICTS = 3  # of one task, each with other work
_MOST_MERGES = 5  # of one task, while somebody else commits all the time
# The first line is for people, who read no more of it.
_BUSY = "others commit here all the time"
_AFTER_MERGE = (
    "with what others have merged, {} does not pass\n"
    "Other tasks were merged while you worked. With their work and yours together:\n{}"
)


class Purse(Protocol):
    """The money that workers share."""

    @property
    def limit(self) -> float | None:
        """What all of them may spend."""

    @property
    def spent(self) -> float:
        """What all of them have paid."""

    def left(self) -> float | None:
        """What is not paid yet; None without a limit."""

    def lease(self, worker: str) -> bool:
        """Put its share aside for its next turn; False where that has to wait for others."""

    def held(self, worker: str) -> float | None:
        """The lease of a turn that is under way."""


class Turnstile(Protocol):
    """Lets one worker at a time merge."""

    def enter(self, worker: str) -> None:
        """Wait until nobody else is in it."""

    def leave(self, worker: str) -> None:
        """Let the next one in; nothing if one is not in it."""


class Joiner(Workbench, Protocol):
    """A bench whose work is merged into a project that others change too."""

    def keep(self, state: RunState) -> None:
        """Save the task's work as it is; nobody has to wait for that."""

    def merge(self, state: RunState) -> Merge:
        """Put the task's work on top of what others have merged. Asked again, it does the same."""

    def is_current(self, state: RunState) -> bool:
        """Whether nobody has merged or committed anything since."""

    def land(self, state: RunState) -> str:
        """Let the project go on to the commit; why it cannot, "" if it has."""

    def has_landed(self, state: RunState) -> bool:
        """Whether a run that was killed then had come so far."""


@value
class Place:
    """A worker's place among the others."""

    worker: str
    purse: Purse
    turnstile: Turnstile


@value
class SharedLimit:
    """The money of all workers is used up."""

    purse: Purse

    def __call__(self, case: Case) -> Answer | None:
        if self.purse.left() != 0:
            return None
        return Stop(Reason.LIMIT, f"${self.purse.limit:g} used up (spent ${self.purse.spent:.2f})")


@value
class Leased:
    """No turn begins without a lease: others may hold all that is left."""

    place: Place

    def __call__(self, case: Case) -> Answer | None:
        if self.place.purse.lease(self.place.worker):
            return None
        return Wait(case.now + _PATIENCE, "others hold what is left of the run's money")


@value
class SharedUsedUp:
    """A turn failed because that money ran out: a limit, not a failure."""

    limit: SharedLimit

    def __call__(self, case: Case) -> Answer | None:
        return self.limit(case) if case.turn.failed else None


@value
class ShareLeft:
    """The turn's lease is used up while the agent works."""

    place: Place

    def __call__(self, case: Case) -> Answer | None:
        lease = self.place.purse.held(self.place.worker)
        assert case.pulse is not None
        if lease is None or case.finished or case.pulse.dollars < lease:
            return None
        return Cut(f"the turn's share of ${lease:.2f} of the run's money is used up")


def not_again(case: Case) -> Answer | None:
    """What was sent back from its merge had one more turn to pass."""
    if not case.state.sent_back or not case.findings or case.turn.failed:
        return None
    first = case.findings[0]
    return Park(f"it cannot be merged: {first.gate}: {first.text}".split("\n", 1)[0])


def foreman(bounds: Bounds, purse: Purse) -> Policy:
    """Who hands out tasks; it takes no turns of its own."""
    return Policy(
        name="tasks",
        select=next_task,
        compose=lambda _: "",
        opening=(
            cancelled,
            paused,
            recalled,
            unreadable,
            *((Halt(),) if bounds.stop_on_failure else ()),
            broken,
            all_worked,
            none_ready,
            TasksLimit(bounds.tasks),
            SharedLimit(purse),
            RunLimit(replace(bounds.run, dollars=None)),
            carry_on,
        ),
        watching=(),
        stopping=(),
        closing=(),
    )


def worker(
    bench: Joiner,
    bounds: Bounds,
    place: Place,
    *,
    patience: Patience,
    gates: tuple[Gate, ...],
    law: tuple[Gate, ...] = (),
    about: Callable[[Task], Material],
    after_merge: tuple[Gate, ...],
) -> Policy:
    """Who works on one task. `after_merge` are the gates that pass on the merged tree too."""
    own = replace(bounds, run=replace(bounds.run, dollars=None), day=None, stop_on_failure=False)
    policy = tasks(bench, own, patience=patience, gates=gates, law=law, about=about)
    limit = SharedLimit(place.purse)
    return replace(
        policy,
        opening=(unreadable, all_worked, *policy.opening[:-1], limit, Leased(place), carry_on),
        retaking=(*policy.retaking, limit),
        watching=(*policy.watching, ShareLeft(place)),
        closing=_closing(policy.closing, limit),
        allowance=Leasing(policy.allowance, place),
        settle=Join(bench, TaskLimit(bounds.task), after_merge, law, bench, place),
    )


def _closing(ladder: Ladder, limit: SharedLimit) -> Ladder:
    """The money of all is judged where one run's would be, and gates of what was sent back are
    judged more strictly."""
    used_up = next(rule for rule in ladder if isinstance(rule, UsedUp))
    of_run = next(rule for rule in ladder if isinstance(rule, RunLimit))
    objects = next(rule for rule in ladder if isinstance(rule, Objections))
    ladder = _before(used_up, ladder, SharedUsedUp(limit))
    return _before(objects, _before(of_run, ladder, limit), not_again)


def _before(mark: Rule, ladder: Ladder, rule: Rule) -> Ladder:
    here = ladder.index(mark)
    return (*ladder[:here], rule, *ladder[here:])


@value
class Leasing:
    """What a turn may use: no more money than its lease."""

    inner: Callable[[Case], Allowance]
    place: Place

    def __call__(self, case: Case) -> Allowance:
        allowed, held = self.inner(case), self.place.purse.held(self.place.worker)
        return replace(allowed, dollars=least(allowed.dollars, held))


@value
class Join(Settle):
    """Accept: merge, check again, record, commit, sync; the rest as in every backlog.

    What cannot be merged goes back to the agent once, and is parked then. One worker at a time.
    """

    joiner: Joiner
    place: Place

    def _accept(self, ports: Ports, state: RunState, verdict: Accept) -> Iterator[Fact]:
        if not state.step("record"):
            self.joiner.keep(state)
        self.place.turnstile.enter(self.place.worker)
        try:
            ready = (
                state if state.step("commit") else (yield from self._landed(ports, state, verdict))
            )
            if ready is not None:
                yield from Settle._accept(self, ports, ready, verdict)  # noqa: SLF001
        finally:
            self.place.turnstile.leave(self.place.worker)

    def _landed(
        self, ports: Ports, state: RunState, verdict: Accept
    ) -> Generator[Fact, None, RunState | None]:
        """The state in which the project has the task, or its commit was refused; None if it was
        sent back. Who commits in the project while a hook looks at our commit begins it anew."""
        refusal = _BUSY
        for _ in range(_MOST_MERGES):
            there = state.step("record") is not None and self.joiner.has_landed(state)
            merged = state if there else (yield from self._merged(ports, state))
            if merged is None:
                return None
            state = merged
            for fact in self._record(ports, state, "record", verdict):
                yield fact
                state = fold(state, fact)
            state, made = yield from self._commit(ports, state, verdict)
            refusal = self.joiner.land(state) if made.ok else ""
            if not refusal:
                committed = commit_step(ports, made)
                yield committed
                return fold(state, committed)
            if self.joiner.is_current(
                state
            ):  # nobody has committed meanwhile: it is something else
                break
        yield from self._sent_back(ports, state, Merge(refusal=refusal, hopeless=True))
        return None

    def _merged(self, ports: Ports, state: RunState) -> Generator[Fact, None, RunState | None]:
        """The state in which the task can be committed; None if it was sent back."""
        refused = state.step("merge")
        for _ in range(_MOST_MERGES):
            if refused is not None:
                break
            merge = self.joiner.merge(state)
            if merge.checkpoint:
                moved = Moved(ports.clock.now(), merge.checkpoint)
                yield moved
                state = fold(state, moved)
            why = merge.refusal
            if not why and merge.checkpoint:
                state, why = yield from self._checked(ports, state)
            if not why and self.joiner.is_current(state):
                return state
            if why:
                refused = Step(ports.clock.now(), "merge", ok=False, detail=why)
                yield refused
                state = fold(state, refused)
                yield from self._sent_back(ports, state, replace(merge, refusal=why))
                return None
        why = refused.detail if refused else _BUSY
        yield from self._sent_back(ports, state, Merge(refusal=why, hopeless=refused is None))
        return None

    def _checked(
        self, ports: Ports, state: RunState
    ) -> Generator[Fact, None, tuple[RunState, str]]:
        """What gates have against the merged tree; "" for nothing. Protected files are right as the
        merge has left them: whoever committed others in the project may."""
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
        verdict = self._after_merge(ports, state, merge)
        saved = ""
        if isinstance(verdict, Park):
            saved = yield from self._restore(ports, state, "restore", whole_task=True)
        yield from self._record(ports, state, "reopen", verdict, saved)
        yield Settled(ports.clock.now(), verdict)

    def _after_merge(self, ports: Ports, state: RunState, merge: Merge) -> Verdict:
        """Once for each conflict: one with work that was merged since is another."""
        why, first = merge.refusal, merge.refusal.split("\n", 1)[0]
        most = _MOST_CONFLICTS if merge.fresh else 1
        if merge.hopeless or state.sent_back > most:
            return Park(f"it cannot be merged: {first}")
        parked = self.limit(survey(ports, state, Boundary.CLOSING))
        if parked is not None:
            return Park(f"{parked.why}; it cannot be merged: {first}")
        return Continue((Feedback(why),))
