"""Codex: `codex exec --json` (H §Codex Streaming JSON).

Tokens are those of the thread: over a resumed thread they add up, but Ralph always starts a new
one. Codex reports no cost.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Any, Literal

import msgspec

from ralph.agents.streams.ndjson import (
    NdjsonParser,
    as_count,
    as_list,
    as_text,
    clipped,
    field,
    one_line,
    retry_after,
    service_status,
    session_begins,
    telling,
    texts,
)
from ralph.kernel import events

_RECONNECTING = re.compile(r"Reconnecting\W+(\d{1,9})/(\d{1,9})\s*(.*)", re.DOTALL)
_CALLS = ("command_execution", "file_change", "mcp_tool_call", "web_search")


class Item(msgspec.Struct, gc=False):
    """Something that the agent says or does; which fields it has depends on its type."""

    type: Literal[
        "agent_message",
        "reasoning",  # a summary of what the model thought
        "command_execution",
        "file_change",  # a patch to files
        "mcp_tool_call",
        "web_search",  # its query is often known only when it is over
        "todo_list",  # the agent's plan
        "error",  # a warning: "errors" occur in turns that succeed
    ]
    id: Any = None
    text: Any = None
    command: Any = None
    aggregated_output: Any = None
    exit_code: Any = None
    status: Any = None
    changes: Any = None
    server: Any = None
    tool: Any = None
    arguments: Any = None
    result: Any = None
    error: Any = None
    query: Any = None
    items: Any = None
    message: Any = None


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


class CodexNotice(msgspec.Struct, gc=False, tag="error"):
    """A warning, as a line of its own."""

    message: Any = None


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


class CodexParser(NdjsonParser[Line]):
    decoder = msgspec.json.Decoder(Line)

    def __init__(self) -> None:
        super().__init__()
        self._running: set[str] = set()
        self._todo = events.Todo(())

    def understand(self, line: Line) -> Iterable[events.AgentEvent]:
        match line:
            case ItemStarted(item) | ItemUpdated(item):
                return self._begun(item)
            case ItemCompleted(item):
                return self._ended(item)
            case TurnCompleted(usage):
                return (events.Result(usage=_usage(usage)),)
            case TurnFailed(error):
                words = clipped(as_text(field(error, "message"))) or "the turn failed"
                failure = events.Failure(words, service_status(words), retry_after(words))
                return (events.Result(failure=failure),)
            case CodexNotice(message):
                return (_notice(as_text(message)),)
            case ThreadStarted(thread_id):
                return (session_begins(thread_id),)
        return ()  # the turn has started: that was known

    def _ended(self, item: Item) -> Iterator[events.AgentEvent]:
        match item.type:
            case "agent_message":
                yield from [events.Text(item.text)] if as_text(item.text) else []
            case "reasoning":
                yield from [events.Thinking(item.text)] if as_text(item.text) else []
            case "error":
                yield _notice(as_text(item.message))
            case "todo_list":
                yield from self._begun(item)
            case _:
                # Some are completed without ever having been started.
                yield from self._begun(item)
                identity = as_text(item.id)
                self._running.discard(identity)
                yield events.ToolEnd(identity, *_outcome(item))

    def _begun(self, item: Item) -> Iterator[events.AgentEvent]:
        """The agent's plan if it is another one, or the ToolStart of a call, once."""
        if item.type == "todo_list":
            items = []
            for entry in as_list(item.items):
                done = field(entry, "completed") is True
                status = events.TodoStatus.DONE if done else events.TodoStatus.PENDING
                items.append(events.TodoItem(as_text(field(entry, "text")), status))
            if tuple(items) != self._todo.items:
                self._todo = events.Todo(tuple(items))
                yield self._todo
        elif item.type in _CALLS and (identity := as_text(item.id)) not in self._running:
            self._running.add(identity)
            given = self.arguments(_given(item))
            yield events.ToolStart(identity, *_summary(item), arguments=given)


def _summary(item: Item) -> tuple[str, str]:
    """The name of a call, and what it does, on one line."""
    match item.type:
        case "web_search":
            return "web_search", one_line(as_text(item.query))
        case "command_execution":
            return "shell", one_line(as_text(item.command))
        case "file_change":  # such as "add added.txt, update main.py"
            changes = as_list(item.changes)
            pairs = ((as_text(field(c, "kind")), as_text(field(c, "path"))) for c in changes)
            words = ", ".join(f"{kind} {path.rpartition('/')[2]}" for kind, path in pairs)
            return "patch", one_line(words)
    return f"{as_text(item.server)}.{as_text(item.tool)}", telling(item.arguments)


def _given(item: Item) -> object:
    """The arguments of a call."""
    match item.type:
        case "web_search":
            return {"query": item.query}
        case "command_execution":
            return {"command": item.command}
        case "file_change":
            return {"changes": item.changes}
    return item.arguments


def _outcome(item: Item) -> tuple[str, bool]:
    """The output of a call, and whether it failed."""
    failed = item.status in ("failed", "declined")
    match item.type:
        case "web_search":
            return as_text(item.query), False
        case "command_execution":
            return as_text(item.aggregated_output), failed or item.exit_code not in (0, None)
        case "file_change":
            return "", failed
    output = texts(field(item.result, "content")) or as_text(field(item.error, "message"))
    return output, failed


def _notice(message: str) -> events.AgentEvent:
    retry = _RECONNECTING.match(message)
    if retry is None:
        return events.Progress(one_line(message))
    attempt, of, why = retry.groups()
    return events.Retry(
        int(attempt), int(of), why=one_line(why.removeprefix("(").removesuffix(")"))
    )


def _usage(value: object) -> events.Usage:
    """Codex counts what is read from the cache, and what is written to it, as input too."""
    read = as_count(field(value, "cached_input_tokens"))
    written = as_count(field(value, "cache_write_input_tokens"))
    return events.Usage(
        input=max(0, as_count(field(value, "input_tokens")) - read - written),
        output=as_count(field(value, "output_tokens")),
        cache_read=read,
        cache_write=written,
    )
