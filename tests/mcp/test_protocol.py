"""What a client of either era is answered, line by line (ADR 52)."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ralph.mcp.jsonrpc import LARGEST
from ralph.mcp.protocol import LEGACY, MODERN, Cancel, Connection, ToolCall
from ralph.mcp.tools import TOOLS

VERSION = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
META = {VERSION: MODERN[0], CAPABILITIES: {}}
LIST = [{"name": "status", "inputSchema": {"type": "object"}}]
PARSE, INVALID, UNKNOWN, PARAMS, INTERNAL = -32700, -32600, -32601, -32602, -32603
Json = dict[str, Any]


def new() -> Connection:
    return Connection("1.2.3", LIST, "Use it.")


def line(method: str, params: object = None, number: object = 1) -> bytes:
    said = {"jsonrpc": "2.0", "id": number, "method": method}
    return json.dumps(said if params is None else {**said, "params": params}).encode()


def answer(server: Connection, said: bytes) -> Json:
    told = server.take(said)
    assert isinstance(told, bytes), told
    assert told.endswith(b"\n")
    assert told.count(b"\n") == 1
    found: Json = json.loads(told)
    return found


def called(server: Connection, number: object = 1, **params: object) -> ToolCall:
    call = server.take(line("tools/call", {"name": "status", "_meta": META, **params}, number))
    assert isinstance(call, ToolCall)
    return call


@pytest.mark.parametrize(
    ("said", "code", "number"),
    [
        (b"{", PARSE, None),
        (b"nonsense", PARSE, None),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "ping"', PARSE, None),
        (b'{"a": "\xff"}', PARSE, None),
        (b"[" * 200_000, PARSE, None),
        (b'[{"jsonrpc": "2.0", "id": 1, "method": "ping"}]', INVALID, None),
        (b"[]", INVALID, None),
        (b"7", INVALID, None),
        (b'{"id": 4, "method": "ping"}', INVALID, 4),
        (b'{"jsonrpc": "1.0", "id": "x", "method": "ping"}', INVALID, "x"),
        (b'{"jsonrpc": "2.0", "id": null, "method": "ping"}', INVALID, None),
        (b'{"jsonrpc": "2.0", "id": true, "method": "ping"}', INVALID, None),
        (b'{"jsonrpc": "2.0", "id": 1.5, "method": "ping"}', INVALID, None),
        (b'{"jsonrpc": "2.0", "id": 4}', INVALID, 4),
        (b'{"jsonrpc": "2.0", "id": 4, "method": 7}', INVALID, 4),
        (b'{"jsonrpc": "2.0", "method": 7}', INVALID, None),
        (b'{"jsonrpc": "2.0", "id": 4, "method": "ping", "params": []}', PARAMS, 4),
        (line("tools/list", {"_meta": 5}), PARAMS, 1),
        (line("tools/list", {"_meta": {VERSION: 5}}), PARAMS, 1),
        (line("tools/list", {"_meta": {VERSION: MODERN[0], CAPABILITIES: 1}}), PARAMS, 1),
        (line("tools/list", {"_meta": META, "cursor": "2"}), PARAMS, 1),
        (line("ping", {"_meta": META}), UNKNOWN, 1),
        (line("x" * 10_000, {"_meta": META}), UNKNOWN, 1),
        (line("resources/list", {"_meta": META}), UNKNOWN, 1),
        (line("initialize", {"capabilities": {}}), PARAMS, 1),
        (line("tools/call", {"_meta": META}), PARAMS, 1),
        (line("tools/call", {"_meta": META, "name": "dance"}), PARAMS, 1),
        (line("tools/call", {"_meta": META, "name": "status", "arguments": [1]}), PARAMS, 1),
    ],
)
def test_what_is_wrong_with_a_line_is_said(said: bytes, code: int, number: object) -> None:
    found = answer(new(), said)
    assert found["error"]["code"] == code
    assert found.get("id") == number
    assert ("id" in found) == (number is not None)  # MCP's schema knows no null
    assert len(found["error"]["message"]) < 300


@pytest.mark.parametrize(
    "said",
    [
        b"",
        b"  \r",
        b'{"jsonrpc": "2.0", "method": "notifications/initialized"}',
        b'{"jsonrpc": "2.0", "method": "whatever", "params": [1]}',
        b'{"jsonrpc": "2.0", "method": "tools/call", "params": {"name": "status"}}',
        b'{"jsonrpc": "2.0", "id": 1, "result": {}}',
        b'{"jsonrpc": "2.0", "id": 1, "error": {"code": 1, "message": "x"}}',
        b'{"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 9}}',
        b'{"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": [9]}}',
        b'{"jsonrpc": "2.0", "method": "notifications/cancelled"}',
    ],
)
def test_what_asks_for_nothing_gets_no_answer(said: bytes) -> None:
    assert new().take(said) is None


@given(st.one_of(st.binary(), st.text().map(str.encode)))
def test_no_line_is_too_strange(said: bytes) -> None:
    told = new().take(said)
    assert told is None or isinstance(told, bytes)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda some: st.lists(some) | st.dictionaries(st.text(), some),
    max_leaves=8,
)


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "jsonrpc": st.just("2.0") | _JSON,
            "id": st.integers() | _JSON,
            "method": st.sampled_from(["ping", "initialize", "tools/list", "tools/call"]) | _JSON,
            "params": st.fixed_dictionaries(
                {}, optional={"_meta": st.just(META) | _JSON, "name": _JSON, "arguments": _JSON}
            )
            | _JSON,
        },
    )
)
def test_no_message_is_too_strange(said: Json) -> None:
    server = new()
    for _ in range(2):
        told = server.take(json.dumps(said).encode())
        assert told is None or isinstance(told, bytes | ToolCall)


@pytest.mark.parametrize(
    ("asked", "agreed"),
    [
        *((version, version) for version in LEGACY),
        ("2025-03-26", LEGACY[0]),  # it has batches
        ("2026-07-28", LEGACY[0]),
        ("x", LEGACY[0]),
    ],
)
def test_the_older_era_begins_with_initialize(asked: str, agreed: str) -> None:
    server = new()
    assert answer(server, line("ping")) == {"jsonrpc": "2.0", "id": 1, "result": {}}
    begun = answer(server, line("initialize", {"protocolVersion": asked, "capabilities": {}}))
    assert begun["result"]["protocolVersion"] == agreed
    assert begun["result"]["serverInfo"]["version"] == "1.2.3"
    assert begun["result"]["instructions"] == "Use it."
    assert answer(server, line("tools/list"))["result"] == {"tools": LIST}
    assert answer(server, line("server/discover"))["error"]["code"] == UNKNOWN
    call = server.take(line("tools/call", {"name": "status"}))
    assert isinstance(call, ToolCall)
    told = json.loads(server.told(call, "words", {"a": 1}))
    assert told["result"] == {
        "content": [{"type": "text", "text": "words"}],
        "structuredContent": {"a": 1},
        "isError": False,
    }


@pytest.mark.parametrize("meta", [META, {VERSION: MODERN[0]}, {}])
def test_the_newer_era_needs_nothing_before(meta: dict[str, Any]) -> None:
    server = new()
    found = answer(server, line("server/discover", {"_meta": meta}))["result"]
    assert found["supportedVersions"] == list(MODERN)
    assert found["capabilities"] == {"tools": {}}
    assert found["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] == "ralph"
    listed = answer(server, line("tools/list", {"_meta": meta}))["result"]
    assert listed["tools"] == LIST
    for each in (found, listed):
        assert (each["resultType"], each["cacheScope"]) == ("complete", "public")
        assert each["ttlMs"] > 0
    told = json.loads(server.told(called(server), "no", None, failed=True))["result"]
    assert (told["resultType"], told["isError"]) == ("complete", True)
    assert "structuredContent" not in told


def test_both_eras_can_be_spoken_in_turn() -> None:
    server = new()
    answer(server, line("initialize", {"protocolVersion": LEGACY[0]}))
    modern = answer(server, line("tools/list", {"_meta": META}))["result"]
    assert modern["resultType"] == "complete"
    assert "resultType" not in answer(server, line("tools/list"))["result"]


def test_another_version_is_told_which_there_are() -> None:
    asked = {**META, VERSION: "2031-01-01"}
    error = answer(new(), line("tools/list", {"_meta": asked}))["error"]
    assert error["code"] == -32022
    assert error["data"] == {"supported": [*MODERN, *LEGACY], "requested": "2031-01-01"}


def test_a_call_is_answered_once() -> None:
    server = new()
    call = called(server, "a", arguments={"run": "x"})
    assert (call.tool, call.arguments, call.token) == ("status", {"run": "x"}, None)
    again = answer(server, line("tools/list", {"_meta": META}, "a"))
    assert again["error"]["code"] == INVALID
    called(server, 7)  # others are not held up
    assert json.loads(server.told(call, "words", {}))["id"] == "a"
    assert server.told(call, "again", {}) == b""
    called(server, "a")  # the id is free again


@pytest.mark.parametrize("number", [7, "seven"])
def test_a_cancelled_call_is_not_answered(number: object) -> None:
    server = new()
    call = called(server, number, _meta={**META, "progressToken": 5})
    params = {"requestId": number, "reason": "enough"}
    said = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}
    assert server.take(json.dumps(said).encode()) == Cancel(call)
    assert server.take(json.dumps(said).encode()) is None
    assert server.progress(call, 1, 2, "x") == b""
    assert server.told(call, "words", {}) == b""
    assert server.broken(call, "bug") == b""
    again = called(server, number)  # the id is free, and the old call is still looked at
    assert server.told(call, "words", {}) == b""
    assert json.loads(server.told(again, "words", {}))["id"] == number


def test_progress_is_told_to_whom_wants_it() -> None:
    server = new()
    assert server.progress(called(server, 1), 1, 45, "works") == b""
    assert called(server, 3, _meta={**META, "progressToken": [1]}).token is None
    call = called(server, 2, _meta={**META, "progressToken": "p"})
    assert json.loads(server.progress(call, 1, 45, "works")) == {
        "jsonrpc": "2.0",
        "method": "notifications/progress",
        "params": {"progressToken": "p", "progress": 1, "total": 45, "message": "works"},
    }


def test_a_bug_and_a_long_line_are_errors() -> None:
    server = new()
    assert json.loads(server.broken(called(server), "oh"))["error"]["code"] == INTERNAL
    error = json.loads(server.too_long())["error"]
    assert error["code"] == PARSE
    assert f"{LARGEST >> 20} MB" in error["message"]


def test_every_tool_says_what_it_takes_and_promises() -> None:
    told = [tool.told() for tool in TOOLS]
    names = [each["name"] for each in told]
    assert len(set(names)) == len(names)
    assert {"start", "status", "wait", "log", "questions", "answer", "note"} <= {*names}
    assert {"stop", "pause", "resume", "tasks_add", "tasks_list", "report"} <= {*names}
    for each in told:
        schema = each["inputSchema"]
        assert (schema["type"], schema["additionalProperties"]) == ("object", False)
        assert all("type" in taken for taken in schema["properties"].values()), each
        assert {"title", "readOnlyHint", "openWorldHint"} <= {*each["annotations"]}
    # A model reads this list in every session.
    assert len(json.dumps(told)) < 10_000


def test_what_only_looks_says_so_and_nobody_is_refused_it() -> None:
    looking = {tool.name for tool in TOOLS if tool.looks}
    assert looking == {"status", "wait", "log", "questions", "tasks_list", "report"}
    free = {tool.name for tool in TOOLS if not tool.deed}
    assert free == looking | {"tasks_add"}  # as `ralph tasks add` is
    start = next(tool.told() for tool in TOOLS if tool.name == "start")
    assert start["annotations"]["destructiveHint"]
    assert start["inputSchema"]["properties"]["loop"]["enum"] == ["tasks"]


def test_the_seconds_of_a_wait_are_bounded() -> None:
    wait = next(tool.told() for tool in TOOLS if tool.name == "wait")
    seconds = wait["inputSchema"]["properties"]["seconds"]
    assert (seconds["minimum"], seconds["maximum"]) == (0, 60)
