"""Ralph's own agent: `ralph agent --output json`.

Tokens are told after every call of the model, and their sum at the end; it reports no cost.
"""

import shlex
from collections.abc import Iterator
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
    usage_of,
)
from ralph.kernel import events


class SessionLine(msgspec.Struct, gc=False, tag="session"):
    session: Any = None
    model: Any = None


class _Words(msgspec.Struct, gc=False):
    text: Any = None


class TextLine(_Words, gc=False, tag="text"):
    """A block of what the model says."""


class ThinkingLine(_Words, gc=False, tag="thinking"):
    """A block of what it thinks."""


class ProgressLine(_Words, gc=False, tag="progress"):
    """The program about itself."""


class QuestionLine(_Words, gc=False, tag="question"):
    """The turn ended with a question to a person."""


class ActionLine(msgspec.Struct, gc=False, tag="action"):
    """An action begins, by the name and the input that the model gave it."""

    id: Any = None
    action: Any = None
    input: Any = None


class ActionResult(msgspec.Struct, gc=False, tag="action_result"):
    id: Any = None
    output: Any = None
    is_error: Any = None


class UsedLine(msgspec.Struct, gc=False, tag="used"):
    """The tokens of one call of the model."""

    usage: Any = None


class RetryLine(msgspec.Struct, gc=False, tag="retry"):
    attempt: Any = None
    of: Any = None
    seconds: Any = None
    why: Any = None


class ResultLine(msgspec.Struct, gc=False, tag="result"):
    """The last word. One that does not say how it ended must not pass for a success."""

    error: Any
    text: Any = None
    usage: Any = None


Line = (
    TextLine
    | ThinkingLine
    | ActionLine
    | ActionResult
    | UsedLine
    | SessionLine
    | RetryLine
    | ProgressLine
    | QuestionLine
    | ResultLine
)


class OwnParser(NdjsonParser[Line]):
    decoder = msgspec.json.Decoder(Line)

    def understand(self, line: Line) -> Iterator[events.AgentEvent]:
        match line:
            case ActionLine():
                name = as_text(line.action)
                summary, given = _summary(name, line.input), self.arguments(line.input)
                yield events.ToolStart(as_text(line.id), name, summary, arguments=given)
            case ActionResult():
                yield events.ToolEnd(as_text(line.id), as_text(line.output), bool(line.is_error))
            case UsedLine(usage):
                yield events.Used(usage_of(usage))
            case SessionLine(session, model):
                yield session_begins(session, model)
            case RetryLine():
                yield events.Retry(
                    attempt=as_count(line.attempt),
                    of=as_count(line.of) or None,
                    seconds=as_number(line.seconds),
                    why=one_line(as_text(line.why)),
                )
            case ResultLine():
                text, failure = as_text(line.text), _failure(line.error)
                yield events.Result(text, failure, usage=usage_of(line.usage))
            case _:
                yield from _said(line, as_text(line.text))


def _said(line: _Words, text: str) -> Iterator[events.AgentEvent]:
    match line:
        case TextLine() if text:
            yield events.Text(text)
        case ThinkingLine() if text:
            yield events.Thinking(text)
        case ProgressLine():
            yield events.Progress(one_line(text))
        case QuestionLine():
            yield events.Question(clipped(text or "the agent asks a question"))


def _summary(action: str, arguments: object) -> str:
    """What an action does, on one line; git's as it would be typed."""
    words = field(arguments, "args")
    if action == "git" and isinstance(words, list | str):
        said = words if isinstance(words, str) else shlex.join(map(as_text, words))
        return one_line(f"git {said.removeprefix('git ')}")
    code = as_text(field(arguments, "code")) if action == "eval" else ""
    return one_line(code) or telling(arguments)


def _failure(error: object) -> events.Failure | None:
    if error is None:
        return None
    message = as_text(field(error, "message")) or as_text(error) or "the agent reports an error"
    return events.Failure(
        clipped(message),
        as_count(field(error, "status")) or None,
        as_number(field(error, "retry_after")),
        as_number(field(error, "resets_at")),
    )
