"""Claude Code's stream-json, as version 2.1.197 prints it, and its text mode; and Amp's
--stream-json (H §Amp Streaming JSON): Claude's shapes with fewer fields."""

import os
from typing import Any, ClassVar

from ralph.testing.scripted_agent.dialects.speech import (
    LastWord,
    Lines,
    ScriptedCall,
    Voice,
    new_id,
    new_uuid,
    now,
)
from ralph.testing.scripted_agent.script import ScriptedFailure, ScriptedTurn

MODEL = "claude-opus-4-8"
TOOLS = ["Task", "Bash", "Edit", "Read", "TaskCreate", "TaskUpdate", "TodoWrite", "Write"]
ERRORS = {401: "authentication_failed", 429: "rate_limit", 529: "overloaded"}
TODOS_MODIFIED = (
    "Todos have been modified successfully. Ensure that you continue to use the todo list to "
    "track your progress. Please proceed with the current tasks if applicable"
)
REJECTED = (
    "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it "
    "was a file edit, the new_string was NOT written to the file). STOP what you are doing and "
    "wait for the user to tell you how to proceed."
)


def failure_text(failure: ScriptedFailure) -> str:
    """The words that Claude Code finds for a failed API call."""
    status, message = failure.get("status", 500), failure.get("message", "Internal server error")
    if status == 401:
        return "Invalid API key · Fix external API key"
    if status == 429:
        return f"API Error: Request rejected (429) · {message}"
    return f"API Error: {status} {message}. This is a server-side issue, usually temporary."


class Claude(Voice):
    """One `assistant` line for each content block, and a `result` at the end."""

    leaves: ClassVar[dict[str, int | None]] = {"TERM": 143}

    def __init__(self, turn: ScriptedTurn) -> None:
        super().__init__(turn)
        self.session = new_uuid()
        self.turns = 1
        self.denials: list[dict[str, Any]] = []

    def opening(self, prompt: str) -> Lines:
        yield self.line(
            "system",
            subtype="init",
            cwd=os.getcwd(),
            tools=TOOLS,
            mcp_servers=[],
            model=MODEL,
            permissionMode="default",
            slash_commands=[],
            apiKeySource="none",
            claude_code_version="2.1.197",
            output_style="default",
            agents=["general-purpose"],
            skills=[],
            plugins=[],
            fast_mode_state="off",
        )

    def echo(self, prompt: str) -> Lines:
        yield self.user({"type": "text", "text": prompt}, isReplay=True)

    def limits(self, info: dict[str, Any]) -> Lines:
        yield self.line("rate_limit_event", rate_limit_info=info)

    def thinks(self, text: str) -> Lines:
        tokens = len(text) // 4
        estimate = {"estimated_tokens": tokens, "estimated_tokens_delta": tokens}
        yield self.line("system", subtype="thinking_tokens", **estimate)
        yield self.assistant({"type": "thinking", "thinking": text, "signature": "c2NyaXB0ZWQ="})

    def says(self, text: str) -> Lines:
        self.last = text
        yield self.assistant({"type": "text", "text": text})

    def calls(self, call: ScriptedCall) -> Lines:
        yield self.assistant(
            {"type": "tool_use", "id": call.id, "name": call.name, "input": call.input}
        )

    def answers(self, call: ScriptedCall) -> Lines:
        self.turns += 1
        if call.tool.get("denied"):
            denial = {"tool_name": call.name, "tool_use_id": call.id, "tool_input": call.input}
            self.denials.append(denial)
        if call.error:
            text = f"Exit code {call.code}\n{call.output}" if call.ran else call.output
            yield self.answer(call.id, text, f"Error: {text}", is_error=True)
        elif call.name == "Bash":
            text = call.output.rstrip("\n")
            shown = {"stdout": text, "stderr": "", "interrupted": False, "isImage": False}
            yield self.answer(call.id, text, shown, is_error=False)
        else:
            yield self.answer(call.id, call.output, {"content": call.output})

    def plans(self, todo: list[tuple[str, str]]) -> Lines:
        todos = [{"content": text, "status": status, "activeForm": text} for text, status in todo]
        call = ScriptedCall({"name": "TodoWrite", "input": {"todos": todos}})
        yield from self.calls(call)
        yield self.answer(call.id, TODOS_MODIFIED, {"oldTodos": [], "newTodos": todos})

    def delegates(self, text: str) -> Lines:
        order = {"description": "Look", "prompt": "Look", "subagent_type": "general-purpose"}
        call = ScriptedCall({"name": "Task", "input": order})
        yield from self.calls(call)
        yield self.assistant({"type": "text", "text": text}, parent=call.id)
        # The sub-agent's last word comes back as the tool's output, as a list of blocks.
        yield self.answer(call.id, [{"type": "text", "text": text}], {"status": "completed"})

    def hears(self, text: str) -> Lines:
        block = {"type": "text", "text": f"Stop hook feedback:\n{text}"}
        yield self.user(block, isSynthetic=True)

    def result(self) -> Lines:
        yield self.final(
            ttft_ms=106,
            is_error=False,
            api_error_status=None,
            result=self.last,
            stop_reason="end_turn",
            terminal_reason="completed",
        )

    def fails(self, failure: ScriptedFailure) -> Lines:
        status, text = failure.get("status", 500), failure_text(failure)
        error = ERRORS.get(status, "server_error")
        if "resets_at" in failure:
            rejected = {"status": "rejected", "resetsAt": failure["resets_at"]}
            yield from self.limits({**rejected, "rateLimitType": "five_hour"})
        retry = {"attempt": 1, "max_retries": 1, "retry_delay_ms": 500.5}
        yield self.line("system", subtype="api_retry", **retry, error_status=status, error=error)
        said = self.assistant({"type": "text", "text": text})
        said["message"] |= {"model": "<synthetic>", "stop_reason": "stop_sequence"}
        yield {**said, "error": error}
        yield self.final(
            is_error=True,  # with the subtype "success": the CLI really does say so
            api_error_status=status,
            num_turns=1,
            result=text,
            stop_reason="stop_sequence",
            total_cost_usd=self.turn.get("cost", 0),
            terminal_reason="completed",
        )

    def interrupted(self, call: ScriptedCall | None) -> Lines:
        if call is not None:
            yield self.answer(call.id, REJECTED, "User rejected tool use", is_error=True)
        words = "[Request interrupted by user for tool use]" if call else "[Request interrupted]"
        yield self.user({"type": "text", "text": words})
        yield self.final(
            "error_during_execution",
            is_error=True,
            stop_reason="tool_use" if call else None,
            terminal_reason="aborted_tools" if call else "aborted_streaming",
            errors=["[ede_diagnostic] result_type=user"],
        )

    def line(self, kind: str, **fields: object) -> dict[str, Any]:
        return {"type": kind, **fields, "uuid": new_uuid(), "session_id": self.session}

    def final(self, subtype: str = "success", **fields: object) -> dict[str, Any]:
        usual = {
            "duration_ms": 111,
            "duration_api_ms": 18,
            "num_turns": self.turns,
            "total_cost_usd": self.turn.get("cost", 0.001),
            "usage": self.tokens(),
            "modelUsage": {},
            "permission_denials": self.denials,
        }
        return self.line("result", subtype=subtype, **{**usual, **fields})

    def assistant(self, block: dict[str, Any], parent: str | None = None) -> dict[str, Any]:
        """An `assistant` line; a sub-agent's has the tool call it works for as its parent."""
        message = {
            "id": new_id("msg_"),
            "type": "message",
            "role": "assistant",
            "model": MODEL,
            "content": [block],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": {**self.tokens(), "output_tokens": 1},
        }
        request = new_id("req_")
        return self.line(
            "assistant", message=message, parent_tool_use_id=parent, request_id=request
        )

    def user(self, block: dict[str, Any], **fields: object) -> dict[str, Any]:
        message = {"role": "user", "content": [block]}
        return self.line(
            "user", message=message, parent_tool_use_id=None, timestamp=now(), **fields
        )

    def answer(self, call: str, content: object, shown: object, **fields: object) -> dict[str, Any]:
        block = {"tool_use_id": call, "type": "tool_result", "content": content, **fields}
        return self.user(block, tool_use_result=shown)

    def tokens(self) -> dict[str, int]:
        """The turn's usage under the API's names."""
        return {
            "input_tokens": self.usage["input"],
            "cache_creation_input_tokens": self.usage["cache_write"],
            "cache_read_input_tokens": self.usage["cache_read"],
            "output_tokens": self.usage["output"],
        }


