"""The wire protocols of the scripted model: a turn in, the bodies of a real service out.

Each `*_events` generator yields (event name or None, JSON value) pairs in the order in which the
real service sends them. MIDDLE marks a place inside the answer, for cut, hang and stream_error.
"""

import json
import time
import uuid
from collections.abc import Callable, Iterator
from typing import Any

Json = dict[str, Any]
Event = tuple[str | None, Any]
Events = Iterator[Event]

MIDDLE: Event = ("", None)
DEFAULT_USAGE = {"input": 100, "output": 20, "cache_read": 0, "cache_write": 0}


def new_id(prefix: str) -> str:
    """An identifier in the manner of the APIs."""
    return f"{prefix}{uuid.uuid4().hex[:24]}"


def pieces(text: str, size: int = 24) -> list[str]:
    """Cut text as a streaming model would; never returns an empty list."""
    return [text[i : i + size] for i in range(0, len(text), size)] or [""]


def usage_of(turn: Json) -> dict[str, int]:
    return {**DEFAULT_USAGE, **turn.get("usage", {})}


def model_of(body: Json) -> str:
    return str(body.get("model", "scripted"))


def has_text(turn: Json) -> bool:
    """A turn without tools says something, even if it is empty."""
    return bool(turn.get("text")) or not turn.get("tools")


# ----------------------------------------------------------------- Anthropic Messages


def anthropic_blocks(turn: Json) -> Iterator[tuple[Json, list[Json]]]:
    """Each content block as it starts, and the deltas that fill it."""
    if turn.get("thinking"):
        deltas = [{"type": "thinking_delta", "thinking": p} for p in pieces(turn["thinking"])]
        deltas.append({"type": "signature_delta", "signature": "c2NyaXB0ZWQ="})
        yield {"type": "thinking", "thinking": "", "signature": ""}, deltas
    if has_text(turn):
        deltas = [{"type": "text_delta", "text": p} for p in pieces(turn.get("text", ""))]
        yield {"type": "text", "text": ""}, deltas
    for tool in turn.get("tools", []):
        parts = pieces(json.dumps(tool.get("input", {})), 40)
        call = {"type": "tool_use", "id": tool.get("id") or new_id("toolu_")}
        deltas = [{"type": "input_json_delta", "partial_json": p} for p in parts]
        yield {**call, "name": tool["name"], "input": {}}, deltas


def anthropic_stop(turn: Json) -> str:
    return str(turn.get("stop") or ("tool_use" if turn.get("tools") else "end_turn"))


def anthropic_message(turn: Json, body: Json) -> Json:
    """The message without its content."""
    usage = usage_of(turn)
    counts = {
        "input_tokens": usage["input"],
        "cache_creation_input_tokens": usage["cache_write"],
        "cache_read_input_tokens": usage["cache_read"],
        "output_tokens": usage["output"],
    }
    return {
        "id": new_id("msg_"),
        "type": "message",
        "role": "assistant",
        "model": model_of(body),
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": counts,
    }


def anthropic_events(turn: Json, body: Json) -> Events:
    message = anthropic_message(turn, body)
    output = {"output_tokens": message["usage"]["output_tokens"]}
    message["usage"]["output_tokens"] = 1
    yield "message_start", {"type": "message_start", "message": message}
    for index, (start, deltas) in enumerate(anthropic_blocks(turn)):
        at = {"index": index}
        yield "content_block_start", {"type": "content_block_start", **at, "content_block": start}
        for n, delta in enumerate(deltas):
            yield "content_block_delta", {"type": "content_block_delta", **at, "delta": delta}
            if index == 0 and n == 0:
                yield MIDDLE
        yield "content_block_stop", {"type": "content_block_stop", **at}
    ending = {"stop_reason": anthropic_stop(turn), "stop_sequence": None}
    yield "message_delta", {"type": "message_delta", "delta": ending, "usage": output}
    yield "message_stop", {"type": "message_stop"}


def anthropic_whole(turn: Json, body: Json) -> Json:
    content: list[Json] = []
    if has_text(turn):
        content.append({"type": "text", "text": turn.get("text", "")})
    for tool in turn.get("tools", []):
        call = {"type": "tool_use", "id": new_id("toolu_"), "name": tool["name"]}
        content.append({**call, "input": tool.get("input", {})})
    message = anthropic_message(turn, body)
    return {**message, "content": content, "stop_reason": anthropic_stop(turn)}


# ------------------------------------------------------------------- OpenAI Responses


