"""opencode: `run --format json`. The traps are in docs/facts.md §2.

There is no final result line. What a step ended with is the turn's result only if nothing comes
after it: when the context is full, opencode sums up in a step that stops, and then goes on. So
the result is told when the stream is over.
"""

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from ralph.agents.streams.ndjson import (
    NdjsonParser,
    as_count,
    as_number,
    as_text,
    clipped,
    field,
    one_line,
    session_begins,
    telling,
    todo_list,
)
from ralph.kernel import events

_REJECTED = "The user rejected permission"  # how the error of a tool call begins
_INVALID = "invalid"  # the tool that stands for a call to a tool that is not there
_GOES_ON = ("tool-calls", "unknown")  # reasons after which opencode asks the model again
_SUCCEEDS = ("stop", "length")


class Part(msgspec.Struct, gc=False):
    """The subject of a line; which fields it has depends on the line."""

    text: Any = None
    synthetic: Any = None
    tool: Any = None
    callID: Any = None  # noqa: N815  the stream's own name
    state: Any = None
    reason: Any = None
    tokens: Any = None
    cost: Any = None


class StepStart(msgspec.Struct, gc=False, tag="step_start"):
    sessionID: Any = None  # noqa: N815


class _PartLine(msgspec.Struct, gc=False):
    part: Part
    sessionID: Any = None  # noqa: N815


class Said(_PartLine, gc=False, tag="text"):
    """A block of text, whole."""


class OpencodeReasoning(_PartLine, gc=False, tag="reasoning"):
    """The model's thoughts; only with `--thinking`."""


class OpencodeToolUse(_PartLine, gc=False, tag="tool_use"):
    """A tool call that has ended: one that runs is not told."""


class StepFinish(_PartLine, gc=False, tag="step_finish"):
    """The model has answered, and its tools have run."""


class Error(msgspec.Struct, gc=False, tag="error"):
    """The service, or opencode itself, failed the session."""

    error: Any = None
    sessionID: Any = None  # noqa: N815


Line = StepStart | Said | OpencodeReasoning | OpencodeToolUse | StepFinish | Error


class OpencodeParser(NdjsonParser[Line]):
    decoder = msgspec.json.Decoder(Line)

    def __init__(self) -> None:
        super().__init__()
        self._session = ""
        self._held: list[str] = []  # texts that may turn out to be opencode's own summary
        self._denied: dict[str, None] = {}
        self._result: events.Result | None = None  # if nothing follows
        self._used = events.Used()

    def understand(self, line: Line) -> Iterator[events.AgentEvent]:
        session = as_text(line.sessionID)
        if session and not self._session:
            self._session = session
            yield session_begins(session)
        yield from self._meaning(line, subagent=session != self._session)

    def held_back(self) -> list[events.AgentEvent]:
        """The events that were held back, and the result, if the last step ended the turn."""
        released, result, denied = self._release(), self._result, tuple(self._denied)
        if result is None and denied:
            # A rejected permission ends the turn in the middle, with exit code 0.
            result = events.Result(failure=events.Failure(f"no permission for {', '.join(denied)}"))
        if result is None:
            return released
        self._result, used = None, self._used
        return [*released, events.Result("", result.failure, used.cost_usd, used.usage, denied)]

    def _meaning(self, line: Line, *, subagent: bool) -> Iterable[events.AgentEvent]:
        match line:
            case Said(part):
                return self._said(part, subagent=subagent)
            case OpencodeReasoning(part):
                text = as_text(part.text)
                return [events.Thinking(text)] if text else []
            case OpencodeToolUse(part):
                return self._used_tool(part, subagent=subagent)
            case StepFinish(part):
                return self._finished(part, subagent=subagent)
            case Error(error):
                failure = _failure(error)
                if subagent:
                    return [events.Progress(one_line(f"a sub-agent failed: {failure.message}"))]
                self._result = events.Result(failure=failure)
                return []
        return self._on_with_it()

    def _said(self, part: Part, *, subagent: bool) -> Iterator[events.AgentEvent]:
        """A text that may hold a claim waits until it is known whose words it is."""
        text = as_text(part.text)
        if subagent:
            yield events.Text(text, events.Speaker.SUBAGENT)
        elif part.synthetic:
            yield from self._on_with_it()
            yield events.Text(text, events.Speaker.HOST)
        elif "<" in text or self._held:
            self._held.append(text)
        elif text:
            yield events.Text(text)

    def _on_with_it(self) -> list[events.AgentEvent]:
        """The turn goes on. After a step that stopped, that step was a summary, or came right
        before one: what it claims may be a quotation of the prompt."""
        went_on, self._result = self._result is None, None
        return self._release(events.Speaker.ASSISTANT if went_on else events.Speaker.HOST)

    def _release(
        self, speaker: events.Speaker = events.Speaker.ASSISTANT
    ) -> list[events.AgentEvent]:
        texts, self._held = self._held, []
        return [events.Text(text, speaker) for text in texts]

    def _used_tool(self, part: Part, *, subagent: bool) -> Iterator[events.AgentEvent]:
        yield from self._release()
        call, name, state = as_text(part.callID), as_text(part.tool), part.state
        arguments, error = field(state, "input"), as_text(field(state, "error"))
        # A shell command that fails is still a call that is completed.
        code = int(as_number(field(state, "metadata", "exit")) or 0)
        failed = field(state, "status") == "error" or name == _INVALID or code != 0
        if name == _INVALID:
            name = as_text(field(arguments, "tool")) or name
        summary = telling(arguments) or one_line(as_text(field(state, "title")))
        yield events.ToolStart(call, name, summary, subagent, self.arguments(arguments))
        if name == "todowrite" and not subagent:
            yield todo_list(field(arguments, "todos"))
        yield events.ToolEnd(call, as_text(field(state, "output")) or error, failed, subagent)
        if error.startswith(_REJECTED):
            self._denied[name] = None

    def _finished(self, part: Part, *, subagent: bool) -> Iterator[events.AgentEvent]:
        used = _used(part)
        yield used
        self._used += used
        reason = as_text(part.reason)
        if subagent or reason in _GOES_ON:
            return
        how = one_line(f"the model's answer ended with: {reason or 'no reason'}")
        self._result = events.Result(failure=None if reason in _SUCCEEDS else events.Failure(how))
        if reason != "stop":
            yield events.Progress(how)


def _used(part: Part) -> events.Used:
    """A cost of nothing means that opencode does not know the price, or that a plan pays."""
    tokens = part.tokens
    usage = events.Usage(
        input=as_count(field(tokens, "input")),
        output=as_count(field(tokens, "output")) + as_count(field(tokens, "reasoning")),
        cache_read=as_count(field(tokens, "cache", "read")),
        cache_write=as_count(field(tokens, "cache", "write")),
    )
    return events.Used(usage, as_number(part.cost) or None)


def _failure(error: object) -> events.Failure:
    data, name = field(error, "data"), as_text(field(error, "name"))
    message = as_text(field(data, "message")) or name or "the agent reports an error"
    status = as_count(field(data, "statusCode")) or (401 if name == "ProviderAuthError" else None)
    # Seconds, where the service states them as a number.
    wait = as_text(field(data, "responseHeaders", "retry-after"))
    seconds = float(wait[:9]) if wait.isascii() and wait.isdigit() else None
    return events.Failure(clipped(message), status, seconds)
