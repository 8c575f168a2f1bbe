"""Amp's --stream-json (H §Amp Streaming JSON): Claude's shapes with fewer fields."""

import os
from typing import Any, ClassVar

from ralph.testing.scripted_agent.dialects.claude import TOOLS, Claude
from ralph.testing.scripted_agent.dialects.plain import Lines, ScriptedCall
from ralph.testing.scripted_agent.script import ScriptedFailure, ScriptedTurn


class Amp(Claude):
    """The prompt is repeated as a `user` line; there is no cost and no retry."""

    leaves: ClassVar[dict[str, int | None]] = {}

    def __init__(self, turn: ScriptedTurn) -> None:
        super().__init__(turn)
        self.session = f"T-{self.session}"

    def opening(self, prompt: str) -> Lines:
        yield {
            "type": "system",
            "subtype": "init",
            "cwd": os.getcwd(),
            "session_id": self.session,
            "tools": TOOLS,
            "mcp_servers": [],
        }
        yield self.user({"type": "text", "text": prompt})

    def echo(self, prompt: str) -> Lines:
        return iter(())

    def limits(self, info: dict[str, Any]) -> Lines:
        return iter(())

    def thinks(self, text: str) -> Lines:
        yield self.assistant({"type": "thinking", "thinking": text})

    def plans(self, todo: list[tuple[str, str]]) -> Lines:
        todos = [
            {"id": str(number), "content": text, "status": status.replace("_", "-")}
            for number, (text, status) in enumerate(todo, 1)
        ]
        call = ScriptedCall({"name": "todo_write", "input": {"todos": todos}})
        yield from self.calls(call)
        yield self.answer(call.id, "", None)

    def result(self) -> Lines:
        yield {
            "type": "result",
            "subtype": "success",
            "duration_ms": 111,
            "is_error": False,
            "num_turns": self.turns,
            "result": self.last,
            "session_id": self.session,
            "usage": self.tokens(),
        }

    def fails(self, failure: ScriptedFailure) -> Lines:
        yield self.error(f"{failure.get('status', 500)} {failure.get('message', 'Server error')}")

    def interrupted(self, call: ScriptedCall | None) -> Lines:
        yield self.error("Interrupted by user")

    def error(self, message: str) -> dict[str, Any]:
        """H §Amp Streaming JSON, "Result Error"."""
        return {
            "type": "result",
            "subtype": "error_during_execution",
            "duration_ms": 111,
            "is_error": True,
            "num_turns": self.turns,
            "error": message,
            "session_id": self.session,
        }

    def assistant(self, block: dict[str, Any], parent: str | None = None) -> dict[str, Any]:
        message = {
            "type": "message",
            "role": "assistant",
            "content": [block],
            "stop_reason": "tool_use" if block["type"] == "tool_use" else "end_turn",
            "usage": self.tokens(),
        }
        return {
            "type": "assistant",
            "message": message,
            "parent_tool_use_id": parent,
            "session_id": self.session,
        }

    def user(self, block: dict[str, Any], **fields: object) -> dict[str, Any]:
        return {
            "type": "user",
            "message": {"role": "user", "content": [block]},
            "parent_tool_use_id": None,
            "session_id": self.session,
        }
