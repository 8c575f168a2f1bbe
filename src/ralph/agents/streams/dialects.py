"""Understands what agents print: bytes in, events out; nothing here reads, writes or waits.

A dialect is a module in `DIALECTS` with a function `parser(prompt)`. Parsers are fed and never
raise: a line that is not understood becomes an `Unknown`.
"""

from collections.abc import Mapping
from importlib import import_module
from typing import ClassVar, Protocol

from ralph.kernel.events import AgentEvent

_TEXT = "ralph.agents.streams.text"

DIALECTS: Mapping[str, str] = {
    "amp": "ralph.agents.streams.amp",
    "claude": "ralph.agents.streams.claude",
    "codex": "ralph.agents.streams.codex",
    "gemini": "ralph.agents.streams.gemini",
    "opencode": "ralph.agents.streams.opencode",
    "text": _TEXT,
}


class Parser(Protocol):
    """Understands one dialect; one parser for one turn's stream."""

    has_result: ClassVar[bool]  # the dialect ends with a final result

    def feed(self, block: bytes) -> list[AgentEvent]:
        """The events of a block of whole lines, or of the unterminated rest. Never raises."""

    def end(self) -> list[AgentEvent]:
        """The stream is over: the events that were still held back."""


def parser_for(kind: str, prompt: str = "") -> Parser:
    """A new parser for an agent of this kind; an unknown kind prints plain text.

    The prompt is what the agent was given, so that its echo is not taken for an answer.
    """
    parser: Parser = import_module(DIALECTS.get(kind, _TEXT)).parser(prompt)
    return parser
