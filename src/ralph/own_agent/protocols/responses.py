"""OpenAI Responses. Nothing is kept by the service: what the model thought goes back encrypted."""

from collections.abc import Iterable

from ralph.agents.streams.ndjson import as_count, as_list, as_text, field
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
    trouble_of,
)

# They refuse to be asked for their thoughts.
_NO_THINKERS = ("gpt-3.5", "gpt-4", "gpt-5-chat", "chatgpt-")
STATUSES = {
    "rate_limit_exceeded": 429,
    "insufficient_quota": 403,  # no waiting will help
    "usage_not_included": 403,
    "invalid_api_key": 401,
    "model_not_found": 404,
    "server_is_overloaded": 503,
    "slow_down": 503,
    **dict.fromkeys(("invalid_prompt", "context_length_exceeded", "data_residency_mismatch"), 400),
    **dict.fromkeys(("bio_policy", "cyber_policy", "misalignment_policy_violation"), 400),
}


def request(model: str, key: tuple[str, str], talk: Talk) -> Request:
    items = [item for entry in talk.entries for item in _items(entry)]
    body: Json = {
        "model": model,
        "instructions": talk.system,
        "input": items,
        "stream": True,
        "store": False,
    }
    if not model.startswith(_NO_THINKERS):
        body["include"] = ["reasoning.encrypted_content"]
    if talk.session:
        body["prompt_cache_key"] = talk.session
    if talk.longest:
        body["max_output_tokens"] = talk.longest
    if talk.tools:
        body["tools"] = [
            {"type": "function", "strict": False, **tool.function()} for tool in talk.tools
        ]
    return Request("/responses", bearer(key), body)


def bearer(key: tuple[str, str]) -> Json:
    return {"authorization": f"Bearer {key[1]}"} if key[1] else {}


def _items(entry: Entry) -> list[Json]:
    match entry:
        case Words(text=text):
            said = {"type": "input_text", "text": text}
            return [{"type": "message", "role": "user", "content": [said]}]
        case Reply(native=native):
            return list(native)
        case Answers(each=each):  # pragma: no branch  there is no other
            return [
                {"type": "function_call_output", "call_id": answer.call.id, "output": answer.output}
                for answer in each
            ]


def reply(events: Iterable[Json]) -> Reply:
    items: list[Json] = []
    for event in events:
        response = event.get("response")
        match event.get("type"):
            case "response.output_item.done" if isinstance(item := event.get("item"), dict):
                items.append(item)
            case "response.completed" | "response.incomplete":
                whole = [i for i in as_list(field(response, "output")) if isinstance(i, dict)]
                return _reply(items or whole, response)
            case "response.failed":
                raise trouble_of(field(response, "error"), STATUSES)
            case "error":
                raise trouble_of(event.get("error") or event, STATUSES)
    raise Trouble("the answer broke off")


def _reply(items: list[Json], response: object) -> Reply:
    words, thoughts, refusals = [], [], []
    calls: list[Call] = []
    for item in items:
        match item.get("type"):
            case "message":
                words += _texts(item.get("content"), "text")
                refusals += _texts(item.get("content"), "refusal")
            case "reasoning":
                thoughts += _texts(item.get("summary"), "text")
            case "function_call":
                given = arguments(as_text(item.get("arguments")))
                calls.append(Call(as_text(item.get("call_id")), as_text(item.get("name")), given))
    why = field(response, "incomplete_details", "reason")
    if why == "content_filter":
        refusals.append("its service filtered the answer")
    return Reply(
        [sent for item in items if (sent := _again(item))],
        tuple(words),
        tuple(thoughts),
        tuple(calls),
        _usage(field(response, "usage")),
        is_cut=why == "max_output_tokens",
        refusal="\n".join(refusals) if refusals else None,
    )


def _again(item: Json) -> Json | None:
    """An item as it is sent back: without the id by which the service would look it up. It knows
    none that it has not kept."""
    if item.get("type") == "reasoning" and not item.get("encrypted_content"):
        return None
    sent = {k: v for k, v in item.items() if k not in ("id", "status")}
    if item.get("type") == "function_call" and arguments(as_text(item.get("arguments"))) is None:
        sent["arguments"] = "{}"
    return sent


def _texts(parts: object, name: str) -> list[str]:
    return [text for part in as_list(parts) if (text := as_text(field(part, name)))]


def _usage(told: object) -> Usage:
    """Its input includes what was read from the cache, and what was written to it."""
    read = as_count(field(told, "input_tokens_details", "cached_tokens"))
    written = as_count(field(told, "input_tokens_details", "cache_write_tokens"))
    fresh = max(0, as_count(field(told, "input_tokens")) - read - written)
    return Usage(fresh, as_count(field(told, "output_tokens")), read, written)
