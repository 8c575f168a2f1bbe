"""opencode's `run --format json`, as version 1.18.33 prints it; its text mode prints the texts."""

import time
from typing import Any, ClassVar

from ralph.testing.scripted_agent.dialects.speech import (
    NO_USAGE,
    Lines,
    ScriptedCall,
    Voice,
    new_id,
)
from ralph.testing.scripted_agent.script import ScriptedFailure, ScriptedTurn

REJECTED = "The user rejected permission to use this specific tool call."


class Opencode(Voice):
    """Steps: one for each answer of the model, with what it cost. There is no result line."""

    leaves: ClassVar[dict[str, int | None]] = {"INT": None}

    def __init__(self, turn: ScriptedTurn) -> None:
        super().__init__(turn)
        self.session = new_id("ses_")
        self.message = ""  # of the step under way; nothing between steps
        self.rejected = False

    def thinks(self, text: str) -> Lines:
        yield from self.begins()
        yield self.block("reasoning", text)

    def says(self, text: str) -> Lines:
        self.last = text
        if not self.rejected:
            yield from self.begins()
            yield self.block("text", text)

    def calls(self, call: ScriptedCall) -> Lines:
        yield from self.begins()

    def answers(self, call: ScriptedCall) -> Lines:
        denied = bool(call.tool.get("denied"))
        yield from self.begins()
        yield self.tool(call, REJECTED if denied else call.output)
        yield self.ends("tool-calls", NO_USAGE, 0)
        self.rejected = self.rejected or denied  # which ends the turn, as if it were done

    def tool(self, call: ScriptedCall, output: str) -> dict[str, Any]:
        """A call that has ended. A command that fails is completed all the same."""
        state: dict[str, Any] = {"status": "completed", "input": call.input}
        if call.error and not call.ran:
            state |= {"status": "error", "error": output}
        else:
            metadata = {"output": output, "exit": call.code} if call.ran else {}
            title = str(call.input.get("command", call.name))
            state |= {"output": output, "metadata": {**metadata, "truncated": False}}
            state |= {"title": title}
        state |= {"time": {"start": now(), "end": now()}}
        return self.part("tool_use", "tool", tool=call.name, callID=call.id, state=state)

    def plans(self, todo: list[tuple[str, str]]) -> Lines:
        todos = [{"content": text, "status": status, "priority": "high"} for text, status in todo]
        yield from self.answers(ScriptedCall({"name": "todowrite", "input": {"todos": todos}}))

    def delegates(self, text: str) -> Lines:
        order = {"description": "look", "prompt": "Look", "subagent_type": "general"}
        told = f'<task state="completed">\n<task_result>\n{text}\n</task_result>\n</task>'
        yield from self.answers(ScriptedCall({"name": "task", "input": order, "output": told}))

    def result(self) -> Lines:
        if not self.rejected:
            yield from self.begins()
            yield self.ends("stop", self.usage, self.turn.get("cost", 0.001))

    def fails(self, failure: ScriptedFailure) -> Lines:
        headers = {"content-type": "application/json"}
        if "resets_at" in failure:
            headers["retry-after"] = str(max(0, round(failure["resets_at"] - time.time())))
        data = {
            "message": failure.get("message", "Internal error"),
            "statusCode": failure.get("status", 500),
            "isRetryable": failure.get("status", 500) in (429, 500),
            "responseHeaders": headers,
            "responseBody": "{}",
            "metadata": {"url": "http://127.0.0.1/v1/chat/completions"},
        }
        yield self.line("error", error={"name": "APIError", "data": data})

    def begins(self) -> Lines:
        """A step begins, unless one is under way."""
        if not self.message:
            self.message = new_id("msg_")
            yield self.part("step_start", "step-start")

    def ends(self, reason: str, usage: dict[str, int], cost: float) -> dict[str, Any]:
        """The line that ends a step."""
        cache = {"write": usage["cache_write"], "read": usage["cache_read"]}
        tokens = {
            "total": sum(usage.values()),
            "input": usage["input"],
            "output": usage["output"],
            "reasoning": 0,
            "cache": cache,
        }
        line = self.part("step_finish", "step-finish", reason=reason, tokens=tokens, cost=cost)
        self.message = ""
        return line

    def block(self, kind: str, text: str) -> dict[str, Any]:
        return self.part(kind, kind, text=text, time={"start": now(), "end": now()})

    def part(self, line: str, kind: str, **fields: object) -> dict[str, Any]:
        names = {"id": new_id("prt_"), "messageID": self.message, "sessionID": self.session}
        return self.line(line, part={**names, "type": kind, **fields})

    def line(self, kind: str, **fields: object) -> dict[str, Any]:
        return {"type": kind, "timestamp": now(), "sessionID": self.session, **fields}


def now() -> int:
    return int(time.time() * 1000)
