"""The messages made of content blocks that the lines of Claude and Amp carry.

H §Claude Streaming JSON, §Amp Streaming JSON. Fields that shape a line are typed; values are `Any`
and read with care, so that one odd value does not cost a whole line. What is not named here is
skipped by the decoder and never built.
"""

from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

import msgspec

from ralph.agents.streams.ndjson import (
    NdjsonParser,
    as_count,
    as_list,
    as_number,
    as_text,
    clipped,
    field,
    telling,
    texts,
)
from ralph.agents.streams.todo import todo_list
from ralph.kernel.events import (
    AgentEvent,
    Failure,
    Progress,
    Result,
    Speaker,
    Text,
    Thinking,
    ToolEnd,
    ToolStart,
    Usage,
)

_HOOK_FEEDBACK = "Stop hook feedback"
# How the result of a call begins that a hook refused, and what our own guard says in it.
_HOOK_REFUSAL, _GUARD = "PreToolUse:", "guard: refused ("
_AUTHENTICATION = "authentication_failed"  # as an assistant line's error
# As the fields of a Usage.
_USAGE = (
    *("input_tokens", "output_tokens"),
    *("cache_read_input_tokens", "cache_creation_input_tokens"),
)


class MessageBlock(msgspec.Struct, gc=False):
    """One block of a message: text, thinking, a tool call or a tool's result."""

    type: Any = None
    text: Any = None
    thinking: Any = None
    id: Any = None
    name: Any = None
    input: Any = None
    tool_use_id: Any = None
    content: Any = None
    is_error: Any = None


class ContentMessage(msgspec.Struct, gc=False):
    content: list[MessageBlock] | str | None = None
    model: Any = None


class System(msgspec.Struct, gc=False, tag="system"):
    """The CLI about itself."""

    subtype: Any = None
    session_id: Any = None
    model: Any = None
    attempt: Any = None
    max_retries: Any = None
    retry_delay_ms: Any = None
    error: Any = None
    error_status: Any = None
    hook_name: Any = None
    outcome: Any = None
    text: Any = None
    content: Any = None
    description: Any = None
    summary: Any = None


class Assistant(msgspec.Struct, gc=False, tag="assistant"):
    """The model speaks, or the CLI in its place."""

    message: ContentMessage
    parent_tool_use_id: Any = None
    error: Any = None


class User(msgspec.Struct, gc=False, tag="user"):
    """Words to the model: tool results, the prompt, the feedback of hooks."""

    message: ContentMessage
    parent_tool_use_id: Any = None
    synthetic: Any = msgspec.field(default=None, name="isSynthetic")
    tool_use_result: msgspec.Raw = msgspec.Raw()


class FinalLine(msgspec.Struct, gc=False, tag="result"):
    """The last word of a stream."""

    subtype: Any = None
    is_error: Any = None
    api_error_status: Any = None
    num_turns: Any = None
    result: Any = None
    error: Any = None
    errors: Any = None
    total_cost_usd: Any = None
    usage: Any = None
    permission_denials: Any = None


class Partial(msgspec.Struct, gc=False, tag="stream_event"):
    """A piece of a message that follows whole."""


class RateLimitLine(msgspec.Struct, gc=False, tag="rate_limit_event"):
    """How much of a subscription's limit is used."""

    rate_limit_info: Any = None


Line = System | Assistant | User | FinalLine | Partial | RateLimitLine

_DECODER: msgspec.json.Decoder[Line] = msgspec.json.Decoder(Line)


