"""The outline of a markdown text: boxes with the lines that belong to them, and the sections of a
plan. All of it takes linear time.

Blocks are as CommonMark has them: what stands in a code fence, in indented code, in a comment or in
the front matter is nobody's box. Where people are less strict than that, so are we: two columns are
enough to stand below an item.
"""

import re
from collections import defaultdict, deque
from dataclasses import field

from ralph.kernel.value import value

_END = re.compile(r"\r\n|\n|\r")
_FENCE = re.compile(r"(`{3,}|~{3,})([^\r\n]*)")
_MARKER = re.compile(r"([-*+]|[0-9]{1,9}[.)])([ \t]+|$)")
_BOX = re.compile(r"\[([ xX/~-])\][ \t]+(?=\S)")
_HEADING = re.compile(r"(#{1,6})(?:[ \t]+|$)")
_RUNS = re.compile(r"`+|<!--")
_TAB = 4
_TASK = re.compile(r"(?:Task|Iteration)[ \t]+[0-9]+(?:\.[0-9]+)*[a-z]?(?:[ \t]*[:.)–—-]|$)")
_COMMAND = re.compile(r"`([^`]+)`")
_CODE = 4  # columns


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
            closing = runs[len(run[0])]
            while closing and closing[0] <= run.start():
                closing.popleft()
            skip_to = closing[0] + len(run[0]) if closing else run.end()
    return False


def without_comments(text: str) -> str:
    """A title without what is hidden in it; a comment that does not end stays."""
    parts: list[str] = []
    at = 0
    while (begin := text.find("<!--", at)) >= 0 and (end := text.find("-->", begin)) >= 0:
        parts.append(text[at:begin])
        at = end + 3
    parts.append(text[at:])
    return "".join(parts).strip()


@value
class Box:
    """A line with a box."""

    line: int
    at: int  # where the character between the brackets is
    start: int  # where its text begins
    text: str
    mark: str
    content: int  # the column at which what belongs to it begins
    parent: int | None  # the line of the box it stands below
    path: tuple[str, ...]  # headings, without the title of the page
    below: tuple[tuple[int, str], ...]  # line and text of the items above it, boxes or not
    lines: list[int] = field(default_factory=list)  # what belongs to it, and to no box below it
    plan: int | None = None  # the task of a plan of which it is a step


@value
class PlanTask:
    """A section `### Task 1: title`, which is one task."""

    line: int
    level: int
    start: int  # where its text begins
    text: str
    path: tuple[str, ...]
    lines: list[int] = field(default_factory=list)
    boxes: list[int] = field(default_factory=list)


@value
class Outline:
    """All of it, in the order of the text."""

    lines: list[TextLine]
    boxes: list[Box]
    plans: list[PlanTask]
    commands: list[str]  # what a plan says must pass
    code: set[int]  # lines in fences, comments and indented code


@value
class _Frame:
    """A list item that is open."""

    line: int
    indent: int
    content: int
    box: int | None  # the box, its own or the one it stands below
    text: str


def outline(text: str) -> Outline:
    return _Scanner(text).scan()


def open_fence(text: str, column: int) -> str:
    """The fence that a line of more text at this column would be in; "" if none."""
    scanner = _Scanner(text)
    scanner.scan()
    return scanner.until if scanner.base <= column else ""


def unclosed_comment(text: str) -> int | None:
    """The first line with the beginning of a comment that does not end where it should; it may
    end in what follows."""
    scanner = _Scanner(text)
    scanner.last_close = len(text) + 1
    scanner.scan()
    return scanner.opened if scanner.until == "-->" else scanner.unclosed


