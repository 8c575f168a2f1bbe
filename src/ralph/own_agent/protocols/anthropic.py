"""Anthropic Messages."""

from collections.abc import Iterable

from ralph.agents.streams.ndjson import as_count, as_text, field, usage_of
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
    trouble_of,
)

_VERSION = "2023-06-01"
_LONGEST = 32_000  # tokens of an answer: the service wants to be told
_HERE: Json = {"cache_control": {"type": "ephemeral"}}  # what comes before is kept for a while
_STATUSES = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "timeout_error": 504,
    "overloaded_error": 529,
}
_NOTHING: Json = {"type": "text", "text": "(nothing)"}
_WRITTEN = ("text", "thinking", "signature", "partial_json")  # what comes in pieces


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
    blocks: dict[int, _Block] = {}
    usage: Json = {}
    stop, why = "", ""
    for event in events:
        at = as_count(event.get("index"))
        match event.get("type"):
            case "message_start":
                usage |= _told(field(event, "message", "usage"))
            case "content_block_start":
                begun = event.get("content_block")
                blocks[at] = _Block(begun if isinstance(begun, dict) else {})
            case "content_block_delta" if at in blocks:
                blocks[at].add(event.get("delta"))
            case "message_delta":
                stop = as_text(field(event, "delta", "stop_reason")) or stop
                why = as_text(field(event, "delta", "stop_details", "explanation")) or why
                usage |= _told(event.get("usage"))
            case "message_stop":
                break
            case _ if "error" in event or event.get("type") == "error":
                raise trouble_of(event.get("error"), _STATUSES)
    if not stop:
        raise Trouble("the answer broke off")
    content = [block.whole() for block in blocks.values()]
    calls = [_call(block) for block in content if block.get("type") == "tool_use"]
    said = {kind: _texts(content, kind) for kind in ("text", "thinking")}
    return Reply(
        [block for block in content if not _is_blank(block)] or [_NOTHING],
        said["text"],
        said["thinking"],
        tuple(calls),
        usage_of(usage),
        is_cut=stop in ("max_tokens", "model_context_window_exceeded"),
        refusal=why or "\n".join(said["text"]) if stop == "refusal" else None,
    )


class _Block:
    """A block of content that comes in pieces."""

    def __init__(self, begun: Json) -> None:
        self._begun = begun
        self._pieces: dict[str, list[str]] = {}

    def add(self, delta: object) -> None:
        for name in _WRITTEN:
            if more := as_text(field(delta, name)):
                self._pieces.setdefault(name, []).append(more)

    def whole(self) -> Json:
        pieces = self._pieces.items()
        return self._begun | {n: as_text(self._begun.get(n)) + "".join(more) for n, more in pieces}


def _is_blank(block: Json) -> bool:
    """True for a text of nothing, which the service does not take back."""
    return block.get("type") == "text" and not as_text(block.get("text")).strip()


def _call(block: Json) -> Call:
    """A call whose arguments were written; the block then holds them as the service wants it."""
    given = arguments(as_text(block.pop("partial_json", None)))
    begun = block.get("input")
    block["input"] = given or (begun if isinstance(begun, dict) else {})
    whole = None if given is None else block["input"]
    return Call(as_text(block.get("id")), as_text(block.get("name")), whole)


def _told(usage: object) -> Json:
    """What an event says of usage: later ones count all of it again."""
    return {k: v for k, v in usage.items() if v is not None} if isinstance(usage, dict) else {}


def _texts(blocks: Iterable[Json], kind: str) -> tuple[str, ...]:
    found = (as_text(block.get(kind)) for block in blocks if block.get("type") == kind)
    return tuple(filter(None, found))
