"""Codex: `codex exec --json` (H §Codex Streaming JSON).

Tokens are those of the thread: over a resumed thread they add up, but Ralph always starts a new
one. Codex reports no cost.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from ralph.agents.streams.ndjson import (
    NdjsonParser,
    as_count,
    as_list,
    as_text,
    clipped,
    field,
    one_line,
    telling,
    texts,
)
from ralph.kernel.events import (
    AgentEvent,
    Failure,
    Progress,
    Result,
    Retry,
    Text,
    Thinking,
    Todo,
    TodoItem,
    TodoStatus,
    ToolEnd,
    ToolStart,
    Usage,
)
from ralph.kernel.value import value

_RECONNECTING = re.compile(r"Reconnecting\W+(\d{1,9})/(\d{1,9})\s*(.*)", re.DOTALL)
_STATUS = re.compile(r"\bstatus:? ([45]\d\d)\b")
_OUT_OF_MONEY = re.compile(r"quota|billing", re.IGNORECASE)
_LIMITED = re.compile(r"(?:rate|usage) limit|too many requests", re.IGNORECASE)
# Codex' own words for a service that fails or is full: the status does not reach its stream.
_OVERLOADED = re.compile(
    r"at capacity|experiencing high demand|server (?:is )?overloaded", re.IGNORECASE
)
_AMOUNT = r"(\d{1,9}(?:\.\d{1,9})?)\s*(ms|days?|d|hours?|h|minutes?|min|m|seconds?|sec|s)(?![a-z])"
_AMOUNTS = re.compile(_AMOUNT, re.IGNORECASE)
_TRY_AGAIN = re.compile(rf"try again in ((?:{_AMOUNT}[\s,]*(?:and\s+)?)+)", re.IGNORECASE)
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


class AgentMessage(msgspec.Struct, gc=False, tag="agent_message"):
    text: Any = None


class CodexReasoning(msgspec.Struct, gc=False, tag="reasoning"):
    """A summary of what the model thought."""

    text: Any = None


class CommandExecution(msgspec.Struct, gc=False, tag="command_execution"):
    id: Any = None
    command: Any = None
    aggregated_output: Any = None
    exit_code: Any = None
    status: Any = None


class FileChange(msgspec.Struct, gc=False, tag="file_change"):
    """A patch to files."""

    id: Any = None
    changes: Any = None
    status: Any = None


class McpToolCall(msgspec.Struct, gc=False, tag="mcp_tool_call"):
    id: Any = None
    server: Any = None
    tool: Any = None
    arguments: Any = None
    result: Any = None
    error: Any = None
    status: Any = None


class WebSearch(msgspec.Struct, gc=False, tag="web_search"):
    """A search; its query is often known only when it is over."""

    id: Any = None
    query: Any = None


class TodoList(msgspec.Struct, gc=False, tag="todo_list"):
    """The agent's plan."""

    items: Any = None


class CodexNotice(msgspec.Struct, gc=False, tag="error"):
    """A warning: "errors" occur in turns that succeed. As an item and as a line of its own."""

    message: Any = None


Call = CommandExecution | FileChange | McpToolCall | WebSearch
Item = AgentMessage | CodexReasoning | Call | TodoList | CodexNotice


class ThreadStarted(msgspec.Struct, gc=False, tag="thread.started"):
    thread_id: Any = None


class TurnStarted(msgspec.Struct, gc=False, tag="turn.started"):
    """The prompt is on its way."""


class ItemStarted(msgspec.Struct, gc=False, tag="item.started"):
    item: Item


class ItemUpdated(msgspec.Struct, gc=False, tag="item.updated"):
    item: Item


class ItemCompleted(msgspec.Struct, gc=False, tag="item.completed"):
    item: Item


class TurnCompleted(msgspec.Struct, gc=False, tag="turn.completed"):
    usage: Any = None


class TurnFailed(msgspec.Struct, gc=False, tag="turn.failed"):
    """The turn failed: the only line that says so."""

    error: Any = None


Line = (
    ThreadStarted
    | TurnStarted
    | ItemStarted
    | ItemUpdated
    | ItemCompleted
    | TurnCompleted
    | TurnFailed
    | CodexNotice
)

_DECODER: msgspec.json.Decoder[Line] = msgspec.json.Decoder(Line)


