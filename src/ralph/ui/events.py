"""The agent's events as lines for people, each result beside its tool (H §Formatter)."""

import re
from collections.abc import Callable

from ralph.kernel import events
from ralph.kernel.value import value
from ralph.text.plain import columns, first_line, one_line, safe, shorten
from ralph.text.words import counted, duration, money, number
from ralph.ui.lines import clock_time, coming_time
from ralph.ui.style import Mark, Style, Tone

_ROOM_FOR_ESCAPES = 1024  # what a line of output may hold beside the characters that are shown
_NARROWEST = 20
_FAILURE = 1000  # characters of a failure's message
# As our own lines begin; there may be a time or a task before our name.
_OUR_NAME = re.compile(r"\s*(?:\[[\d:]{1,12}\]\s*|\S{1,80} \|\s*)*\[\s*ralph\s*\]", re.IGNORECASE)
_LOOKED_AT = 200  # characters
_SPEAKERS = {
    events.Speaker.SUBAGENT: "[sub-agent] ",
    events.Speaker.HOOK: "[hook] ",
    events.Speaker.HOST: "[host] ",
}
_TODO = {
    events.TodoStatus.DONE: (Mark.DONE, Tone.FAINT),
    events.TodoStatus.ACTIVE: (Mark.ACTIVE, Tone.CALL),
    events.TodoStatus.PENDING: (Mark.PENDING, Tone.PLAIN),
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
        *,
        width: Callable[[], int | None] | None = None,
    ) -> None:
        self._style = style
        self._clock = clock
        self._width = width or (lambda: style.width)
        self._mark = style.mark
        self.start()

    def start(self) -> None:
        """A new turn begins: count from here."""
        self._began = self._clock()
        self._open: dict[str, str] = {}  # the names of tools that have not ended, by id
        self._tools = self._errors = 0
        self._paragraph = ""

    def lines(self, event: events.AgentEvent) -> list[str]:
        """The lines that show this event, without line ends; none if it is not worth one."""
        paint = self._style.paint
        return [before + paint(text, tone) for before, text, tone in self.rows(event)]

    def rows(self, event: events.AgentEvent) -> list[tuple[str, str, Tone]]:
        """The same, not painted yet: the time and the speaker, then the words and their tone."""
        match event:
            case events.Text():
                rows, paragraph = self._text(event), "text"
            case events.ToolStart():
                rows, paragraph = self._tool_start(event), "work"
            case events.ToolEnd():
                rows, paragraph = self._tool_end(event), "work"
            case events.Todo():
                rows, paragraph = self._todo(event), "todo"
            case events.Result():
                rows, paragraph = self._result(event), "result"
            case _:
                rows, paragraph = self._aside(event), "work"
        if not rows:
            return []
        before, self._paragraph = self._paragraph, paragraph  # an empty line between two
        gap = [("", "", Tone.PLAIN)] if before and before != paragraph else []
        prefix = f"[{clock_time(self._clock())}] " if self._style.timestamps else ""
        if isinstance(event, events.Text):
            prefix += _SPEAKERS.get(event.speaker, "")
        elif isinstance(event, events.ToolStart | events.ToolEnd) and event.subagent:
            prefix += _SPEAKERS[events.Speaker.SUBAGENT]
        return [*gap, *(self._finished(row, prefix) for row in rows)]

    def _aside(self, event: events.AgentEvent) -> list[_Row]:
        """Events of one short line each; what is not understood has none."""
        match event:
            case events.Thinking(text=text):
                mark, words = Mark.THINKING, first_line(text)
            case events.Progress(text=text):
                mark, words = Mark.STATUS, text
            case events.Retry():
                of = "" if event.of is None else f"/{event.of}"
                after = "" if event.seconds is None else f" in {duration(event.seconds)}"
                why = f": {event.why}" if event.why else ""
                mark, words = Mark.RETRY, f"Retry {event.attempt}{of}{after}{why}"
            case events.RateLimited(resets_at=at, why=why):
                until = "" if at is None else f" (until {coming_time(at, self._clock())})"
                mark, words = Mark.LIMITED, f"Rate limited: {why}{until}"
            case events.Question(text=text):
                mark, words = Mark.QUESTION, f"Question: {text}"
            case _:
                return []
        tidy = " ".join(safe(words).split())
        tone = Tone.FAINT if mark in (Mark.THINKING, Mark.STATUS) else Tone.NOTICE
        return [_Row(f"{self._mark(mark)} ", tidy, tone=tone)] if tidy else []

    def _text(self, event: events.Text) -> list[_Row]:
        """Words as they are: the terminal wraps them, so that they can be copied whole."""
        if event.speaker is events.Speaker.PROMPT or not event.text:
            return []
        tone = Tone.PLAIN if event.speaker is events.Speaker.ASSISTANT else Tone.FAINT
        lines = safe(event.text).removesuffix("\n").split("\n")
        return [_Row(not_ours(line), tone=tone) for line in lines]

    def _tool_start(self, event: events.ToolStart) -> list[_Row]:
        name = one_line(safe(event.name))
        self._open[event.id] = name
        self._tools += 1
        head = f"{self._mark(Mark.CALL)} {name}"
        summary = " ".join(safe(event.summary).split())
        row = _Row(f"{head}(", summary, ")", Tone.CALL)
        return [row if summary else _Row(head, tone=Tone.CALL)]

    def _tool_end(self, event: events.ToolEnd) -> list[_Row]:
        name = self._open.pop(event.id, "")
        self._errors += event.is_error
        mark, what = (Mark.BAD, "Error") if event.is_error else (Mark.GOOD, "Result")
        source = f" {self._mark(Mark.ARROW)} {name}" if name else ""
        tone = Tone.BAD if event.is_error else Tone.FAINT
        size = "no output"
        if event.output:
            lines = event.output.count("\n") + (not event.output.endswith("\n"))
            size = f"{counted(lines, 'line')}, {counted(len(event.output), 'char')}"
        head = _Row(f"{self._mark(mark)} {what}{source} ({size})", tone=tone)
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
        lines = safe(seen).rstrip().split("\n")
        more = whole.count("\n") + 1 - most
        corner, below = f"  {self._mark(Mark.OUTPUT)}  ", f"  {self._mark(Mark.BELOW)}  "
        heads = (corner, *[below] * most)
        rows = [
            _Row(head, one_line(line), tone=Tone.FAINT)
            for head, line in zip(heads, lines[:most], strict=False)
        ]
        if more > 0:
            words = f"{self._mark(Mark.ELLIPSIS)} {counted(more, 'more line')}"
            rows.append(_Row(below + words, tone=Tone.FAINT))
        return rows

    def _todo(self, event: events.Todo) -> list[_Row]:
        done = sum(item.status is events.TodoStatus.DONE for item in event.items)
        total = len(event.items)
        percent = f" ({100 * done // total}%)" if total else ""
        rows = [_Row(f"{self._mark(Mark.TODO)} Todo List")]
        for item in event.items:
            mark, tone = _TODO[item.status]
            active = item.status is events.TodoStatus.ACTIVE
            tail = f" {self._mark(Mark.ARROW)} ACTIVE" if active else ""
            text = one_line(safe(item.text))
            rows.append(_Row(f"  {self._mark(mark)} ", text, tail, tone))
        return [*rows, _Row(f"  {self._mark(Mark.PROGRESS)} Progress: {done}/{total}{percent}")]

    def _result(self, event: events.Result) -> list[_Row]:
        known = [] if event.cost_usd is None else [f"cost: {money(event.cost_usd)}"]
        if event.usage != events.Usage():
            usage = event.usage
            cached = f" ({number(usage.cache_read)} cached)" if usage.cache_read else ""
            known.append(
                f"tokens: {number(usage.all_input)} in{cached} / {number(usage.output)} out"
            )
        known += [f"tools: {self._tools}", f"errors: {self._errors}"]
        statistics = f" ({', '.join(known)}, time: {duration(self._clock() - self._began)})"
        if event.failure is None:
            return [_Row(f"{self._mark(Mark.STATUS)} Turn ended{statistics}")]
        # Not cut to the width: this is what people look for.
        why = shorten(one_line(safe(event.failure.message)), _FAILURE, None, "...")
        return [_Row(f"{self._mark(Mark.BAD)} Failed: {why}{statistics}", tone=Tone.BAD)]

    def _finished(self, row: _Row, prefix: str) -> tuple[str, str, Tone]:
        style, width = self._style, self._width() if row.body else None
        room = None
        if width is not None:
            room = max(_NARROWEST, width - columns(prefix + row.head + row.tail))
        body = shorten(row.body, style.max_output_chars, room, self._mark(Mark.ELLIPSIS))
        return prefix, row.head + body + row.tail, row.tone


def not_ours(line: str) -> str:
    """Mark a line that an agent says in our name as the agent's."""
    if "[" not in line[:_LOOKED_AT]:
        return line
    seen = "".join(filter(str.isprintable, line[:_LOOKED_AT]))  # not what has no width
    return f"[agent] {line}" if _OUR_NAME.match(seen) else line
