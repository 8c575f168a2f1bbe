"""The items of a turn: what its agent said and did, out of the events of its stream. Pure."""

from collections import deque
from collections.abc import Iterable, Iterator

from ralph.kernel import events
from ralph.kernel.events import AgentEvent, Speaker, TodoStatus
from ralph.text.words import duration
from ralph.ui.recap.values import Item, ItemKind
from ralph.ui.recap.words import MOST, shown

_AT_EACH_END = 200
_ROOM = 100_000  # characters of all items together, but for a short piece of each
_LEAST = 200
_MOST_NAME = 100
_TODO = {TodoStatus.DONE: "[x]", TodoStatus.ACTIVE: "[>]", TodoStatus.PENDING: "[ ]"}


class _Call:
    """A tool call, which may end later."""

    def __init__(self, start: events.ToolStart) -> None:
        self.start = start
        self.end: events.ToolEnd | None = None


class Items:
    """Takes the events of one iteration, and keeps the first of them and the last."""

    def __init__(self) -> None:
        self._first: list[AgentEvent | _Call] = []
        self._last: deque[AgentEvent | _Call] = deque(maxlen=_AT_EACH_END)
        self._kept = 0
        self._open: dict[str, _Call] = {}  # calls that have not ended, by id
        self._tools: dict[str, tuple[int, int]] = {}  # by name: calls, and those with an error

    def add(self, found: Iterable[AgentEvent]) -> None:
        for event in found:
            match event:
                case events.ToolStart():
                    self._count(event.name, 1, 0)
                    call = self._open[event.id] = _Call(event)
                    self._keep(call)
                case events.ToolEnd():
                    begun = self._open.pop(event.id, None)
                    if begun is not None:
                        begun.end = event
                        self._count(begun.start.name, 0, event.is_error)
                case events.Used() | events.Progress() | events.Text(speaker=Speaker.PROMPT):
                    pass
                case events.Result(failure=None) | events.Permission(allowed=True):
                    pass
                case _:
                    self._keep(event)

    def _count(self, name: str, calls: int, errors: int) -> None:
        before = self._tools.get(name, (0, 0))
        self._tools[name] = before[0] + calls, before[1] + errors

    def _keep(self, what: AgentEvent | _Call) -> None:
        self._kept += 1
        (self._first if len(self._first) < _AT_EACH_END else self._last).append(what)

    @property
    def tools(self) -> tuple[tuple[str, int, int], ...]:
        """The tools by how often they were called."""
        return added((shown(name, _MOST_NAME), *both) for name, both in self._tools.items())

    def items(self) -> tuple[tuple[Item, ...], int]:
        """The items in order, and how many are left out behind the first 200."""
        kept = (*self._first, *self._last)
        room = max(_LEAST, min(MOST, _ROOM // (2 * len(kept) or 1)))
        return tuple(_items(kept, room)), self._kept - len(kept)


def added(rows: Iterable[tuple[str, int, int]]) -> tuple[tuple[str, int, int], ...]:
    """The tools of several turns together, by how often they were called."""
    sums: dict[str, list[int]] = {}
    for name, calls, errors in rows:
        both = sums.setdefault(name, [0, 0])
        both[0] += calls
        both[1] += errors
    found = ((name, calls, errors) for name, (calls, errors) in sums.items())
    return tuple(sorted(found, key=lambda row: -row[1]))


def _items(kept: Iterable[AgentEvent | _Call], room: int) -> Iterator[Item]:
    for each in kept:
        if isinstance(each, _Call):
            yield _call(each, room)
        else:
            kind, text, name = _words(each)
            if text.strip():
                yield Item(kind, shown(text, room), name)


def _call(call: _Call, room: int) -> Item:
    end = call.end or events.ToolEnd("")
    return Item(
        ItemKind.TOOL,
        shown(call.start.summary, room),
        shown(call.start.name, _MOST_NAME),
        shown(end.output, room),
        end.is_error,
    )


def _words(event: AgentEvent) -> tuple[ItemKind, str, str]:
    """The kind of an event, its text, and whose words it is where they are not the agent's."""
    match event:
        case events.Text(text=text, speaker=Speaker.ASSISTANT):
            return ItemKind.TEXT, text, ""
        case events.Text(text=text, speaker=speaker):
            return ItemKind.OTHER, text, speaker.value
        case events.Thinking(text=text):
            return ItemKind.THINKING, text, ""
        case events.Todo(items=items):
            return ItemKind.TODO, "\n".join(f"{_TODO[i.status]} {i.text}" for i in items), ""
        case events.Question(text=text):
            return ItemKind.QUESTION, text, ""
        case events.Unknown(raw=raw):
            return ItemKind.UNREAD, raw, ""
        case _:
            return ItemKind.TROUBLE, _trouble(event), ""


def _trouble(event: AgentEvent) -> str:
    match event:
        case events.RateLimited(why=why):
            return f"Rate limited: {why}"
        case events.Retry(attempt=attempt, seconds=seconds, why=why):
            after = "" if seconds is None else f" in {duration(seconds)}"
            return f"Retry {attempt}{after}: {why}"
        case events.Result(failure=events.Failure(message=message)):
            return f"Failed: {message}"
        case events.Permission():
            return event.refusal
        case _:  # pragma: no cover  nothing else is kept
            return ""
