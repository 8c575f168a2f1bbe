"""Dialects of one JSON object a line: decoding that is fast, and forgives any line."""

import json
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import ClassVar, Generic, TypeVar

import msgspec

from ralph.kernel.events import AgentEvent, Unknown

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


class NdjsonParser(Generic[Line]):
    """The common part of these dialects. A subclass says what each decoded line means."""

    has_result: ClassVar[bool] = True

    def __init__(self, decoder: msgspec.json.Decoder[Line]) -> None:
        self._decoder = decoder

    def understand(self, line: Line) -> Iterable[AgentEvent]:
        raise NotImplementedError

    def feed(self, block: bytes) -> list[AgentEvent]:
        events: list[AgentEvent] = []
        for line in self._read(block):
            if isinstance(line, Unknown):
                events.append(line)
            else:
                events.extend(self.understand(line))
        return events

    def end(self) -> list[AgentEvent]:
        """Nothing is ever held back: a line is understood when it comes."""
        return []

    def _read(self, block: bytes) -> Sequence[Line | Unknown]:
        """Decode a block at once; line by line only if that fails.

        `decode_lines` also accepts a value that spans lines. Such a block is read again, so that
        the events do not depend on where the stream was cut.
        """
        try:
            lines = self._decoder.decode_lines(block)
        except _FAILURES:
            lines = []
        if len(lines) == block.count(b"\n") + (not block.endswith(b"\n")):
            return lines
        return [self._read_line(raw) for raw in block.split(b"\n") if raw.strip()]

    def _read_line(self, raw: bytes) -> Line | Unknown:
        try:
            return self._decoder.decode(raw)
        except msgspec.ValidationError:
            pass  # well-formed, but not of this dialect
        except _FAILURES:
            # CLIs that cut text in the middle print what strict JSON forbids: bytes that are not
            # UTF-8, control characters, half a surrogate pair. That must not cost a whole line.
            try:
                value = json.loads(raw.decode("utf-8", "replace"), strict=False)
                fixed = json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")
                return self._decoder.decode(fixed)
            except _FAILURES:
                pass
        return Unknown(raw[:_KEPT].decode("utf-8", "replace"))


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
    """The value if it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def field(value: object, *path: str) -> object:
    """The value at this path of nested objects; None where there is nothing."""
    for key in path:
        if not isinstance(value, dict):
            return None
        value = value.get(key)
    return value


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
