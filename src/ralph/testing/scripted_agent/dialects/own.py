"""Ralph's own agent, `ralph agent --output json`."""

import os

from ralph.testing.scripted_agent.dialects.speech import Lines, ScriptedCall, Voice, new_id
from ralph.testing.scripted_agent.script import ScriptedFailure

MODEL = "anthropic:claude-sonnet-5-5"


class Own(Voice):
    """One object a line; the last one is the result, also of a turn that failed."""

    steps = 1

    def opening(self, prompt: str) -> Lines:
        told = {"session": new_id(), "model": MODEL, "workspace": os.getcwd()}
        yield {"type": "session", **told, "version": "0.2.0", "guard": True}

    def thinks(self, text: str) -> Lines:
        yield {"type": "thinking", "text": text}

    def says(self, text: str) -> Lines:
        self.last = text
        yield {"type": "text", "text": text}

    def calls(self, call: ScriptedCall) -> Lines:
        self.steps += 1
        yield {"type": "action", "id": call.id, "action": call.name, "input": call.input}

    def answers(self, call: ScriptedCall) -> Lines:
        ended = {"output": call.output, "is_error": call.error, "exit_code": call.code}
        yield {"type": "action_result", "id": call.id, **ended, "seconds": 0.1}

    def result(self) -> Lines:
        yield {"type": "used", "usage": self.tokens()}
        yield self.ended(None)

    def fails(self, failure: ScriptedFailure) -> Lines:
        status, message = failure.get("status", 500), failure.get("message", "the service failed")
        if status >= 500:
            why = f"{status} {message}"
            yield {"type": "retry", "attempt": 1, "of": 5, "seconds": 1.0, "why": why}
        wait = {"retry_after": None, "resets_at": failure.get("resets_at")}
        yield self.ended({"message": message, "status": status, **wait})

    def interrupted(self, call: ScriptedCall | None) -> Lines:
        nothing = {"status": None, "retry_after": None, "resets_at": None}
        yield self.ended({"message": "interrupted", **nothing})

    def ended(self, error: object) -> dict[str, object]:
        told = {"text": self.last, "error": error, "usage": self.tokens(), "steps": self.steps}
        return {"type": "result", **told}

    def tokens(self) -> dict[str, int]:
        return {
            "input_tokens": self.usage["input"],
            "output_tokens": self.usage["output"],
            "cache_read_input_tokens": self.usage["cache_read"],
            "cache_creation_input_tokens": self.usage["cache_write"],
        }
