"""Amp: `--stream-json` (H §Amp Streaming JSON). The messages are Claude's; no cost is reported."""

from typing import ClassVar

from ralph.agents.streams.messages import MessageParser


class AmpParser(MessageParser):
    """Understands Amp's stream."""

    todo_tool: ClassVar[str] = "todo_write"


def parser(prompt: str) -> AmpParser:
    return AmpParser()
