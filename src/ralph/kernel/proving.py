"""A proof: every gate passes on one tree, unchanged when the last gate has run (ADR 33).

the law → gate → the law, look → gate → the law, look → …      and once more if gates changed it
"""

from collections.abc import Callable

from ralph.errors import StateError
from ralph.kernel.case import Case
from ralph.kernel.facts import Checked, Checking
from ralph.kernel.findings import Finding
from ralph.kernel.ports import Gate, Ports, executes, survey
from ralph.kernel.proof import GATE, OF_GIT, Stand, restless
from ralph.kernel.state import RunState
from ralph.kernel.value import replace
from ralph.kernel.verdict import Boundary


def prove(
    gates: tuple[Gate, ...],
    law: tuple[Gate, ...],
    ports: Ports,
    case: Case,
    *,
    settling: bool = False,
) -> Case:
    """The case with the findings of the law and the gates, and with a proof if there are none. A
    signal keeps gates from running, unless a verdict is being settled that depends on them."""

    def is_due(gate: Gate) -> bool:
        """Command gates run only if the turn ended by itself and nobody asked to stop."""
        asked = ports.world.signals().cancels and not settling
        return gate.always or (case.turn.by_itself and not asked)

    proving = _Proving(gates, law, ports, case, is_due)
    try:
        return proving()
    except StateError as error:  # an agent may have broken its repository
        finding = Finding(GATE, f"Cannot tell what would be committed: {error.message}")
        _tell(ports, finding)
        return replace(case, findings=(*proving.found, finding), checked=False)


class _Proving:
    """Two passes at most. The second is on the tree that the gates of the first left."""

    def __init__(
        self,
        gates: tuple[Gate, ...],
        law: tuple[Gate, ...],
        ports: Ports,
        case: Case,
        is_due: Callable[[Gate], bool],
    ) -> None:
        self._gates, self._law, self._ports, self._case = gates, law, ports, case
        self._is_due = is_due
        self._stand = case.snapshot.stand
        self.found: list[Finding] = []
        self._passed: list[str] = []
        self._all_ran = True
        self._turns: frozenset[str] = frozenset()  # what the turn touched
        self._known: set[tuple[str, Stand]] = set()  # gates that have passed on a stand
        self._made: set[str] = set()  # what gates changed in the first pass
        self._put_back: set[str] = set()

    def __call__(self) -> Case:
        trees, case = self._ports.trees, self._case
        self._ask_law(always=True)
        if self.found or not self._stand.tree:  # put back, or could not be seen
            self._stand = trees.look()
        self._turns = trees.changed(case.state.snapshot.stand, self._stand)
        self._run()
        if self._made and not self.found and self._all_ran:
            self._passed = []
            self._run(again=True)
        if not self.found:
            self._object_to(*trees.objections(self._stand))
        objects = {finding.gate for finding in self.found}
        held = tuple(gate.name for gate in self._law if gate.name not in objects)
        proof = None
        if not self.found and self._all_ran:
            found = trees.proved(self._ports.clock.now(), self._stand, tuple(self._passed))
            proof = found and replace(found, put_back=tuple(sorted(self._put_back)))
        return replace(
            case,
            snapshot=replace(case.snapshot, stand=self._stand),
            findings=tuple(self.found),
            passed=(*held, *self._passed),
            checked=self._all_ran,
            proof=proof,
        )

    def _run(self, *, again: bool = False) -> None:
        for gate in self._gates:
            if not self._is_due(gate):
                self._all_ran = False
            elif not executes(gate, self._case) or (gate.name, self._stand) not in self._known:
                self._ask(gate, again=again)
            else:
                self._passed.append(gate.name)

    def _ask(self, gate: Gate, *, again: bool) -> None:
        """Run a gate. On the second pass, changes that repeat and that no turn made are put back
        before anyone looks at them; other changes are an objection."""
        before = self._stand
        case = replace(self._case, snapshot=replace(self._case.snapshot, stand=before))
        found = check(gate, self._ports, case)
        self.found += found
        if not found:
            self._passed.append(gate.name)
        if not executes(gate, case):
            return
        self._ask_law()
        now = self._ports.trees.look(after=gate.name)
        changed = self._ports.trees.changed(before, now)
        churn = (changed & self._made) - self._turns - OF_GIT if again else frozenset[str]()
        if churn and churn == changed:
            self._ports.trees.put_back(before, churn, str(case.state.iteration))
            self._put_back |= churn
            return
        self._stand = now
        if changed and again:
            self._object_to(restless(gate.name, changed - churn))
        elif changed:
            self._made |= changed
        elif not found:
            self._known |= {(gate.name, before), (gate.name, now)}

    def _object_to(self, *findings: Finding) -> None:
        self.found += findings
        _tell(self._ports, *findings)

    def _ask_law(self, *, always: bool = False) -> None:
        """Ask the law; its checks are recorded the first time, and whenever it objects."""
        for gate in self._law:
            self.found += check(gate, self._ports, self._case, quietly=not always)


def check(gate: Gate, ports: Ports, case: Case, *, quietly: bool = False) -> tuple[Finding, ...]:
    """The findings of a gate, also recorded in the journal; `quietly`: only if there are any."""
    began = ports.clock.now()
    if not quietly:
        ports.journal.record(Checking(began, gate.name))
    found = tuple(gate.check(case))
    ended = ports.clock.now()
    if found or not quietly:
        ports.journal.record(Checked(ended, gate.name, ended - began, found))
    return found


def uphold(law: tuple[Gate, ...], ports: Ports, state: RunState) -> None:
    """Ask the law once more: commit and push hooks also run code that the agent wrote."""
    case = survey(ports, state, Boundary.CLOSING)
    for gate in law:
        check(gate, ports, case, quietly=True)


def _tell(ports: Ports, *findings: Finding) -> None:
    if findings:
        ports.journal.record(Checked(ports.clock.now(), GATE, 0.0, findings))
