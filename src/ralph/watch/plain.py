"""A run watched without Textual: its log, as it comes, and below it a few lines drawn in place."""

import os
import select
import shutil
import sys
import termios
import time
import tty
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from ralph.journal.life import Life
from ralph.journal.runs import Run
from ralph.kernel.value import replace
from ralph.text.plain import plain
from ralph.ui.live.region import LiveLine, live_width
from ralph.ui.safe_stream import Channel
from ralph.ui.style import Style, Tone
from ralph.watch import controls, draw, keys
from ralph.watch.controls import Reply
from ralph.watch.follow import RunFollower
from ralph.watch.lines import LONGEST
from ralph.watch.model import Left, View
from ralph.watch.pager import painted_rows

_PACE = 0.25  # seconds between two drawings
_READ = 0.2  # seconds
_BEFORE = 20  # lines of what was there already
_STAYS = 24  # drawings for which the answer to a key is shown


def watch(run: Run, style: Style) -> Left:
    """Watch a run until it ends or somebody leaves."""
    front = Front(run, style)
    try:
        with _keys(), front.live.lasting():
            while not front.step():
                pass
    except KeyboardInterrupt:
        return Left(front.view, interrupted=True)
    finally:
        front.close()
    told = front.view.report.life is Life.ENDED
    return Left(front.view, told=told)


class Front:
    """The log above, the lines below, and the keys."""

    def __init__(self, run: Run, style: Style) -> None:
        self._follower = RunFollower(run, style)
        self._style = style
        self._channel = Channel(sys.stdout)
        look = replace(style, color=True)  # where there is a terminal, there is a place to draw
        width = live_width(sys.stdout, sys.stdout, look, {**os.environ, "CI": ""})
        self._width = width or (lambda: 0)
        self.live = LiveLine(self._channel, style, self._width, time.monotonic)
        self._told: int | None = None  # lines of the log that were printed
        self._frame = self._stays = 0
        self._reply = Reply("")
        self._stopping = False
        self.view: View = self._follower.view()

    def step(self) -> bool:
        """Show what is new and hear a key; True if it is over."""
        follower = self._follower
        follower.read(_READ)
        self._frame += 1
        self._stays = max(0, self._stays - 1)
        self.view = follower.view()
        if not follower.caught_up:
            return False
        self._print_new()
        if follower.is_over:
            return True
        self._draw()
        return any(self._press(key) for key in self._pressed())

    def _print_new(self) -> None:
        lines = self._follower.lines
        begin = max(lines.first, lines.end - _BEFORE) if self._told is None else self._told
        self._told = lines.end
        if begin < lines.end:
            entries = lines.between(max(begin, lines.first), lines.end)
            # The terminal wraps them, so that they can be copied whole.
            rows = [row for each in entries for row in painted_rows(each, 2 * LONGEST, self._style)]
            self.live.erase()
            self._channel.write(rows)

    def _draw(self) -> None:
        if (width := self._width() - 1) < draw.NARROWEST:
            return
        most = shutil.get_terminal_size().lines // 2 - 1
        rows = draw.head(self.view, self._style, width, most, self._frame)[: most - 1]
        self.live.show([*rows, self._foot(width)])

    def _foot(self, width: int) -> str:
        if self._stopping:
            return keys.stop_question(self._style, width)
        if self._stays:
            tone = Tone.GOOD if self._reply.ok else Tone.BAD
            return self._style.paint(plain(self._reply.words, width), tone)
        return keys.footer(self.view, self._style, width, of_all=False)

    def _pressed(self) -> str:
        """The keys that were pressed; it waits for one for a moment."""
        with suppress(InterruptedError):
            if select.select([sys.stdin], [], [], _PACE)[0]:
                said = os.read(sys.stdin.fileno(), 64)
                if not said:
                    return "q"  # nobody is there any more
                text = said.decode("utf-8", "ignore")
                return "" if text.startswith("\x1b") else text
        return ""

    def _press(self, key: str) -> bool:
        """True if somebody leaves."""
        if self._stopping:
            self._stopping = False
            if key in keys.STOPS:
                self._say(controls.stop(self._follower.run, now=keys.STOPS[key]))
            return False
        match keys.DEEDS.get(key):
            case "leave":
                return True
            case "pause":
                self._say(controls.pause(self._follower.run))
            case "stop":
                self._stopping = True
            case _:
                pass
        return False

    def _say(self, reply: Reply) -> None:
        self._reply, self._stays = reply, _STAYS
        self._follower.look_soon()

    def close(self) -> None:
        self._follower.close()


@contextmanager
def _keys() -> Iterator[None]:
    """Hear each key at once, without an echo."""
    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    tty.setcbreak(descriptor)
    try:
        yield
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)
