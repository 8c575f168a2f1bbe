"""OpenAI Chat Completions, as many others speak it too: ollama, vLLM, OpenRouter."""

import json
from collections.abc import Iterable

from ralph.agents.streams.ndjson import as_count, as_list, as_number, as_text, field
from ralph.kernel.events import Usage
from ralph.own_agent.protocols.responses import STATUSES, bearer
from ralph.own_agent.talk import (
    END,
    Answers,
    Call,
    Entry,
    Json,
    Reply,
    Request,
    Talk,
    Trouble,
    Words,
    arguments,
    trouble_of,
)

_OPENAIS = ("gpt-", "chatgpt-", "o1", "o3", "o4")  # the newer of them refuse `max_tokens`
_OTHERS = "gpt-oss"
_THOUGHTS = ("reasoning_content", "reasoning")  # as services call them
_PIECES = ("content", "refusal", *_THOUGHTS)
_DETAILS = "reasoning_details"  # OpenRouter's: thoughts, perhaps signed or encrypted
_GROWING = ("text", "summary", "data")


def request(model: str, key: tuple[str, str], talk: Talk) -> Request:
    system = {"role": "system", "content": talk.system}
    body: Json = {
        "model": model,
        "messages": [system, *(m for entry in talk.entries for m in _messages(entry))],
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    if talk.longest:
        is_openais = model.startswith(_OPENAIS) and not model.startswith(_OTHERS)
        body["max_completion_tokens" if is_openais else "max_tokens"] = talk.longest
    if talk.tools:
        body["tools"] = [{"type": "function", "function": tool.function()} for tool in talk.tools]
    return Request("/chat/completions", bearer(key), body)


def _messages(entry: Entry) -> list[Json]:
    match entry:
        case Words(text=text):
            return [{"role": "user", "content": text}]
        case Reply(native=native):
            return [native]
        case Answers(each=each):  # pragma: no branch  there is no other
            return [
                {"role": "tool", "tool_call_id": answer.call.id, "content": answer.output}
                for answer in each
            ]


def reply(events: Iterable[Json]) -> Reply:
    message = _Message()
    usage, finish = Usage(), ""
    for event in events:
        if error := event.get("error"):
            raise trouble_of(error, STATUSES)
        if told := event.get("usage"):
            usage = _usage(told)
        choice = next(iter(as_list(event.get("choices"))), None)
        message.add(field(choice, "delta"))
        finish = as_text(field(choice, "finish_reason")) or finish
        if event == END:
            finish = finish or "stop"  # not everybody says why
    if finish in ("", "error"):
        raise Trouble("the answer broke off")
    content, refusal = message.text("content"), message.text("refusal")
    if finish == "content_filter":
        refusal = refusal or content or "its service filtered the answer"
    made = message.calls.made()
    return Reply(
        message.again(made),
        (content,) if content else (),
        tuple(message.thoughts().values())[:1],
        tuple(call for call, _ in made),
        usage,
        is_cut=finish == "length",
        refusal=refusal or None,
    )


class _Message:
    """A message that comes in pieces."""

    def __init__(self) -> None:
        self._pieces: dict[str, list[str]] = {name: [] for name in _PIECES}
        self._details: list[Json] = []
        self.calls = _Calls()

    def add(self, delta: object) -> None:
        for name, written in self._pieces.items():
            if more := as_text(field(delta, name)):
                written.append(more)
        for detail in as_list(field(delta, _DETAILS)):
            _add_detail(self._details, detail)
        for piece in as_list(field(delta, "tool_calls")):
            if isinstance(piece, dict):
                self.calls.add(piece)

    def text(self, name: str) -> str:
        return "".join(self._pieces[name])

    def thoughts(self) -> Json:
        return {name: text for name in _THOUGHTS if (text := self.text(name))}

    def again(self, made: list[tuple[Call, Json]]) -> Json:
        """What its service wants to hear again; before calls what was thought, as it came."""
        content = self.text("content")
        if not made:
            return {"role": "assistant", "content": content or "(nothing)"}
        thoughts = {_DETAILS: self._details} if self._details else self.thoughts()
        calls = [again for _, again in made]
        return {"role": "assistant", "content": content, **thoughts, "tool_calls": calls}


def _add_detail(details: list[Json], detail: object) -> None:
    """Join what comes in pieces: those in a row of one kind and number."""
    if not isinstance(detail, dict):
        return
    if not details or any(details[-1].get(name) != detail.get(name) for name in ("type", "index")):
        details.append({})
    last = details[-1]
    for name, more in detail.items():
        if name in _GROWING:
            last[name] = as_text(last.get(name)) + as_text(more)
        elif more is not None:
            last[name] = more


class _Calls:
    """Calls that come in pieces. Some services number none of them, or all of them 0."""

    def __init__(self) -> None:
        self._all: list[_Written] = []
        self._open: dict[float | None, _Written] = {}

    def add(self, piece: Json) -> None:
        at = as_number(piece.get("index"))
        is_named = bool(as_text(field(piece, "function", "name")))
        call = self._open.get(at)
        if call is None or (is_named and (at is None or call.is_other(piece))):
            self._open[at] = call = _Written()
            self._all.append(call)
        call.add(piece)

    def made(self) -> list[tuple[Call, Json]]:
        """Each, and what its service wants to hear again."""
        return [call.made(number) for number, call in enumerate(self._all, 1)]


class _Written:
    """A call that comes in pieces. What they hold beside it, such as a signature, goes back."""

    def __init__(self) -> None:
        self._id = self._name = ""
        self._more: Json = {}
        self._arguments: list[str] = []

    def is_other(self, piece: Json) -> bool:
        return as_text(piece.get("id")) not in ("", self._id)

    def add(self, piece: Json) -> None:
        self._id = self._id or as_text(piece.get("id"))
        self._name = as_text(field(piece, "function", "name")) or self._name
        given = field(piece, "function", "arguments")  # some services send the object itself
        self._arguments.append(json.dumps(given) if isinstance(given, dict) else as_text(given))
        known = ("index", "id", "type", "function")
        self._more |= {k: v for k, v in piece.items() if k not in known and v is not None}

    def made(self, number: int) -> tuple[Call, Json]:
        written = "".join(self._arguments)
        call = Call(self._id or f"call-{number}", self._name, arguments(written))
        function = {"name": call.name, "arguments": written if call.input else "{}"}
        return call, {**self._more, "id": call.id, "type": "function", "function": function}


def _usage(told: object) -> Usage:
    """Its input includes what was read from the cache, and what was written to it."""
    names = ("cached_tokens", "cache_write_tokens")
    read, written = (as_count(field(told, "prompt_tokens_details", name)) for name in names)
    fresh = max(0, as_count(field(told, "prompt_tokens")) - read - written)
    return Usage(fresh, as_count(field(told, "completion_tokens")), read, written)
