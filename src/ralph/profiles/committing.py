"""Committing what was proven, for every profile that commits (ADR 33)."""

from collections.abc import Callable, Generator, Iterator

from ralph.core.facts import Fact, Step
from ralph.core.proof import hook_words
from ralph.core.state import RunState, fold
from ralph.core.value import replace
from ralph.core.verdict import Boundary
from ralph.core.words import listed
from ralph.ports import Committed, Gate, Ports, survey
from ralph.proving import prove, uphold


def _nothing(_: RunState) -> Iterator[Fact]:
    return iter(())


def committed(
    ports: Ports,
    state: RunState,
    commit: Callable[[RunState], Committed],
    gates: tuple[Gate, ...],
    law: tuple[Gate, ...],
    *,
    proven_again: Callable[[RunState], Iterator[Fact]] = _nothing,
) -> Generator[Fact, None, tuple[RunState, Committed]]:
    """Commit; once more where a hook changed the tree and the gates pass on that too, after the
    facts of `proven_again`. The law is asked last: hooks run code that the agent wrote."""
    made = commit(state)
    if made.altered:
        words = f"changed {listed(made.altered)}; the gates run again on the result"
        yield Step(ports.clock.now(), "commit hook", detail=words)
        here = ports.world.snapshot()
        case = replace(survey(ports, state, Boundary.CLOSING), snapshot=here)
        case = prove(gates, law, ports, case, settling=True)
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
    if made.left:
        words = f"{listed(made.left)} changed after the proof, and is not in the commit"
        yield Step(ports.clock.now(), "left alone", detail=words)
    return state, made
