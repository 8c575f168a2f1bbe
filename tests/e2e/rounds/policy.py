"""The rules of rounds: pure, as those of every loop."""

from ralph.kernel.case import Case
from ralph.kernel.limits import Limits
from ralph.kernel.ports import Policy
from ralph.kernel.rules import (
    Patience,
    accepted,
    cancelled,
    carry_on,
    release,
    unstartable,
    watching,
)
from ralph.kernel.tasks.select import first_open
from ralph.kernel.value import value
from ralph.kernel.verdict import Accept, Answer


@value
class Enough:
    """All rounds were made."""

    rounds: int

    def __call__(self, case: Case) -> Answer | None:
        return Accept((f"{self.rounds} rounds",)) if case.state.iteration >= self.rounds else None


def rounds(count: int) -> Policy:
    """So many turns, whatever comes of them."""
    return Policy(
        name="rounds",
        select=first_open,
        compose=lambda case: f"{case.task.text} (round {case.state.iteration} of {count})",
        opening=(cancelled, accepted, carry_on),
        watching=watching(Limits(), Patience()),
        stopping=(release,),
        closing=(cancelled, unstartable, Enough(count), carry_on),
    )
