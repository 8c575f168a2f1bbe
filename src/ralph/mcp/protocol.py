"""The Model Context Protocol as a server of tools speaks it, in both of its eras (ADR 52).

Since 2026-07-28 each request says in its `_meta` which version it is of and what its client can do.
Before, `initialize` said so once for all that came after it. A request with that `_meta` is of the
new era, whatever came before; one with neither is answered as if it were, since no answer of ours
depends on what a client can do. Lines in, answers and wishes out; nothing raises.
"""

from collections.abc import Sequence
from typing import Any

from ralph.kernel.value import value
from ralph.mcp.jsonrpc import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    LARGEST,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
    Notification,
    RequestId,
    RpcRequest,
    Wrong,
    failure,
    is_id,
    notification,
    parse,
    result,
    shown,
)

MODERN = ("2026-07-28",)
LEGACY = ("2025-11-25", "2025-06-18", "2024-11-05")  # 2025-03-26 has batches
_UNSUPPORTED_VERSION = -32022
_META = "io.modelcontextprotocol/"
_VERSION, _CAPABILITIES = f"{_META}protocolVersion", f"{_META}clientCapabilities"
_CAN: dict[str, Any] = {"tools": {}}
_FRESH = 3_600_000  # milliseconds for which a client may keep the list of tools
Json = dict[str, Any]


@value
class ToolCall:
    """A tool that is to be called. `token` is that of its progress, if it is to be told."""

    id: RequestId
    tool: str
    arguments: Json
    token: RequestId | None = None
    modern: bool = False


@value
class Cancel:
    """A call whose answer nobody wants any more."""

    call: ToolCall


class Connection:
    """The server's side of one connection: which calls are open, and the version that `initialize`
    has agreed on."""

    def __init__(self, version: str, tools: Sequence[Json], instructions: str) -> None:
        self._info = {"name": "ralph", "title": "Ralph", "version": version}
        self._tools, self._instructions = list(tools), instructions
        self._known = {tool["name"] for tool in tools}
        self._agreed = ""
        self._open: dict[RequestId, ToolCall] = {}

    def take(self, line: bytes) -> bytes | ToolCall | Cancel | None:
        """What is to be done about a line: send an answer, call a tool, cancel a call, nothing."""
        match parse(line):
            case Wrong() as wrong:
                return failure(wrong)
            case Notification(method="notifications/cancelled", params=params):
                number = params.get("requestId")
                call = self._open.pop(number, None) if is_id(number) else None
                return Cancel(call) if call is not None else None
            case RpcRequest() as request if request.id in self._open:
                words = f"a request {shown(str(request.id))} is not answered yet"
                return failure(Wrong(request.id, INVALID_REQUEST, words))
            case RpcRequest() as request:
                return self._answer(request)
            case _:
                return None

    def too_long(self) -> bytes:
        """The answer to a line that was dropped."""
        words = f"a message has {LARGEST >> 20} MB at most: this one was not read"
        return failure(Wrong(None, PARSE_ERROR, words))

    def told(self, call: ToolCall, text: str, data: Json | None, *, failed: bool = False) -> bytes:
        """The answer of a tool; nothing if the call was cancelled."""
        content: Json = {"content": [{"type": "text", "text": text}], "isError": failed}
        if data is not None:
            content["structuredContent"] = data
        return self._closed(call, result(call.id, self._dressed(content, modern=call.modern)))

    def broken(self, call: ToolCall, words: str) -> bytes:
        """The answer where a tool has a bug; nothing if the call was cancelled."""
        return self._closed(call, failure(Wrong(call.id, INTERNAL_ERROR, words)))

    def progress(self, call: ToolCall, done: float, total: float, words: str) -> bytes:
        """News of a call, if its client wants some; each is to be further than the one before."""
        if call.token is None or self._open.get(call.id) is not call:
            return b""
        said = {"progressToken": call.token, "progress": done, "total": total, "message": words}
        return notification("notifications/progress", said)

    def _closed(self, call: ToolCall, answer: bytes) -> bytes:
        if self._open.get(call.id) is not call:  # cancelled; its id may be that of another now
            return b""
        del self._open[call.id]
        return answer

    def _answer(self, request: RpcRequest) -> bytes | ToolCall:
        meta = request.params.get("_meta", {})
        if not isinstance(meta, dict):
            return _refused(request, '"_meta" is an object')
        if request.method == "initialize":
            return self._initialized(request)
        if request.method == "ping" and _VERSION not in meta:
            return result(request.id, {})
        modern = _VERSION in meta or not self._agreed
        if modern and (refusal := _refusal(request, meta)):
            return refusal
        match request.method:
            case "server/discover" if modern:
                content = {"supportedVersions": list(MODERN), "capabilities": _CAN}
                return self._listed(request, content | {"instructions": self._instructions})
            case "tools/list":
                return self._listed(request, {"tools": self._tools}, modern=modern)
            case "tools/call":
                return self._call(request, meta, modern=modern)
        words = f"there is no method {shown(request.method)}"
        return failure(Wrong(request.id, METHOD_NOT_FOUND, words))

    def _initialized(self, request: RpcRequest) -> bytes:
        """Agree on the client's version if it is ours, else offer our newest."""
        asked = request.params.get("protocolVersion")
        if not isinstance(asked, str):
            return _refused(request, '"protocolVersion" is a string')
        self._agreed = asked if asked in LEGACY else LEGACY[0]
        content = {"protocolVersion": self._agreed, "capabilities": _CAN, "serverInfo": self._info}
        return result(request.id, {**content, "instructions": self._instructions})

    def _listed(self, request: RpcRequest, content: Json, *, modern: bool = True) -> bytes:
        """What stays as it is while we serve, on one page."""
        if request.params.get("cursor") is not None:
            return _refused(request, "there is no such cursor: the list has one page")
        content |= {"ttlMs": _FRESH, "cacheScope": "public"} if modern else {}
        return result(request.id, self._dressed(content, modern=modern))

    def _call(self, request: RpcRequest, meta: Json, *, modern: bool) -> bytes | ToolCall:
        name, given = request.params.get("name"), request.params.get("arguments")
        if not isinstance(name, str):
            return _refused(request, '"name" is a string')
        if name not in self._known:
            return _refused(request, f"Unknown tool: {shown(name)}")
        if not isinstance(given, dict | None):
            return _refused(request, '"arguments" is an object')
        token = meta.get("progressToken")
        call = ToolCall(request.id, name, given or {}, token if is_id(token) else None, modern)
        self._open[call.id] = call
        return call

    def _dressed(self, content: Json, *, modern: bool) -> Json:
        """A result as its era has it."""
        if not modern:
            return content
        return {"resultType": "complete", **content, "_meta": {f"{_META}serverInfo": self._info}}


def _refusal(request: RpcRequest, meta: Json) -> bytes:
    """The answer to a request of the new era that is not as we know it; nothing if it is."""
    version = meta.get(_VERSION, MODERN[0])
    if not isinstance(version, str):
        return _refused(request, f'"{_VERSION}" in "_meta" is a string')
    if version not in MODERN:
        wrong = Wrong(request.id, _UNSUPPORTED_VERSION, "Unsupported protocol version")
        return failure(wrong, {"supported": [*MODERN, *LEGACY], "requested": version[:100]})
    if not isinstance(meta.get(_CAPABILITIES, {}), dict):
        return _refused(request, f'"{_CAPABILITIES}" in "_meta" is an object')
    return b""


def _refused(request: RpcRequest, words: str) -> bytes:
    return failure(Wrong(request.id, INVALID_PARAMS, words))
