"""The display of a run: the agent's lines on stdout, Ralph's own on stderr."""

from collections.abc import Callable, Iterable
from typing import TextIO

from ralph.core.events import AgentEvent
from ralph.core.facts import Began, Fact, Resumed
from ralph.core.state import NEW, RunState, fold
from ralph.core.world import Signals
from ralph.ui.channel import Channel
from ralph.ui.clean import Redact, clean
from ralph.ui.format import Formatter
from ralph.ui.lines import Briefing, Line
from ralph.ui.narration import heard, narrate
from ralph.ui.style import Style, Tone
from ralph.ui.words import clock_time

_PROMPT_SHOWN = 200  # H §Verbose Output


class Console:
    """A reader for people. Nothing it does can fail: a closed stream is said once and left alone.

    `err_style` is for a stderr that differs from stdout, as when only one of them is a terminal;
    `state` is where a resumed run goes on.
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
        redact: Redact,
        err_style: Style | None = None,
        state: RunState = NEW,
    ) -> None:
        self._out = Channel(out, self._out_is_lost)
        self._err = Channel(err, lambda _: None)
        self._style = err_style or style
        self._stream = stream
        self._verbose = verbose
        self._briefing = briefing
        self._clock = clock
        self._redact = redact
        self._state = state
        self._asked = Signals()
        self._formatter = Formatter(style, clock, redact)

    def on_event(self, event: AgentEvent) -> None:
        """Show what the agent says, if that is wanted."""
        if self._stream:
            self._out.write(self._formatter.lines(event))

    def on_fact(self, fact: Fact) -> None:
        """Say what happened."""
        before, self._state = self._state, fold(self._state, fact)
        if isinstance(fact, Began | Resumed):
            self._formatter.start()
        self._say(narrate(fact, before, self._state, self._briefing))

    def beat(self, asked: Signals) -> None:
        """Called while the run waits for something, with what other terminals ask of it."""
        if asked != self._asked:
            before, self._asked = self._asked, asked
            self._say(heard(before, asked))

    def note(self, text: str) -> None:
        """Say this, to everybody."""
        self._say([Line(text)])

    def debug(self, text: str) -> None:
        """Say this to those who asked for more (`--verbose`)."""
        self._say([Line(text, Tone.FAINT, verbose=True)])

    def prompt(self, text: str) -> None:
        """The prompt that is sent: its beginning, verbose only (H §Verbose Output)."""
        if self._verbose:
            tidy = " ".join(self._redact(clean(text)).split())
            more = "..." if len(tidy) > _PROMPT_SHOWN else ""
            self.debug(f"Prompt: {tidy[:_PROMPT_SHOWN]}{more}")

    def _say(self, lines: Iterable[Line]) -> None:
        shown = (line for line in lines if self._verbose or not line.verbose)
        self._err.write([dressed for line in shown for dressed in self._dressed(line)])

    def _dressed(self, line: Line) -> list[str]:
        """Cleaned, since it may quote the agent, and with our name in front."""
        stamp = f"[{clock_time(self._clock())}] " if self._style.timestamps else ""
        tidy = self._redact(clean(line.text)).split("\n")
        return [f"{stamp}[ralph] {self._style.paint(part, line.tone)}" for part in tidy]

    def _out_is_lost(self, why: str) -> None:
        self.note(f"stdout {why}; the run goes on without it.")
