"""Anthropic Messages."""

from collections.abc import Iterable

from ralph.agents.streams.ndjson import as_count, as_text, field
from ralph.kernel.events import Usage
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

_VERSION = "2023-06-01"
_LONGEST = 32_000  # tokens of an answer: the service wants to be told
_HERE: Json = {"cache_control": {"type": "ephemeral"}}  # what comes before is kept for a while
_STATUSES = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "permission_error": 403,
    "rate_limit_error": 429,
    "overloaded_error": 529,
}
_FILLED = {"text_delta": "text", "thinking_delta": "thinking", "signature_delta": "signature"}


def request(model: str, key: tuple[str, str], talk: Talk) -> Request:
    variable, secret = key
    headers = {"anthropic-version": _VERSION}
    if secret and variable == "ANTHROPIC_AUTH_TOKEN":
        headers["authorization"] = f"Bearer {secret}"
    elif secret:
        headers["x-api-key"] = secret
    messages = [_message(entry) for entry in talk.entries]
    # What was said until the last two times is read from the cache.
    for message in [message for message in messages if message["role"] == "user"][-2:]:
        message["content"][-1] |= _HERE
    body: Json = {
        "model": model,
        "max_tokens": talk.longest or _LONGEST,
        "system": [{"type": "text", "text": talk.system} | _HERE],
        "messages": messages,
        "stream": True,
    }
    if talk.tools:
        body["tools"] = [
            {"name": tool.name, "description": tool.about, "input_schema": tool.parameters}
            for tool in talk.tools
        ]
    return Request("/v1/messages", headers, body)


def _message(entry: Entry) -> Json:
    match entry:
        case Words(text=text):
            return {"role": "user", "content": [{"type": "text", "text": text}]}
        case Reply(native=native):
            return {"role": "assistant", "content": native}
        case Answers(each=each):  # pragma: no branch  there is no other
            return {
                "role": "user",
                "content": [
                    {
                        "type": "tool_result",
                        "tool_use_id": answer.call.id,
                        "content": answer.output,
                        "is_error": answer.is_error,
                    }
                    for answer in each
                ],
            }


def reply(events: Iterable[Json]) -> Reply:
    blocks: dict[int, Json] = {}
    written: dict[int, str] = {}  # arguments of calls
    usage: Json = {}
    stop = ""
    for event in events:
        at = as_count(event.get("index"))
        match event.get("type"):
            case "message_start":
                usage |= _told(field(event, "message", "usage"))
            case "content_block_start":
                begun = event.get("content_block")
                blocks[at] = dict(begun) if isinstance(begun, dict) else {}
            case "content_block_delta" if at in blocks:
                delta = event.get("delta")
                _fill(blocks[at], delta)
                written[at] = written.get(at, "") + as_text(field(delta, "partial_json"))
            case "message_delta":
                stop = as_text(field(event, "delta", "stop_reason")) or stop
                usage |= _told(event.get("usage"))
            case "error":
                raise trouble(event)
    if not stop:
        raise Trouble("the answer broke off")
    calls = [
        _call(block, written.get(at, ""))
        for at, block in blocks.items()
        if block.get("type") == "tool_use"
    ]
    said = {kind: _texts(blocks.values(), kind) for kind in ("text", "thinking")}
    # The service takes no empty text back, and an assistant that says nothing neither.
    native = [b for b in blocks.values() if b.get("type") != "text" or as_text(b.get("text"))]
    return Reply(
        native or [{"type": "text", "text": "(nothing)"}],
        said["text"],
        said["thinking"],
        tuple(calls),
        usage_of(usage),
        is_cut=stop in ("max_tokens", "model_context_window_exceeded"),
        refusal="\n".join(said["text"]) if stop == "refusal" else None,
    )


def _fill(block: Json, delta: object) -> None:
    if name := _FILLED.get(as_text(field(delta, "type"))):
        block[name] = as_text(block.get(name)) + as_text(field(delta, name))


def _call(block: Json, written: str) -> Call:
    """A call whose arguments were written; the block then holds them as the service wants it."""
    given = arguments(written)
    block["input"] = given or block.get("input") or {}
    whole = None if given is None else block["input"]
    return Call(as_text(block.get("id")), as_text(block.get("name")), whole)


def _told(usage: object) -> Json:
    """What an event says of usage: later ones count all of it again."""
    return {k: v for k, v in usage.items() if v is not None} if isinstance(usage, dict) else {}


def _texts(blocks: Iterable[Json], kind: str) -> tuple[str, ...]:
    found = (as_text(block.get(kind)) for block in blocks if block.get("type") == kind)
    return tuple(filter(None, found))


def usage_of(usage: Json) -> Usage:
    return Usage(
        as_count(usage.get("input_tokens")),
        as_count(usage.get("output_tokens")),
        as_count(usage.get("cache_read_input_tokens")),
        as_count(usage.get("cache_creation_input_tokens")),
    )


def trouble(event: Json) -> Trouble:
    """An error in the middle of a stream: it has a kind instead of a status."""
    kind, said = (as_text(field(event, "error", name)) for name in ("type", "message"))
    return Trouble(said or kind or "the service failed", _STATUSES.get(kind, 500))
