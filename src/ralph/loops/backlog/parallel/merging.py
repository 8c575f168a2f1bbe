"""B §Concurrency: a proven task gets into the project, alone or in a train with others (ADR 31,
ADR 48)."""

from collections.abc import Generator, Iterator

from ralph.kernel.case import Case
from ralph.kernel.facts import Fact, Moved, Step
from ralph.kernel.ports import Committed, Gate, Merge, Ports
from ralph.kernel.proving import checked_again
from ralph.kernel.state import RunState, fold
from ralph.kernel.value import replace, value
from ralph.kernel.verdict import Accept, Feedback, Park
from ralph.loops.backlog.parallel.ports import MergedSettlement
from ralph.loops.backlog.parallel.ride import AfterMerge, Load, Order, Ride, objections
from ralph.loops.backlog.parallel.station import Car, Station
from ralph.loops.backlog.policy import Publishing, SettleTask, commit_step
from ralph.loops.backlog.rules import TaskLimit

_MOST_CONFLICTS = 3  # of one task, each with other work
_MOST_MERGES = 5  # of one task, while somebody else commits all the time
_MOST_RIDES = 3  # of one task, in trains that come to nothing
_BUSY = "others commit here all the time"  # the first line is for people, who read no more of it


@value
class MergeTask(SettleTask):
    """Accept: merge, check again, record, commit, sync; the rest as in every backlog.

    What cannot be merged goes back to the agent once, and is parked then. One worker at a time
    merges, and takes along those that wait.
    """

    settlement: MergedSettlement
    worker: str
    station: Station[Load, Order]
    after_merge: AfterMerge

    def _accept(self, ports: Ports, state: RunState, verdict: Accept) -> Iterator[Fact]:
        if not state.step("record"):
            self.settlement.keep(state)
        ready: RunState | None = state
        if not state.step("commit"):
            try:
                ready = yield from self._merged_in(ports, state, verdict)
            finally:
                self.station.leave(self.worker)
        if ready is not None:
            yield from SettleTask._accept(self, ports, ready, verdict)  # noqa: SLF001

    def _merged_in(
        self, ports: Ports, state: RunState, verdict: Accept
    ) -> Generator[Fact, None, RunState | None]:
        """The state in which the project has the task, or its commit was refused; None if it was
        sent back. A train that comes to nothing costs its tasks no more than time."""
        rides, alone = 0, False
        while True:
            is_known = self._found(state) is not None or state.step("merge") is not None
            alone = alone or is_known or rides == _MOST_RIDES
            load = Load(state, ports, self.settlement, self.after_merge.check)
            car = Car[Load, Order](self.worker, load, alone=alone)
            train, rides = self.station.board(car), rides + 1
            if len(train) == 1:
                return (yield from self._landed(ports, state, verdict))
            ride = Ride(self, ports, state, verdict)
            yield from ride.conducted(train) if train else ride.told_by(car)
            if ride.is_over:
                return ride.ready
            state, alone = ride.state, ride.alone
            if train and not alone:
                self.station.leave(self.worker)

    def _landed(
        self, ports: Ports, state: RunState, verdict: Accept
    ) -> Generator[Fact, None, RunState | None]:
        """The same for a task that is merged alone. A commit of others in the project, while a hook
        looks at ours, starts it over."""
        for _ in range(_MOST_MERGES):
            made, refusal = self._found(state), ""
            # Others may have changed the records since: what has landed is not compared again.
            if made is None:
                merged = yield from self.merged(ports, state)
                if merged is None:
                    return None
                state = yield from self.recorded(ports, merged, verdict)
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

    def _found(self, state: RunState) -> Committed | None:
        """The commit that a killed run has landed."""
        return self.settlement.landed(state) if state.step("record") else None

    def merged(
        self, ports: Ports, state: RunState, known: str = ""
    ) -> Generator[Fact, None, RunState | None]:
        """The state in which the task can be committed; None if it was sent back, as where an
        objection to it is `known`."""
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
            why = merge.refusal or known
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
        """The gates' objections to the merged tree, or ""."""
        case = self.tried(ports, state, self.gates)
        if case.proof is not None:
            yield case.proof
            state = fold(state, case.proof)
        return state, objections(case.findings)

    def tried(self, ports: Ports, state: RunState, gates: tuple[Gate, ...]) -> Case:
        """What gates say about the merged tree. Protected files are right as the merge left them:
        whoever committed them to the project may."""
        merged = replace(state, snapshot=ports.world.snapshot())
        return checked_again(ports, merged, gates, self.law)

    def recorded(
        self, ports: Ports, state: RunState, verdict: Accept
    ) -> Generator[Fact, None, RunState]:
        """The state in which the task's records name the tree that was proven last."""
        step = state.step("record")
        if step is not None and state.proof is not None and state.proof.time > step.time:
            self.settlement.record(state, verdict)
        for fact in self._record(ports, state, "record", verdict):
            yield fact
            state = fold(state, fact)
        return state

    def _sent_back(self, ports: Ports, state: RunState, merge: Merge) -> Iterator[Fact]:
        """Back to the agent, once for each conflict: one with work merged since is another."""
        first, _, _ = merge.refusal.partition("\n")
        hopeless = merge.hopeless or state.sent_back > (_MOST_CONFLICTS if merge.fresh else 1)
        told, end = Feedback(merge.refusal), Park(f"it cannot be merged: {first}")
        yield from self._reopen(ports, state, told, end, hopeless=hopeless)


def settling(
    settlement: MergedSettlement,
    terms: tuple[TaskLimit, tuple[Gate, ...], tuple[Gate, ...]],
    publishing: Publishing,
    after_merge: AfterMerge,
    *,
    worker: str,
    station: Station[Load, Order],
) -> SettleTask:
    """How a worker's task is settled, by its limit, its gates and its law: what is published is not
    merged."""
    limit, gates, law = terms
    if publishing.publish is not None:
        return SettleTask(settlement, limit, gates, law, publishing)
    again = after_merge.gates
    return MergeTask(settlement, limit, again, law, publishing, worker, station, after_merge)
