"""Ralph's own agent, `ralph agent --output json`."""

import os
from typing import ClassVar

from ralph.testing.scripted_agent.dialects.speech import (
    NO_USAGE,
    Lines,
    ScriptedCall,
    Voice,
    new_id,
)
from ralph.testing.scripted_agent.script import ScriptedFailure, ScriptedTurn

MODEL = "anthropic:claude-sonnet-5-5"


class Own(Voice):
    """One object a line; the last one is the result, also of a turn that failed. The tokens of each
    call of the model are told before its words: here all of them are those of the first."""

    leaves: ClassVar[dict[str, int | None]] = {"TERM": 130}
    interrupted_exit: ClassVar[int] = 130

    def __init__(self, turn: ScriptedTurn) -> None:
        super().__init__(turn)
        self.steps = 0
        self.answered = False  # the model speaks: what it used is told

    def opening(self, prompt: str) -> Lines:
        told = {"session": new_id(), "model": MODEL, "workspace": os.getcwd()}
        yield {"type": "session", **told, "version": "0.2.0", "guard": True}

    def thinks(self, text: str) -> Lines:
        yield from self.answer()
        yield {"type": "thinking", "text": text}

    def says(self, text: str) -> Lines:
        self.last = text
        yield from self.answer()
        yield {"type": "text", "text": text}

    def calls(self, call: ScriptedCall) -> Lines:
        yield from self.answer()
        yield {"type": "action", "id": call.id, "action": call.name, "input": call.input}

    def answers(self, call: ScriptedCall) -> Lines:
        ended = {"output": call.output, "is_error": call.error, "exit_code": call.code}
        yield {"type": "action_result", "id": call.id, **ended, "seconds": 0.1}
        self.answered = False

    def answer(self) -> Lines:
        if not self.answered:
            self.answered, self.steps = True, self.steps + 1
            yield {"type": "used", "usage": tokens(self.usage if self.steps == 1 else NO_USAGE)}

    def result(self) -> Lines:
        yield from self.answer()
        yield self.ended(None)

    def fails(self, failure: ScriptedFailure) -> Lines:
        status, message = failure.get("status", 500), failure.get("message", "the service failed")
        wait = {"retry_after": None, "resets_at": failure.get("resets_at")}
        yield self.ended({"message": message, "status": status, **wait})

    def interrupted(self, call: ScriptedCall | None) -> Lines:
        nothing = {"status": None, "retry_after": None, "resets_at": None}
        yield self.ended({"message": "interrupted", **nothing})

    def ended(self, error: object) -> dict[str, object]:
        told = {"text": self.last, "error": error, "usage": tokens(self.usage)}
        return {"type": "result", **told, "steps": self.steps}


def tokens(usage: dict[str, int]) -> dict[str, int]:
    return {
        "input_tokens": usage["input"],
        "output_tokens": usage["output"],
        "cache_read_input_tokens": usage["cache_read"],
        "cache_creation_input_tokens": usage["cache_write"],
    }
