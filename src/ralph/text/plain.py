"""Makes the words of an agent, or of anybody else, safe and short enough to show and to keep.

Whatever the agent prints, it must not move the cursor, set the title, or turn text around.
"""

import re
import unicodedata
from itertools import accumulate

from ralph.text.redact import redact

_TAB = 4
_AS_EMOJI = "\ufe0f"
_LINE_END = re.compile(r"\r\n?|[\u2028\u2029]")
# C0 and C1 without tab and newline, and the characters that embed, override or isolate direction.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
_LONGEST_LINE = 300
_ESCAPE_SEQUENCE = re.compile(
    r"""
      (?:\x1b\[|\x9b) [0-?]* [ -/]* [@-~]                       # CSI: colours, cursor movement
    # OSC, DCS ...: none begins within another, or to look for the end of each would take for ever
    | (?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f]) [^\x07\x1b\x90\x98\x9c-\x9f]* (?:\x07|\x1b\\|\x9c)
    | \x1b [ -/]* [0-~]                                         # all the others
    """,
    re.VERBOSE,
)


def without_escapes(text: str) -> str:
    """The text without terminal escape sequences."""
    return _ESCAPE_SEQUENCE.sub("", text)


def plain(text: str, most: int = _LONGEST_LINE) -> str:
    """A text on one line that is safe to show: no control characters, no secrets, not too long."""
    # Redacted first, since a colour may stand right before a key, and again without the colours.
    text = redact(text[: 4 * most])
    letters = text if text.isprintable() else without_escapes(text)
    if not letters.isprintable():
        letters = "".join(c if c.isprintable() else " " for c in letters)
    line = " ".join(letters.split())
    line = line if line == text else redact(line)
    return line if len(line) <= most else f"{line[: most - 1]}…"


def clean(text: str) -> str:
    """The text without escape sequences and control characters; every line ends with a newline."""
    if text.replace("\n", "").replace("\t", "").isprintable():
        return text
    return _CONTROL.sub("", _LINE_END.sub("\n", without_escapes(text)))


def safe(text: str) -> str:
    """The text, safe to show: clean, and without secrets. It is redacted after cleaning: an escape
    code inside a key must not save it."""
    return redact(clean(text))


def one_line(text: str) -> str:
    """Cleaned text on one line: tabs become blanks, so that its width is known."""
    return text.replace("\n", " ").expandtabs(_TAB).rstrip()


def escaped(path: str) -> str:
    """A path that people can read on one line, whatever bytes it holds."""
    text = path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def first_line(text: str) -> str:
    """The first line that says something."""
    return text.strip().partition("\n")[0]


def shorten(text: str, chars: int, width: int | None, ellipsis: str) -> str:
    """At most so many characters, and columns where a width is given, the ellipsis included.

    A path loses its middle: its end is the file. Everything else loses its end.
    """
    if len(text) > chars:
        room = max(0, chars - len(ellipsis))
        end = _last(text, room)
        text = text[: room - len(end)] + ellipsis + end
    if width is None or columns(text) <= width:
        return text
    room = max(0, width - len(ellipsis))
    end = _fitting(_last(text, room)[::-1], 2 * room // 3)[::-1]
    return _fitting(text, room - columns(end)) + ellipsis + end


def _last(text: str, room: int) -> str:
    """The last characters of a path, for two thirds of the room; nothing of any other text."""
    is_path = "/" in text and " " not in text
    return text[len(text) - 2 * room // 3 :] if is_path else ""


def columns(text: str) -> int:
    """The number of columns that the text takes in a terminal."""
    return len(text) if text.isascii() else sum(map(_columns_of, text))


def _fitting(text: str, width: int) -> str:
    return text[: sum(end <= width for end in accumulate(map(_columns_of, text)))]


def _columns_of(character: str) -> int:
    if character == _AS_EMOJI:
        return 1  # it makes most characters before it wide; too many are better than too few
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