def responses_call(tool: Json) -> Json:
    """A function call; a freeform (`custom`) one where the input is a plain string."""
    call = {"id": new_id("fc_"), "call_id": tool.get("id") or new_id("call_")}
    call |= {"name": tool["name"], "status": "completed"}
    if tool.get("namespace"):
        call["namespace"] = tool["namespace"]
    if isinstance(tool.get("input"), str):
        return {"type": "custom_tool_call", **call, "input": tool["input"]}
    return {"type": "function_call", **call, "arguments": json.dumps(tool.get("input", {}))}


def responses_items(turn: Json) -> list[Json]:
    items: list[Json] = []
    if turn.get("thinking"):
        summary = [{"type": "summary_text", "text": turn["thinking"]}]
        item = {"type": "reasoning", "id": new_id("rs_"), "encrypted_content": None}
        items.append({**item, "summary": summary})
    if has_text(turn):
        part = {"type": "output_text", "text": turn.get("text", ""), "annotations": []}
        item = {"type": "message", "id": new_id("msg_"), "role": "assistant"}
        items.append({**item, "status": "completed", "content": [part]})
    return items + [responses_call(tool) for tool in turn.get("tools", [])]


def responses_usage(turn: Json) -> Json:
    usage = usage_of(turn)
    return {
        "input_tokens": usage["input"],
        "input_tokens_details": {"cached_tokens": usage["cache_read"]},
        "output_tokens": usage["output"],
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": usage["input"] + usage["output"],
    }


def responses_whole(turn: Json, body: Json) -> Json:
    return {
        "id": new_id("resp_"),
        "object": "response",
        "created_at": int(time.time()),
        "status": "completed",
        "model": model_of(body),
        "output": responses_items(turn),
        "error": None,
        "incomplete_details": None,
        "metadata": {},
        "usage": responses_usage(turn),
    }


def message_steps(item: Json, place: Json) -> Events:
    """How a message item fills up."""
    part, at = item["content"][0], {**place, "content_index": 0}
    yield "response.content_part.added", {**at, "part": {**part, "text": ""}}
    for piece in pieces(part["text"]):
        yield "response.output_text.delta", {**at, "delta": piece}
        yield MIDDLE
    yield "response.output_text.done", {**at, "text": part["text"]}
    yield "response.content_part.done", {**at, "part": part}


def reasoning_steps(item: Json, place: Json) -> Events:
    """How a reasoning item fills up."""
    text, at = item["summary"][0]["text"], {**place, "summary_index": 0}
    empty = {"type": "summary_text", "text": ""}
    yield "response.reasoning_summary_part.added", {**at, "part": empty}
    yield "response.reasoning_summary_text.delta", {**at, "delta": text}
    yield "response.reasoning_summary_text.done", {**at, "text": text}


def call_steps(item: Json, place: Json) -> Events:
    """How a function call's arguments come."""
    words = item["arguments"]
    yield "response.function_call_arguments.delta", {**place, "delta": words}
    yield "response.function_call_arguments.done", {**place, "arguments": words}


STEPS: dict[str, Callable[[Json, Json], Events]] = {
    "message": message_steps,
    "reasoning": reasoning_steps,
    "function_call": call_steps,
}


def responses_steps(response: Json) -> Events:
    """The events of a response, not yet numbered."""
    begun = {**response, "status": "in_progress", "output": [], "usage": None}
    yield "response.created", {"response": begun}
    yield "response.in_progress", {"response": begun}
    for n, item in enumerate(response["output"]):
        at = {"output_index": n}
        filled = {"status": "in_progress", "content": []} if item["type"] == "message" else {}
        yield "response.output_item.added", {**at, "item": {**item, **filled}}
        if item["type"] in STEPS:
            yield from STEPS[item["type"]](item, {"item_id": item["id"], **at})
        yield "response.output_item.done", {**at, "item": item}
    yield MIDDLE
    yield "response.completed", {"response": response}


def responses_events(turn: Json, body: Json) -> Events:
    number = 0
    for kind, data in responses_steps(responses_whole(turn, body)):
        if data is None:
            yield MIDDLE
        else:
            yield kind, {"type": kind, "sequence_number": number, **data}
            number += 1


# ------------------------------------------------------------------------ OpenAI Chat


def chat_calls(turn: Json) -> list[Json]:
    return [
        {
            "id": tool.get("id") or new_id("call_"),
            "type": "function",
            "function": {"name": tool["name"], "arguments": json.dumps(tool.get("input", {}))},
        }
        for tool in turn.get("tools", [])
    ]


def chat_usage(turn: Json) -> Json:
    usage = usage_of(turn)
    return {
        "prompt_tokens": usage["input"],
        "completion_tokens": usage["output"],
        "total_tokens": usage["input"] + usage["output"],
        "prompt_tokens_details": {"cached_tokens": usage["cache_read"]},
    }