class ClaudeText(LastWord):
    """`--output-format text`: an API error is printed where the answer would be."""

    leaves: ClassVar[dict[str, int | None]] = {"TERM": 143}

    def fails(self, failure: ScriptedFailure) -> Lines:
        yield failure_text(failure)


class Amp(Claude):
    """The prompt is repeated as a `user` line; there is no cost, no limit and no retry."""

    leaves: ClassVar[dict[str, int | None]] = {}
    echo = Voice.silent
    limits = Voice.silent

    def __init__(self, turn: ScriptedTurn) -> None:
        super().__init__(turn)
        self.session = f"T-{self.session}"

    def opening(self, prompt: str) -> Lines:
        yield self.line("system", subtype="init", cwd=os.getcwd(), tools=TOOLS, mcp_servers=[])
        yield self.user({"type": "text", "text": prompt})

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
        yield self.final(is_error=False, result=self.last, usage=self.tokens())

    def fails(self, failure: ScriptedFailure) -> Lines:
        words = f"{failure.get('status', 500)} {failure.get('message', 'Server error')}"
        yield self.final("error_during_execution", is_error=True, error=words)

    def interrupted(self, call: ScriptedCall | None) -> Lines:
        yield self.final("error_during_execution", is_error=True, error="Interrupted by user")

    def line(self, kind: str, **fields: object) -> dict[str, Any]:
        return {"type": kind, **fields, "session_id": self.session}

    def final(self, subtype: str = "success", **fields: object) -> dict[str, Any]:
        usual = {"duration_ms": 111, "num_turns": self.turns}
        return self.line("result", subtype=subtype, **usual, **fields)

    def assistant(self, block: dict[str, Any], parent: str | None = None) -> dict[str, Any]:
        message = {
            "type": "message",
            "role": "assistant",
            "content": [block],
            "stop_reason": "tool_use" if block["type"] == "tool_use" else "end_turn",
            "usage": self.tokens(),
        }
        return self.line("assistant", message=message, parent_tool_use_id=parent)

    def user(self, block: dict[str, Any], **fields: object) -> dict[str, Any]:
        message = {"role": "user", "content": [block]}
        return self.line("user", message=message, parent_tool_use_id=None)
