"""What a scripted model says: lanes of turns, and which model call takes which."""

import re
import string
import threading
from typing import Any

from ralph.testing.scripted_model.protocols import Json

OVER = {"text": "(script over)"}


def fill(value: Any, names: dict[str, str]) -> Any:  # noqa: ANN401 - any JSON value
    """Fill ${NAME} placeholders in every string of a JSON value."""
    if isinstance(value, str):
        return string.Template(value).safe_substitute(names)
    if isinstance(value, list):
        return [fill(item, names) for item in value]
    if isinstance(value, dict):
        return {key: fill(item, names) for key, item in value.items()}
    return value


class Lane:
    """Turns in order; with a pattern, for the calls whose user text matches it."""

    def __init__(self, turns: list[Json], match: str | None = None) -> None:
        self.turns = turns
        self.match = re.compile(match, re.DOTALL) if match else None
        self.at = 0
        self.used = 0  # how often the turn at hand was played

    def take(self, after: str) -> tuple[int, Json]:
        """Index and content of the turn to play now."""
        if self.at >= len(self.turns):
            if after == "stop" or not self.turns:
                return self.at, OVER
            return len(self.turns) - 1, self.turns[-1]
        at, turn = self.at, self.turns[self.at]
        self.used += 1
        times = turn.get("times", 1)
        if 0 <= times <= self.used:
            self.at, self.used = self.at + 1, 0
        return at, turn


class Script:
    """What the model says; safe for threads."""

    def __init__(self, spec: object, names: dict[str, str] | None = None) -> None:
        filled = fill(spec, names or {})
        book: Json = filled if isinstance(filled, dict) else {"turns": filled}
        self.main = Lane(book.get("turns", []))
        self.lanes = [Lane(lane["turns"], lane["match"]) for lane in book.get("lanes", [])]
        self.side: Json = book.get("side", {"text": "ok"})
        self.after = str(book.get("after", "repeat"))
        self.lock = threading.Lock()

    def next(self, body: Json) -> tuple[str, int, Json]:
        """Lane name, turn index and turn for one model call."""
        with self.lock:
            if not offers_tools(body):
                return "side", 0, self.side
            text = user_text(body)
            for n, lane in enumerate(self.lanes):
                if lane.match and lane.match.search(text):
                    return (f"lane{n}", *lane.take(self.after))
            return ("main", *self.main.take(self.after))


def flat_text(content: object) -> str:
    """All text in a message content of any of the protocols."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(flat_text(item) for item in content)
    if isinstance(content, dict):
        keys = [key for key in ("text", "content", "parts") if key in content]
        return "\n".join(flat_text(content[key]) for key in keys)
    return ""


def user_text(body: Json) -> str:
    """What the user's messages say."""
    messages = body.get("messages") or body.get("input") or body.get("contents") or []
    if isinstance(messages, str):
        return messages
    said = (m for m in messages if isinstance(m, dict) and m.get("role") == "user")
    return "\n".join(flat_text(message) for message in said)[:20000]


def offers_tools(body: Json) -> bool:
    """Whether the model may call tools, that is, whether this is a main call.

    Codex with "code mode" models sends its tools as an input item, not in the tools field.
    """
    items = body.get("input")
    return bool(body.get("tools")) or (
        isinstance(items, list)
        and any(isinstance(item, dict) and item.get("type") == "additional_tools" for item in items)
    )
