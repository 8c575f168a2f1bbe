"""A window over a log, as `less` has it: it follows the end, or stands at a line.

Lines that are too long are wrapped when they are drawn, so a resized window needs nothing anew.
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence

from ralph.kernel.value import replace
from ralph.text.plain import columns
from ralph.ui.lines import clock_time
from ralph.ui.live.activity import tag_of
from ralph.ui.style import Style, Tone
from ralph.watch.lines import Filter, Kind, Lines, Selection
from ralph.watch.model import TrackLine
from ralph.watch.wrap import wrapped

_NARROWEST = 10
_BY_AGENT, _BY_RALPH = 2, 9  # columns before the words; the time is Ralph's
_MARK = "\x1b[7m{}\x1b[0m"  # what was searched for


class Pager:
    """The window. Rows are the lines of the screen; a line of the log has one or more."""

    def __init__(self, lines: Lines, style: Style) -> None:
        self.lines, self._style = lines, style
        self._selection = Selection(lines)
        self.follows = True
        self.sought = ""
        self._width, self._height = 80, 10
        self._top = (0, 0)  # the number of a line, and of a row in it

    # ------------------------------------------------------------ look

    @property
    def wanted(self) -> Filter:
        return self._selection.wanted

    def rows(self, width: int, height: int) -> list[str]:
        """The rows that are seen, painted; fewer where there are no more."""
        self._width, self._height = max(_NARROWEST, width), max(1, height)
        if self.follows:
            self._top = self._back(self._end(), self._height)
        numbers = self._selection.numbers()
        found: list[str] = []
        index = bisect_left(numbers, self._top[0])
        skip = self._top[1] if index < len(numbers) and numbers[index] == self._top[0] else 0
        while len(found) < self._height and index < len(numbers):
            found += self._wrapped(numbers[index])[skip:]
            index, skip = index + 1, 0
        return found[: self._height]

    def place(self) -> str:
        """The number of lines; of a window that does not follow them, how far down it stands."""
        numbers = self._selection.numbers()
        if self.follows or not numbers:
            return f"{len(numbers):,} {'line' if len(numbers) == 1 else 'lines'}"
        return f"line {bisect_left(numbers, self._top[0]) + 1:,} of {len(numbers):,}"

    # ------------------------------------------------------------ move

    def scroll(self, rows: int) -> None:
        """Go down so many rows, or up; who reaches the end follows it."""
        if rows < 0:
            self.follows = False
            self._top = self._back(self._top, -rows)
        elif not self.follows:
            self._top = self._on(self._top, rows)
            last = self._back(self._end(), self._height)
            self.follows = self._top >= last

    def page(self, pages: float) -> None:
        self.scroll(int(pages * max(1, self._height - 1)))

    def home(self) -> None:
        self.follows, self._top = False, (self.lines.first, 0)

    def want(self, wanted: Filter) -> None:
        """Show other lines; what stood at the top stays near it."""
        if wanted != self.wanted:
            self._selection = Selection(self.lines, wanted)

    def next_kind(self) -> None:
        """Show the next kind of lines."""
        kinds = list(Kind)
        at = kinds.index(self.wanted.kind)
        self.want(replace(self.wanted, kind=kinds[(at + 1) % len(kinds)]))

    def next_task(self) -> None:
        """Show the lines of the next worker's task, or of all."""
        tasks = self.lines.tasks
        at = tasks.index(self.wanted.task) if self.wanted.task in tasks else 0
        self.want(replace(self.wanted, task=tasks[(at + 1) % len(tasks)]))

    def seek(self, sought: str, *, back: bool = False) -> bool:
        """Go to the next line that holds these words, from the top of the window on; True if there
        is one. Small letters find large ones."""
        self.sought = sought
        numbers = self._selection.numbers()
        if not sought or not numbers:
            return False
        top = numbers[-1] + 1 if self.follows and back else self._top[0]
        found = self._found(sought, top, back=back)
        if found is None:
            return False
        self.follows, self._top = False, (found, 0)
        return True

    def _found(self, sought: str, top: int, *, back: bool) -> int | None:
        """Round about: after the last line comes the first."""
        numbers = self._selection.numbers()
        at = bisect_left(numbers, top)
        after = at + (at < len(numbers) and numbers[at] == top)
        ways: tuple[Sequence[int], ...] = (numbers[after:], numbers[:after])
        if back:
            ways = (numbers[:at], numbers[at:])
        for way in ways:
            hits = self._hits(way, sought)
            hit = max(hits, default=None) if back else next(hits, None)
            if hit is not None:
                return hit
        return None

    def _hits(self, numbers: Sequence[int], sought: str) -> Iterator[int]:
        fold = sought == sought.lower()
        if not numbers:
            return
        taken = None if isinstance(numbers, range) else frozenset(numbers)
        entries = self.lines.between(numbers[0], numbers[-1] + 1)
        for number, entry in enumerate(entries, numbers[0]):
            text = entry.line.text.lower() if fold else entry.line.text
            if sought in text and (taken is None or number in taken):
                yield number

    # ------------------------------------------------------------ rows

    def _end(self) -> tuple[int, int]:
        return self.lines.end, 0

    def _back(self, place: tuple[int, int], rows: int) -> tuple[int, int]:
        """The place so many rows above."""
        numbers = self._selection.numbers()
        index = bisect_left(numbers, place[0])
        there = index < len(numbers) and numbers[index] == place[0]
        above = place[1] if there else 0
        while rows > above and index > 0:
            index, rows = index - 1, rows - above
            above = len(self._wrapped(numbers[index]))
        number = numbers[index] if index < len(numbers) else place[0]
        return number, max(0, above - rows)

    def _on(self, place: tuple[int, int], rows: int) -> tuple[int, int]:
        """The place so many rows below, within the log."""
        numbers = self._selection.numbers()
        index, at = bisect_left(numbers, place[0]), place[1] + rows
        while index < len(numbers) - 1 and at >= (size := len(self._wrapped(numbers[index]))):
            index, at = index + 1, at - size
        if index >= len(numbers):
            return place
        return numbers[index], min(at, len(self._wrapped(numbers[index])) - 1)

    def _wrapped(self, number: int) -> list[str]:
        return painted_rows(self.lines.get(number), self._width, self._style, self.sought)


def painted_rows(entry: TrackLine, width: int, style: Style, sought: str = "") -> list[str]:
    """The rows of a line: its time and the worker's task in front, the rest below each other."""
    line, tag = entry.line, tag_of(entry.task) if entry.task else ""
    if line.is_day:
        return [style.paint(line.text[:width], line.tone)]
    stamp = " " * (_BY_AGENT if line.by_agent else _BY_RALPH)
    below = " " * columns(stamp + tag)
    head = (stamp if line.time is None else f"{clock_time(line.time)} ") + tag
    rows = wrapped(line.text, max(_NARROWEST, width - columns(head)))
    painted = [marked(row, line.tone, style, sought) for row in rows]
    first = style.paint(head, Tone.FAINT) + painted[0]
    return [first, *(below + row for row in painted[1:])]


def marked(text: str, tone: Tone, style: Style, sought: str) -> str:
    """The text in its colour, and what was searched for reversed."""
    if not sought:
        return style.paint(text, tone)
    where = text.lower() if sought == sought.lower() else text
    found, at = "", 0
    # Lower case of some characters is longer: then nothing can be marked.
    while len(where) == len(text) and (hit := where.find(sought, at)) >= 0:
        end = hit + len(sought)
        found += style.paint(text[at:hit], tone) + _MARK.format(text[hit:end])
        at = end
    return found + style.paint(text[at:], tone)
