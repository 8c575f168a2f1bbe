"""Reads a stored stream again, by today's parser: what the turn amounts to now (ADR 55)."""

from collections.abc import Iterable, Iterator
from typing import Any

from ralph.agents.login import login_words
from ralph.agents.streams.collect import Collector
from ralph.agents.streams.dialects import parser_for
from ralph.kernel.events import Failure
from ralph.kernel.turn import Turn
from ralph.kernel.value import replace

# What of a turn only its stream tells.
READ = (
    *("failure", "claims", "overheard", "question", "text", "stray", "tools", "tool_errors"),
    *("wrote", "denied", "unknown", "cost_usd", "usage"),
)


def reread(turn: Turn, dialect: str, prompt: str, blocks: Iterable[bytes]) -> tuple[Turn, int]:
    """The turn with what its stream tells as it is read today, and the number of its events. How
    the process ended, and what stood on stderr, is as it was."""
    parser, collector, count = parser_for(dialect, prompt), Collector(), 0
    for block in blocks:
        events = parser.feed(block)
        count += len(events)
        collector.add(events)
    last = parser.end()
    collector.add(last)
    found = collector.turn(has_result=parser.has_result)
    cost = found.cost_usd
    if cost is None and found.usage == turn.usage:  # its tokens had a price then
        cost = turn.cost_usd
    told = {name: getattr(found, name) for name in READ}
    told |= {"cost_usd": cost, "unknown": found.unknown + parser.lines.dropped}
    now = replace(turn, **told)
    if words := login_words(now):
        now = replace(now, failure=Failure(words, 401))
    if now.denied and not found.wrote:  # then the files told
        now = replace(now, wrote=turn.wrote)
    return now, count + len(last)


def read_otherwise(then: Turn, now: Turn) -> Iterator[tuple[str, Any, Any]]:
    """What differs between two readings of a turn: its name, then and now."""
    for name in READ:
        before, after = getattr(then, name), getattr(now, name)
        if before != after:
            yield name, before, after
