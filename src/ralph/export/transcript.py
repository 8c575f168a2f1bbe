"""A session told once more by its transcript, from one held stop to the next.

The transcript is the host's own: only Claude Code's is understood. It may have gigabytes, so that a
stretch is read twice, line by line: to know what it comes to, and to tell it. Whatever is wrong is
told too.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from io import BufferedReader
from itertools import islice
from typing import Any, Self

import msgspec

from ralph.agents.streams.collect import Collector
from ralph.agents.streams.dialects import Parser, parser_for
from ralph.export.parts import Gap, Said
from ralph.export.reading import moment
from ralph.files.safe_open import open_regular
from ralph.kernel.events import AgentEvent, Speaker, Text
from ralph.kernel.turn import Turn
from ralph.text.words import counted

DIALECT = "claude-transcript"
_OURS = ("user", "assistant", "system")  # lines with words; the others are the host's own business
_HOSTS = {
    "assistant": "claude",
    "gemini": "gemini",
    "response_item": "codex",
}  # by a line of theirs
_LONGEST = 8 << 20  # bytes of a line
_SNIFFED = 200  # lines
_MARKER = 200  # characters of our words by which they are known
_CLOCK = 0.001  # seconds: lines tell no less


class _Message(msgspec.Struct, gc=False):
    model: Any = None


class _Head(msgspec.Struct, gc=False):
    """What a line is, without what it says."""

    type: Any = None
    timestamp: Any = None
    message: _Message | None = None


_HEAD = msgspec.json.Decoder(_Head)


@dataclass
class Stretch:
    """A part of a session, up to a stop that was held or to the end."""

    begin: int
    end: int = 0
    time: float = 0.0  # of its last line
    model: str = ""
    turn: Turn | None = None  # what it came to; None: nothing is told of it
    feedback: str = ""  # to the stop; "" at the end
    wrong: int = 0  # lines that say nothing, or not when


class Transcript:
    """The transcript of a session that works on a `task`, between two times; None is no end."""

    def __init__(self, path: str, task: str, since: float, until: float | None) -> None:
        self._path, self._at, self._end = path, 0, 0
        self._since = since - _CLOCK
        self._until = None if until is None else until + _CLOCK
        self._marker = f"Original task: {task}"[:_MARKER].rstrip()
        self._file: BufferedReader | None = None
        self._gap = ""
        self.host = ""

    def __enter__(self) -> Self:
        try:
            self._file = open_regular(self._path)
            self._end = os.fstat(self._file.fileno()).st_size
            self.host = self._whose()
            if self.host not in ("", "claude"):
                self._end = 0
                self._gap = f"the transcript is {self.host}'s: only claude's is understood"
        except FileNotFoundError:
            self._gap = (
                "the transcript is not there" if self._path else "the host named no transcript"
            )
        except (OSError, ValueError) as error:
            self._fail(error)
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()

    def stretch(self) -> Stretch:
        """The next one."""
        found, parser, collector = Stretch(self._at), parser_for(DIALECT), Collector()
        heard = False
        try:
            for at, time, model, events in self._heard(parser, self._at, self._end):
                self._at = at
                if time is None:
                    found.wrong += 1
                    continue
                found.time, heard = time, True
                found.model = model or found.model
                found.feedback = self._feedback_in(events)
                if found.feedback:
                    break
                collector.add(events)
        except OSError as error:
            self._fail(error)
        collector.add(parser.end())
        found.end = self._at
        found.turn = collector.turn(has_result=False) if heard else None
        return found

    def parts(self, stretch: Stretch) -> Iterator[Said | Gap]:
        """What was said in it, and what is missing."""
        parser = parser_for(DIALECT, whole=True)
        try:
            for _, time, _, events in self._heard(parser, stretch.begin, stretch.end):
                if time is not None and not self._feedback_in(events):
                    yield from (Said(event, time) for event in events)
        except OSError as error:
            self._fail(error)
        yield from map(Said, parser.end())
        if stretch.wrong:
            lines = counted(stretch.wrong, "line")
            yield Gap(f"left out of the transcript, because it makes no sense: {lines}")
        if self._gap:
            yield Gap(self._gap)
            self._gap = ""

    def _heard(
        self, parser: Parser, begin: int, end: int
    ) -> Iterator[tuple[int, float | None, str, list[AgentEvent]]]:
        """Lines of the loop's time: where each ends, its time, model and events. Those that make no
        sense, or do not say when they were written, have no time."""
        for at, line in self._lines(begin, end):
            head = _head_of(line)
            if head is None:
                yield at, None, "", []
            elif head.type in _OURS and (head.message or head.type == "system"):
                time = moment(head.timestamp)
                if time is None:
                    yield at, None, "", []
                elif time >= self._since and (self._until is None or time <= self._until):
                    yield at, time, _model_of(head), parser.feed(line)

    def _lines(self, begin: int, end: int) -> Iterator[tuple[int, bytes]]:
        """Lines, and where each ends; of one that is too long nothing."""
        if self._file is None:
            return
        at = self._file.seek(begin)
        while at < end and (line := self._file.readline(_LONGEST)):
            at += len(line)
            whole = line
            while len(line) == _LONGEST and not line.endswith(b"\n"):
                line, whole = self._file.readline(_LONGEST), b""
                at += len(line)
            yield at, whole if whole.endswith(b"\n") or not whole else whole + b"\n"

    def _feedback_in(self, events: list[AgentEvent]) -> str:
        """What our hook has said to a stop, if that is it."""
        said = (
            event.text
            for event in events
            if isinstance(event, Text) and event.speaker is Speaker.HOOK
        )
        return next((text for text in said if self._marker in text), "")

    def _whose(self) -> str:
        """The host that writes it; "" where its first lines do not tell."""
        for _, line in islice(self._lines(0, self._end), _SNIFFED):
            head = _head_of(line) or _Head()
            if head.type == "user" and head.message:
                return "claude"
            if isinstance(head.type, str) and head.type in _HOSTS:
                return _HOSTS[head.type]
        return ""

    def _fail(self, error: Exception) -> None:
        why = getattr(error, "strerror", None) or error
        self._gap = f"the transcript cannot be read: {why}"


def _model_of(head: _Head) -> str:
    """The model that speaks in a line, if it is one."""
    model = head.message.model if head.message else None
    return model if isinstance(model, str) and model != "<synthetic>" else ""


def _head_of(line: bytes) -> _Head | None:
    """A line's head; None where it is none."""
    try:
        return _HEAD.decode(line)
    except (ValueError, RecursionError):
        return None
