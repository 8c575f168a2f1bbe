"""The agent's events as lines for people, each result beside its tool (H §Formatter)."""

import re
from collections.abc import Callable

from ralph.kernel.events import (
    AgentEvent,
    Progress,
    Question,
    RateLimited,
    Result,
    Retry,
    Speaker,
    Text,
    Thinking,
    Todo,
    TodoItem,
    TodoStatus,
    ToolEnd,
    ToolStart,
    Usage,
)
from ralph.kernel.value import value
from ralph.text.clean import Redact, clean, columns, first_line, one_line, shorten
from ralph.text.words import counted, duration
from ralph.ui.style import Style, Tone
from ralph.ui.tool_marks import EMOJI, TEXT
from ralph.ui.words import clock_time, coming_time, money, number

_ROOM_FOR_ESCAPES = 1024  # what a line of output may hold beside the characters that are shown
_NARROWEST = 20
_FAILURE = 1000  # characters of a failure's message
# As our own lines begin; there may be a time or a task before our name.
_OUR_NAME = re.compile(r"\s*(?:\[[\d:]{1,12}\]\s*|\S{1,80} \|\s*)*\[\s*ralph\s*\]", re.IGNORECASE)
_LOOKED_AT = 200  # characters
_SPEAKERS = {
    Speaker.SUBAGENT: "[sub-agent] ",
    Speaker.HOOK: "[hook] ",
    Speaker.HOST: "[host] ",
}


@value
class _Row:
    """A line in the making. Only the body is cut to the allowed length, never what frames it."""

    head: str
    body: str = ""
    tail: str = ""
    tone: Tone = Tone.PLAIN


class Formatter:
    """Turns events into lines. It counts tools, errors and time for the line that closes a turn.

    `width` is asked again and again in place of the style's, to follow a window that is resized.
    """

    def __init__(
        self,
        style: Style,
        clock: Callable[[], float],
        redact: Redact = lambda text: text,
        *,
        width: Callable[[], int | None] | None = None,
    ) -> None:
        self._style = style
        self._clock = clock
        self._redact = redact
        self._width = width or (lambda: style.width)
        self._marks = EMOJI if style.emoji else TEXT
        self.start()

    def start(self) -> None:
        """A new turn begins: count from here."""
        self._began = self._clock()
        self._open: dict[str, str] = {}  # the names of tools that have not ended, by id
        self._tools = self._errors = 0
        self._paragraph = ""

    def lines(self, event: AgentEvent) -> list[str]:
        """The lines that show this event, without line ends; none if it is not worth one."""
        rows = self._rows(event)
        if not rows:
            return []
        prefix = self._stamp() + _speaker_mark(event)
        return [*self._gap(event), *(self._finished(row, prefix) for row in rows)]

    def _rows(self, event: AgentEvent) -> list[_Row]:
        match event:
            case Text():
                return self._text(event)
            case ToolStart():
                return self._tool_start(event)
            case ToolEnd():
                return self._tool_end(event)
            case Todo():
                return self._todo(event)
            case Result():
                return self._result(event)
            case _:
                return self._aside(event)

    def _aside(self, event: AgentEvent) -> list[_Row]:
        """Events of one short line each; what is not understood has none."""
        marks = self._marks
        match event:
            case Thinking(text=text):
                return self._short(marks.thinking, first_line(text), Tone.FAINT)
            case Progress(text=text):
                return self._short(marks.status, text, Tone.FAINT)
            case Retry():
                return self._short(marks.retry, _retry_words(event), Tone.NOTICE)
            case RateLimited():
                words = _limited_words(event, self._clock())
                return self._short(marks.limited, words, Tone.NOTICE)
            case Question(text=text):
                return self._short(marks.question, f"Question: {text}", Tone.NOTICE)
            case _:
                return []

    def _short(self, mark: str, text: str, tone: Tone) -> list[_Row]:
        tidy = " ".join(self._tidy(text).split())
        return [_Row(f"{mark} ", tidy, tone=tone)] if tidy else []

    def _text(self, event: Text) -> list[_Row]:
        """Words as they are: the terminal wraps them, so that they can be copied whole."""
        if event.speaker is Speaker.PROMPT or not event.text:
            return []
        tone = Tone.PLAIN if event.speaker is Speaker.ASSISTANT else Tone.FAINT
        lines = self._tidy(event.text).removesuffix("\n").split("\n")
        return [_Row(not_ours(line), tone=tone) for line in lines]

    def _tool_start(self, event: ToolStart) -> list[_Row]:
        name = one_line(self._tidy(event.name))
        self._open[event.id] = name
        self._tools += 1
        head = f"{self._marks.call} {name}"
        summary = " ".join(self._tidy(event.summary).split())
        if not summary:
            return [_Row(head, tone=Tone.CALL)]
        return [_Row(f"{head}(", summary, ")", Tone.CALL)]

    def _tool_end(self, event: ToolEnd) -> list[_Row]:
        name = self._open.pop(event.id, "")
        self._errors += event.is_error
        what = f"{self._marks.bad} Error" if event.is_error else f"{self._marks.good} Result"
        source = f" {self._marks.arrow} {name}" if name else ""
        tone = Tone.BAD if event.is_error else Tone.FAINT
        head = _Row(f"{what}{source} ({_size(event.output)})", tone=tone)
        return [head, *self._preview(event.output)]

    def _preview(self, output: str) -> list[_Row]:
        """The first lines of a tool's output, and how many more there are."""
        most = self._style.max_output_lines
        whole = output.rstrip()
        if not most or not whole:
            return []
        # Only what may be seen is made fit to be seen: outputs are long and many.
        room = 4 * self._style.max_output_chars + _ROOM_FOR_ESCAPES
        seen = "\n".join(line[:room] for line in whole.split("\n", most)[:most])
        lines = self._tidy(seen).rstrip().split("\n")
        more = whole.count("\n") + 1 - most
        corner, below = f"  {self._marks.output}  ", f"  {self._marks.below}  "
        heads = (corner, *[below] * most)
        rows = [
            _Row(head, one_line(line), tone=Tone.FAINT)
            for head, line in zip(heads, lines[:most], strict=False)
        ]
        if more > 0:
            words = f"{self._marks.ellipsis} {counted(more, 'more line')}"
            rows.append(_Row(below + words, tone=Tone.FAINT))
        return rows

    def _todo(self, event: Todo) -> list[_Row]:
        done = sum(item.status is TodoStatus.DONE for item in event.items)
        total = len(event.items)
        percent = f" ({100 * done // total}%)" if total else ""
        return [
            _Row(f"{self._marks.todo} Todo List"),
            *(self._todo_item(item) for item in event.items),
            _Row(f"  {self._marks.progress} Progress: {done}/{total}{percent}"),
        ]

    def _todo_item(self, item: TodoItem) -> _Row:
        marks, text = self._marks, one_line(self._tidy(item.text))
        match item.status:
            case TodoStatus.DONE:
                return _Row(f"  {marks.done} ", text, tone=Tone.FAINT)
            case TodoStatus.ACTIVE:
                return _Row(f"  {marks.active} ", text, f" {marks.arrow} ACTIVE", Tone.CALL)
            case TodoStatus.PENDING:
                return _Row(f"  {marks.pending} ", text)

    def _result(self, event: Result) -> list[_Row]:
        statistics = f" ({self._statistics(event)})"
        if event.failure is None:
            return [_Row(f"{self._marks.good} Complete{statistics}", tone=Tone.GOOD)]
        # Not cut to the width: this is what people look for.
        why = shorten(one_line(self._tidy(event.failure.message)), _FAILURE, None, "...")
        return [_Row(f"{self._marks.bad} Failed: {why}{statistics}", tone=Tone.BAD)]

    def _statistics(self, event: Result) -> str:
        known = [] if event.cost_usd is None else [f"cost: {money(event.cost_usd)}"]
        if event.usage != Usage():
            known.append(f"tokens: {_tokens(event.usage)}")
        elapsed = duration(self._clock() - self._began)
        return ", ".join(
            [*known, f"tools: {self._tools}", f"errors: {self._errors}", f"time: {elapsed}"]
        )

    def _tidy(self, text: str) -> str:
        """Safe to show. Redacted after cleaning: an escape code inside a key must not save it."""
        return self._redact(clean(text))

    def _gap(self, event: AgentEvent) -> list[str]:
        """An empty line between paragraphs: tools and asides, text, todo list, result."""
        before, self._paragraph = self._paragraph, _paragraph_of(event)
        return [""] if before and before != self._paragraph else []

    def _stamp(self) -> str:
        return f"[{clock_time(self._clock())}] " if self._style.timestamps else ""

    def _finished(self, row: _Row, prefix: str) -> str:
        style, width = self._style, self._width() if row.body else None
        room = None
        if width is not None:
            room = max(_NARROWEST, width - columns(prefix + row.head + row.tail))
        body = shorten(row.body, style.max_output_chars, room, self._marks.ellipsis)
        return prefix + style.paint(row.head + body + row.tail, row.tone)


