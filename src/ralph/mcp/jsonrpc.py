"""Lines of JSON-RPC 2.0 as values, and values as lines. Bytes in, values out; nothing raises."""

from typing import Any, TypeGuard

import msgspec

from ralph.kernel.value import value

PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND = -32700, -32600, -32601
INVALID_PARAMS, INTERNAL_ERROR = -32602, -32603
LARGEST = 4 << 20  # bytes of a message
_TOO_LARGE = 1 << 63  # for an id that is a number
_SHOWN = 80  # characters of a word of the client's
RequestId = str | int


@value
class RpcRequest:
    """A request, which wants an answer."""

    id: RequestId
    method: str
    params: dict[str, Any]


@value
class Notification:
    """A message that nobody answers."""

    method: str
    params: dict[str, Any]


@value
class Wrong:
    """A line that is no message, and the error that answers it. `id` is None where it cannot be
    read."""

    id: RequestId | None
    code: int
    message: str


def parse(line: bytes) -> RpcRequest | Notification | Wrong | None:
    """The message in a line; None for an empty line, and for an answer, since nothing was asked."""
    if not line.strip():
        return None
    try:
        said = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return Wrong(None, PARSE_ERROR, f"this is not JSON: {error}")
    if isinstance(said, list):
        words = "MCP has no batches (since 2025-06-18): send each message on a line of its own"
        return Wrong(None, INVALID_REQUEST, words)
    if not isinstance(said, dict):
        return Wrong(None, INVALID_REQUEST, "a message is an object")
    return _message(said)


def _message(said: dict[str, Any]) -> RpcRequest | Notification | Wrong | None:
    number = said.get("id")
    known = number if is_id(number) else None
    if said.get("jsonrpc") != "2.0":
        return Wrong(known, INVALID_REQUEST, '"jsonrpc" is to be "2.0"')
    if "method" not in said and ("result" in said or "error" in said):
        return None
    method, params = said.get("method"), said.get("params", {})
    if "id" in said and known is None:
        return Wrong(None, INVALID_REQUEST, '"id" is a string or a whole number')
    if not isinstance(method, str):
        return Wrong(known, INVALID_REQUEST, '"method" is a string')
    if known is None:
        return Notification(method, params if isinstance(params, dict) else {})
    if not isinstance(params, dict):
        return Wrong(known, INVALID_PARAMS, '"params" is an object')
    return RpcRequest(known, method, params)


def is_id(number: object) -> TypeGuard[RequestId]:
    """True for what may be the id of a request, or a token of progress."""
    if isinstance(number, int) and not isinstance(number, bool):
        return abs(number) < _TOO_LARGE
    return isinstance(number, str)


def result(number: RequestId, content: dict[str, Any]) -> bytes:
    """The answer to a request."""
    return encoded({"jsonrpc": "2.0", "id": number, "result": content})


def failure(wrong: Wrong, data: dict[str, Any] | None = None) -> bytes:
    """The answer that says what is wrong with a message. Where its id is not known it has none:
    MCP's schema knows no null."""
    error = {"code": wrong.code, "message": wrong.message, **({"data": data} if data else {})}
    number = {} if wrong.id is None else {"id": wrong.id}
    return encoded({"jsonrpc": "2.0", **number, "error": error})


def notification(method: str, params: dict[str, Any]) -> bytes:
    return encoded({"jsonrpc": "2.0", "method": method, "params": params})


def encoded(message: dict[str, Any]) -> bytes:
    """A message as one line."""
    return msgspec.json.encode(message) + b"\n"


def shown(word: str) -> str:
    """A word of the client's, short enough for a message about it."""
    return repr(word if len(word) <= _SHOWN else f"{word[:_SHOWN]}...")
