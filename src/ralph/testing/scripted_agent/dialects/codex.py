"""Codex's --json, as version 0.166.0 prints it."""

import shlex
import time
from typing import Any

from ralph.testing.scripted_agent.dialects.speech import Lines, ScriptedCall, Voice, new_uuid
from ralph.testing.scripted_agent.script import ScriptedFailure, ScriptedTurn

PATCHES = frozenset({"apply_patch", "file_change"})
HIGH_DEMAND = "We’re currently experiencing high demand, which may cause temporary errors."


def failure_text(failure: ScriptedFailure) -> str:
    """The words that codex finds for a failed API call."""
    status, message = failure.get("status", 500), failure.get("message", "Rate limit reached")
    if "resets_at" in failure:
        seconds = max(0, failure["resets_at"] - time.time())
        return f"rate limit exceeded: {message}. Please try again in {seconds:.3f}s."
    if status == 429:
        return "exceeded retry limit, last status: 429 Too Many Requests"
    if status >= 500:
        return HIGH_DEMAND
    words = {401: "Unauthorized", 403: "Forbidden", 404: "Not Found"}.get(status, "Bad Request")
    return f"unexpected status {status} {words}: {message}, url: http://127.0.0.1/v1/responses"


class Codex(Voice):
    """Items that start and complete, between `turn.started` and `turn.completed`."""

    def __init__(self, turn: ScriptedTurn) -> None:
        super().__init__(turn)
        self.items = 0
        self.started: dict[str, dict[str, Any]] = {}

    def opening(self, prompt: str) -> Lines:
        yield {"type": "thread.started", "thread_id": new_uuid()}
        yield {"type": "turn.started"}

    def thinks(self, text: str) -> Lines:
        yield self.completed(self.item("reasoning", text=text))

    def says(self, text: str) -> Lines:
        self.last = text
        yield self.completed(self.item("agent_message", text=text))

    def calls(self, call: ScriptedCall) -> Lines:
        if call.name in PATCHES:
            changes = call.input.get("changes", [{"path": "file.txt", "kind": "update"}])
            item = self.item("file_change", changes=changes, status="in_progress")
        else:
            command = str(call.input.get("command") or call.input.get("cmd") or call.name)
            item = self.item(
                "command_execution",
                command=f"/bin/bash -lc {shlex.quote(command)}",  # as codex hands it to the shell
                aggregated_output="",
                exit_code=None,
                status="in_progress",
            )
        self.started[call.id] = item
        yield {"type": "item.started", "item": item}

    def answers(self, call: ScriptedCall) -> Lines:
        item = {**self.started.pop(call.id), "status": "failed" if call.error else "completed"}
        if item["type"] == "command_execution":
            item |= {"aggregated_output": call.output, "exit_code": call.code}
        yield self.completed(item)

    def plans(self, todo: list[tuple[str, str]]) -> Lines:
        steps = [{"text": text, "completed": status == "completed"} for text, status in todo]
        item = self.item("todo_list", items=steps)
        yield {"type": "item.started", "item": item}
        yield self.completed(item)

    def result(self) -> Lines:
        usage = {
            "input_tokens": self.usage["input"],
            "cached_input_tokens": self.usage["cache_read"],
            "cache_write_input_tokens": self.usage["cache_write"],
            "output_tokens": self.usage["output"],
            "reasoning_output_tokens": 0,
        }
        yield {"type": "turn.completed", "usage": usage}

    def fails(self, failure: ScriptedFailure) -> Lines:
        text = failure_text(failure)
        yield {"type": "error", "message": f"Reconnecting... 1/1 ({text})"}
        yield {"type": "error", "message": text}
        yield {"type": "turn.failed", "error": {"message": text}}

    def item(self, kind: str, **fields: object) -> dict[str, Any]:
        self.items += 1
        return {"id": f"item_{self.items - 1}", "type": kind, **fields}

    def completed(self, item: dict[str, Any]) -> dict[str, Any]:
        return {"type": "item.completed", "item": item}