def _paragraph_of(event: AgentEvent) -> str:
    match event:
        case Text():
            return "text"
        case Todo():
            return "todo"
        case Result():
            return "result"
        case _:
            return "work"


def _speaker_mark(event: AgentEvent) -> str:
    match event:
        case Text(speaker=speaker):
            return _SPEAKERS.get(speaker, "")
        case ToolStart(subagent=True) | ToolEnd(subagent=True):
            return _SPEAKERS[Speaker.SUBAGENT]
        case _:
            return ""


def not_ours(line: str) -> str:
    """What an agent says in our name is marked as the agent's."""
    if "[" not in line[:_LOOKED_AT]:
        return line
    seen = "".join(filter(str.isprintable, line[:_LOOKED_AT]))  # not what has no width
    return f"[agent] {line}" if _OUR_NAME.match(seen) else line


def _size(output: str) -> str:
    """How much a tool said: `45 lines, 1234 chars`."""
    if not output:
        return "no output"
    lines = output.count("\n") + (not output.endswith("\n"))
    return f"{counted(lines, 'line')}, {counted(len(output), 'char')}"


def _tokens(usage: Usage) -> str:
    """All that went in, the cached part of it named: `1.2M in (850K cached) / 45K out`."""
    all_in = usage.input + usage.cache_read + usage.cache_write
    cached = f" ({number(usage.cache_read)} cached)" if usage.cache_read else ""
    return f"{number(all_in)} in{cached} / {number(usage.output)} out"


def _retry_words(event: Retry) -> str:
    of = "" if event.of is None else f"/{event.of}"
    after = "" if event.seconds is None else f" in {duration(event.seconds)}"
    why = f": {event.why}" if event.why else ""
    return f"Retry {event.attempt}{of}{after}{why}"


def _limited_words(event: RateLimited, now: float) -> str:
    resets = "" if event.resets_at is None else f" (until {coming_time(event.resets_at, now)})"
    return f"Rate limited: {event.why}{resets}"
