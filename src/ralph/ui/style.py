"""The look of the display: emoji, colour, timestamps, and how much of a tool's output is shown."""

from collections.abc import Mapping
from enum import Enum

from ralph.kernel.value import value

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
    """Stands in front of a kind of line, as emoji, and in ASCII for logs and old terminals (H
    §Formatter)."""

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
        """The mark in this style's alphabet."""
        return mark.value[0 if self.emoji else 1]


@value
class Wishes:
    """The look that someone asked for, in settings or on the command line; None is nothing said."""

    emoji: bool | None = None
    color: bool | None = None
    timestamps: bool | None = None


def choose_style(
    settings: Wishes,
    flags: Wishes,
    *,
    terminal: bool,
    environ: Mapping[str, str],
    encoding: str = "utf-8",
    width: int | None = None,
    max_output_lines: int = 3,
    max_output_chars: int = 120,
) -> Style:
    """The style of a stream: a flag decides, else a setting, true as well as false; else it is
    plain without a terminal, with `NO_COLOR` or `TERM=dumb`.

    So does no-color.org want it: "User-level configuration files and per-instance command-line
    arguments should override the NO_COLOR environment variable".
    """
    fancy = terminal and not environ.get("NO_COLOR") and environ.get("TERM") != "dumb"
    try:
        emoji = bool(_SHOWN_WITH_EMOJI.encode(encoding)) and fancy
    except (UnicodeEncodeError, LookupError):
        emoji = False
    return Style(
        emoji=_wanted(flags.emoji, settings.emoji, emoji),
        color=_wanted(flags.color, settings.color, fancy),
        timestamps=_wanted(flags.timestamps, settings.timestamps, False),
        max_output_lines=max_output_lines,
        max_output_chars=max_output_chars,
        width=width if terminal else None,
    )


def _wanted(flag: bool | None, setting: bool | None, possible: bool) -> bool:
    return next((wish for wish in (flag, setting) if wish is not None), possible)