def chat_base(body: Json, kind: str) -> Json:
    base = {"id": new_id("chatcmpl-"), "object": kind}
    return {**base, "created": int(time.time()), "model": model_of(body)}


def chat_stop(turn: Json) -> str:
    return str(turn.get("stop") or ("tool_calls" if turn.get("tools") else "stop"))


def chat_events(turn: Json, body: Json) -> Events:
    base = chat_base(body, "chat.completion.chunk")

    def chunk(delta: Json, finish: str | None = None) -> Event:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return None, {**base, "choices": [choice]}

    yield chunk({"role": "assistant", "content": ""})
    if turn.get("thinking"):
        yield chunk({"reasoning_content": turn["thinking"]})
    for piece in pieces(turn["text"]) if turn.get("text") else []:
        yield chunk({"content": piece})
        yield MIDDLE
    for n, call in enumerate(chat_calls(turn)):
        yield chunk({"tool_calls": [{"index": n, **call}]})
    yield MIDDLE
    yield chunk({}, chat_stop(turn))
    yield None, {**base, "choices": [], "usage": chat_usage(turn)}
    yield None, "[DONE]"


def chat_whole(turn: Json, body: Json) -> Json:
    message: Json = {"role": "assistant", "content": turn.get("text", "")}
    if turn.get("tools"):
        message["tool_calls"] = chat_calls(turn)
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": chat_stop(turn)}
    base = chat_base(body, "chat.completion")
    return {**base, "choices": [choice], "usage": chat_usage(turn)}


# ----------------------------------------------------------------------------- Gemini


def gemini_parts(turn: Json) -> list[Json]:
    parts: list[Json] = []
    if turn.get("thinking"):
        parts.append({"text": turn["thinking"], "thought": True})
    if has_text(turn):
        parts.append({"text": turn.get("text", "")})
    calls = [{"name": t["name"], "args": t.get("input", {})} for t in turn.get("tools", [])]
    return parts + [{"functionCall": call} for call in calls]


def gemini_whole(turn: Json, body: Json) -> Json:
    usage = usage_of(turn)
    content = {"role": "model", "parts": gemini_parts(turn)}
    return {
        "candidates": [
            {"content": content, "finishReason": turn.get("stop") or "STOP", "index": 0}
        ],
        "usageMetadata": {
            "promptTokenCount": usage["input"],
            "candidatesTokenCount": usage["output"],
            "cachedContentTokenCount": usage["cache_read"],
            "totalTokenCount": usage["input"] + usage["output"],
        },
        "modelVersion": model_of(body),
        "responseId": new_id(""),
    }


def gemini_events(turn: Json, body: Json) -> Events:
    whole = gemini_whole(turn, body)
    (final,) = whole["candidates"]
    for part in final["content"]["parts"]:
        candidate = {"content": {"role": "model", "parts": [part]}, "index": 0}
        yield None, {**whole, "candidates": [candidate]}
        yield MIDDLE
    candidate = {**final, "content": {"role": "model", "parts": [{"text": ""}]}}
    yield None, {**whole, "candidates": [candidate]}


# ----------------------------------------------------------------------------- errors


def error_body(protocol: str, error: Json) -> Json:
    """The body of an HTTP error, as each service spells it."""
    status, message = error.get("status", 500), error.get("message", "scripted error")
    if protocol == "gemini":
        kind = error.get("type", "INTERNAL")
        return {"error": {"code": status, "message": message, "status": kind}}
    if protocol == "anthropic":
        inner = {"type": error.get("type", "api_error"), "message": message}
        return {"type": "error", "request_id": new_id("req_"), "error": inner}
    kind = error.get("type", "server_error")
    return {"error": {"message": message, "type": kind, "param": None, "code": error.get("code")}}


def stream_error(protocol: str, error: Json) -> Event:
    """An error event in the middle of a stream, as each service spells it."""
    if protocol == "anthropic":
        return "error", error_body(protocol, error)
    if protocol == "responses":
        code, message = error.get("type", "server_error"), error.get("message", "scripted error")
        failed = {"id": new_id("resp_"), "status": "failed", "output": []}
        response = {**failed, "error": {"code": code, "message": message}}
        return "response.failed", {"type": "response.failed", "response": response}
    return None, error_body(protocol, error)


Stream = Callable[[Json, Json], Events]
Whole = Callable[[Json, Json], Json]
PROTOCOLS: dict[str, tuple[Stream, Whole]] = {
    "anthropic": (anthropic_events, anthropic_whole),
    "responses": (responses_events, responses_whole),
    "chat": (chat_events, chat_whole),
    "gemini": (gemini_events, gemini_whole),
}
