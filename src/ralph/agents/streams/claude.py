"""Claude: `--output-format stream-json --verbose` (H §Claude Streaming JSON), and `json`; and Amp:
`--stream-json` (H §Amp Streaming JSON), whose lines are Claude's, without a cost.

Fields that shape a line are typed; values are `Any` and read with care, so that one odd value does
not cost a whole line. What is not named here is skipped by the decoder and never built.
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
    loosely,
    one_line,
    session_begins,
    telling,
    texts,
    todo_item,
    todo_list,
    todo_status,
    usage_of,
)
from ralph.kernel import events
from ralph.kernel.value import replace

# How the result of a call begins that a hook refused, and what our own guard says in it.
_HOOK_REFUSAL, _GUARD = "PreToolUse:", "guard: refused ("


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
    rate_limit_info: Any = None


Line = System | Assistant | User | FinalLine | Partial | RateLimitLine


class AmpParser(NdjsonParser[Line]):
    """Understands Amp's stream: the meaning of the lines that both share."""

    decoder = msgspec.json.Decoder(Line)
    todo_tool: ClassVar[str] = "todo_write"  # which is called with the agent's whole list

    def __init__(self) -> None:
        super().__init__()
        self._worded = False  # somebody spoke in the assistant's lines
        self._unknown_here = False  # the CLI says that nobody is logged in
        self._by_hooks: set[str] = set()  # calls that a hook refused: no permission is missing

    def understand(self, line: Line) -> Iterable[events.AgentEvent]:
        match line:  # the most frequent first
            case Assistant():
                return self.assistant(line)
            case User():
                return self.user(line)
            case System():
                return self.system(line)
            case FinalLine():
                return self.final(line)
            case RateLimitLine():
                return self.limit(line)
        return ()  # partial: the whole block follows

    def assistant(self, line: Assistant) -> Iterator[events.AgentEvent]:
        """Text, thinking and tool calls; usually one block a line."""
        subagent, speaker = bool(line.parent_tool_use_id), events.Speaker.ASSISTANT
        if subagent:
            speaker = events.Speaker.SUBAGENT
        elif line.error or line.message.model == "<synthetic>":
            speaker = events.Speaker.HOST
        self._unknown_here = line.error == "authentication_failed"
        for block in _blocks(line.message):
            match block.type:
                case "text" if text := as_text(block.text):
                    self._worded = self._worded or not subagent
                    yield events.Text(text, speaker)
                case "thinking" if text := as_text(block.thinking):
                    yield events.Thinking(text)
                case "tool_use":
                    name = as_text(block.name)
                    yield events.ToolStart(
                        as_text(block.id),
                        name,
                        telling(block.input),
                        subagent,
                        self.arguments(block.input),
                    )
                    if not subagent:  # a sub-agent's list and questions are not the agent's
                        yield from self.called(block)

    def called(self, call: MessageBlock) -> Iterator[events.AgentEvent]:
        """Events of a tool call of the agent itself, beyond its ToolStart."""
        if call.name == self.todo_tool:
            yield todo_list(field(call.input, "todos"))

    def user(self, line: User) -> Iterator[events.AgentEvent]:
        """Tool results, and texts that nobody may take for the assistant's."""
        subagent = bool(line.parent_tool_use_id)
        for block in _blocks(line.message):
            if block.type == "tool_result":
                call, output = as_text(block.tool_use_id), texts(block.content)
                yield events.ToolEnd(call, output, bool(block.is_error), subagent)
                if block.is_error and (output.startswith(_HOOK_REFUSAL) or _GUARD in output):
                    self._by_hooks.add(call)
                yield from self.answered(block, line)
            elif text := as_text(block.text):
                by_hook = line.synthetic or text.startswith("Stop hook feedback")
                speaker = events.Speaker.HOOK if by_hook else events.Speaker.PROMPT
                yield events.Text(text, events.Speaker.SUBAGENT if subagent else speaker)

    def answered(self, result: MessageBlock, line: User) -> Iterable[events.AgentEvent]:
        """Events of a tool's result, beyond its ToolEnd."""
        return ()

    def system(self, line: System) -> Iterable[events.AgentEvent]:
        """The session begins (H shows this line also without a subtype)."""
        if line.subtype in (None, "init") and as_text(line.session_id):
            yield session_begins(line.session_id, line.model)

    def limit(self, line: RateLimitLine) -> Iterable[events.AgentEvent]:
        """Amp prints none."""
        return ()

    def final(self, line: FinalLine) -> Iterable[events.AgentEvent]:
        """The result. Tokens come from here only: every assistant line repeats its message's. Where
        no line before it had words, its text is the assistant's (H §Result; so it is with
        `--output-format json`). Else it repeats the last text, and without a turn of the model it
        is the CLI's own word, which may quote the prompt."""
        text = as_text(line.result)
        if text and not self._worded and line.num_turns != 0 and not line.is_error:
            yield events.Text(text)
        denials = as_list(line.permission_denials)
        denied = (d for d in denials if field(d, "tool_use_id") not in self._by_hooks)
        names = (as_text(field(denial, "tool_name")) for denial in denied)
        yield events.Result(
            text=text,
            failure=self.failure(line),
            cost_usd=as_number(line.total_cost_usd),
            usage=usage_of(line.usage),
            denied=tuple(dict.fromkeys(filter(None, names))),
        )

    def failure(self, line: FinalLine) -> events.Failure | None:
        """Judged by `is_error`: an API failure has the subtype "success" (docs/facts.md §2)."""
        if not line.is_error:
            return None
        errors = "; ".join(filter(None, map(as_text, as_list(line.errors))))
        words = (as_text(line.result), errors, as_text(line.error), as_text(line.subtype))
        message = next(filter(None, words), "the agent reports an error")
        status = as_count(line.api_error_status) or (401 if self._unknown_here else None)
        return events.Failure(clipped(message), status)