class _Scanner:
    """Goes through the lines once."""

    def __init__(self, text: str) -> None:
        self.lines = lines_of(text)
        self.last_close = text.rfind("-->")
        self.found = Outline(self.lines, [], [], [], set())
        self.stack: list[_Frame] = []
        self.headings: list[tuple[int, str]] = []
        self.titled = False  # whether a heading was seen
        self.plan: int | None = None
        self.until = ""  # the fence, or "-->", that ends what is no markdown
        self.opened = 0  # the line where that began
        self.unclosed: int | None = None  # the first where a comment began that was cut off
        self.base = 0  # columns; what stands before them is outside of it in any case
        self.paragraph = False  # whether the next line may go on with this one
        self.single = ""  # a paragraph of one line, outside of lists

    def scan(self) -> Outline:
        front = 0  # lines of the front matter
        if self.lines and self.lines[0].text.rstrip() == "---":
            ends = (n for n, line in enumerate(self.lines) if n and line.text.rstrip() == "---")
            front = next(ends, -1) + 1
        for number in range(front, len(self.lines)):
            line = self.lines[number]
            if line.skip == len(line.text):
                self._plain()
                self._own(number)
            elif not self._inside(number, line):
                self._block(number, line)
        return self.found

    def _inside(self, number: int, line: TextLine) -> bool:
        """True if the line is in a fence, a comment or indented code."""
        if self.until and line.indent < self.base:
            if self.until == "-->" and self.unclosed is None:
                self.unclosed = self.opened
            self.until = ""  # the item is over, and all that was open in it
        if self.until:
            comment = self.until == "-->"
            if (self.until in line.text) if comment else closes(line.rest, self.until):
                self.until = ""
        elif self.paragraph or line.indent < self._content(line.indent) + _CODE:
            return False
        else:
            self._leave(line.indent)
        self._own(number)
        self.found.code.add(number)
        return True

    def _content(self, indent: int) -> int:
        """The column at which the text of the innermost item begins that holds this column."""
        return next((f.content for f in reversed(self.stack) if f.content <= indent), 0)

    def _block(self, number: int, line: TextLine) -> None:
        rest = line.rest
        if self.single and (not rest.strip("=") or (len(rest) > 1 and not rest.strip("-"))):
            self._heading(number, 1 if rest[0] == "=" else 2, self.single)  # an underline
        elif bullet := bullet_of(line):
            self._bullet(number, line, bullet)
        elif fence := fence_of(rest):
            self._leave(line.indent)
            self._own(number)
            self._open(number, fence)
        elif rest.startswith("<!--"):
            self._leave(line.indent)
            self._own(number)
            self._plain()
            if "-->" not in rest:
                self._open(number, "-->")
        else:
            self._text(number, line, rest)

    def _text(self, number: int, line: TextLine, rest: str) -> None:
        """A heading, a line across the page, or text."""
        inside = line.indent - self._content(line.indent)
        heading = heading_of(rest) if inside < _CODE else None
        if not self.paragraph or heading or is_break(rest):
            self._leave(line.indent)
        if heading and not self.stack:
            self._heading(number, *heading)
            return
        self._own(number)
        if heading or is_break(rest):
            self._plain()
            return
        self.single = rest if not self.paragraph and not self.stack else ""
        self.paragraph = True
        self._comment(number, line)

    def _heading(self, number: int, level: int, text: str) -> None:
        self._plain()
        self.stack.clear()
        while self.headings and self.headings[-1][0] >= level:
            self.headings.pop()
        if self.plan is not None and level <= self.found.plans[self.plan].level:
            self.plan = None
        is_title = level == 1 and not self.titled
        self.titled = True
        if self.plan is not None:
            self._own(number)
        elif level > 1 and _TASK.match(text) and text in self.lines[number].text:
            self.plan = len(self.found.plans)
            start = self.lines[number].start + self.lines[number].text.index(text)
            self.found.plans.append(PlanTask(number, level, start, text, self._path()))
        elif not is_title:
            self.headings.append((level, text))

    def _bullet(self, number: int, line: TextLine, bullet: Bullet) -> None:
        while self.stack and line.indent < self.stack[-1].indent + 2:
            self.stack.pop()
        owner = above = self.stack[-1].box if self.stack else None
        content = line.indent + bullet.width
        if bullet.box is not None:
            owner = len(self.found.boxes)
            box = Box(
                number,
                line.start + bullet.box,
                line.start + bullet.offset,
                bullet.text,
                line.text[bullet.box],
                content,
                None if above is None else self.found.boxes[above].line,
                self._path(),
                tuple((frame.line, frame.text) for frame in self.stack),
                plan=self.plan,
            )
            self.found.boxes.append(box)
            if self.plan is not None:
                self.found.plans[self.plan].boxes.append(owner)
                self.found.plans[self.plan].lines.append(number)
        else:
            self._own(number)
            at_end = self.headings[-1][1] if self.headings else ""
            command = _COMMAND.match(bullet.text)
            if command and at_end.casefold().rstrip(":") == "validation commands":
                self.found.commands.append(command[1].strip())
        self.stack.append(_Frame(number, line.indent, content, owner, bullet.text))
        self.paragraph, self.single = True, ""
        fence = fence_of(bullet.text) if bullet.box is None else ""
        if fence:
            self._open(number, fence)
        else:
            self._comment(number, line)

    def _path(self) -> tuple[str, ...]:
        return tuple(text for _, text in self.headings)

    def _own(self, number: int) -> None:
        """Give the line to the innermost box, and to the task of a plan."""
        if self.plan is not None:
            self.found.plans[self.plan].lines.append(number)
        elif self.stack and (box := self.stack[-1].box) is not None:
            self.found.boxes[box].lines.append(number)

    def _leave(self, indent: int) -> None:
        """Close the items that a line at this column cannot belong to."""
        while self.stack and indent <= self.stack[-1].indent:
            self.stack.pop()

    def _plain(self) -> None:
        self.paragraph, self.single = False, ""

    def _open(self, number: int, until: str) -> None:
        self._plain()
        self.until, self.opened = until, number
        self.base = self.stack[-1].indent + 1 if self.stack else 0

    def _comment(self, number: int, line: TextLine) -> None:
        if line.next <= self.last_close and leaves_comment_open(line.text):
            self._open(number, "-->")


def checks_of(found: Outline) -> dict[str, str] | None:
    """The proof that a plan's validation commands make: all of them pass."""
    if not found.commands:
        return None
    several = len(found.commands) > 1
    parts = [f"({one}\n)" if several and set(one) & set(";|&#") else one for one in found.commands]
    return {"type": "test_passing", "command": " && ".join(parts)}
