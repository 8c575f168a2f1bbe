"""A proof: every gate passes on one tree, unchanged when the last gate has run (ADR 33). A commit
holds that tree.

the law → gate → the law, look → gate → the law, look → …      and once more if gates changed it
"""

from collections.abc import Callable, Generator, Iterator

from ralph.errors import AbortedError, StateError
from ralph.kernel.case import Case
from ralph.kernel.facts import Checked, Checking, Fact, Step
from ralph.kernel.findings import PROOF, Finding
from ralph.kernel.ports import Committed, Gate, Gates, Ports, executes, passed_as, survey
from ralph.kernel.state import RunState, fold
from ralph.kernel.value import replace
from ralph.kernel.verdict import Boundary
from ralph.kernel.world import OF_GIT, Stand
from ralph.text.words import listed

_MOST_NAMED = 10


def prove(gates: Gates, law: Gates, ports: Ports, case: Case, *, settling: bool = False) -> Case:
    """The case with the findings of the law and the gates, and with a proof if there are none. A
    signal keeps gates from running, unless a verdict is being settled that depends on them."""
    proving = _Proving(gates, law, ports, case, settling=settling)
    try:
        return proving.run()
    except StateError as error:  # an agent may have broken its repository
        proving.object_to(Finding(PROOF, f"Cannot tell what would be committed: {error.message}"))
        return replace(case, findings=tuple(proving.found), checked=False)


class _Proving:
    """Two passes at most. The second is on the tree that the gates of the first left."""

    def __init__(
        self, gates: Gates, law: Gates, ports: Ports, case: Case, *, settling: bool
    ) -> None:
        self._gates, self._law, self._ports, self._case = gates, law, ports, case
        self._settling = settling
        self._stand = case.snapshot.stand
        self.found: list[Finding] = []
        self._passed: list[str] = []
        self._all_ran = True
        self._turns: frozenset[str] = frozenset()  # what the turn touched
        self._known: set[tuple[str, Stand]] = set()  # gates that have passed on a stand
        self._made: set[str] = set()  # what gates changed in the first pass
        self._put_back: set[str] = set()

    def run(self) -> Case:
        trees, case = self._ports.trees, self._case
        self._ask_law(always=True)
        if self.found or not self._stand.tree:  # put back, or could not be seen
            self._stand = trees.look()
        self._turns = trees.changed(case.state.snapshot.stand, self._stand)
        self._pass()
        if self._made and not self.found and self._all_ran:
            self._passed = []
            self._pass(again=True)
        if not self.found:
            self.object_to(*trees.objections(self._stand))
        objects = {finding.gate for finding in self.found}
        held = tuple(gate.name for gate in self._law if gate.name not in objects)
        proof = None
        if not self.found and self._all_ran:
            found = trees.proved(
                self._ports.clock.now(), self._stand, tuple(filter(None, self._passed))
            )
            proof = found and replace(found, put_back=tuple(sorted(self._put_back)))
        return replace(
            case,
            snapshot=replace(case.snapshot, stand=self._stand),
            findings=tuple(self.found),
            passed=(*held, *filter(None, self._passed)),
            checked=self._all_ran,
            proof=proof,
        )

    def _pass(self, *, again: bool = False) -> None:
        for gate in self._gates:
            if not self._is_due(gate):
                self._all_ran = False
            elif not executes(gate, self._case) or (gate.name, self._stand) not in self._known:
                self._ask(gate, again=again)
            else:
                self._passed.append(passed_as(gate, self._case))

    def _is_due(self, gate: Gate) -> bool:
        """Command gates run only if the turn ended by itself and nobody asked to stop."""
        asked = self._ports.world.signals().cancels and not self._settling
        return gate.always or (self._case.turn.by_itself and not asked)

    def _ask(self, gate: Gate, *, again: bool) -> None:
        """Run a gate. On the second pass, changes that repeat and that no turn made are put back
        before anyone looks at them; other changes are an objection."""
        before = self._stand
        case = replace(self._case, snapshot=replace(self._case.snapshot, stand=before))
        found = check(gate, self._ports, case)
        self.found += found
        if not found:
            self._passed.append(passed_as(gate, case))
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
            names = listed(sorted(changed - churn), _MOST_NAMED)
            text = (
                f"`{gate.name}` changes {names} every time it runs, so what was checked is not what"
                " would be committed. Make it leave that alone, commit what it makes, or have git"
                " ignore it."
            )
            self.object_to(Finding(PROOF, text, gist=f"{gate.name}: {names}"))
        elif changed:
            self._made |= changed
        elif not found:
            self._known |= {(gate.name, before), (gate.name, now)}

    def object_to(self, *findings: Finding) -> None:
        self.found += findings
        if findings:
            self._ports.journal.record(Checked(self._ports.clock.now(), PROOF, 0.0, findings))

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


