"""Widgets that show lines painted by a `Style`.

Nothing in them is markup, and only lines that have changed are sent to the terminal.
"""

import re
from collections.abc import Callable, Sequence

from rich.segment import Segment
from rich.style import Style as Look
from textual import events
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget

from ralph.ui.style import Mark, Style, Tone
from ralph.watch.pager import Pager

_PAINTED = re.compile(r"\x1b\[([0-9]+)m(.*?)\x1b\[0m")
_LOOKS = {
    "1": Look(bold=True),
    "2": Look(dim=True),
    "7": Look(reverse=True),
    "31": Look(color="red"),
    "32": Look(color="green"),
    "35": Look(color="magenta"),
    "36": Look(color="cyan"),
}
_PLAIN = Look()
_WHEEL = 3  # rows


def strip_of(text: str, width: int, base: Look = _PLAIN) -> Strip:
    """A painted line as Textual wants it. Only what `Style.paint` writes is read as a colour."""
    segments, at = list[Segment](), 0
    for found in _PAINTED.finditer(text):
        segments.append(Segment(text[at : found.start()], base))
        segments.append(Segment(found[2], base + _LOOKS.get(found[1], _PLAIN)))
        at = found.end()
    segments.append(Segment(text[at:], base))
    return Strip([each for each in segments if each.text]).adjust_cell_length(width, base)


class Painted(Widget):
    """Some lines."""

    DEFAULT_CSS = "Painted { height: auto; width: 1fr; }"
    ALLOW_SELECT = False

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002  Textual's
        super().__init__(id=id)
        self._lines: list[str] = []
        self._selected: int | None = None

    def show(self, lines: Sequence[str], selected: int | None = None) -> None:
        """Show these lines; one of them may be selected."""
        before, chosen = self._lines, self._selected
        self._lines, self._selected = list(lines), selected
        if len(before) != len(lines):
            self.refresh(layout=self.styles.height is None or self.styles.height.is_auto)
            self.refresh()
            return
        for y, (old, new) in enumerate(zip(before, lines, strict=True)):
            if old != new or (chosen != selected and y in (chosen, selected)):
                self.refresh(Region(0, y, self.size.width, 1))

    def get_content_height(self, *_: object) -> int:
        return len(self._lines)

    def render_line(self, y: int) -> Strip:
        text = self._lines[y] if y < len(self._lines) else ""
        return strip_of(text, self.size.width, _LOOKS["7"] if y == self._selected else _PLAIN)


class LogView(Painted):
    """The log: a heading, and below it a window over its lines."""

    DEFAULT_CSS = "LogView { height: 1fr; width: 1fr; }"

    def __init__(self, pager: Pager, style: Style, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self.pager, self._style = pager, style

    def look(self) -> None:
        """Show what there is now."""
        size = self.size
        if size.width and size.height:
            rows = self.pager.rows(size.width, size.height - 1)
            self.show([self._heading(size.width), *rows, *[""] * (size.height - 1 - len(rows))])

    def _heading(self, width: int) -> str:
        wanted, between = self.pager.wanted, self._style.mark(Mark.BETWEEN)
        words = ["Log" if wanted.kind == "all" else f"Log: {wanted.kind} only"]
        words += [wanted.task] if wanted.task else []
        words += ["following" if self.pager.follows else "f follows"]
        words += [f"/{self.pager.sought}"] if self.pager.sought else []
        line = "─" if self._style.emoji else "-"
        left, right = f"{line * 2} {between.join(words)} ", f" {self.pager.place()} {line * 2}"
        text = left + line * (width - len(left) - len(right)) + right
        return self._style.paint(text[:width], Tone.FAINT)

    def on_resize(self, _: events.Resize) -> None:
        self.look()

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        self.pager.scroll(-_WHEEL)
        event.stop()
        self.look()

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        self.pager.scroll(_WHEEL)
        event.stop()
        self.look()


class Choices(Painted):
    """Lines of which one is chosen; more of them than there is room for."""

    DEFAULT_CSS = "Choices { height: 1fr; }"

    def __init__(self, on_choice: Callable[[], None], *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self._all: list[str] = []
        self._on_choice = on_choice
        self._top = 0
        self.chosen = 0

    def offer(self, lines: Sequence[str]) -> None:
        self._all = list(lines)
        self.move(0)

    def move(self, rows: int) -> None:
        """Choose another one, and keep it in sight."""
        self.chosen = max(0, min(self.chosen + rows, len(self._all) - 1))
        height = max(1, self.size.height)
        self._top = max(self.chosen - height + 1, min(self._top, self.chosen))
        self._top = max(0, min(self._top, len(self._all) - height))
        self.show(self._all[self._top : self._top + height], self.chosen - self._top)

    def on_resize(self, _: events.Resize) -> None:
        self.move(0)

    def on_click(self, event: events.Click) -> None:
        if event.y + self._top < len(self._all):
            self.move(event.y + self._top - self.chosen)
            self._on_choice()
