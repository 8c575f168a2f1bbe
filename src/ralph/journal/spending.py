"""The cost of turns, turn by turn, and how it adds up (ADR 22)."""

from collections.abc import Callable, Hashable, Iterable
from functools import reduce
from typing import TypeVar

from ralph.kernel.events import Usage
from ralph.kernel.value import value

Key = TypeVar("Key", bound=Hashable)


@value
class LedgerEntry:
    """One turn that cost something or used tokens, as the ledger keeps it."""

    time: float  # when the turn ended
    run: str
    profile: str
    iteration: int
    role: str
    agent: str
    model: str  # as asked for; "" is the agent's own choice
    cost_usd: float | None  # None: nobody knows
    usage: Usage
    seconds: float


@value
class Sum:
    """The cost of several turns together."""

    cost_usd: float = 0.0
    unknown: int = 0  # turns whose cost nobody knows: the sum is at least this much
    usage: Usage = Usage()
    turns: int = 0
    seconds: float = 0.0

    @property
    def known_usd(self) -> float | None:
        """The cost of the turns that are known; None if none is."""
        return self.cost_usd if self.turns > self.unknown else None

    def __add__(self, other: "LedgerEntry | Sum") -> "Sum":
        if isinstance(other, LedgerEntry):
            unknown = other.cost_usd is None
            other = Sum(other.cost_usd or 0.0, int(unknown), other.usage, 1, other.seconds)
        return Sum(
            self.cost_usd + other.cost_usd,
            self.unknown + other.unknown,
            self.usage + other.usage,
            self.turns + other.turns,
            self.seconds + other.seconds,
        )


def total(entries: Iterable[LedgerEntry]) -> Sum:
    return reduce(Sum.__add__, entries, Sum())


def sums_by(entries: Iterable[LedgerEntry], key_of: Callable[[LedgerEntry], Key]) -> dict[Key, Sum]:
    """The sum for each key, in the order in which they first appear."""
    sums: dict[Key, Sum] = {}
    for entry in entries:
        key = key_of(entry)
        sums[key] = sums.get(key, Sum()) + entry
    return sums
