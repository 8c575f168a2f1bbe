"""What an agent and a model have said to each other, in no service's words."""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ralph.agents.streams.ndjson import as_count, as_text, field
from ralph.agents.streams.ndjson import retry_after as told_to_wait
from ralph.kernel.events import Usage
from ralph.kernel.value import value

Json = dict[str, Any]
_DEEPEST = 100
TOO_MANY = 429
END: Json = {"type": "end"}  # the last event of a stream, where a service says so


class Trouble(Exception):  # noqa: N818  it may pass
    """A service did not answer. `status` is None where no HTTP status says why."""

    def __init__(
        self,
        message: str,
        status: int | None = None,
        *,
        retry_after: float | None = None,
        resets_at: float | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.status = status
        if retry_after is None and status == TOO_MANY:
            retry_after = told_to_wait(message)
        self.retry_after = retry_after  # seconds
        self.resets_at = resets_at  # Unix time

    @property
    def passes(self) -> bool:
        """True if the same request may be answered later."""
        return self.status is None or self.status in (408, 409, 425, 429) or self.status >= 500

    def told(self) -> Json:
        """As a line of the stream has it."""
        fields = ("message", "status", "retry_after", "resets_at")
        return {name: getattr(self, name) for name in fields}

    @property
    def is_overlong(self) -> bool:
        """True if the talk is longer than the model's window."""
        said = self.message.lower()
        return self.status == 413 or (self.status == 400 and any(s in said for s in _OVERLONG))


def trouble_of(error: object, statuses: Mapping[str, int] = {}) -> Trouble:
    """An error that a service sends in its stream: it has a code, a word with a status by the
    table, or neither."""
    code, said = field(error, "code"), as_text(error) or as_text(field(error, "message"))
    word = as_text(code) or as_text(field(error, "type"))
    number = int(word) if word.isdecimal() and len(word) == len("400") else as_count(code)
    return Trouble(said or word or "the service failed", statuses.get(word) or number or 500)


_OVERLONG = (
    *("prompt is too long", "context length", "context_length", "context window", "context limit"),
    *("context size", "maximum number of tokens", "too many tokens", "input is too long"),
)


@value
class Call:
    """An action that the model wants. `input` is None where its JSON was broken."""

    id: str
    name: str
    input: Json | None


@value
class Words:
    """Words to the model."""

    text: str


@value
class Reply:
    """The model's answer; `native` is what its service wants to hear again."""

    native: Any
    words: tuple[str, ...] = ()
    thoughts: tuple[str, ...] = ()
    calls: tuple[Call, ...] = ()
    usage: Usage = Usage()
    is_cut: bool = False  # it was longer than an answer may be
    refusal: str | None = None  # why the model, or its service, will not answer

    @property
    def text(self) -> str:
        return "\n".join(self.words)


@value
class Answer:
    """The outcome of an action."""

    call: Call
    output: str
    is_error: bool = False
    code: int | None = None  # the exit code of what was run
    is_refused: bool = False  # by the guard


@value
class Answers:
    """The outcomes of all actions of one reply, in their order."""

    each: tuple[Answer, ...]


Entry = Words | Reply | Answers


@value
class Tool:
    """An action as the model is told of it; `parameters` is a JSON schema."""

    name: str
    about: str
    parameters: Json

    def function(self) -> Json:
        """As most services want to be told of it."""
        return {"name": self.name, "description": self.about, "parameters": self.parameters}


@value
class Talk:
    """One request: everything that the model is told."""

    system: str
    entries: tuple[Entry, ...]
    tools: tuple[Tool, ...] = ()
    longest: int | None = None  # tokens of an answer
    session: str = ""  # the same for all requests that begin alike


@value
class Request:
    """A request in the words of a service."""

    path: str
    headers: Mapping[str, str]
    body: Json


def arguments(text: str) -> Json | None:
    """The arguments of a call, which models write as JSON; None if they are broken."""
    try:
        return sendable(json.loads(text or "{}", strict=False))
    except (ValueError, RecursionError):
        return None


def sendable(value: object) -> Json | None:
    """The value if it is an object that can be written as JSON again: no NaN, and not too deep."""
    if not isinstance(value, dict) or is_deep(value):
        return None
    try:
        json.dumps(value, allow_nan=False)
    except ValueError:
        return None
    return value


def is_deep(value: object, most: int = _DEEPEST) -> bool:
    """True if values are nested more than so many times."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return bool(inner) and (not most or any(is_deep(one, most - 1) for one in inner))


def transcript(entries: Iterable[Entry]) -> Iterator[str]:
    """The talk as text, for a model that is to sum it up."""
    for entry in entries:
        match entry:
            case Words(text=text):
                yield f"[to you]\n{text}"
            case Reply(calls=calls):
                called = (f"{call.name} {json.dumps(call.input)}" for call in calls)
                yield "\n".join(("[you]", *entry.words, *called))
            case Answers(each=each):  # pragma: no branch  there is no other
                yield "\n".join(("[outcome]", *(answer.output for answer in each)))
