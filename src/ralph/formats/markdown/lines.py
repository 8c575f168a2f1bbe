"""The lines of a markdown text, as far as a checklist needs them: how deep they stand, what they
begin with, and where a code fence or a comment begins. All of it takes linear time."""

import re
from collections import defaultdict, deque

from ralph.kernel.value import value

_END = re.compile(r"\r\n|\n|\r")
_FENCE = re.compile(r"(`{3,}|~{3,})([^\r\n]*)")
_MARKER = re.compile(r"([-*+]|[0-9]{1,9}[.)])([ \t]+|$)")
_BOX = re.compile(r"\[([ xX/~-])\][ \t]+(?=\S)")
_HEADING = re.compile(r"(#{1,6})(?:[ \t]+|$)")
_RUNS = re.compile(r"`+|<!--")
_TAB = 4


@value
class TextLine:
    """One line, without its end."""

    start: int  # where it begins in the whole text
    text: str
    next: int  # where the following line begins
    indent: int  # columns; a tab goes to the next fourth one
    skip: int  # characters of the indentation

    @property
    def rest(self) -> str:
        """The line without its indentation and the blanks behind it."""
        return self.text[self.skip :].rstrip(" \t")


@value
class Bullet:
    """The beginning of an item of a list."""

    width: int  # columns from the marker to what follows it
    text: str  # what follows the marker, or the box
    offset: int  # where that begins, from the beginning of the line
    box: int | None = None  # where the character between the brackets is, from there too


def lines_of(text: str) -> list[TextLine]:
    """All lines; a byte order mark in front belongs to none."""
    start = 1 if text.startswith("\ufeff") else 0
    ends = [(end.start(), end.end()) for end in _END.finditer(text, start)]
    found: list[TextLine] = []
    for end, following in (*ends, (len(text), len(text))):
        if start < following:
            line = text[start:end]
            blanks = line[: len(line) - len(line.lstrip(" \t"))]
            indent = len(blanks.expandtabs(_TAB))
            found.append(TextLine(start, line, following, indent, len(blanks)))
        start = following
    return found


def dedented(line: TextLine, columns: int) -> str:
    """The line without that many columns of its indentation; blanks behind it stay."""
    if line.skip == len(line.text):
        return ""
    if not line.text[:columns].strip(" "):
        return line.text[columns:]  # a tab behind them stays one
    return " " * max(0, line.indent - columns) + line.text[line.skip :]


def bullet_of(line: TextLine) -> Bullet | None:
    """The marker of a list that a line begins with, and its box if it has one with a text."""
    marker = _MARKER.match(line.text, line.skip)
    if marker is None or is_break(line.rest):
        return None
    blanks = len(marker[2].expandtabs(_TAB))
    width = len(marker[1]) + (blanks if 0 < blanks <= _TAB else 1)
    box = _BOX.match(line.text, marker.end())
    if box is None:
        return Bullet(width, line.text[marker.end() :].strip(" \t"), marker.end())
    return Bullet(width, line.text[box.end() :].rstrip(" \t"), box.end(), box.start(1))


def is_break(rest: str) -> bool:
    """True for a line across the page: three or more of the same among - * _."""
    marks = rest.replace(" ", "").replace("\t", "")
    return len(marks) > 2 and marks[0] in "-*_" and not marks.strip(marks[0])


def fence_of(rest: str) -> str:
    """The fence that a line opens, "" if none."""
    found = _FENCE.match(rest)
    if found is None or (found[1][0] == "`" and "`" in found[2]):
        return ""
    return found[1]


def closes(rest: str, fence: str) -> bool:
    """True if the line ends what that fence began."""
    return len(rest) >= len(fence) and not rest.strip(fence[0])


def heading_of(rest: str) -> tuple[int, str] | None:
    found = _HEADING.match(rest)
    if found is None:
        return None
    text = rest[found.end() :].strip(" \t")
    bare = text.rstrip("#")
    closed = not bare or bare[-1] in " \t"  # "## Title ##"
    return len(found[1]), bare.rstrip(" \t") if closed else text


def leaves_comment_open(rest: str) -> bool:
    """True if an HTML comment begins here, outside `code`, and does not end in this line."""
    if "<!--" not in rest:
        return False
    skip_to = 0
    runs: dict[int, deque[int]] = defaultdict(deque)
    found = list(_RUNS.finditer(rest))
    for run in found:
        if run[0] != "<!--":
            runs[len(run[0])].append(run.start())
    for run in found:
        if run.start() < skip_to:
            continue
        if run[0] == "<!--":
            end = rest.find("-->", run.end())
            if end < 0:
                return True
            skip_to = end + 3
        else:
            skip_to = _after_code(runs[len(run[0])], run.start(), len(run[0])) or run.end()
    return False


def _after_code(starts: "deque[int]", at: int, length: int) -> int:
    """The end of the code that begins here; 0 if nothing closes it."""
    while starts and starts[0] <= at:
        starts.popleft()
    return starts[0] + length if starts else 0


def without_comments(text: str) -> str:
    """A title without what is hidden in it; a comment that does not end stays."""
    parts: list[str] = []
    at = 0
    while (begin := text.find("<!--", at)) >= 0 and (end := text.find("-->", begin)) >= 0:
        parts.append(text[at:begin])
        at = end + 3
    parts.append(text[at:])
    return "".join(parts).strip()
