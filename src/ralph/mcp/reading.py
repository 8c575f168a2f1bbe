"""A run's log from any position on, and its report."""

import os
import time
from threading import Thread

from ralph.errors import ConfigError
from ralph.journal.runs import Run, look_again
from ralph.mcp import tools
from ralph.mcp.pending import CommandEnd, News, OwnCommand, PendingAnswer, ToolAnswer
from ralph.mcp.scope import Scope
from ralph.web.positions import Cursor, cursor_at, is_position, position_of
from ralph.web.spool import Place, Row
from ralph.web.tail import END, Tail

_LONGEST_LOG = 16_000  # characters
_LONGEST_REPORT = 20_000
_USUAL_LINES = 40
_READ_AT_ONCE = 500


def log(scope: Scope, wish: tools.LogInput) -> PendingAnswer:
    run = scope.run(wish.run)
    if wish.since is not None and not is_position(wish.since):
        message = f"{wish.since!r} is no position"
        raise ConfigError(message, 'Pass that of an answer, or "0.0" for the beginning.')
    return LogReading(run, scope.tails, wish.since, events=wish.events)


class LogReading:
    """Reads a run's log up to now, and tells what is behind a position. What a line says and where
    it comes from follows from the files alone (ADR 40): so positions hold in the next server."""

    def __init__(
        self, run: Run, tails: dict[str, Tail], since: str | None, *, events: bool
    ) -> None:
        self._run, self._tails, self._since, self._events = run, tails, since, events
        self._tail = tails.pop(run.id) if run.id in tails else Tail(run, lambda: None)
        self._reader = Thread(target=self._tail.look, daemon=True)  # the first time takes long
        self._reader.start()

    def look(self) -> ToolAnswer | None:
        if self._reader.is_alive():
            return None
        told = self._told()
        for other in self._tails.values():
            other.close()
        self._tails.clear()
        self._tails[self._run.id] = self._tail  # who asks again is told sooner
        return told

    def news(self) -> News | None:
        return None

    def hurry(self) -> None:
        """It reads as fast as it can."""

    def cancel(self) -> None:
        """What was read is kept, for the next who asks."""

    def _told(self) -> ToolAnswer:
        spool, total = self._tail.spool, self._tail.spool.total
        if self._since is None:
            begin = Cursor(0, self._last_lines(total))
        else:
            begin = cursor_at(self._since, spool, self._tail.told) or Cursor(0, 0)
        lines, cursor = self._lines(begin, total)
        more, live = cursor.lines < total, look_again(self._run).live
        position = position_of(cursor, spool)
        step = "`log`" if more else "`wait`" if live else "`report`"
        data = {
            "run": self._run.id,
            "lines": lines,
            "position": position,
            "more": more,
            "goes_on": live,
            "next": f'{step}; what comes after this is behind since "{position}".',
        }
        return ToolAnswer("\n".join([*lines, f"Next: {data['next']}"]), data)

    def _last_lines(self, total: int) -> int:
        """Where the last lines begin that are to be told."""
        found, at = 0, total
        while at > 0 and found < _USUAL_LINES:
            first = max(0, at - _READ_AT_ONCE)
            for place, _ in reversed(self._tail.spool.read(first, at - first)):
                at -= 1
                found += self._wanted(place)
                if found == _USUAL_LINES:
                    break
        return at

    def _lines(self, begin: Cursor, total: int) -> tuple[list[str], Cursor]:
        """The lines behind a place, as many as fit, and the place behind them."""
        lines, size, at, journal = list[str](), 0, begin.lines, begin.journal
        spool = self._tail.spool
        while at < total and size <= _LONGEST_LOG:
            for place, row in spool.read(at, min(_READ_AT_ONCE, total - at)):
                if self._wanted(place):
                    line = _line(row)
                    size += len(line) + 1
                    if size > _LONGEST_LOG and lines:
                        break
                    lines.append(line)
                at, journal = at + 1, place[0]
        is_whole = spool.after((journal, 0)) <= at  # all lines up to that fact are behind us
        return lines, Cursor(journal if is_whole else begin.journal, at)

    def _wanted(self, place: Place) -> bool:
        """Of what the agent said, the place tells where in its stream; what is wrong with the
        journal stands at its END."""
        return self._events or place[1] in (0, END)


def _line(row: Row) -> str:
    stamp = time.strftime("%H:%M:%S ", time.localtime(row.time)) if row.time else ""
    return f"{stamp}{row.text}"


def report(scope: Scope, wish: tools.ReportInput) -> PendingAnswer:
    run = scope.run(wish.run)

    def told(ended: CommandEnd) -> ToolAnswer:
        if ended.code:
            raise ConfigError(f"there is no report of {run.id}: {ended.said()}", "See: `log`")
        part = ended.out[wish.offset : wish.offset + _LONGEST_REPORT]
        behind = wish.offset + len(part)
        left = max(0, len(ended.out) - behind)
        after = f"the rest: `report` with offset {behind}." if left else "that is all of it."
        data = {"run": run.id, "markdown": part, "left": left, "next": after}
        return ToolAnswer(f"{part}\nNext: {after}" if left else part, data)

    words = ("report", "--format", "md", "-o", "-", "--", run.id)
    return OwnCommand(words, os.path.sep, scope.environ, told)
