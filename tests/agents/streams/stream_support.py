"""Reading captures and made-up lines the way a turn does: through the framer, in chunks."""

import json
from pathlib import Path

from ralph.agents.streams.dialects import parser_for
from ralph.kernel.claims import find_claims
from ralph.kernel.events import AgentEvent, Result, Speaker, Text

CAPTURES = Path(__file__).parent.parent.parent / "captures"
PLAIN = {("claude", "text-format"), ("codex", "text-mode")}


def cases(kind: str) -> list[str]:
    """The names of all captures of an agent that speak its dialect."""
    names = sorted(path.stem for path in (CAPTURES / kind).glob("*.ndjson"))
    return [name for name in names if (kind, name) not in PLAIN]


def capture(kind: str, case: str) -> bytes:
    """What the CLI printed."""
    return (CAPTURES / kind / f"{case}.ndjson").read_bytes()


def parse(kind: str, data: bytes, prompt: str = "", size: int = 128 * 1024) -> list[AgentEvent]:
    """All events of a stream that comes in chunks of this size."""
    chunks = [data[i : i + size] for i in range(0, len(data), size)]
    return parse_chunks(kind, chunks, prompt)


def parse_chunks(kind: str, chunks: list[bytes], prompt: str = "") -> list[AgentEvent]:
    """All events of a stream that comes in these chunks."""
    parser = parser_for(kind, prompt)
    events = [event for chunk in chunks for event in parser.feed(chunk)]
    return events + parser.end()


def parse_values(kind: str, *values: object) -> list[AgentEvent]:
    """All events of these JSON values, one a line."""
    return parse(kind, b"".join(json.dumps(value).encode() + b"\n" for value in values))


def said(events: list[AgentEvent], speaker: Speaker = Speaker.ASSISTANT) -> list[str]:
    """What one speaker said."""
    return [e.text for e in events if isinstance(e, Text) and e.speaker is speaker]


def claimed(events: list[AgentEvent]) -> list[str]:
    """The claims that count: those in the assistant's own text."""
    return [claim.raw for claim in find_claims("\n".join(said(events)))]


def of(events: list[AgentEvent], kind: type[AgentEvent]) -> list[AgentEvent]:
    """The events of one kind."""
    return [event for event in events if isinstance(event, kind)]


def result(events: list[AgentEvent]) -> Result:
    """The one and final result."""
    (found,) = of(events, Result)
    assert isinstance(found, Result)
    return found
