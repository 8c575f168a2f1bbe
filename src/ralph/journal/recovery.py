"""Goes on after a crash: the facts of a run, and what its agent finished without our seeing it."""

import os
import stat
from collections.abc import Sequence

from ralph.agents.streams.collect import Collector
from ralph.agents.streams.dialects import parser_for
from ralph.journal.journal import SEED, read_journal
from ralph.journal.runs import Growing
from ralph.kernel.facts import Began, Ended, Fact, Launching
from ralph.kernel.limits import Prices, priced
from ralph.kernel.state import Phase, RunState, replay
from ralph.kernel.turn import Role, Turn
from ralph.kernel.value import replace, value

_SLACK = 1 << 20  # bytes that a file system may not have got round to yet


@value
class History:
    """The facts that a run has behind it; none, for one that begins."""

    facts: tuple[Fact, ...] = ()
    last_hash: str = SEED
    recovered: tuple[Fact, ...] = ()  # what happened without having been written down

    @property
    def state(self) -> RunState:
        """The state that the facts fold to, without what is recovered."""
        return replay(self.facts)


def recover(journal: str, prices: Sequence[Prices | None]) -> History:
    """The history of a run that was cut off; `prices` are those of its agents, by their places. A
    torn last line is dropped from the journal.

    A saved stream that holds its final result is a finished turn, which is not paid twice. What
    another machine has sent of one is not: its files are at the ref of its attempt, or will be.
    """
    facts, last_hash = read_journal(journal, trim=True)
    state = replay(facts)
    is_here = state.phase is Phase.TURN and state.attempt is None
    launching = _last_launch(facts) if is_here else None
    turn = _finished(launching, prices) if launching and _is_whole(launching.stream) else None
    if launching is None or turn is None:
        return History(tuple(facts), last_hash)
    ended = os.path.getmtime(launching.stream)
    turn = replace(turn, seconds=round(max(0.0, ended - launching.time), 3))
    return History(tuple(facts), last_hash, (Ended(ended, turn),))


def _is_whole(stream: str) -> bool:
    """True if it can be what we saved: an agent may have replaced or enlarged it."""
    try:
        info = os.stat(stream)
    except OSError:
        return False
    return stat.S_ISREG(info.st_mode) and info.st_size <= info.st_blocks * 512 + _SLACK


def _last_launch(facts: list[Fact]) -> Launching | None:
    """The launch of the turn under way; None if it never came to that."""
    for fact in reversed(facts):
        if isinstance(fact, Began):
            return None
        if isinstance(fact, Launching):
            return fact if fact.role is not Role.MESSAGE else None
    return None


def _finished(launching: Launching, prices: Sequence[Prices | None]) -> Turn | None:
    """The turn that this stream tells of, if it tells all of it."""
    parser, collector = parser_for(launching.dialect), Collector()
    for block in Growing(launching.stream).blocks():
        collector.add(parser.feed(block))
    collector.add(parser.end())
    if not parser.has_result or not collector.finished:
        return None
    turn = collector.turn(has_result=True)
    known = prices[launching.place] if launching.place < len(prices) else None
    cost = priced(collector.used, known)
    place, agent = launching.place, launching.who
    return replace(turn, cost_usd=cost, stream=launching.stream, place=place, agent=agent)