def uphold(law: Gates, ports: Ports, state: RunState) -> None:
    """Ask the law once more: commit and push hooks also run code that the agent wrote."""
    case = survey(ports, state, Boundary.CLOSING)
    for gate in law:
        check(gate, ports, case, quietly=True)


def no_new_step(ports: Ports, what: str) -> None:
    """Begin nothing new once somebody has asked to stop; the resumed run does it."""
    if ports.world.signals().cancels:
        raise AbortedError(f"asked to stop before {what}")


def checked_again(ports: Ports, state: RunState, gates: Gates, law: Gates) -> Case:
    """Run the gates again on the tree as it is now; findings after a signal do not count."""
    case = replace(survey(ports, state, Boundary.CLOSING), snapshot=ports.world.snapshot())
    case = prove(gates, law, ports, case, settling=True)
    if case.findings:
        no_new_step(ports, "the gates had passed again")
    return case


def committed(
    ports: Ports,
    state: RunState,
    commit: Callable[[RunState], Committed],
    gates: Gates,
    law: Gates,
    *,
    proven_again: Callable[[RunState], Iterator[Fact]] = lambda _: iter(()),
) -> Generator[Fact, None, tuple[RunState, Committed]]:
    """Commit. If a hook changed the tree and the gates pass on that too, commit again after the
    facts of `proven_again`. The law is asked last: hooks run code that the agent wrote."""
    made = commit(state)
    if made.altered:
        words = f"changed {listed(made.altered)}; the gates run again on the result"
        yield Step(ports.clock.now(), "commit hook", detail=words)
        case = checked_again(ports, state, gates, law)
        if case.findings:
            return state, replace(made, ok=False, said=hook_words(made.altered, case.findings))
        if case.proof is not None:
            yield case.proof
            state = fold(state, case.proof)
        for fact in proven_again(state):
            yield fact
            state = fold(state, fact)
        made = commit(state)
        if made.altered:
            made = replace(made, ok=False, said=made.said or hook_words(made.altered))
    uphold(law, ports, state)
    if not made.ok:
        no_new_step(ports, "the commit was made")
    yield from left_alone(ports, made)
    return state, made


def left_alone(ports: Ports, made: Committed) -> Iterator[Fact]:
    """Tell what a commit does not hold, since it was changed after the proof."""
    if made.left:
        words = f"{listed(made.left)} changed after the proof, and is not in the commit"
        yield Step(ports.clock.now(), "left alone", detail=words)


def hook_words(altered: tuple[str, ...], findings: tuple[Finding, ...] = ()) -> str:
    """The reason why a commit that one of the user's hooks changed does not stand."""
    what = f"a commit hook changed {listed(altered, _MOST_NAMED)}"
    if not findings:
        return f"{what}, each time: what was checked is not what would be committed"
    texts = "\n".join(finding.text for finding in findings)
    return f"{what}, and with that {findings[0].gate} does not pass\n{texts}"
