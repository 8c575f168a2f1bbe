"""Dialects of one JSON object a line: decoding that is fast, and forgives any line."""

import json
import re
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import ClassVar, Generic, TypeVar

import msgspec

from ralph.agents.streams.framing import Framer
from ralph.kernel.events import AgentEvent, Progress, Todo, TodoItem, TodoStatus, Unknown, Usage

Line = TypeVar("Line")

_KEPT = 2000  # of what people may want to read, but a turn must not grow by
_SUMMARY = 200
_LARGEST = 1e15  # no time, price or count that we read is larger
_FAILURES = (ValueError, RecursionError)  # msgspec's errors are ValueErrors

# The arguments that tell people what a tool call does, the most telling first.
_TELLING = (
    *("file_path", "filePath", "notebook_path", "command", "cmd", "pattern"),
    *("url", "subject", "description", "query", "prompt", "path"),
)
# As the fields of a Usage.
_USAGE = (
    *("input_tokens", "output_tokens"),
    *("cache_read_input_tokens", "cache_creation_input_tokens"),
)
_AMOUNT = r"(\d{1,9}(?:\.\d{1,9})?)\s*(ms|days?|d|hours?|h|minutes?|min|m|seconds?|sec|s)(?![a-z])"
# A pattern of text: it is compiled when a service says to wait, and not before every run.
_RETRY = rf"(?:try again in|retry in|retry after|reset after) ((?:{_AMOUNT}[\s,]*(?:and\s+)?)+)"
_STATUS = r"(?:\bstatus:? |\bAPI Error:? |\()([45]\d\d)\b"
_OUT_OF_MONEY = r"quota|billing"
_LIMITED = r"(?:rate|usage) limit|too many requests"
# Words for a service that fails or is full, of CLIs whose streams do not have the status.
_OVERLOADED = r"at capacity|experiencing high demand|server (?:is )?overloaded"
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_TODO_STATUSES = {
    "in_progress": TodoStatus.ACTIVE,
    "in-progress": TodoStatus.ACTIVE,
    "completed": TodoStatus.DONE,
}


class NdjsonParser(Generic[Line]):
    """The common part of these dialects. A subclass says what each decoded line means."""

    has_result: ClassVar[bool] = True
    whole = False  # whether a ToolStart has all arguments: of a long stream few want them
    decoder: msgspec.json.Decoder[Line]  # of the dialect

    def __init__(self) -> None:
        self.lines = Framer()

    def understand(self, line: Line) -> Iterable[AgentEvent]:
        raise NotImplementedError

    def held_back(self) -> list[AgentEvent]:
        """Events that waited for what might follow."""
        return []

    def arguments(self, given: object) -> str:
        """The arguments of a tool call as JSON, if they are wanted."""
        try:
            return msgspec.json.encode(given).decode() if self.whole and given is not None else ""
        except _FAILURES:  # nested too deeply
            return ""

    def feed(self, chunk: bytes) -> list[AgentEvent]:
        return self._events(self.lines.feed(chunk))

    def end(self) -> list[AgentEvent]:
        return self._events(self.lines.rest()) + self.held_back()

    def _events(self, block: bytes) -> list[AgentEvent]:
        events: list[AgentEvent] = []
        for line in self._read(block) if block else ():
            if isinstance(line, Unknown):
                events.append(line)
            else:
                events.extend(self.understand(line))
        return events

    def _read(self, block: bytes) -> Sequence[Line | Unknown]:
        """Decode a block at once; line by line if that fails, or if a value spans lines, so that
        the events do not depend on where the stream was cut."""
        try:
            lines = self.decoder.decode_lines(block)
        except _FAILURES:
            lines = []
        if len(lines) == _newlines(block) + (not block.endswith(b"\n")):
            return lines
        return [self._read_line(raw) for raw in block.split(b"\n") if raw.strip()]

    def _read_line(self, raw: bytes) -> Line | Unknown:
        try:
            return self.decoder.decode(raw)
        except msgspec.ValidationError:
            pass  # well-formed, but not of this dialect
        except _FAILURES:
            # CLIs that cut text in the middle print what strict JSON forbids: bytes that are not
            # UTF-8, control characters, half a surrogate pair. That must not cost a whole line.
            try:
                return self.decoder.decode(mended(raw))
            except _FAILURES:
                pass
        return Unknown(raw[:_KEPT].decode("utf-8", "replace"))


