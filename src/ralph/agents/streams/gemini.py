"""Gemini: `--output-format stream-json`. The traps are in docs/facts.md §2.

Assistant text comes in pieces that are cut anywhere. Tokens are told once, at the end; Gemini
reports no cost.
"""

import json
import re
from collections.abc import Iterator
from typing import Any, Literal

import msgspec

from ralph.agents.streams.ndjson import (
    NdjsonParser,
    as_count,
    as_text,
    clipped,
    field,
    one_line,
    retry_after,
    session_begins,
    telling,
    todo_list,
)
from ralph.kernel import events

_LONGEST = 64 * 1024  # of a line that is still being said; a longer one comes out in parts
_BLOCKED = "Agent execution blocked: "  # a hook's feedback, told as a warning
# Without a terminal and without an approval mode these are not denied: they do not exist.
_NEED_APPROVAL = frozenset({"replace", "run_shell_command", "web_fetch", "write_file"})

# The CLI's own words after a 429; for such a failure it drops the service's code.
_LIMITED = re.compile(r"Please wait and try again later|Possible quota limitations in place")
_NAMED = re.compile(r"\(Status: ([A-Z_]{1,40})\)")
_CODES = {
    "UNAUTHENTICATED": 401,
    "PERMISSION_DENIED": 403,
    "RESOURCE_EXHAUSTED": 429,
    "INTERNAL": 500,
    "UNAVAILABLE": 503,
    "DEADLINE_EXCEEDED": 504,
}


class Init(msgspec.Struct, gc=False, tag="init"):
    session_id: Any = None
    model: Any = None


class GeminiMessage(msgspec.Struct, gc=False, tag="message"):
    """The prompt, or a piece of what the model says."""

    role: Any = None
    content: Any = None
    delta: Any = None


class GeminiToolUse(msgspec.Struct, gc=False, tag="tool_use"):
    tool_name: Any = None
    tool_id: Any = None
    parameters: Any = None


class ToolResult(msgspec.Struct, gc=False, tag="tool_result"):
    """A tool call has ended. A shell command that failed is a success here."""

    tool_id: Any = None
    status: Any = None
    output: Any = None
    error: Any = None


class GeminiNotice(msgspec.Struct, gc=False, tag="error"):
    """A warning, or why the result will be bad."""

    severity: Any = None
    message: Any = None


class GeminiResult(msgspec.Struct, gc=False, tag="result"):
    """The last word. A status that we do not know must not pass for a success."""

    status: Literal["success", "error"]
    error: Any = None
    stats: Any = None


Line = Init | GeminiMessage | GeminiToolUse | ToolResult | GeminiNotice | GeminiResult


class GeminiParser(NdjsonParser[Line]):
    decoder = msgspec.json.Decoder(Line)

    def __init__(self) -> None:
        super().__init__()
        self._line = ""  # that the model is still saying
        self._names: dict[str, str] = {}  # of the tools that run, by id
        self._denied: dict[str, None] = {}
        self._problem = ""

    def understand(self, line: Line) -> Iterator[events.AgentEvent]:
        """The events of one line; a piece of text gives the lines that it completes."""
        if isinstance(line, GeminiMessage) and line.role == "assistant" and line.delta:
            yield from self._piece(as_text(line.content))
        else:
            yield from self.held_back()
            yield from self._meaning(line)

    def held_back(self) -> list[events.AgentEvent]:
        """The last line of what the model said, if it has not come out yet."""
        rest, self._line = self._line, ""
        return [events.Text(rest)] if rest else []

    def _piece(self, text: str) -> Iterator[events.AgentEvent]:
        """Lines come out whole, each with its newline, so that pieces join without one."""
        whole, newline, self._line = (self._line + text).rpartition("\n")
        if newline:
            yield events.Text(f"{whole}\n")
        elif len(self._line) > _LONGEST:
            yield from self.held_back()

    def _meaning(self, line: Line) -> Iterator[events.AgentEvent]:
        match line:
            case GeminiMessage():
                # Whole: the prompt, repeated; or a block of a model that does not stream.
                by_model = line.role == "assistant"
                speaker = events.Speaker.ASSISTANT if by_model else events.Speaker.PROMPT
                if text := as_text(line.content):
                    yield events.Text(text, speaker)
            case GeminiToolUse():
                identity, name = as_text(line.tool_id), as_text(line.tool_name)
                self._names[identity] = name
                given = self.arguments(line.parameters)
                yield events.ToolStart(identity, name, telling(line.parameters), arguments=given)
                if name == "write_todos":
                    yield todo_list(field(line.parameters, "todos"))
            case ToolResult():
                yield self._answered(line)
            case GeminiNotice():
                yield self._noticed(line)
            case Init():
                yield session_begins(line.session_id, line.model)
            case _:  # the last word
                denied = tuple(filter(None, self._denied))
                yield events.Result(
                    failure=self._failure(line), usage=_usage(line.stats), denied=denied
                )

    def _answered(self, line: ToolResult) -> events.ToolEnd:
        identity = as_text(line.tool_id)
        name, kind = self._names.pop(identity, ""), field(line.error, "type")
        if kind == "policy_violation" or (kind == "tool_not_registered" and name in _NEED_APPROVAL):
            self._denied[name] = None
        output = as_text(line.output) or as_text(field(line.error, "message"))
        return events.ToolEnd(identity, output, line.status == "error")

    def _noticed(self, line: GeminiNotice) -> events.AgentEvent:
        message = as_text(line.message)
        if message.startswith(_BLOCKED):
            return events.Text(message.removeprefix(_BLOCKED), events.Speaker.HOOK)
        if line.severity == "error":
            self._problem = message
        return events.Progress(one_line(message))

    def _failure(self, line: GeminiResult) -> events.Failure | None:
        if line.status == "success":
            return None
        message = as_text(field(line.error, "message")) or self._problem
        error = field(_quoted(message), "error")
        code, words = as_count(field(error, "code")), as_text(field(error, "message"))
        # For people without the JSON, if the service's own words are in it.
        shown = clipped(f"API error {code}: {words}" if words else message)
        status = code or _status(message)
        return events.Failure(shown or "the agent reports an error", status, retry_after(message))


def _usage(stats: object) -> events.Usage:
    """Thinking is only in the total; it is paid for as output."""
    prompt, cached = as_count(field(stats, "input_tokens")), as_count(field(stats, "cached"))
    rest = as_count(field(stats, "total_tokens")) - prompt
    return events.Usage(
        input=as_count(field(stats, "input")) or max(0, prompt - cached),
        output=max(as_count(field(stats, "output_tokens")), rest),
        cache_read=cached,
    )


def _status(message: str) -> int | None:
    """The service's code by its name, or by the CLI's words."""
    if _LIMITED.search(message):
        return 429
    named = _NAMED.search(message)
    return _CODES.get(named[1]) if named else None


def _quoted(message: str) -> object:
    """The object in a message such as `[API Error: {…}]`; None where there is none."""
    begin = message.find("{")
    try:
        return json.JSONDecoder().raw_decode(message, begin)[0] if begin >= 0 else None
    except (ValueError, RecursionError):
        return None
