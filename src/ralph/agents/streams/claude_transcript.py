"""Claude Code's own record of a session: the lines of its stream by other names, and each answer's
tokens in place of a result. Lines of other kinds than `user`, `assistant` and `system` are not for
this parser."""

from collections import deque
from collections.abc import Iterator
from typing import Any

import msgspec

from ralph.agents.streams.claude import (
    Assistant,
    ClaudeParser,
    ContentMessage,
    FinalLine,
    Partial,
    RateLimitLine,
    System,
    User,
)
from ralph.agents.streams.ndjson import as_text, usage_of
from ralph.kernel import events

_REMEMBERED = 64  # answers: of sub-agents that work at once the lines may be mixed


class _Answer(ContentMessage, gc=False):
    id: Any = None
    usage: Any = None


class _Assistant(Assistant, gc=False, tag="assistant"):
    message: _Answer
    parent_tool_use_id: Any = msgspec.field(default=None, name="isSidechain")


class _User(User, gc=False, tag="user"):
    parent_tool_use_id: Any = msgspec.field(default=None, name="isSidechain")
    synthetic: Any = msgspec.field(default=None, name="isMeta")
    tool_use_result: msgspec.Raw = msgspec.field(default=msgspec.Raw(), name="toolUseResult")


_Line = System | _Assistant | _User | FinalLine | Partial | RateLimitLine


class ClaudeTranscriptParser(ClaudeParser):
    """Understands a transcript."""

    has_result = False
    decoder = msgspec.json.Decoder(_Line)

    def __init__(self) -> None:
        super().__init__()
        self._answers: deque[str] = deque(maxlen=_REMEMBERED)
        self._usage: object = None  # of the latest

    def assistant(self, line: Assistant) -> Iterator[events.AgentEvent]:
        """Every line of an answer has its tokens as they were by then: its last one's are told."""
        assert isinstance(line.message, _Answer)
        answer = as_text(line.message.id)
        if answer not in self._answers:
            yield from self._used()
            self._answers.append(answer)
        if answer == self._answers[-1]:
            self._usage = line.message.usage
        yield from super().assistant(line)

    def held_back(self) -> list[events.AgentEvent]:
        return list(self._used())

    def _used(self) -> Iterator[events.AgentEvent]:
        """The tokens of the latest answer, which is over."""
        usage = usage_of(self._usage)
        if usage != events.Usage():
            yield events.Used(usage)