class ClaudeParser(AmpParser):
    """Understands Claude's stream, and its single result object."""

    todo_tool: ClassVar[str] = "TodoWrite"

    def __init__(self) -> None:
        super().__init__()
        self._tasks = _TaskList()
        self._limited: events.RateLimited | None = None

    def called(self, call: MessageBlock) -> Iterator[events.AgentEvent]:
        yield from super().called(call)
        self._tasks.called(call)
        if call.name == "AskUserQuestion":
            asked = as_list(field(call.input, "questions"))
            text = "\n".join(as_text(field(question, "question")) for question in asked)
            yield events.Question(clipped(text.strip() or "the agent asks a question"))

    def answered(self, result: MessageBlock, line: User) -> Iterator[events.AgentEvent]:
        if todo := self._tasks.answered(result, line):
            yield todo

    def system(self, line: System) -> Iterator[events.AgentEvent]:
        """Of the many subtypes, those that people want to know of (docs/facts.md §2)."""
        yield from super().system(line)
        match line.subtype:
            case "api_retry":
                delay = as_number(line.retry_delay_ms)
                yield events.Retry(
                    attempt=as_count(line.attempt),
                    of=as_count(line.max_retries) or None,
                    seconds=None if delay is None else delay / 1000,
                    why=one_line(f"{as_text(line.error)} {as_count(line.error_status) or ''}"),
                )
            case "compact_boundary":
                yield events.Progress("the context was compacted")
            case "hook_response":
                yield events.Progress(
                    one_line(f"hook {as_text(line.hook_name)}: {as_text(line.outcome)}")
                )
            case "notification" | "informational" | "task_started" | "task_notification":
                words = map(as_text, (line.text, line.content, line.summary, line.description))
                yield events.Progress(one_line(next(filter(None, words), line.subtype)))

    def limit(self, line: RateLimitLine) -> Iterator[events.AgentEvent]:
        """Rejected is a limit; a warning is only told (ADR 11)."""
        info = line.rate_limit_info
        kind = as_text(field(info, "rateLimitType")).replace("_", " ") or "rate"
        status = field(info, "status")
        self._limited = None
        if status == "rejected":
            resets_at = as_number(field(info, "resetsAt"))
            self._limited = events.RateLimited(one_line(f"the {kind} limit is used up"), resets_at)
            yield self._limited
        elif status == "allowed_warning":
            yield events.Progress(one_line(f"the {kind} limit is near"))

    def failure(self, line: FinalLine) -> events.Failure | None:
        """A failure after a rejection is that limit, unless a limit of the run itself was met."""
        failure = super().failure(line)
        own_limit = as_text(line.subtype).startswith("error_max_")
        if failure is None or self._limited is None or own_limit:
            return failure
        return replace(failure, status=failure.status or 429, resets_at=self._limited.resets_at)


class _TaskList:
    """The list that TaskCreate, TaskUpdate and TaskList keep; ids are only in their results."""

    def __init__(self) -> None:
        self._calls: dict[str, MessageBlock] = {}
        self._tasks: dict[str, events.TodoItem] = {}

    def called(self, call: MessageBlock) -> None:
        if call.name in ("TaskCreate", "TaskUpdate", "TaskList"):
            self._calls[as_text(call.id)] = call

    def answered(self, result: MessageBlock, line: User) -> events.Todo | None:
        """The list, if it is another one now."""
        call = self._calls.pop(as_text(result.tool_use_id), None)
        if call is None or result.is_error:
            return None
        before, answer = dict(self._tasks), loosely(line.tool_use_result)
        match call.name:
            case "TaskCreate":
                self._tasks[_task_id(field(answer, "task", "id"))] = todo_item(call.input)
            case "TaskUpdate":
                self._update(_task_id(field(call.input, "taskId")), call.input)
            case _ if isinstance(tasks := field(answer, "tasks"), list):
                self._tasks = {_task_id(field(task, "id")): todo_item(task) for task in tasks}
        return events.Todo(tuple(self._tasks.values())) if self._tasks != before else None

    def _update(self, task: str, change: object) -> None:
        status, item = field(change, "status"), self._tasks.get(task)
        if status == "deleted":
            self._tasks.pop(task, None)
        elif item is not None:
            text = as_text(field(change, "subject")) or item.text
            self._tasks[task] = events.TodoItem(
                text, todo_status(status) if status else item.status
            )


def _task_id(value: object) -> str:
    return as_text(value) or str(as_count(value))


def _blocks(message: ContentMessage) -> list[MessageBlock]:
    content = message.content
    if isinstance(content, str):
        return [MessageBlock(type="text", text=content)]
    return content or []
