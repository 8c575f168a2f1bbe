"""The parts of a turn as its files tell it. Pure."""

from ralph.kernel.events import AgentEvent, Usage
from ralph.kernel.facts import Ended, Fact, Launching, Step
from ralph.kernel.value import value


@value
class Paid:
    """The cost of a turn as its run has accounted for it."""

    usage: Usage = Usage()
    cost_usd: float | None = None  # None: nobody knows

    def __add__(self, other: "Paid") -> "Paid":
        costs = [paid.cost_usd for paid in (self, other) if paid.cost_usd is not None]
        return Paid(self.usage + other.usage, sum(costs) if costs else None)


@value
class Opened:
    """A turn begins: its prompt, and the fact that ended it, if there is one."""

    launch: Launching
    prompt: str
    outcome: Ended | Step | None = None

    @property
    def paid(self) -> Paid | None:
        """The cost that its run has accounted for."""
        return None if self.outcome is None else paid_by(self.outcome)


@value
class Said:
    """An event of a turn. `time` is there where the stream tells it."""

    event: AgentEvent
    time: float | None = None


@value
class Gap:
    """Something of a turn's stream that is not there any more: so many bytes, or all of it."""

    why: str
    bytes: int = 0


@value
class Closed:
    """A turn is over, or its stream ends here."""


Part = Opened | Said | Gap | Closed


def paid_by(fact: Fact) -> Paid | None:
    """The cost of the turn that this fact ends; None if it ends none, or that cost nothing."""
    match fact:
        case Ended(turn=turn):
            return Paid(turn.usage, turn.cost_usd)
        case Step(cost_usd=cost, usage=usage) if cost or usage != Usage():
            return Paid(usage, cost)
    return None
