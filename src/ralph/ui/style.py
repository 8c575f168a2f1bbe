"""The look of a stream, for every command the same: emoji, colour, width; and who reads it."""

import os
import select
import sys
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from enum import Enum
from typing import IO, TYPE_CHECKING, Any, TextIO

from ralph.errors import RalphError
from ralph.kernel.value import value
from ralph.text.plain import columns

if TYPE_CHECKING:
    from ralph.settings.schema import DisplaySettings

_SHOWN_WITH_EMOJI = "⏺✅⎿←…"


class Tone(Enum):
    """The kind of a line; each value is the ANSI code that colours it.

    All can be read on black and on white; yellow cannot.
    """

    PLAIN = ""
    HEAD = "1"
    GOOD = "32"
    BAD = "31"
    CALL = "36"
    NOTICE = "35"
    FAINT = "2"


class Mark(Enum):
    """Stands before a kind of line: emoji, or ASCII for old terminals (H §Formatter)."""

    CALL = ("⏺", "[*]")
    GOOD = ("✅", "[OK]")
    BAD = ("❌", "[ERR]")
    OUTPUT = ("⎿", "|")
    BELOW = (" ", "|")  # in front of the output's other lines
    TODO = ("📋", "[TODO]")
    DONE = ("✅", "[x]")
    ACTIVE = ("🔄", "[>]")
    PENDING = ("⏸️", "[ ]")
    PROGRESS = ("📊", "[=]")
    THINKING = ("💭", "[~]")
    RETRY = ("🔁", "[RETRY]")
    LIMITED = ("⏳", "[WAIT]")
    QUESTION = ("❓", "[?]")
    STATUS = ("·", "[-]")
    ARROW = ("←", "<-")
    ELLIPSIS = ("…", "...")
    BETWEEN = (" · ", " - ")
    STILL = ("•", "*")
    SPINNER = ("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏", "|/-\\")


@value
class Style:
    """The look of one stream. The default is plain, which is right for files and pipes."""

    emoji: bool = False
    color: bool = False
    timestamps: bool = False
    max_output_lines: int = 3
    max_output_chars: int = 120
    width: int | None = None  # columns of the terminal; None: lines are not cut to it

    def paint(self, text: str, tone: Tone) -> str:
        """The text in its colour, if this style has colours."""
        if not self.color or not tone.value or not text:
            return text
        return f"\x1b[{tone.value}m{text}\x1b[0m"

    def mark(self, mark: Mark) -> str:
        return mark.value[0 if self.emoji else 1]


def aligned(
    rows: Sequence[Sequence[str]], numbers: Collection[int] = (), gap: str = "  "
) -> list[str]:
    """A table as lines of one width; the columns `numbers` are set to the right."""
    widths = [max(map(columns, column)) for column in zip(*rows, strict=True)]

    def cell(index: int, text: str) -> str:
        blanks = " " * (widths[index] - columns(text))
        return blanks + text if index in numbers else text + blanks

    return [gap.join(cell(i, text) for i, text in enumerate(row)) for row in rows]


def is_terminal(stream: TextIO | None) -> bool:
    """True if a person sees it; None is a stream that was closed from the beginning."""
    return stream is not None and stream.isatty()


def leaves_within(out: IO[Any], seconds: float) -> bool:
    """Wait so long; True if nobody reads the stream any more (`| head`), though nothing is said."""
    closed = select.poll()
    with suppress(OSError, ValueError):  # not a file of the system, so nobody can close it
        closed.register(out, 0)  # no event but that
    return bool(closed.poll(seconds * 1000))


def size_of(stream: TextIO | None) -> tuple[int | None, int | None]:
    """Columns and rows; None is what nobody knows, as is the 0 of terminals without a window."""
    try:
        columns, rows = os.get_terminal_size(stream.fileno()) if stream is not None else (0, 0)
    except (OSError, ValueError):
        return None, None
    return columns or None, rows or None


def encoding_of(stream: TextIO | None) -> str:
    """The encoding of a stream; "" where it does not tell."""
    return getattr(stream, "encoding", None) or ""


def style_of(
    stream: TextIO | None,
    environ: Mapping[str, str],
    display: "DisplaySettings | None" = None,
    flags: Mapping[str, Any] = {},
) -> Style:
    """The look of what is written there: a flag decides, else a setting, true as well as false;
    else it is plain without a terminal, with `NO_COLOR` or `TERM=dumb`.

    So does no-color.org want it: "User-level configuration files and per-instance command-line
    arguments should override the NO_COLOR environment variable".
    """
    fancy = is_terminal(stream) and not environ.get("NO_COLOR") and environ.get("TERM") != "dumb"
    try:
        emoji = bool(_SHOWN_WITH_EMOJI.encode(encoding_of(stream) or "utf-8")) and fancy
    except (UnicodeEncodeError, LookupError):
        emoji = False
    look = {}
    for name, possible in (("emoji", emoji), ("color", fancy), ("timestamps", False)):
        wishes = (flags.get(name), getattr(display, name, None), possible)
        look[name] = next(wish for wish in wishes if wish is not None)
    return Style(**look, width=size_of(stream)[0])


def style_here(flags: Mapping[str, Any] = {}) -> Style:
    """The look of standard output, as the settings of this directory wish. Settings that cannot be
    read wish nothing: who only looks at runs is not refused for them."""
    from ralph.settings.load import load

    display = None
    with suppress(OSError, RalphError):
        display = load(os.getcwd()).settings.display
    return style_of(sys.stdout, os.environ, display, flags)