class MessageParser(NdjsonParser[Line]):
    """The meaning of the lines that both dialects share."""

    todo_tool: ClassVar[str]  # the tool that is called with the agent's whole list

    def __init__(self) -> None:
        super().__init__(_DECODER)
        self._worded = False  # somebody spoke in the assistant's lines
        self._unknown_here = False  # the CLI says that nobody is logged in
        self._by_hooks: set[str] = set()  # calls that a hook refused: no permission is missing

    def understand(self, line: Line) -> Iterable[AgentEvent]:
        match line:
            case Assistant():
                return self.assistant(line)
            case User():
                return self.user(line)
            case System():
                return self.system(line)
            case FinalLine():
                return self.final(line)
            case RateLimitLine():
                return self.rate_limit(line)
        return ()  # partial: the whole block follows

    def assistant(self, line: Assistant) -> Iterator[AgentEvent]:
        """Text, thinking and tool calls; usually one block a line."""
        subagent, speaker = bool(line.parent_tool_use_id), Speaker.ASSISTANT
        if subagent:
            speaker = Speaker.SUBAGENT
        elif line.error or line.message.model == "<synthetic>":
            speaker = Speaker.HOST
        self._unknown_here = line.error == _AUTHENTICATION
        for block in _blocks(line.message):
            match block.type:
                case "text" if text := as_text(block.text):
                    self._worded = self._worded or not subagent
                    yield Text(text, speaker)
                case "thinking" if text := as_text(block.thinking):
                    yield Thinking(text)
                case "tool_use":
                    name = as_text(block.name)
                    yield ToolStart(as_text(block.id), name, telling(block.input), subagent)
                    if not subagent:  # a sub-agent's list and questions are not the agent's
                        yield from self.called(block)

    def called(self, call: MessageBlock) -> Iterator[AgentEvent]:
        """Events of a tool call of the agent itself, beyond its ToolStart."""
        if call.name == self.todo_tool:
            yield todo_list(field(call.input, "todos"))

    def user(self, line: User) -> Iterator[AgentEvent]:
        """Tool results, and texts that nobody may take for the assistant's."""
        subagent = bool(line.parent_tool_use_id)
        for block in _blocks(line.message):
            if block.type == "tool_result":
                call, output, failed = (
                    as_text(block.tool_use_id),
                    texts(block.content),
                    block.is_error,
                )
                yield ToolEnd(call, output, bool(failed), subagent)
                if failed and (output.startswith(_HOOK_REFUSAL) or _GUARD in output):
                    self._by_hooks.add(call)
                yield from self.answered(block, line)
            elif text := as_text(block.text):
                by_hook = line.synthetic or text.startswith(_HOOK_FEEDBACK)
                speaker = Speaker.HOOK if by_hook else Speaker.PROMPT
                yield Text(text, Speaker.SUBAGENT if subagent else speaker)

    def answered(self, result: MessageBlock, line: User) -> Iterable[AgentEvent]:
        """Events of a tool's result, beyond its ToolEnd."""
        return ()

    def system(self, line: System) -> Iterable[AgentEvent]:
        """The session begins (H shows this line also without a subtype)."""
        session = as_text(line.session_id)
        if line.subtype in (None, "init") and session:
            model = as_text(line.model)
            text = f"session {session} model {model}" if model else f"session {session}"
            yield Progress(text, session)

    def rate_limit(self, line: RateLimitLine) -> Iterable[AgentEvent]:
        """How near the account is to its limit."""
        return ()

    def final(self, line: FinalLine) -> Iterable[AgentEvent]:
        """The result. Tokens come from here only: every assistant line repeats its message's.

        Where no line before it had words, its text is the assistant's (H §Result; so it is with
        `--output-format json`). Else it repeats the last text, and without a turn of the model it
        is the CLI's own word, which may quote the prompt.
        """
        text = as_text(line.result)
        if text and not self._worded and line.num_turns != 0 and not line.is_error:
            yield Text(text)
        denials = as_list(line.permission_denials)
        denied = (d for d in denials if field(d, "tool_use_id") not in self._by_hooks)
        names = (as_text(field(denial, "tool_name")) for denial in denied)
        yield Result(
            text=text,
            failure=self.failure(line),
            cost_usd=as_number(line.total_cost_usd),
            usage=Usage(*(as_count(field(line.usage, name)) for name in _USAGE)),
            denied=tuple(dict.fromkeys(filter(None, names))),
        )

    def failure(self, line: FinalLine) -> Failure | None:
        """Judged by `is_error`: an API failure has the subtype "success" (docs/facts.md §2)."""
        if not line.is_error:
            return None
        errors = "; ".join(filter(None, map(as_text, as_list(line.errors))))
        words = (as_text(line.result), errors, as_text(line.error), as_text(line.subtype))
        message = next(filter(None, words), "the agent reports an error")
        status = as_count(line.api_error_status) or (401 if self._unknown_here else None)
        return Failure(clipped(message), status)


def _blocks(message: ContentMessage) -> list[MessageBlock]:
    content = message.content
    if isinstance(content, str):
        return [MessageBlock(type="text", text=content)]
    return content or []
