"""Limits, and what has been spent against them."""

from ralph.kernel.events import Usage, Used
from ralph.kernel.value import replace, value
from ralph.text.words import counted, duration

_DIGITS = 9  # of dollars: ten turns of $0.10 use up $1


@value
class Limits:
    """The most a run may use; None is no limit."""

    iterations: int | None = None
    seconds: float | None = None
    dollars: float | None = None
    tasks: int | None = None  # taken up, of a backlog; a rule of its own counts them


@value
class Spent:
    """The time and money a run has used. Time asleep is not counted, money always is."""

    iterations: int = 0
    seconds: float = 0.0
    dollars: float = 0.0
    usage: Usage = Usage()
    uncounted: int = 0  # turns whose cost nobody knows

    def paid(self, dollars: float | None, usage: Usage, *, uncounted: int) -> "Spent":
        """With what more turns cost; `uncounted` are those whose cost nobody knows."""
        return replace(
            self,
            dollars=round(self.dollars + (dollars or 0.0), _DIGITS),
            usage=self.usage + usage,
            uncounted=self.uncounted + uncounted,
        )


def exceeded(limits: Limits, spent: Spent) -> str | None:
    """The limit that is used up, in words; None while something is left."""
    if limits.iterations is not None and spent.iterations >= limits.iterations:
        return f"{counted(limits.iterations, 'iteration')} used up"
    if limits.seconds is not None and spent.seconds >= limits.seconds:
        return f"{duration(limits.seconds)} of time used up"
    if limits.dollars is not None and spent.dollars >= limits.dollars:
        return f"${limits.dollars:g} used up (spent ${spent.dollars:.2f})"
    return None


def least(*values: float | None) -> float | None:
    """The smallest of several limits, None being none."""
    known = [v for v in values if v is not None]
    return min(known) if known else None


def left(limit: float | None, spent: float) -> float | None:
    """The rest of a limit; never negative."""
    return None if limit is None else max(0.0, limit - spent)


@value
class Prices:
    """Dollars per million tokens, for agents that report tokens only."""

    input: float = 0.0
    output: float = 0.0
    cache_read: float = 0.0
    cache_write: float = 0.0


def per_million(prices: Prices) -> str:
    return f"${prices.input:g} in, ${prices.output:g} out per million tokens"


def priced(used: Used, prices: Prices | None) -> float | None:
    """The cost as reported, else by tokens; None if it is not known."""
    if used.cost_usd is not None or prices is None or used.usage == Usage():
        return used.cost_usd
    usage = used.usage
    return (
        usage.input * prices.input
        + usage.output * prices.output
        + usage.cache_read * prices.cache_read
        + usage.cache_write * prices.cache_write
    ) / 1_000_000
