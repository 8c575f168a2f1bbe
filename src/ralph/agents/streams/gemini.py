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
    telling,
)
from ralph.agents.streams.todo import todo_list
from ralph.kernel.events import (
    AgentEvent,
    Failure,
    Progress,
    Result,
    Speaker,
    Text,
    ToolEnd,
    ToolStart,
    Usage,
)

_LONGEST = 64 * 1024  # of a line that is still being said; a longer one comes out in parts
_BLOCKED = "Agent execution blocked: "  # a hook's feedback, told as a warning
_NO_SUCH_TOOL = "tool_not_registered"
_POLICY = "policy_violation"
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
_RETRY = re.compile(
    r"(?:retry in|retry after|reset after) ((?:\d{1,9}(?:\.\d{1,9})?(?:ms|[smh]))+)"
)
_AMOUNT = re.compile(r"([\d.]+)(ms|[smh])")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


class Init(msgspec.Struct, gc=False, tag="init"):
    """The session begins."""

    session_id: Any = None
    model: Any = None


class GeminiMessage(msgspec.Struct, gc=False, tag="message"):
    """The prompt, or a piece of what the model says."""

    role: Any = None
    content: Any = None
    delta: Any = None


class GeminiToolUse(msgspec.Struct, gc=False, tag="tool_use"):
    """A tool call begins."""

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

_DECODER: msgspec.json.Decoder[Line] = msgspec.json.Decoder(Line)


class GeminiParser(NdjsonParser[Line]):
    """Understands Gemini's stream."""

    def __init__(self) -> None:
        super().__init__(_DECODER)
        self._pieces: list[str] = []  # of the line that the model is still saying
        self._length = 0  # of these, in all
        self._names: dict[str, str] = {}  # of the tools that run, by id
        self._denied: dict[str, None] = {}
        self._problem = ""

    def understand(self, line: Line) -> Iterator[AgentEvent]:
        """The events of one line; a piece of text gives the lines that it completes."""
        if isinstance(line, GeminiMessage) and line.role == "assistant" and line.delta:
            yield from self._piece(as_text(line.content))
        else:
            yield from self.end()
            yield from self._meaning(line)

    def end(self) -> list[AgentEvent]:
        """The last line of what the model said, if it has not come out yet."""
        rest, self._pieces, self._length = "".join(self._pieces), [], 0
        return [Text(rest)] if rest else []

    def _piece(self, text: str) -> Iterator[AgentEvent]:
        """Lines come out whole, each with its newline, so that pieces join without one."""
        whole = text.rfind("\n") + 1
        self._pieces.append(text[:whole] or text)
        self._length += len(text)
        if whole or self._length > _LONGEST:
            yield from self.end()
            self._pieces.append(text[whole:] if whole else "")
            self._length = len(self._pieces[0])

    def _meaning(self, line: Line) -> Iterator[AgentEvent]:
        match line:
            case GeminiMessage():
                # Whole: the prompt, repeated; or a block of a model that does not stream.
                speaker = Speaker.ASSISTANT if line.role == "assistant" else Speaker.PROMPT
                if text := as_text(line.content):
                    yield Text(text, speaker)
            case GeminiToolUse():
                identity, name = as_text(line.tool_id), as_text(line.tool_name)
                self._names[identity] = name
                yield ToolStart(identity, name, telling(line.parameters))
                if name == "write_todos":
                    yield todo_list(field(line.parameters, "todos"))
            case ToolResult():
                yield self._answered(line)
            case GeminiNotice():
                yield self._noticed(line)
            case Init():
                session, model = as_text(line.session_id), as_text(line.model)
                text = f"session {session}".strip()
                yield Progress(f"{text} model {model}" if model else text, session or None)
            case _:  # the last word
                denied = tuple(filter(None, self._denied))
                yield Result(failure=self._failure(line), usage=_usage(line.stats), denied=denied)

    def _answered(self, line: ToolResult) -> ToolEnd:
        identity = as_text(line.tool_id)
        name, kind = self._names.pop(identity, ""), field(line.error, "type")
        if kind == _POLICY or (kind == _NO_SUCH_TOOL and name in _NEED_APPROVAL):
            self._denied[name] = None
        output = as_text(line.output) or as_text(field(line.error, "message"))
        return ToolEnd(identity, output, line.status == "error")

    def _noticed(self, line: GeminiNotice) -> AgentEvent:
        message = as_text(line.message)
        if message.startswith(_BLOCKED):
            return Text(message.removeprefix(_BLOCKED), Speaker.HOOK)
        if line.severity == "error":
            self._problem = message
        return Progress(one_line(message))

    def _failure(self, line: GeminiResult) -> Failure | None:
        if line.status == "success":
            return None
        message = as_text(field(line.error, "message")) or self._problem
        error = field(_quoted(message), "error")
        code, words = as_count(field(error, "code")), as_text(field(error, "message"))
        # For people without the JSON, if the service's own words are in it.
        shown = clipped(f"API error {code}: {words}" if words else message)
        status = code or _status(message)
        return Failure(shown or "the agent reports an error", status, _retry_after(message))


def _usage(stats: object) -> Usage:
    """What the model thought is only in the total; it is paid for as output."""
    prompt, cached = as_count(field(stats, "input_tokens")), as_count(field(stats, "cached"))
    rest = as_count(field(stats, "total_tokens")) - prompt
    return Usage(
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


def _retry_after(message: str) -> float | None:
    """Seconds: "Please retry in 12.5s", "Suggested retry after 60s", "reset after 1h20m"."""
    told = _RETRY.search(message)
    if told is None:
        return None
    return sum(float(number) * _SECONDS[unit] for number, unit in _AMOUNT.findall(told[1]))


def parser(prompt: str) -> GeminiParser:
    return GeminiParser()
