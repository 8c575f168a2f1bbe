"""One task's way in a merge train, as its conductor or with another (ADR 48)."""

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from typing import Protocol

from ralph.kernel.case import Case
from ralph.kernel.facts import Fact, Moved, Proved, Step
from ralph.kernel.findings import Finding
from ralph.kernel.ports import Committed, Gate, Ports, executes, passed_as, survey
from ralph.kernel.proving import left_alone, uphold
from ralph.kernel.state import RunState, fold
from ralph.kernel.value import replace, value
from ralph.kernel.verdict import Accept, Boundary
from ralph.loops.backlog.parallel.ports import Coupled, MergedSettlement
from ralph.loops.backlog.parallel.station import Car, Station
from ralph.loops.backlog.parallel.train import Train
from ralph.loops.backlog.policy import commit_step
from ralph.text.words import listed

# The first line is for people, who read no more of it.
_AFTER_MERGE = (
    "with what others have merged, {} does not pass\n"
    "Other tasks were merged while you worked. With their work and yours together:\n{}"
)


@value
class AfterMerge:
    """The gates that must pass on a merged tree: the `rails`, and the `check` of each task in it,
    which the `host` lets run in its own work tree."""

    rails: tuple[Gate, ...]
    check: Gate
    host: Callable[[Gate], Gate] = lambda check: check

    @property
    def gates(self) -> tuple[Gate, ...]:
        """Those of one task alone."""
        return (*self.rails, self.host(self.check))


@value
class Load:
    """A task that waits to be merged."""

    state: RunState
    ports: Ports
    settlement: MergedSettlement
    check: Gate  # its own

    @property
    def task(self) -> str:
        return self.state.task


@value
class Follow:
    """An order: make your commit on top of this one."""

    onto: str
    coupled: Coupled
    proof: Proved | None


@value
class Landed:
    """The project has all of the train."""


@value
class Back:
    """An order: go back to your agent with this."""

    why: str


@value
class Alone:
    """An order: you cannot come along."""


Order = Follow | Landed | Back | Alone
Waiting = Car[Load, Order]


@value
class CheckOf(Gate):
    """The completion check of one of a train, wherever that is tried."""

    gate: Gate
    load: Load
    always = False

    @property
    def name(self) -> str:
        return f"{self.gate.name} of {self.load.task}"

    def executes(self, case: Case) -> bool:
        return executes(self.gate, self._its(case))

    def passed_as(self, case: Case) -> str:
        said = passed_as(self.gate, self._its(case))
        return self.name if said == self.gate.name else said

    def check(self, case: Case) -> Iterator[Finding]:
        for found in self.gate.check(self._its(case)):
            yield replace(found, gate=self.name)

    def _its(self, case: Case) -> Case:
        own = survey(self.load.ports, self.load.state, Boundary.CLOSING)
        return replace(own, snapshot=case.snapshot)


class Merging(Protocol):
    """What a ride needs of how its task is settled."""

    @property
    def settlement(self) -> MergedSettlement: ...
    @property
    def law(self) -> tuple[Gate, ...]: ...
    @property
    def after_merge(self) -> AfterMerge: ...
    @property
    def station(self) -> Station[Load, Order]: ...

    def tried(self, ports: Ports, state: RunState, gates: tuple[Gate, ...]) -> Case:
        """What gates say about the merged tree."""

    def recorded(
        self, ports: Ports, state: RunState, verdict: Accept
    ) -> Generator[Fact, None, RunState]:
        """The state in which the task's records name the tree that was proven last."""

    def merged(
        self, ports: Ports, state: RunState, known: str = ""
    ) -> Generator[Fact, None, RunState | None]:
        """Merge the task alone, or send it back by an objection that is `known`."""


def objections(findings: Sequence[Finding]) -> str:
    """What is wrong with a merged tree, for the agent; "" if nothing is."""
    gates = listed(tuple(dict.fromkeys(finding.gate for finding in findings)))
    texts = "\n".join(finding.text for finding in findings)
    return _AFTER_MERGE.format(gates, texts) if findings else ""


