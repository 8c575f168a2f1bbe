"""Any profile with its turns in sandboxes: what a good turn changed lands in the project before it
is judged, what a failed one changed is thrown away (B §Rollback)."""

from collections.abc import Callable, Iterator
from typing import Protocol

from ralph.core.case import Case
from ralph.core.contracts import said_failed
from ralph.core.facts import Fact, Landed
from ralph.core.gates import Finding
from ralph.core.prompt import landed, place
from ralph.core.state import RunState, fold
from ralph.core.turn import Turn
from ralph.core.value import replace, value
from ralph.core.verdict import Boundary
from ralph.core.words import listed
from ralph.ports import Policy, Ports

_OURS = ".ralph/"  # of no use to the agent


class Layers(Protocol):
    """What holds the changes of turns until they land."""

    def land(self, iteration: int, now: float, *, keep: bool) -> Landed:
        """Apply what a turn changed, or throw it away. Asked again, it tells the same."""

    def clear(self) -> None:
        """What has landed is in the journal, and is asked for no more."""


def sandboxed(policy: Policy, layers: Layers) -> Policy:
    """The profile, in which nothing is judged before it has landed."""
    gates = (not_applied, *policy.gates.get(Boundary.CLOSING, ()))
    return replace(
        policy,
        compose=Compose(policy.compose),
        land=Land(layers, policy.land),
        gates={**policy.gates, Boundary.CLOSING: gates},
    )


@value
class Compose:
    """The prompt, and what became of the last turn's changes."""

    inner: Callable[[Case], str]

    def __call__(self, case: Case) -> str:
        return place(self.inner(case), landed(case.state))


@value
class Land:
    """Once for each turn; a turn that ended again has something else to land."""

    layers: Layers
    then: Callable[[Ports, RunState], Iterator[Fact]]  # what the profile does once it has landed

    def __call__(self, ports: Ports, state: RunState) -> Iterator[Fact]:
        if state.landed is None and state.turn is not None:
            keep = not _has_failed(state.turn)
            landed = self.layers.land(state.iteration, ports.clock.now(), keep=keep)
            yield landed
            state = fold(state, landed)
        self.layers.clear()
        yield from self.then(ports, state)


def _has_failed(turn: Turn) -> bool:
    """It crashed, timed out or said so; one that the service ended is only taken again."""
    passes = turn.failure is not None and turn.failure.passes
    return (turn.failed and not passes) or said_failed(turn)


class NotApplied:
    """What could not be applied: the agent believes that it is in the project, and it is not."""

    name = "sandbox"
    always = True

    def check(self, case: Case) -> Iterator[Finding]:
        """Nothing where all has landed, and where nothing was to land."""
        last = case.state.landed
        if last is not None and not last.kept and not case.turn.failed:
            text = "You said that this turn failed, so what it changed was thrown away."
            yield Finding(self.name, text)
        spared = [text for text in last.spared if not text.startswith(_OURS)] if last else []
        if spared:
            what = listed(spared)
            text = f"These changes are not in the project: {what}. Look at the files again."
            yield Finding(self.name, text)


not_applied = NotApplied()
