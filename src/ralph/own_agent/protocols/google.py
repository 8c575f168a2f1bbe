"""Google's Gemini: `generateContent`, streamed."""

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
)

_OURS = "call-"  # ids that we made up: the service knows none of them
_BROKEN = "MALFORMED_FUNCTION_CALL"  # it tried to call something: worth another try
_ENDS = ("STOP", "MAX_TOKENS", "FINISH_REASON_UNSPECIFIED")


def request(model: str, key: tuple[str, str], talk: Talk) -> Request:
    body: Json = {
        "systemInstruction": {"parts": [{"text": talk.system}]},
        "contents": [_content(entry) for entry in talk.entries],
    }
    if talk.longest:
        body["generationConfig"] = {"maxOutputTokens": talk.longest}
    if talk.tools:
        told = [
            {"name": tool.name, "description": tool.about, "parameters": tool.parameters}
            for tool in talk.tools
        ]
        body["tools"] = [{"functionDeclarations": told}]
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
            raise _trouble(error)
        if blocked := as_text(field(event, "promptFeedback", "blockReason")):
            return Reply(
                [],
                refusal=f"the prompt was blocked: {blocked}",
                usage=_usage(event.get("usageMetadata")),
            )
        candidate = next(iter(as_list(event.get("candidates"))), None)
        for part in as_list(field(candidate, "content", "parts")):
            if isinstance(part, dict):
                _add(parts, part)
        finish = as_text(field(candidate, "finishReason")) or finish
        usage = event.get("usageMetadata") or usage
    if not finish:
        raise Trouble("the answer broke off")
    if finish == _BROKEN:
        raise Trouble("the model made a call that its service could not read")
    said = [as_text(part.get("text")) for part in parts if not part.get("thought")]
    thoughts = [as_text(part.get("text")) for part in parts if part.get("thought")]
    called = [part["functionCall"] for part in parts if "functionCall" in part]
    return Reply(
        parts or [{"text": "(nothing)"}],
        tuple(filter(None, said)),
        tuple(filter(None, thoughts)),
        tuple(_call(n, each) for n, each in enumerate(called, 1)),
        _usage(usage),
        is_cut=finish == "MAX_TOKENS",
        refusal=None if finish in _ENDS else f"its service ended the answer: {finish}",
    )


def _add(parts: list[Json], part: Json) -> None:
    """Join texts that come in pieces. A part may be signed: then it goes back as it came."""
    if not part.get("text") and "text" in part and not part.keys() - {"text", "thought"}:
        return
    last = parts[-1] if parts else {}
    plain = last.keys() | part.keys() <= {"text", "thought"}
    if plain and last and bool(last.get("thought")) is bool(part.get("thought")):
        last["text"] = as_text(last.get("text")) + as_text(part.get("text"))
    else:
        parts.append(dict(part))


def _call(number: int, call: object) -> Call:
    given = field(call, "args")
    named = as_text(field(call, "id")) or f"{_OURS}{number}"
    return Call(named, as_text(field(call, "name")), {} if given is None else _object(given))


def _object(value: object) -> Json | None:
    return value if isinstance(value, dict) else None


def _usage(told: object) -> Usage:
    """Its prompt includes what was read from the cache; thinking is output."""
    read = as_count(field(told, "cachedContentTokenCount"))
    asked = as_count(field(told, "promptTokenCount"))
    asked += as_count(field(told, "toolUsePromptTokenCount"))
    said = ("candidatesTokenCount", "thoughtsTokenCount")
    return Usage(max(0, asked - read), sum(as_count(field(told, n)) for n in said), read)


def _trouble(error: object) -> Trouble:
    message = as_text(field(error, "message")) or "the service failed"
    return Trouble(message, as_count(field(error, "code")) or 500)
