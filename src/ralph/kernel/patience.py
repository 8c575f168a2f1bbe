"""Rules and limits that the profiles share which start an agent."""

from collections.abc import Callable

from ralph.kernel.case import Case, Ladder
from ralph.kernel.limits import Limits, least, left
from ralph.kernel.rules import MoneyLeft, ResultGrace, SecondSignal, TimeLeft, Timeouts
from ralph.kernel.turn import Allowance
from ralph.kernel.value import value


@value
class Patience:
    """The limits of a run's patience with its agent."""

    turn: float | None = None
    idle: float | None = None
    result_grace: float = 10.0
    stop_grace: float | None = None
    max_wait: float = 86_400.0
    fail_after: int = 3
    fail_delay: float = 1.0  # after the first failed turn; it doubles to a minute
    stall_after: int = 0


def watching(limits: Limits, patience: Patience) -> Ladder:
    """While the agent works. A person in a hurry comes first, also when it is being ended."""
    return (
        SecondSignal(patience.stop_grace),
        Timeouts(patience.turn, patience.idle),
        ResultGrace(patience.result_grace),
        TimeLeft(limits.seconds),
        MoneyLeft(limits.dollars),
    )


def allowance(limits: Limits, patience: Patience) -> Callable[[Case], Allowance]:
    """The allowance of a turn: the least of the turn's and the run's limits."""

    def allow(case: Case) -> Allowance:
        spent = case.spent
        return Allowance(
            least(patience.turn, left(limits.seconds, spent.seconds)),
            patience.idle,
            left(limits.dollars, spent.dollars),
        )

    return allow
