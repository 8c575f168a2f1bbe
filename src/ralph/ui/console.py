"""The display of a run: the agent's lines on stdout, Ralph's own on stderr."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from itertools import groupby
from operator import itemgetter
from typing import TextIO

from ralph.kernel.events import AgentEvent
from ralph.kernel.facts import Asked, Began, Fact, Resumed, Settled
from ralph.kernel.state import NEW, RunState, fold
from ralph.kernel.verdict import Stop
from ralph.kernel.world import ANSWER, NOTE, Signals
from ralph.text.plain import safe
from ralph.ui.events import Formatter
from ralph.ui.lines import Briefing, Line, clock_time
from ralph.ui.live.activity import Activity, Board, tag_of
from ralph.ui.live.region import PACE, LiveLine
from ralph.ui.narration import heard, narrate
from ralph.ui.safe_stream import Channel
from ralph.ui.style import Style, Tone

_PROMPT_SHOWN = 200  # H §Verbose Output
_MOST_HELD = 1000  # pieces
_PACE_OF_A_BOARD = 1 / 30  # seconds


class Console:
    """A reader for people. Nothing it does can fail: a closed stream is said once and left alone.

    `err_style` is for a stderr that differs from stdout, as when only one of them is a terminal;
    `state` is where a resumed run goes on. With `width`, which asks the terminal at stderr for its
    columns, a line at the bottom tells what goes on; without `live` it is only followed. With a
    `lock`, others may write between our lines, by `relay`; with a `board`, a line for each of them
    tells what they do, as far as the terminal's `height` allows.
    """

    def __init__(
        self,
        out: TextIO | None,
        err: TextIO | None,
        style: Style,
        *,
        stream: bool,
        verbose: bool,
        briefing: Briefing,
        clock: Callable[[], float],
        err_style: Style | None = None,
        state: RunState = NEW,
        width: Callable[[], int] | None = None,
        height: Callable[[], int | None] = lambda: None,
        live: bool = True,
        lock: AbstractContextManager[object] = nullcontext(),
        board: Board | None = None,
    ) -> None:
        self._lock = lock
        lost = "; the run goes on without it."
        self._out = Channel(out, lambda why: self.note(f"stdout {why}{lost}"))
        self._err = Channel(err)
        self._style = err_style or style
        self._stream = stream
        self._verbose = verbose
        self._briefing = briefing
        self._clock = clock
        self._state = state
        self._asked = self._own = Signals()
        self._activity = Activity(briefing, clock, state)
        self._board = board
        self._out_style = style
        self._live: LiveLine | None = None
        if width and live:
            # Several agents say more than one: the lines would be gone most of the time.
            pace = PACE if board is None else _PACE_OF_A_BOARD
            self._live = LiveLine(self._err, self._style, width, clock, height=height, pace=pace)
        self._one_screen = width is not None and out is not None and out.isatty()
        follow = (lambda: width() or style.width) if width and self._one_screen else None
        self._formatter = Formatter(style, clock, width=follow)
        self._held: list[tuple[Channel, str]] = []  # of workers, for a moment
        self._spoke: Channel | None = None
        self._apart = False  # a new part begins

    def on_events(self, events: Sequence[AgentEvent]) -> None:
        """Show what the agent says, if that is wanted; all of it in one write."""
        if self._live:
            self._activity.on_events(events)
        if self._stream:
            lines = self._formatter.lines
            self._write(self._out, [line for event in events for line in lines(event)])

    def on_fact(self, fact: Fact) -> None:
        before, self._state = self._state, fold(self._state, fact)
        self._activity.on_fact(fact)
        if self._board is not None:
            self._board.on_fact(fact)
        if isinstance(fact, Began | Resumed):
            self._formatter.start()
            self._apart = True
        elif isinstance(fact, Settled) and isinstance(fact.verdict, Stop):
            self._apart = True  # the last lines
        if isinstance(fact, Asked) and fact.request.request not in (NOTE, ANSWER):
            return  # told when it was asked
        after = self._state if self._board is None else self._board.with_workers(self._state)
        self._say(narrate(fact, before, after, self._briefing))

    def beat(self, asked: Signals, own: Signals = Signals()) -> None:
        """Called while the run waits for something, with what other terminals ask of it.

        `own` is what its own terminal asks, which was told by then.
        """
        before, self._asked, self._own = self._asked, asked, own
        if asked != before:
            self._say(heard(before, asked))
        if self._live:
            with self._lock:
                self._live.advance()
                self._put_held(self._live)
                self._draw(self._live)

    @contextmanager
    def live(self) -> Iterator[None]:
        """Show the run at the bottom of the terminal during this; at its end all is tidy."""
        if self._live is None:
            yield
            return
        try:
            with self._live.lasting():
                yield
        finally:
            with self._lock:
                self._put_held(self._live)

    def note(self, text: str) -> None:
        self._say([Line(text)])

    def debug(self, text: str) -> None:
        """Say this to those who asked for more (`--verbose`)."""
        self._say([Line(text, Tone.FAINT, verbose=True)])

    def prompt(self, text: str) -> None:
        """The prompt that is sent: its beginning, verbose only (H §Verbose Output)."""
        if self._verbose:
            tidy = " ".join(safe(text).split())
            more = "..." if len(tidy) > _PROMPT_SHOWN else ""
            self.debug(f"Prompt: {tidy[:_PROMPT_SHOWN]}{more}")

    def _say(self, lines: Iterable[Line]) -> None:
        shown = (line for line in lines if self._verbose or not line.verbose)
        self._write(self._err, [dressed for line in shown for dressed in self._dressed(line)])

    def _write(self, channel: Channel, lines: list[str]) -> None:
        """Write above the live line, if there is one on the same screen; with an empty line between
        the agent's words and ours, and before each iteration."""
        if not lines:
            return
        with self._lock:
            if self._live is None or not (self._one_screen or channel is self._err):
                channel.write(lines)
                return
            self._put_held(self._live)
            self._live.erase()
            before, self._spoke = self._spoke, channel
            apart, self._apart = self._apart or before is not channel, False
            gap = [""] if apart and self._one_screen and before is not None else []
            channel.write([*gap, *lines])
            self._draw(self._live)

    def relay(self, text: str, *, out: bool) -> None:
        """Write whole lines of a worker's to stdout or stderr."""
        with self._lock:
            channel = self._out if out else self._err
            if self._live is None or (out and not self._one_screen):
                channel.put(text)
                return
            # As long as it must not be drawn, it must not be erased either: it would flicker.
            self._held.append((channel, text))
            waits = self._live.lasts and not self._live.ready
            if not waits or len(self._held) > _MOST_HELD:
                self._put_held(self._live)
                self._draw(self._live)

    def _put_held(self, live: LiveLine) -> None:
        """Write what was held back, before anything else."""
        if self._held:
            live.erase()
            for channel, pieces in groupby(self._held, key=itemgetter(0)):
                channel.put("".join(text for _, text in pieces))
            self._held.clear()

    def tag(self, task: str, *, out: bool) -> str:
        """The words before the lines of the worker at this task."""
        return (self._out_style if out else self._style).paint(tag_of(task), Tone.FAINT)

    def _draw(self, live: LiveLine) -> None:
        if not live.ready:
            return
        if self._board is not None:
            live.draw(self._board.moments(self._state, self._own, self._asked))
            return
        moment = self._activity.moment(self._own, self._asked)
        live.draw(() if moment is None else (moment,))

    def _dressed(self, line: Line) -> list[str]:
        """The line, cleaned, since it may quote the agent, and with our name in front."""
        stamp = f"[{clock_time(self._clock())}] " if self._style.timestamps else ""
        tidy = safe(line.text).split("\n")
        name = self._style.paint("[ralph]", Tone.HEAD)
        return [f"{stamp}{name} {self._style.paint(part, line.tone)}" for part in tidy]