class Ride:
    """One task in one train, as its conductor or with another. Afterwards it `is_over`: the task
    is `ready`, or was sent back; else the task boards again in its `state`, perhaps `alone`."""

    def __init__(self, task: Merging, ports: Ports, state: RunState, verdict: Accept) -> None:
        self._task, self._settlement, self._ports = task, task.settlement, ports
        self.state, self._verdict = state, verdict
        self._made = Committed(ok=False)
        self.is_over = self.alone = False
        self.ready: RunState | None = None

    # ---------------------------------------------------------------- with another

    def told_by(self, car: Waiting) -> Iterator[Fact]:
        """Do what the conductor says, until the train has landed or come to nothing."""
        while not (self.is_over or self.alone) and (order := car.hear()) is not None:
            said = ""
            try:
                said = yield from self._do(order)
            finally:
                car.answer(said)

    def _do(self, order: Order) -> Generator[Fact, None, str]:
        """Carry out an order; the commit that was made, if one was."""
        match order:
            case Follow():
                return (yield from self._followed(order))
            case Landed():
                yield from self._arrived()
            case Back(why=why):
                self.is_over = True
                yield from self._task.merged(self._ports, self.state, known=why)
            case Alone():
                self.alone = True
        return ""

    def _followed(self, order: Follow) -> Generator[Fact, None, str]:
        """Commit the task on top of the one before it, with the proof of the last."""
        ports, merge = self._ports, self._settlement.follow(self.state, order.coupled, order.onto)
        if merge.refusal:
            return ""
        yield from self._told(Moved(ports.clock.now(), merge.checkpoint))
        if order.proof is not None:
            now, stand = ports.clock.now(), ports.trees.look()
            yield from self._told(replace(order.proof, time=now, stand=stand, commit=""))
        self.state = yield from self._task.recorded(ports, self.state, self._verdict)
        self._made = self._settlement.commit(self.state)
        uphold(self._task.law, ports, self.state)
        yield from left_alone(ports, self._made)
        if self._made.altered:
            self._task.station.most = 1  # such a hook would alter the next ones too
        self.alone = not self._made.ok or bool(self._made.altered)  # it is told why, when alone
        return "" if self.alone else self._made.commit

    def _arrived(self) -> Iterator[Fact]:
        """The project has it."""
        proof, now = self.state.proof, self._ports.clock.now()
        others = [name for name in proof.train if name != self.state.task] if proof else []
        if others:
            yield from self._told(Step(now, "merged with", detail=listed(others)))
        yield from self._told(commit_step(self._ports, self._made))
        self.is_over, self.ready = True, self.state

    def _told(self, fact: Fact) -> Iterator[Fact]:
        yield fact
        self.state = fold(self.state, fact)

    # ---------------------------------------------------------------- as the conductor

    def conducted(self, cars: tuple[Waiting, ...]) -> Iterator[Fact]:
        """Find out who can land together, let them, and send back who cannot."""
        others = {car.load.task: car for car in cars[1:]}
        known = _Known(self._task, self._ports, self.state, cars)
        for name in others.keys() - known.chain.keys():
            others[name].dismiss(Alone())
        if self.state.task not in known.chain or len(known.chain) == 1:
            self.alone = True
            return
        train = known.found_out()
        if train.lands and not (yield from self._together(train.lands, known, others)):
            return
        for name in train.guilty:
            order = Back(objections(known.found[name]))
            if name in others:
                others[name].ask(order)
            else:
                yield from self._do(order)

    def _together(
        self, names: tuple[str, ...], known: "_Known", others: dict[str, Waiting]
    ) -> Generator[Fact, None, bool]:
        """Have these commit on top of one another; then the project goes on to the last, in one
        step from where it was. False if it does not: nothing has landed then."""
        head = onto = known.head
        proof = known.proof and replace(known.proof, train=names)
        for name in names:
            coupled = known.chain[name]
            if name == names[-1] and proof is not None:
                coupled = self._settlement.as_proven(coupled, proof)
            order = Follow(onto, coupled, proof)
            if name in others:
                onto = others[name].ask(order)
            else:
                onto = yield from self._followed(order)
            if not onto or not self._settlement.is_predicted(onto, coupled):
                return False
        if self._settlement.arrive(onto, head):
            return False
        for name in names:
            if name in others:
                others[name].dismiss(Landed())
            else:
                yield from self._arrived()
        return True


class _Known:
    """A train in a conductor's hands: the chain of its tasks, and what the gates said."""

    def __init__(
        self, task: Merging, ports: Ports, state: RunState, cars: tuple[Waiting, ...]
    ) -> None:
        self._task, self._ports, self._state = task, ports, state
        self._loads = {car.load.task: car.load for car in cars}
        self.found: dict[str, tuple[Finding, ...]] = {}  # of whom the gates object to
        self.proof: Proved | None = None  # of the longest train that passed
        self.chain = self._coupled(self._loads)
        self.head = next((each.below for each in self.chain.values()), "")

    def _coupled(self, names: Iterable[str]) -> dict[str, Coupled]:
        """One on top of the other, but for those that have to be merged alone."""
        chain, last = dict[str, Coupled](), None
        for name in names:
            load = self._loads[name]
            coupled = load.settlement.couple(load.state, last)
            if coupled is not None:
                chain[name] = last = coupled
        return chain

    def found_out(self) -> Train:
        """Try them together, and smaller trains where that fails."""
        train = Train(tuple(self.chain))
        while train.trial:
            there = train.cars[: train.trial]
            case = self._tried(there)
            if not case.findings:
                self.proof, train = case.proof, train.passed()
                continue
            culprit, guilty = self._named(case.findings, there), there[-1]
            self.found[guilty] = case.findings  # if it is
            if guilty != self._state.task:
                here = self._task.settlement.workspace
                self._loads[guilty].settlement.take_logs(case.findings, here)
            train = train.failed(culprit)
            if culprit == guilty:
                self.chain = self._coupled(train.cars)
                if tuple(self.chain) != train.cars:  # they needed the one that left
                    return Train((), named=train.named)
        return train

    def _tried(self, names: tuple[str, ...]) -> Case:
        """The guardrails once, and the check of each."""
        task = self._task
        rails, host = task.after_merge.rails, task.after_merge.host
        checks = (CheckOf(host(self._loads[n].check), self._loads[n]) for n in names)
        task.settlement.try_on(self._state, self.chain[names[-1]], self.head)
        return task.tried(self._ports, self._state, (*rails, *checks))

    def _named(self, findings: Sequence[Finding], names: tuple[str, ...]) -> str:
        """The task whose own check alone has failed; "" if it is something else."""
        checks = {CheckOf(self._loads[n].check, self._loads[n]).name: n for n in names}
        said = {checks.get(finding.gate, "") for finding in findings}
        return said.pop() if len(said) == 1 else ""
