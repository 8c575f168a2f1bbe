"""Turns the words of an agent, or of anybody, into one line that is safe to show and to keep."""

import re

from ralph.text.redact import redact

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
    text = without_escapes(redact(text[: 4 * most]))
    words = "".join(c if c.isprintable() else " " for c in text).split()
    line = redact(" ".join(words))
    return line if len(line) <= most else f"{line[: most - 1]}…"