class CodexParser(NdjsonParser[Line]):
    """Understands Codex's stream."""

    def __init__(self) -> None:
        super().__init__(_DECODER)
        self._running: set[str] = set()
        self._todo = Todo(())

    def understand(self, line: Line) -> Iterable[AgentEvent]:
        match line:
            case ItemStarted(item) | ItemUpdated(item):
                return self._begun(item)
            case ItemCompleted(item):
                return self._ended(item)
            case TurnCompleted(usage):
                return (Result(usage=_usage(usage)),)
            case TurnFailed(error):
                words = clipped(as_text(field(error, "message"))) or "the turn failed"
                return (Result(failure=Failure(words, _status(words), _retry_after(words))),)
            case CodexNotice(message):
                return (_notice(as_text(message)),)
            case ThreadStarted(thread_id):
                session = as_text(thread_id)
                return (Progress(f"session {session}".strip(), session or None),)
        return ()  # the turn has started: that was known

    def _begun(self, item: Item) -> Iterator[AgentEvent]:
        if isinstance(item, TodoList):
            yield from self._listed(item)
        elif isinstance(item, Call):
            yield from self._started(_tool(item))

    def _ended(self, item: Item) -> Iterator[AgentEvent]:
        match item:
            case AgentMessage(text):
                yield from [Text(text)] if as_text(text) else []
            case CodexReasoning(text):
                yield from [Thinking(text)] if as_text(text) else []
            case CodexNotice(message):
                yield _notice(as_text(message))
            case TodoList():
                yield from self._listed(item)
            case _:
                tool = _tool(item)
                yield from self._started(tool)
                self._running.discard(tool.id)
                yield ToolEnd(tool.id, tool.output, tool.is_error)

    def _started(self, tool: "_Tool") -> Iterator[AgentEvent]:
        """Its ToolStart, once: some items are completed without ever having been started."""
        if tool.id not in self._running:
            self._running.add(tool.id)
            yield ToolStart(tool.id, tool.name, tool.summary)

    def _listed(self, item: TodoList) -> Iterator[AgentEvent]:
        items = []
        for entry in as_list(item.items):
            done = field(entry, "completed") is True
            status = TodoStatus.DONE if done else TodoStatus.PENDING
            items.append(TodoItem(as_text(field(entry, "text")), status))
        if tuple(items) != self._todo.items:
            self._todo = Todo(tuple(items))
            yield self._todo


@value
class _Tool:
    """A call, whatever its kind."""

    id: str
    name: str
    summary: str
    output: str
    is_error: bool


def _tool(item: Call) -> _Tool:
    identity = as_text(item.id)
    if isinstance(item, WebSearch):
        query = as_text(item.query)
        return _Tool(identity, "web_search", one_line(query), query, is_error=False)
    failed = item.status in ("failed", "declined")
    match item:
        case CommandExecution():
            summary, output = one_line(as_text(item.command)), as_text(item.aggregated_output)
            failed = failed or item.exit_code not in (0, None)
            return _Tool(identity, "shell", summary, output, failed)
        case FileChange():  # such as "add added.txt, update main.py"
            pairs = (
                (as_text(field(c, "kind")), as_text(field(c, "path")))
                for c in as_list(item.changes)
            )
            words = ", ".join(f"{kind} {path.rpartition('/')[2]}" for kind, path in pairs)
            return _Tool(identity, "patch", one_line(words), "", failed)
        case _:
            name = f"{as_text(item.server)}.{as_text(item.tool)}"
            output = texts(field(item.result, "content")) or as_text(field(item.error, "message"))
            return _Tool(identity, name, telling(item.arguments), output, failed)


def _notice(message: str) -> AgentEvent:
    retry = _RECONNECTING.match(message)
    if retry is None:
        return Progress(one_line(message))
    attempt, of, why = retry.groups()
    return Retry(int(attempt), int(of), why=one_line(why.removeprefix("(").removesuffix(")")))


def _usage(value: object) -> Usage:
    """Codex counts what is read from the cache, and what is written to it, as input too."""
    read = as_count(field(value, "cached_input_tokens"))
    written = as_count(field(value, "cache_write_input_tokens"))
    return Usage(
        input=max(0, as_count(field(value, "input_tokens")) - read - written),
        output=as_count(field(value, "output_tokens")),
        cache_read=read,
        cache_write=written,
    )


def _status(message: str) -> int | None:
    """The HTTP status, as far as the words of the failure give it away.

    A quota that is used up answers 429 too, but only money helps: no status then.
    """
    stated = _STATUS.search(message)
    if stated and stated[1] != "429":
        return int(stated[1])
    if _OUT_OF_MONEY.search(message):
        return None
    if stated or _LIMITED.search(message):
        return 429
    return 503 if _OVERLOADED.search(message) else None


def _retry_after(message: str) -> float | None:
    """Seconds: "try again in 1.2s", "3m 20s", "2 hours and 5 minutes"."""
    told = _TRY_AGAIN.search(message)
    if told is None:
        return None
    amounts = ((float(number), unit.lower()) for number, unit in _AMOUNTS.findall(told[1]))
    return sum(number * _SECONDS[unit if unit == "ms" else unit[0]] for number, unit in amounts)


def parser(prompt: str) -> CodexParser:
    return CodexParser()
