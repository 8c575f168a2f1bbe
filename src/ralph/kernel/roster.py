"""The roster: which of a run's agents takes the next turn (ADR 45)."""

import math
from collections.abc import Callable, Iterator
from functools import partial

from ralph.kernel.case import Case
from ralph.kernel.facts import Fact, Step
from ralph.kernel.ports import Policy, Ports
from ralph.kernel.state import STEP_DOWN, RunState, benched
from ralph.kernel.value import replace, value
from ralph.kernel.verdict import Bench


@value
class StepDown:
    """A cheaper model of the first agent, once this share of the run's money is spent."""

    at: float
    model: str


@value
class Roster:
    """The agents of a run by their places: the first one is 0, then come those that go on for it,
    then the first one with its cheaper model, then a reviewer of its own."""

    fallbacks: int = 0
    after: float = 300.0  # seconds to wait for an agent at most where another one could go on
    step_down: StepDown | None = None
    reviewer: int | None = None

    @property
    def cheaper(self) -> int:
        """The place of the first agent with its cheaper model."""
        return self.fallbacks + 1

    def order(self, state: RunState) -> tuple[int, ...]:
        """The places that are asked for the next turn, the preferred one first."""
        first = self.cheaper if state.stepped_down and self.step_down is not None else 0
        if self.reviewer is not None and state.is_review:
            first = self.reviewer
        return (first, *range(1, self.fallbacks + 1))

    def choose(self, case: Case) -> int:
        """The place of the first agent that is not benched, else of the one that is free first."""
        free = partial(free_at, case.state.benches, now=case.now)
        return min(self.order(case.state), key=free)

    def next_free(self, state: RunState, bench: Bench, now: float) -> float:
        """When the first of them is free, if this one more is benched."""
        benches = benched(state.benches, bench)
        return min(free_at(benches, place, now) for place in self.order(state))


def free_at(benches: tuple[Bench, ...], place: int, now: float) -> float:
    """The time from which that agent may be asked; never before now."""
    until = next((b.until for b in benches if b.place == place), now)
    return math.inf if until is None else max(until, now)


def rostered(
    policy: Policy,
    roster: Roster,
    dollars: float | None = None,
    paid: Callable[[], float] | None = None,
) -> Policy:
    """The policy with its agents chosen by the roster. `dollars` is the run's limit of money;
    `paid` tells what is spent of it where this is only one of several workers."""

    def prepare(ports: Ports, state: RunState) -> Iterator[Fact]:
        spent = state.spent.dollars if paid is None else paid()
        if said := _stepping_down(roster, state, dollars, spent):
            yield Step(ports.clock.now(), STEP_DOWN, detail=said)
        yield from policy.prepare(ports, state)

    return replace(policy, choose=roster.choose, prepare=prepare)


def _stepping_down(roster: Roster, state: RunState, dollars: float | None, spent: float) -> str:
    """What is to be said where the first agent steps down now; "" where it does not."""
    step, refused = roster.step_down, free_at(state.benches, 0, 0.0) == math.inf
    if step is None or dollars is None or state.stepped_down or refused:
        return ""
    if spent < round(step.at * dollars, 9):
        return ""
    return f"${spent:.2f} of ${dollars:g} spent: the model is {step.model} from here on"
