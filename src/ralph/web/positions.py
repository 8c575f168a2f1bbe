"""Positions in what is told of a run: how a client that comes back says where it broke off.

`J.S`: the facts up to byte J of the journal are told, and the lines up to byte S of the turn under
way. `J.S.K`: and K lines more. A client takes it for a word without a meaning.
"""

import re

from ralph.kernel.value import value
from ralph.web.spool import Spool

_POSITION = re.compile(r"([0-9]{1,15})\.([0-9]{1,15})(?:\.([0-9]{1,9}))?", re.ASCII)


@value
class Cursor:
    """A client's place: told are the facts up to this byte of the journal, and so many lines."""

    journal: int
    lines: int


def position_of(cursor: Cursor, spool: Spool) -> str:
    """The position behind what was told. Only whole places have a name of their own."""
    if cursor.lines:
        (((journal, stream), _),) = spool.read(cursor.lines - 1, 1)
        if journal == cursor.journal and spool.after((journal, stream)) == cursor.lines:
            return f"{journal}.{stream}"
    more = cursor.lines - spool.after((cursor.journal, 0))
    return f"{cursor.journal}.0.{more}" if more > 0 else f"{cursor.journal}.0"


def is_position(word: str) -> bool:
    """True for what may be a position."""
    return _POSITION.fullmatch(word) is not None


def cursor_at(position: str, spool: Spool, told: int) -> Cursor | None:
    """The cursor at a position, as near as there is one; None for what is none."""
    found = _POSITION.fullmatch(position)
    if found is None:
        return None
    journal, stream, more = (int(number or 0) for number in found.groups())
    if journal > told:  # of a journal that is not this one any more
        return Cursor(told, spool.total)
    return Cursor(journal, min(spool.after((journal, stream)) + more, spool.total))
