"""Puts the turns of any profile into sandboxes: the changes of a good turn land in the project
before it is judged, those of a failed one are thrown away (B §Rollback)."""

from collections.abc import Iterator
from typing import Protocol

from ralph.kernel.case import Case
from ralph.kernel.contracts import said_failed
from ralph.kernel.facts import Fact, Landed
from ralph.kernel.findings import Finding
from ralph.kernel.ports import Policy, Ports
from ralph.kernel.prompt import landed, place
from ralph.kernel.state import RunState, fold
from ralph.kernel.turn import Turn
from ralph.kernel.value import replace
from ralph.kernel.verdict import Boundary
from ralph.text.words import listed

_OURS = ".ralph/"  # of no use to the agent


class SandboxLayers(Protocol):
    """Holds the changes of turns until they land."""

    def land(self, iteration: int, now: float, *, keep: bool) -> Landed:
        """Apply the changes of a turn, or throw them away. Returns the same when asked again."""

    def clear(self) -> None:
        """Forget what has landed: the journal has it."""


def sandboxed(policy: Policy, layers: SandboxLayers) -> Policy:
    """The profile, in which nothing is judged before it has landed."""

    def land(ports: Ports, state: RunState) -> Iterator[Fact]:
        """Once for each turn; a turn that ended again has something else to land."""
        turn = state.turn
        if state.landed is None and turn is not None:
            landed = layers.land(state.iteration, ports.clock.now(), keep=is_kept(turn))
            yield landed
            state = fold(state, landed)
        layers.clear()
        yield from policy.land(ports, state)

    gates = (NotApplied(), *policy.gates.get(Boundary.CLOSING, ()))
    return replace(
        policy,
        compose=lambda case: place(policy.compose(case), landed(case.state)),
        land=land,
        gates={**policy.gates, Boundary.CLOSING: gates},
    )


def is_kept(turn: Turn) -> bool:
    """True if what a turn changed is to be applied. One that the service ended is only taken
    again."""
    passes = turn.failure is not None and turn.failure.passes
    return (passes or not turn.failed) and not said_failed(turn)


def discarding(policy: Policy, layers: SandboxLayers) -> Policy:
    """The profile, of whose turns nothing lands."""

    def land(ports: Ports, state: RunState) -> Iterator[Fact]:
        if state.landed is None and state.turn is not None:
            yield layers.land(state.iteration, ports.clock.now(), keep=False)
        layers.clear()
        yield from policy.land(ports, state)

    return replace(policy, land=land)


class NotApplied:
    """Objects to changes that could not be applied, which the agent believes in the project."""

    name = "sandbox"
    always = True

    def check(self, case: Case) -> Iterator[Finding]:
        last = case.state.landed
        if last is not None and not last.kept and not case.turn.failed:
            text = "You said that this turn failed, so what it changed was thrown away."
            yield Finding(self.name, text)
        spared = [text for text in last.spared if not text.startswith(_OURS)] if last else []
        if spared:
            what = listed(spared)
            text = f"These changes are not in the project: {what}. Look at the files again."
            yield Finding(self.name, text)
