"""Reads one run as it grows, in a thread, and keeps its log in a spool for all who look at it.

What a line says follows from the journal and the streams alone, and so does its place: whoever
comes back with a place goes on there exactly, also when another server answers.
"""

import threading
from collections.abc import Callable, Iterator, Sequence

from ralph.agents.stream_lines import StreamLines
from ralph.agents.streams.dialects import parser_for
from ralph.agents.streams.framing import Framer
from ralph.agents.turn_files import MOST_SAVED
from ralph.errors import StateError
from ralph.files.state_dir import lstat, stamp_of
from ralph.journal.journal import HashChain
from ralph.journal.runs import Growing, Run, folding, prompt_of
from ralph.kernel.events import AgentEvent, ToolEnd, ToolStart
from ralph.kernel.facts import Began, Ended, Fact, Launching, Resumed, Settled
from ralph.kernel.limits import Spent
from ralph.kernel.state import NEW, RunState, fold
from ralph.text.plain import safe
from ralph.ui.replay import LineTeller, LogLine, Player, Stream
from ralph.ui.style import Style, Tone
from ralph.web.spool import Place, Row, Spool

LOOK_EVERY = 0.25
_LONGEST_LINE = 2 * 1024 * 1024  # bytes of a stream: longer ones are not shown
_MOST_OF_AN_EVENT = 2_000  # lines
_MOST_OF_A_TURN = 200_000
_MOST = 3_000_000
_STYLE = Style(emoji=True)
_KINDS = {Tone.GOOD: "good", Tone.BAD: "bad", Tone.NOTICE: "notice"}


class Tail:
    """The log of a run up to now. `changed` is called from the thread when there is more."""

    def __init__(self, run: Run, changed: Callable[[], None], most: int = MOST_SAVED) -> None:
        self.spool = Spool()
        self.told = 0  # bytes of the journal whose facts are told, with their lines
        self._told = 0
        self.problem = ""
        self.caught_up = threading.Event()
        self.state: RunState = NEW
        self.run, self._changed, self._most = run, changed, most
        self._closing = threading.Event()
        self._journal, self._chain = Growing(run.journal), HashChain(run.journal)
        self._player = Player(_Rows(run), self._opened)
        self._stream: StreamLines | None = None
        self._path = ""  # of the stream
        self._is_over = self._is_told = False  # nobody writes it any more, and all of it is told
        self._of_turn = 0
        self._seen: object = None
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Look again and again, until `close`."""
        name = f"tail {self.run.id}"
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the thread; the spool is gone then."""
        self._closing.set()
        if self._thread is None:
            self.spool.close()

    def _work(self) -> None:
        try:
            while not self._closing.is_set():
                self.look()
                self._closing.wait(LOOK_EVERY)
        finally:
            self.spool.close()

    def look(self) -> None:
        """Tell what is new since the last look, if any file has changed."""
        seen = stamp_of(self.run.journal), stamp_of(self._path)
        if seen == self._seen and self.caught_up.is_set():
            return
        self._seen = seen
        before = self._told, self.spool.count, self.problem
        if not self.problem:
            try:
                with folding(self.run.journal):
                    self._tell()
            except StateError as error:
                self._fail(error.words)
            except OSError as error:
                self._fail(f"cannot read {error.filename}: {error.strerror}")
        if before != (self._told, self.spool.count, self.problem) or not self.caught_up.is_set():
            self._publish()
            self.caught_up.set()
            self._changed()

    def _publish(self) -> None:
        told = self._told
        self.spool.flush()
        self.told = told
        self._changed()

    def _fail(self, words: str) -> None:
        self.problem = safe(words).strip()
        self.spool.add([Row("bad", self.problem)], (self._told, END))

    def _tell(self) -> None:
        for line in self._journal.lines():
            fact = self._chain.take(line[:-1].decode("utf-8", "surrogateescape"))
            self._is_over = isinstance(fact, Ended | Launching | Began | Resumed | Settled)
            self._of_stream()
            self._is_told = self._is_over
            after = self._told + len(line)
            for rows in self._player.fact(fact):
                self._add(rows, (after, 0))
            self._is_over = self._is_told = False
            self.state = fold(self.state, fact)
            self._told = after
            if self._closing.is_set():
                return
        self._of_stream()

    def _of_stream(self) -> None:
        for rows in self._player.idle():
            assert self._stream is not None
            self._add(rows, (self._told, self._stream.told))

    def _opened(self, launch: Launching) -> Stream:
        parser = parser_for(launch.dialect, prompt_of(launch))
        parser.lines = Framer(_LONGEST_LINE)
        self._stream = StreamLines(launch.stream, self._most)
        self._path, self._of_turn = launch.stream, 0
        return Stream(parser, self._blocks, self._heard_at)

    def _blocks(self) -> Iterator[bytes]:
        assert self._stream is not None
        if self._is_told:
            return
        for number, line in enumerate(self._stream.new(is_over=self._is_over)):
            yield line
            if number % 2000 == 1999:
                self._publish()
            if self._closing.is_set():
                return

    def _heard_at(self) -> float:
        found = lstat(self._path)
        return found.st_mtime if found else self.state.time

    def _add(self, rows: list[Row], place: Place) -> None:
        if place[1]:
            self._of_turn += len(rows)
            left = min(_MOST_OF_A_TURN - self._of_turn, _MOST - self.spool.count)
            if left + len(rows) <= 0:
                return
            if left < 0:
                rows = [*rows[:left], Row("notice", "… the rest of this turn: ralph logs --events")]
        self.spool.add(rows, place)


END = 10**15 - 1  # behind every byte of a stream


class _Rows:
    """Tells facts and events as lines of the log, each with its kind."""

    def __init__(self, run: Run) -> None:
        self._lines = LineTeller(_STYLE, run.journal, worker=run.lead is not None)

    def fact(self, fact: Fact, used: Sequence[Spent] = ()) -> list[Row]:
        return [self._row(line, "ralph") for line in self._lines.fact(fact, used)]

    def event(self, event: AgentEvent, now: float) -> list[Row]:
        kind = "tool" if isinstance(event, ToolStart | ToolEnd) else "agent"
        rows = [self._row(line, kind) for line in self._lines.event(event, now)]
        if (more := len(rows) - _MOST_OF_AN_EVENT) > 0:
            rows[_MOST_OF_AN_EVENT:] = [Row("notice", f"… {more} more lines")]
        return rows

    def _row(self, line: LogLine, kind: str) -> Row:
        kind = "day" if line.is_day else _KINDS.get(line.tone, kind)
        return Row(kind, f"{line.speaker}{line.text}", line.time)
