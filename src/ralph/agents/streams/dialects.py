"""Understands what agents print: bytes in, events out; nothing here reads, writes or waits.

A dialect is a class in `DIALECTS`. Parsers are fed and never raise: a line that is not understood
becomes an `Unknown`.
"""

from collections.abc import Mapping
from importlib import import_module
from typing import ClassVar, Protocol, cast

from ralph.agents.streams.framing import Framer
from ralph.kernel.events import AgentEvent

DIALECTS: Mapping[str, tuple[str, str]] = {  # module and class
    "acp": ("acp", "AcpParser"),
    "amp": ("claude", "AmpParser"),
    "claude": ("claude", "ClaudeParser"),
    "claude-transcript": ("claude_transcript", "ClaudeTranscriptParser"),
    "codex": ("codex", "CodexParser"),
    "gemini": ("gemini", "GeminiParser"),
    "opencode": ("opencode", "OpencodeParser"),
    "ralph-agent": ("own", "OwnParser"),
    "text": ("text", "TextParser"),
}


class Parser(Protocol):
    """Understands one dialect; one parser for one turn's stream."""

    has_result: ClassVar[bool]  # the dialect ends with a final result
    lines: Framer  # of what it was fed

    def feed(self, chunk: bytes) -> list[AgentEvent]:
        """The events of the lines that are whole now, however the stream was cut. Never raises."""

    def end(self) -> list[AgentEvent]:
        """The stream is over: the events of its last line, and those that were held back."""


def parser_for(kind: str, prompt: str = "", *, whole: bool = False) -> Parser:
    """A new parser for an agent of this kind; an unknown kind prints plain text. The prompt is
    there so that its echo is not taken for an answer. A `whole` one tells all arguments of tool
    calls, where the dialect has them."""
    module, name = DIALECTS.get(kind, DIALECTS["text"])
    made = getattr(import_module(f"{__package__}.{module}"), name)
    parser = made(prompt) if name == "TextParser" else made()
    parser.whole = whole
    return cast(Parser, parser)
