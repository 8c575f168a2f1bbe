"""Commits what was proven, for every profile that commits (ADR 33)."""

from collections.abc import Callable, Generator, Iterator

from ralph.errors import AbortedError
from ralph.kernel.case import Case
from ralph.kernel.facts import Fact, Step
from ralph.kernel.ports import Committed, Gate, Ports, survey
from ralph.kernel.proof import hook_words
from ralph.kernel.proving import prove, uphold
from ralph.kernel.state import RunState, fold
from ralph.kernel.value import replace
from ralph.kernel.verdict import Boundary
from ralph.text.words import listed


def no_new_step(ports: Ports, what: str) -> None:
    """Begin nothing new once somebody has asked to stop; the resumed run does it."""
    if ports.world.signals().cancels:
        raise AbortedError(f"asked to stop before {what}")


def checked_again(
    ports: Ports, state: RunState, gates: tuple[Gate, ...], law: tuple[Gate, ...]
) -> Case:
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
    gates: tuple[Gate, ...],
    law: tuple[Gate, ...],
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
    if made.left:
        words = f"{listed(made.left)} changed after the proof, and is not in the commit"
        yield Step(ports.clock.now(), "left alone", detail=words)
    return state, made
