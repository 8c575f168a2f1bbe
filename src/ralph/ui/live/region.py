"""The line at the bottom of a terminal that tells what goes on now; of several workers, the lines.

It stands *below* the cursor, an empty line between. So whatever else writes to the terminal, such
as the notice of a signal or the echo of a key, lands above it, and all of it can be erased from
the cursor on, even where a smaller window has wrapped it.
"""

import os
import signal
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from types import FrameType
from typing import TextIO

from ralph.text.plain import columns, shorten
from ralph.ui.live.activity import Doing
from ralph.ui.safe_stream import Channel
from ralph.ui.style import Mark, Style, Tone

_ERASE = "\r\x1b[J"  # from the beginning of the cursor's line to the end of the screen
# Without automatic wrapping: the terminal knows best how wide a character is.
_DRAW = "\r\x1b[K\n\x1b[?7l{}\x1b[J\x1b[?7h\r{}"
_NEXT = "\x1b[K\r\n"
_UP = "\x1b[A"
PACE = 1 / 8  # seconds between two drawings in the long run
_BURST = 1.0  # seconds of drawings that may come at once: a few lines in a row are no flood
_LEAST = 24  # columns for what goes on, before anything less important gets some
_NARROWEST = 10
_WIDTH = 80  # where the terminal does not know its own
_HEIGHT = 24


class LiveLine:
    """Draws lines, erases them for others, and draws them again. The cursor is never hidden.

    `width` is asked at each drawing, so a resized window is followed; 0 is no place to draw. Of
    its `height` they take at most one half. `pace` is the seconds between two drawings in the long
    run.
    """

    def __init__(
        self,
        channel: Channel,
        style: Style,
        width: Callable[[], int],
        clock: Callable[[], float],
        *,
        height: Callable[[], int | None] = lambda: None,
        pace: float = PACE,
    ) -> None:
        self._channel = channel
        self._style = style
        self._width = width
        self._clock = clock
        self._height = height
        self._pace = pace
        self._shown = ""
        self._due = 0.0
        self.lasts = False  # true while it may be there at all
        self._frame = 0

    def advance(self) -> None:
        self._frame += 1

    def draw(self, moments: Sequence[Doing]) -> None:
        """Show these, a line for each, if they differ from what is there."""
        width = self._width() if moments else 0
        if width < _NARROWEST:
            self.erase()
            return
        shown = _highest(moments, (self._height() or _HEIGHT) // 2)
        # The last column may wrap.
        self.show([fitted(moment, self._frame, self._style, width - 1) for moment in shown])

    def show(self, lines: Sequence[str]) -> None:
        """Show these, painted and short enough, if they differ from what is there."""
        text = _DRAW.format(_NEXT.join(lines), _UP * len(lines))
        if text != self._shown:
            now = self._clock()
            self._due = self._pace + (self._due if now < self._due < now + 2 * _BURST else now)
            self._shown = text
            self._channel.put(text)

    @property
    def ready(self) -> bool:
        """True if it may be drawn: only as long as it lasts, and not while an agent floods us."""
        ahead = self._due - self._clock()
        return self.lasts and (ahead <= _BURST or ahead > 2 * _BURST)  # a clock may be set back

    def erase(self) -> None:
        if self._shown:
            self._shown = ""
            self._channel.put(_ERASE)

    @contextmanager
    def lasting(self) -> Iterator[None]:
        """Only during this it is drawn; at the end it is gone.

        Ctrl+Z erases it before it stops us: the shell will write in its place.
        """
        self.lasts = True
        before = signal.getsignal(signal.SIGTSTP)
        if before is signal.SIG_DFL:
            signal.signal(signal.SIGTSTP, self._suspend)
        try:
            yield
        finally:
            if before is signal.SIG_DFL:
                signal.signal(signal.SIGTSTP, before)
            self.lasts = False
            self.erase()

    def _suspend(self, _number: int, _frame: FrameType | None) -> None:
        self._shown = ""
        self._channel.put_at_once(_ERASE)
        # Again, and to the system itself: it knows whether anybody could let us go on.
        signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTSTP)
        signal.signal(signal.SIGTSTP, self._suspend)


def _highest(moments: Sequence[Doing], most: int) -> Sequence[Doing]:
    """Those that there is room for; the last line says how many there is none for."""
    if len(moments) <= max(1, most):
        return moments
    if most < 2:
        return moments[:1]
    hidden = len(moments) - most + 1
    return (*moments[: most - 1], Doing(f"and {hidden} more", still=True))


def fitted(moment: Doing, frame: int, style: Style, width: int) -> str:
    """The moment in at most so many columns; its time stays whole as long as it can."""
    between, ellipsis = style.mark(Mark.BETWEEN), style.mark(Mark.ELLIPSIS)
    spinner = style.mark(Mark.SPINNER)
    mark = style.mark(Mark.STILL) if moment.still else spinner[frame % len(spinner)]
    head = f" {moment.which}{between}" if moment.which else " "
    room = width - columns(mark + head + moment.how_long)
    least = columns(moment.what) if moment.vital else min(columns(moment.what), _LEAST)
    more = ""
    for item in moment.more:
        longer = more + between + item
        if room - columns(longer) < least:
            break
        more = longer
    what = shorten(moment.what, len(moment.what), room - columns(more), ellipsis)
    if room < len(ellipsis):
        return shorten(mark + head + moment.what, width, width, ellipsis)
    tail = style.paint(more, Tone.FAINT)
    return style.paint(mark, Tone.CALL) + head + what + moment.how_long + tail


def live_width(
    out: TextIO | None, err: TextIO | None, style: Style, environ: Mapping[str, str]
) -> Callable[[], int] | None:
    """Asks how wide a live line on `err` may be; None where it has no place at all.

    It has none beside a pipe: whoever reads that, such as `tee`, may write to the same terminal.
    """
    plain = not style.color or environ.get("TERM", "dumb") == "dumb" or environ.get("CI")
    mode = stat.S_IFREG
    with suppress(OSError, ValueError):
        mode = os.fstat(out.fileno()).st_mode if out is not None else mode
    piped = stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)
    if plain or piped or err is None or not err.isatty():
        return None
    return lambda: _width_of(err)


def _width_of(stream: TextIO) -> int:
    """The columns of a terminal; 0 where it is none, or another program has it (`bg`)."""
    try:
        descriptor = stream.fileno()
        size = os.get_terminal_size(descriptor).columns or _WIDTH
    except (OSError, ValueError):
        return 0
    with suppress(OSError):  # not the terminal that controls us: nobody else can have it
        return size if os.tcgetpgrp(descriptor) == os.getpgrp() else 0
    return size
