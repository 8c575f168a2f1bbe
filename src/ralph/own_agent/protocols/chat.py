"""OpenAI Chat Completions, as many others speak it too: ollama, vLLM, OpenRouter."""

import json
from collections.abc import Iterable

from ralph.agents.streams.ndjson import as_count, as_list, as_text, field
from ralph.kernel.events import Usage
from ralph.own_agent.protocols.responses import bearer
from ralph.own_agent.talk import (
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
)


def request(model: str, key: tuple[str, str], talk: Talk) -> Request:
    system = {"role": "system", "content": talk.system}
    body: Json = {
        "model": model,
        "messages": [system, *(m for entry in talk.entries for m in _messages(entry))],
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    if talk.longest:
        body["max_tokens"] = talk.longest
    if talk.tools:
        body["tools"] = [
            {
                "type": "function",
                "function": {
                    "name": tool.name,
                    "description": tool.about,
                    "parameters": tool.parameters,
                },
            }
            for tool in talk.tools
        ]
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
    pieces: dict[str, list[str]] = {"content": [], "refusal": [], "thought": []}
    calls: dict[object, _Written] = {}
    usage, finish = Usage(), ""
    for event in events:
        if error := event.get("error"):
            raise _trouble(error)
        if told := event.get("usage"):
            usage = _usage(told)
        choice = next(iter(as_list(event.get("choices"))), None)
        delta = field(choice, "delta")
        finish = as_text(field(choice, "finish_reason")) or finish
        for name in ("content", "refusal"):
            pieces[name].append(as_text(field(delta, name)))
        thought = as_text(field(delta, "reasoning_content")) or as_text(field(delta, "reasoning"))
        pieces["thought"].append(thought)
        for piece in as_list(field(delta, "tool_calls")):
            # Some services number no calls, but each comes whole then.
            at = field(piece, "index")
            calls.setdefault(len(calls) if at is None else at, _Written()).add(piece)
    if not finish:
        raise Trouble("the answer broke off")
    content, refusal, thought = ("".join(each) for each in pieces.values())
    if finish == "content_filter":
        refusal = refusal or content or "its service filtered the answer"
    made = [call.call(n) for n, call in enumerate(calls.values(), 1)]
    native: Json = {"role": "assistant", "content": content}
    if made:
        native["tool_calls"] = [_again(call) for call in made]
    return Reply(
        native,
        (content,) if content else (),
        (thought,) if thought else (),
        tuple(made),
        usage,
        is_cut=finish == "length",
        refusal=refusal or None,
    )


class _Written:
    """A call that comes in pieces."""

    def __init__(self) -> None:
        self._id = self._name = ""
        self._arguments: list[str] = []

    def add(self, piece: object) -> None:
        self._id = as_text(field(piece, "id")) or self._id
        self._name = as_text(field(piece, "function", "name")) or self._name
        given = field(piece, "function", "arguments")  # some services send the object itself
        self._arguments.append(json.dumps(given) if isinstance(given, dict) else as_text(given))

    def call(self, number: int) -> Call:
        return Call(self._id or f"call-{number}", self._name, arguments("".join(self._arguments)))


def _again(call: Call) -> Json:
    function = {"name": call.name, "arguments": json.dumps(call.input or {})}
    return {"id": call.id, "type": "function", "function": function}


def _usage(told: object) -> Usage:
    """Its input includes what was read from the cache."""
    read = as_count(field(told, "prompt_tokens_details", "cached_tokens"))
    fresh = max(0, as_count(field(told, "prompt_tokens")) - read)
    return Usage(fresh, as_count(field(told, "completion_tokens")), read)


def _trouble(error: object) -> Trouble:
    code = as_count(field(error, "code")) or 500
    return Trouble(as_text(field(error, "message")) or "the service failed", code)
