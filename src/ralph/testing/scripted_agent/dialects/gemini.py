"""Gemini's stream-json, as version 0.61.0 prints it; and its text mode."""

import json
import time
from typing import Any, ClassVar

from ralph.testing.scripted_agent.dialects.speech import Lines, ScriptedCall, Voice, new_uuid, now
from ralph.testing.scripted_agent.script import ScriptedFailure, ScriptedTurn

MODEL = "gemini-2.5-flash"
STATUSES = {400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED"}
TRY_LATER = (
    "\nPlease wait and try again later. To increase your limits, request a quota increase "
    "through AI Studio, or switch to another /auth method"
)


def failure_text(failure: ScriptedFailure) -> str:
    """The words that gemini finds for a failed API call: the service's own JSON, but for a 429."""
    status, message = failure.get("status", 500), failure.get("message", "Internal error")
    if status == 429:
        retry = ""
        if "resets_at" in failure:
            retry = f" Please retry in {max(0, failure['resets_at'] - time.time()):.3f}s."
        return f"[API Error: {message}{retry}]{TRY_LATER}"
    error = {"code": status, "message": message, "status": STATUSES.get(status, "INTERNAL")}
    return f"[API Error: {json.dumps({'error': error}, separators=(',', ':'))}]"


class GeminiText(Voice):
    """`--output-format text`: every block as it comes; failures are on standard error."""

    leaves: ClassVar[dict[str, int | None]] = {"INT": 0, "TERM": 0}

    def failing_exit(self, failure: ScriptedFailure) -> int:
        return failure.get("status", 500) & 255


class Gemini(GeminiText):
    """The prompt, pieces of text, tool calls, and a `result` with the tokens."""

    def __init__(self, turn: ScriptedTurn) -> None:
        super().__init__(turn)
        self.tools = 0

    def opening(self, prompt: str) -> Lines:
        yield self.line("init", session_id=new_uuid(), model=MODEL)
        yield self.line("message", role="user", content=prompt)

    def says(self, text: str) -> Lines:
        self.last = text
        yield self.line("message", role="assistant", content=text, delta=True)

    def calls(self, call: ScriptedCall) -> Lines:
        self.tools += 1
        yield self.line("tool_use", tool_name=call.name, tool_id=call.id, parameters=call.input)

    def answers(self, call: ScriptedCall) -> Lines:
        if call.tool.get("denied"):
            missing = f'ScriptedTool "{call.name}" not found.'
            yield self.failed(call, missing, "tool_not_registered")
        elif call.error and not call.ran:
            yield self.failed(call, call.output, "execution_failed")
        else:  # a command that fails has still been run
            output = {"output": call.output.rstrip("\n")} if call.output else {}
            yield self.line("tool_result", tool_id=call.id, status="success", **output)

    def failed(self, call: ScriptedCall, message: str, kind: str) -> dict[str, Any]:
        error = {"type": kind, "message": message}
        return self.line(
            "tool_result", tool_id=call.id, status="error", output=message, error=error
        )

    def plans(self, todo: list[tuple[str, str]]) -> Lines:
        todos = [{"description": text, "status": status} for text, status in todo]
        yield from self.whole(ScriptedCall({"name": "write_todos", "input": {"todos": todos}}))

    def delegates(self, text: str) -> Lines:
        order = {"agent_name": "generalist", "prompt": "Look"}
        yield from self.whole(
            ScriptedCall({"name": "invoke_agent", "input": order, "output": text})
        )

    def whole(self, call: ScriptedCall) -> Lines:
        """A call that ends at once."""
        yield from self.calls(call)
        yield from self.answers(call)

    def hears(self, text: str) -> Lines:
        message = f"Agent execution blocked: {text}"
        yield self.line("error", severity="warning", message=message)

    def result(self) -> Lines:
        yield self.line("result", status="success", stats=self.stats())

    def fails(self, failure: ScriptedFailure) -> Lines:
        error = {"type": "unknown", "message": failure_text(failure)}
        yield self.line("result", status="error", error=error, stats=self.stats())

    def stats(self) -> dict[str, Any]:
        """The end of every result; what is cached is counted as input, too."""
        tokens = self.usage
        prompt = tokens["input"] + tokens["cache_read"]
        counts = {
            "total_tokens": prompt + tokens["output"],
            "input_tokens": prompt,
            "output_tokens": tokens["output"],
            "cached": tokens["cache_read"],
            "input": tokens["input"],
        }
        more = {"duration_ms": 111, "tool_calls": self.tools, "models": {MODEL: counts}}
        return {**counts, **more}

    def line(self, kind: str, **fields: object) -> dict[str, Any]:
        return {"type": kind, "timestamp": now(), **fields}
