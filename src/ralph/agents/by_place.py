"""Several agents of one run."""

from ralph.kernel.ports import Agent, Watch
from ralph.kernel.turn import Order, Role, Turn
from ralph.kernel.value import replace, value


@value
class ByPlace:
    """Several agents; each order names the place of the one that it is for. A turn that nobody
    judges is taken by the next one at once."""

    agents: tuple[Agent, ...]
    fallbacks: int

    def take_turn(self, order: Order, watch: Watch) -> Turn:
        turn = self.agents[order.place].take_turn(order, watch)
        after = order.place if order.place <= self.fallbacks else 0
        for place in range(after + 1, self.fallbacks + 1):
            failure = turn.failure
            is_theirs = failure is not None and (failure.passes or failure.refused)
            if order.role is not Role.MESSAGE or not is_theirs:
                break
            following = self.agents[place].take_turn(replace(order, place=place), watch)
            turn = _together(turn, following)
        return turn


def _together(before: Turn, turn: Turn) -> Turn:
    """A turn, with what the one before it has cost."""
    known = not (before.uncounted or turn.uncounted)
    cost = (before.cost_usd or 0.0) + (turn.cost_usd or 0.0) if known else None
    return replace(turn, cost_usd=cost, usage=before.usage + turn.usage)
