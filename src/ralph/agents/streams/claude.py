"""Claude: `--output-format stream-json --verbose` (H §Claude Streaming JSON), and `json`."""

from collections.abc import Iterator
from typing import ClassVar

from ralph.agents.streams.messages import (
    FinalLine,
    MessageBlock,
    MessageParser,
    RateLimitLine,
    System,
    User,
)
from ralph.agents.streams.ndjson import (
    as_count,
    as_list,
    as_number,
    as_text,
    clipped,
    field,
    loosely,
    one_line,
)
from ralph.agents.streams.todo import todo_item, todo_status
from ralph.kernel.events import (
    AgentEvent,
    Failure,
    Progress,
    Question,
    RateLimited,
    Retry,
    Todo,
    TodoItem,
)
from ralph.kernel.value import replace


class ClaudeParser(MessageParser):
    """Understands Claude's stream, and its single result object."""

    todo_tool: ClassVar[str] = "TodoWrite"

    def __init__(self) -> None:
        super().__init__()
        self._tasks = _TaskList()
        self._limited: RateLimited | None = None

    def called(self, call: MessageBlock) -> Iterator[AgentEvent]:
        yield from super().called(call)
        self._tasks.called(call)
        if call.name == "AskUserQuestion":
            asked = as_list(field(call.input, "questions"))
            text = "\n".join(as_text(field(question, "question")) for question in asked)
            yield Question(clipped(text.strip() or "the agent asks a question"))

    def answered(self, result: MessageBlock, line: User) -> Iterator[AgentEvent]:
        if self._tasks.answered(result, line):
            yield self._tasks.todo()

    def system(self, line: System) -> Iterator[AgentEvent]:
        """Of the many subtypes, those that people want to know of (docs/facts.md §2)."""
        yield from super().system(line)
        match line.subtype:
            case "api_retry":
                delay = as_number(line.retry_delay_ms)
                yield Retry(
                    attempt=as_count(line.attempt),
                    of=as_count(line.max_retries) or None,
                    seconds=None if delay is None else delay / 1000,
                    why=one_line(f"{as_text(line.error)} {as_count(line.error_status) or ''}"),
                )
            case "compact_boundary":
                yield Progress("the context was compacted")
            case "hook_response":
                yield Progress(one_line(f"hook {as_text(line.hook_name)}: {as_text(line.outcome)}"))
            case "notification" | "informational" | "task_started" | "task_notification":
                words = map(as_text, (line.text, line.content, line.summary, line.description))
                yield Progress(one_line(next(filter(None, words), line.subtype)))

    def rate_limit(self, line: RateLimitLine) -> Iterator[AgentEvent]:
        """Rejected is a limit; a warning is only told (ADR 11)."""
        info = line.rate_limit_info
        kind = as_text(field(info, "rateLimitType")).replace("_", " ") or "rate"
        status = field(info, "status")
        self._limited = None
        if status == "rejected":
            resets_at = as_number(field(info, "resetsAt"))
            self._limited = RateLimited(one_line(f"the {kind} limit is used up"), resets_at)
            yield self._limited
        elif status == "allowed_warning":
            yield Progress(one_line(f"the {kind} limit is near"))

    def failure(self, line: FinalLine) -> Failure | None:
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
        self._tasks: dict[str, TodoItem] = {}

    def todo(self) -> Todo:
        return Todo(tuple(self._tasks.values()))

    def called(self, call: MessageBlock) -> None:
        if call.name in ("TaskCreate", "TaskUpdate", "TaskList"):
            self._calls[as_text(call.id)] = call

    def answered(self, result: MessageBlock, line: User) -> bool:
        """True if the list is another one now."""
        call = self._calls.pop(as_text(result.tool_use_id), None)
        if call is None or result.is_error:
            return False
        before, answer = dict(self._tasks), loosely(line.tool_use_result)
        match call.name:
            case "TaskCreate":
                self._tasks[_task_id(field(answer, "task", "id"))] = todo_item(call.input)
            case "TaskUpdate":
                self._update(_task_id(field(call.input, "taskId")), call.input)
            case _ if isinstance(tasks := field(answer, "tasks"), list):
                self._tasks = {_task_id(field(task, "id")): todo_item(task) for task in tasks}
        return self._tasks != before

    def _update(self, task: str, change: object) -> None:
        status, item = field(change, "status"), self._tasks.get(task)
        if status == "deleted":
            self._tasks.pop(task, None)
        elif item is not None:
            text = as_text(field(change, "subject")) or item.text
            self._tasks[task] = TodoItem(text, todo_status(status) if status else item.status)


def _task_id(value: object) -> str:
    return as_text(value) or str(as_count(value))


def parser(prompt: str) -> ClaudeParser:
    return ClaudeParser()
