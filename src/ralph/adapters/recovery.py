"""Going on after a crash: the facts of a run, and what its agent finished without our seeing it."""

import os

from ralph.adapters.journal import SEED, mend_journal, read_journal
from ralph.core.collect import Collector
from ralph.core.events import Usage
from ralph.core.facts import Began, Ended, Fact, Launching, Started
from ralph.core.limits import Prices, cost_of
from ralph.core.state import Phase, replay
from ralph.core.turn import Role, Turn
from ralph.core.value import replace, value
from ralph.streams import parser_for
from ralph.streams.framing import Framer

JOURNAL = "journal.jsonl"  # in a run's directory
_BLOCK = 128 * 1024


@value
class History:
    """What a run has behind it; nothing, for one that begins."""

    facts: tuple[Fact, ...] = ()
    last_hash: str = SEED
    recovered: tuple[Fact, ...] = ()  # what happened without having been written down

    @property
    def started(self) -> Started | None:
        """How it began."""
        return next((fact for fact in self.facts if isinstance(fact, Started)), None)


def recover(journal: str, prices: Prices | None) -> History:
    """The history of a run that was cut off. A torn last line is dropped from the journal.

    A saved stream that holds its final result is a finished turn, which is not paid twice.
    """
    facts, last_hash = read_journal(journal)
    mend_journal(journal)
    state = replay(facts)
    launching = _last_launch(facts)
    if state.phase is not Phase.TURN or launching is None:
        return History(tuple(facts), last_hash)
    turn = _finished(launching, prices)
    recovered = () if turn is None else (Ended(os.path.getmtime(launching.stream), turn),)
    return History(tuple(facts), last_hash, recovered)


def _last_launch(facts: list[Fact]) -> Launching | None:
    """The launch of the turn under way; None if it never came to that."""
    for fact in reversed(facts):
        if isinstance(fact, Began):
            return None
        if isinstance(fact, Launching):
            return fact if fact.role is not Role.MESSAGE else None
    return None


def _finished(launching: Launching, prices: Prices | None) -> Turn | None:
    """The turn that this stream tells of, if it tells all of it."""
    parser, framer, collector = parser_for(launching.dialect), Framer(), Collector()
    try:
        with open(launching.stream, "rb") as file:
            while block := file.read(_BLOCK):
                collector.add(parser.feed(framer.feed(block)))
    except OSError:
        return None
    collector.add(parser.feed(framer.rest()))
    collector.add(parser.end())
    if not parser.has_result or not collector.finished:
        return None
    turn = collector.turn(has_result=True)
    if turn.cost_usd is None and prices is not None and turn.usage != Usage():
        turn = replace(turn, cost_usd=cost_of(turn.usage, prices))
    return replace(turn, stream=launching.stream)
