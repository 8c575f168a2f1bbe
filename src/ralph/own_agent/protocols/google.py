"""Google's Gemini: `generateContent`, streamed."""

from collections.abc import Iterable
from itertools import groupby

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
    sendable,
    trouble_of,
)

_OURS = "ours-"  # ids that we made up: the service knows none of them
# Its model has slipped: worth another try.
_BROKEN = ("MALFORMED_FUNCTION_CALL", "MALFORMED_RESPONSE", "UNEXPECTED_TOOL_CALL", "OTHER")
_ENDS = ("STOP", "MAX_TOKENS", "FINISH_REASON_UNSPECIFIED")


def request(model: str, key: tuple[str, str], talk: Talk) -> Request:
    body: Json = {
        "systemInstruction": {"parts": [{"text": talk.system}]},
        "contents": [_content(entry) for entry in talk.entries],
    }
    if talk.longest:
        body["generationConfig"] = {"maxOutputTokens": talk.longest}
    if talk.tools:
        body["tools"] = [{"functionDeclarations": [tool.function() for tool in talk.tools]}]
    name = model.removeprefix("models/")
    headers = {"x-goog-api-key": key[1]} if key[1] else {}
    return Request(f"/v1beta/models/{name}:streamGenerateContent?alt=sse", headers, body)


def _content(entry: Entry) -> Json:
    match entry:
        case Words(text=text):
            return {"role": "user", "parts": [{"text": text}]}
        case Reply(native=native):
            return {"role": "model", "parts": native}
        case Answers(each=each):  # pragma: no branch  there is no other
            parts = []
            for answer in each:
                kind = "error" if answer.is_error else "output"
                told = {"name": answer.call.name, "response": {kind: answer.output}}
                named = {} if answer.call.id.startswith(_OURS) else {"id": answer.call.id}
                parts.append({"functionResponse": {**told, **named}})
            return {"role": "user", "parts": parts}


def reply(events: Iterable[Json]) -> Reply:
    parts: list[Json] = []
    usage: object = None
    finish = ""
    for event in events:
        if error := event.get("error"):
            raise trouble_of(error)
        if blocked := as_text(field(event, "promptFeedback", "blockReason")):
            return Reply(
                [],
                refusal=f"the prompt was blocked: {blocked}",
                usage=_usage(event.get("usageMetadata")),
            )
        candidate = next(iter(as_list(event.get("candidates"))), None)
        given = as_list(field(candidate, "content", "parts"))
        parts += [part for part in given if isinstance(part, dict)]
        finish = as_text(field(candidate, "finishReason")) or finish
        usage = event.get("usageMetadata") or usage
    if not finish:
        raise Trouble("the answer broke off")
    if finish in _BROKEN:
        raise Trouble(f"the model's answer came to nothing: {finish}")
    parts = _joined(parts)
    called = [part["functionCall"] for part in parts if "functionCall" in part]
    return Reply(
        parts or [{"text": "(nothing)"}],
        _said(parts, is_thought=False),
        _said(parts, is_thought=True),
        tuple(_call(n, each) for n, each in enumerate(called, 1)),
        _usage(usage),
        is_cut=finish == "MAX_TOKENS",
        refusal=None if finish in _ENDS else f"its service ended the answer: {finish}",
    )


def _joined(parts: Iterable[Json]) -> list[Json]:
    """Texts that come in pieces are one. What is more than text, or signed, goes back as it came,
    and joins nothing."""
    joined: list[Json] = []
    for kind, run in groupby(parts, _kind_of_text):
        if kind is None:
            joined += run
        elif text := "".join(as_text(part.get("text")) for part in run):
            joined.append({"text": text, **kind})
    return joined


def _said(parts: Iterable[Json], *, is_thought: bool) -> tuple[str, ...]:
    """What was said without a break: the last part of a text may be signed by itself."""
    runs = groupby(parts, lambda p: "text" in p and bool(p.get("thought")) is is_thought)
    texts = ("".join(as_text(part.get("text")) for part in run) for fits, run in runs if fits)
    return tuple(filter(None, texts))


def _kind_of_text(part: Json) -> Json | None:
    """What is said of a text beside it; None for all other parts."""
    if part.keys() - {"text", "thought"} or "text" not in part:
        return None
    return {"thought": True} if part.get("thought") else {}


def _call(number: int, call: object) -> Call:
    given = field(call, "args")
    named = as_text(field(call, "id")) or f"{_OURS}{number}"
    return Call(named, as_text(field(call, "name")), {} if given is None else sendable(given))


def _usage(told: object) -> Usage:
    """Its prompt includes what was read from the cache; thinking is output."""
    read = as_count(field(told, "cachedContentTokenCount"))
    asked = as_count(field(told, "promptTokenCount"))
    asked += as_count(field(told, "toolUsePromptTokenCount"))
    said = ("candidatesTokenCount", "thoughtsTokenCount")
    return Usage(max(0, asked - read), sum(as_count(field(told, n)) for n in said), read)