def mended(raw: bytes) -> bytes:
    """Strict JSON of a line that is nearly that; ValueError or RecursionError where it is none."""
    value = json.loads(raw.decode("utf-8", "replace"), strict=False)
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")


def _newlines(block: bytes) -> int:
    """Their number. In lines as long as these, `count` takes four times as long as to leap."""
    number, at = 0, block.find(b"\n")
    while at >= 0:
        number, at = number + 1, block.find(b"\n", at + 1)
    return number


def loosely(raw: msgspec.Raw) -> object:
    """A value that was left undecoded; None where there is none or it is broken."""
    try:
        return msgspec.json.decode(raw)
    except _FAILURES:
        return None


def as_text(value: object) -> str:
    """The value if it is a string, else nothing."""
    return value if isinstance(value, str) else ""


def as_number(value: object) -> float | None:
    """The value if it is a sane number, else None."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if abs(value) < _LARGEST else None


def as_count(value: object) -> int:
    """The value if it is a number that can count something, else 0."""
    return max(0, int(as_number(value) or 0))


def as_list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def field(value: object, *path: str) -> object:
    """The value at this path of nested objects; None where there is nothing."""
    for key in path:
        if not isinstance(value, dict):
            return None
        value = value.get(key)
    return value


def usage_of(value: object) -> Usage:
    """Tokens by the names that Anthropic's API gave them."""
    return Usage(*(as_count(field(value, name)) for name in _USAGE))


def texts(value: object) -> str:
    """The text of a content: a string, or blocks with text, joined by newlines."""
    if isinstance(value, str):
        return value
    parts = (as_text(field(block, "text")) for block in as_list(value))
    return "\n".join(part for part in parts if part)


def clipped(text: str) -> str:
    """The beginning of a text that stays in memory: a turn is small whatever was printed."""
    return text[:_KEPT]


def one_line(text: str) -> str:
    """The text on one short line."""
    line = " ".join(text[:_KEPT].split())
    return line if len(line) <= _SUMMARY else line[: _SUMMARY - 1] + "…"


def telling(arguments: object) -> str:
    """The one argument of a tool call that tells people what it does, on one line."""
    if not isinstance(arguments, dict):
        return ""
    for key in chain(_TELLING, arguments):
        word = arguments.get(key)
        if word and isinstance(word, str):
            return one_line(word)
    return ""


def session_begins(session: object, model: object = None) -> Progress:
    """A session has begun, perhaps with this model."""
    words = f"session {as_text(session)}".strip()
    return Progress(f"{words} model {model}" if as_text(model) else words, as_text(session) or None)


def retry_after(message: str) -> float | None:
    """Seconds that a service's words say to wait: "try again in 1.2s", "reset after 1h20m", "retry
    in 2 hours and 5 minutes"."""
    told = re.search(_RETRY, message, re.IGNORECASE)
    if told is None:
        return None
    found = re.findall(_AMOUNT, told[1], re.IGNORECASE)
    amounts = ((float(number), unit.lower()) for number, unit in found)
    return sum(number * _SECONDS[unit if unit == "ms" else unit[0]] for number, unit in amounts)


def service_status(message: str) -> int | None:
    """The HTTP status of a failure, as far as its words tell it. A quota that is used up answers
    429 too, but only money helps: no status then."""
    stated = re.search(_STATUS, message)
    if stated and stated[1] != "429":
        return int(stated[1])
    if re.search(_OUT_OF_MONEY, message, re.IGNORECASE):
        return None
    if stated or re.search(_LIMITED, message, re.IGNORECASE):
        return 429
    return 503 if re.search(_OVERLOADED, message, re.IGNORECASE) else None


def todo_list(value: object) -> Todo:
    """A whole list. What was called off is no longer on it."""
    items = (item for item in as_list(value) if field(item, "status") != "cancelled")
    return Todo(tuple(map(todo_item, items)))


def todo_item(value: object) -> TodoItem:
    texts = (as_text(field(value, key)) for key in ("content", "subject", "description"))
    return TodoItem(next(filter(None, texts), ""), todo_status(field(value, "status")))


def todo_status(value: object) -> TodoStatus:
    """A status as the tools spell it; what is not known has not begun."""
    return _TODO_STATUSES.get(as_text(value), TodoStatus.PENDING)
