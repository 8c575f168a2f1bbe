"""The screen of all runs."""

import time
from collections.abc import Callable

from textual import events
from textual.app import ComposeResult
from textual.screen import Screen

from ralph.text.plain import plain
from ralph.ui.status.known import KnownRuns
from ralph.ui.status.listing import Entry
from ralph.ui.style import Style, Tone
from ralph.watch import draw
from ralph.watch.app.widgets import Choices, Painted

_PACE = 1.0  # seconds
_MOST = 500  # runs
_KEYS = " q leave   Enter watch it   Up Down choose"


class RunsScreen(Screen[None]):
    """The runs of this machine, newest first; one can be chosen."""

    CSS = "#heading, #title, #detail, #foot { height: 1; }"
    AUTO_FOCUS = ""

    def __init__(self, root: str, style: Style, choose: Callable[[Entry], None]) -> None:
        super().__init__()
        self._known = KnownRuns(root, lambda entry: entry)
        self._style, self._choose = style, choose
        self._entries: list[Entry] = []
        self._more = 0

    def compose(self) -> ComposeResult:
        yield Painted(id="title")
        yield Painted(id="heading")
        yield Choices(self._chosen, id="runs")
        yield Painted(id="detail")
        yield Painted(id="foot")

    def on_mount(self) -> None:
        self.set_interval(_PACE, self.tick)
        self.call_after_refresh(self.tick)

    def on_screen_resume(self) -> None:
        self.call_after_refresh(self.tick)

    def tick(self) -> None:
        """Look at them, and keep the one that is chosen."""
        if not self.is_current:
            return
        chosen = self._entry
        self._entries, self._more = self._known.newest(_MOST)
        choices = self.query_one(Choices)
        places = [entry.directory for entry in self._entries]
        if chosen is not None and chosen.directory in places:
            choices.chosen = places.index(chosen.directory)
        self.draw()

    def draw(self) -> None:
        width, paint, entries = self.size.width, self._style.paint, self._entries
        live = sum(entry.pid is not None for entry in entries)
        title = f" {len(entries) + self._more} runs of this machine, {live} at work"
        self.query_one("#title", Painted).show([paint(title[:width], Tone.HEAD)])
        self.query_one("#heading", Painted).show([draw.list_heading(self._style, width)])
        rows = draw.list_rows(entries, time.time(), self._style, width)
        self.query_one(Choices).offer(rows)
        self.query_one("#detail", Painted).show([self._detail(width)])
        self.query_one("#foot", Painted).show([paint(_KEYS[:width], Tone.FAINT)])

    @property
    def _entry(self) -> Entry | None:
        chosen = self.query_one(Choices).chosen
        return self._entries[chosen] if chosen < len(self._entries) else None

    def _detail(self, width: int) -> str:
        """A line about the chosen one that has no place in its row."""
        entry = self._entry
        if entry is None:
            return ""
        words = entry.problem or (f"asks about {', '.join(entry.asks)}" if entry.asks else "")
        words = words or (entry.stop.why if entry.stop else "")
        return self._style.paint(plain(f" {words}", width), Tone.NOTICE) if words else ""

    def _chosen(self) -> None:
        if self._entry is not None:
            self._choose(self._entry)

    def on_key(self, event: events.Key) -> None:
        moves = {"up": -1, "k": -1, "down": 1, "j": 1, "pageup": -10, "pagedown": 10}
        far = {"home": -len(self._entries), "end": len(self._entries)}
        event.stop()
        if rows := {**moves, **far}.get(event.key):
            self.query_one(Choices).move(rows)
            self.draw()
        elif event.key == "enter":
            self._chosen()
        elif event.key == "q":
            self.app.exit(None)
