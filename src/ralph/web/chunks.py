"""The events of a run between a cursor and its end, in pieces of a size that can be sent."""

import json
import os
from typing import Any

from ralph.errors import StateError
from ralph.files.safe_open import open_regular
from ralph.text.plain import safe
from ralph.web.positions import Cursor, position_of
from ralph.web.spool import Place, Row
from ralph.web.sse import event
from ralph.web.tail import Tail

_MOST_LINES = 500
_MOST_FACTS = 500
_BLOCK = 256 * 1024
_END = 2**63 - 1  # behind every byte of a journal
_LONGEST = 20_000  # characters of a word in a fact


def chunk_after(cursor: Cursor, tail: Tail) -> tuple[bytes, Cursor]:
    """The next events behind a cursor, each with its position, and the cursor behind them. Before a
    fact come the lines up to it."""
    told, spool = tail.told, tail.spool  # in this order: the lines of what is told are there
    total = spool.total
    rows = _some(spool.read(cursor.lines, min(_MOST_LINES, total - cursor.lines)))
    facts = _facts(tail.run.journal, cursor.journal, told)
    data, journal, line = bytearray(), cursor.journal, cursor.lines
    is_whole = line + len(rows) == total
    if not facts or facts[-1][0] == told:
        facts.append((_END, None))  # the lines behind the last fact
    for ends, fact in facts:
        count = sum(place <= (ends, 0) for place, _ in rows)
        if count:
            lines = [row.as_dict(line + number) for number, (_, row) in enumerate(rows[:count])]
            told_by = {"from": line, "lines": lines}
            rows, line = rows[count:], line + count
            data += event("lines", told_by, position_of(Cursor(journal, line), spool))
        if fact is None or not (rows or is_whole):
            break
        journal = ends
        data += event("fact", {"fact": fact}, position_of(Cursor(journal, line), spool))
    return bytes(data), Cursor(journal, line)


def is_aligned(journal: str, at: int) -> bool:
    """True if a line of a journal begins there."""
    if at == 0:
        return True
    try:
        with open_regular(journal) as file:
            return os.pread(file.fileno(), 1, at - 1) == b"\n"
    except OSError:
        return False


def _some(rows: list[tuple[Place, Row]]) -> list[tuple[Place, Row]]:
    """As many of these as fit into one piece, and one at least."""
    size = 0
    for number, (_, row) in enumerate(rows):
        size += len(row.text)
        if size > _BLOCK and number:
            return rows[:number]
    return rows


def _facts(path: str, begin: int, end: int) -> list[tuple[int, Any]]:
    """The facts that stand in that part of a journal, or the first of them, each with where it
    ends."""
    block, at = b"", begin
    try:
        with open_regular(path) as file:
            while at < end and b"\n" not in block:
                more = os.pread(file.fileno(), min(_BLOCK, end - at), at)
                if not more:
                    return []
                block, at = block + more, at + len(more)
    except OSError as error:
        raise StateError(f"cannot read {path}: {error.strerror}") from error
    found = []
    for line in block.split(b"\n")[:-1][:_MOST_FACTS]:
        begin += len(line) + 1
        found.append((begin, _cleaned(_decoded(line))))
    return found


def _decoded(line: bytes) -> Any:  # noqa: ANN401  JSON
    try:
        fact = json.loads(line.decode("utf-8", "surrogateescape"))
        return {name: said for name, said in fact.items() if name != "hash"}
    except (ValueError, RecursionError, AttributeError):
        return {"type": "unreadable"}


def _cleaned(said: Any) -> Any:  # noqa: ANN401
    """The same, with every text fit to be shown."""
    match said:
        case str():
            text = safe(said[: 4 * _LONGEST])
            return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
        case list():
            return [_cleaned(each) for each in said]
        case dict():
            return {str(name)[:_LONGEST]: _cleaned(each) for name, each in said.items()}
        case _:
            return said
