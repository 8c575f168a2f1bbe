"""No input makes a parser raise (docs/facts.md §2: any line may be noise, torn or not UTF-8)."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from stream_support import capture, claimed, parse, parse_chunks, parse_values, said

from kits.thorough import examples
from ralph.agents.streams.dialects import DIALECTS, Parser, parser_for
from ralph.agents.streams.text import TextParser
from ralph.kernel.events import AgentEvent, Text, ToolEnd, ToolStart, Unknown
from ralph.kernel.value import replace

KINDS = [*DIALECTS, "some-other-agent"]
JSON_KINDS = ["acp", "amp", "claude", "codex", "gemini", "opencode", "ralph-agent"]
JSON_KINDS += ["claude-transcript"]

# Values of any shape whose keys and words are those the dialects know.
KEYS = """type subtype message content text thinking id name input tool_use_id is_error model error
    result errors usage input_tokens permission_denials tool_name tool_use_result task tasks
    rate_limit_info status resetsAt session_id item items completed changes command exit_code
    arguments thread_id parent_tool_use_id todos questions taskId num_turns query
    role delta tool_id parameters output severity stats total_tokens cached code
    part sessionID state tool callID reason tokens cost synthetic metadata exit data statusCode
    responseHeaders retry-after session method params update sessionUpdate messageId toolCallId
    rawInput rawOutput title kind entries terminalId locations response stopReason allowed what
    action args usage retry_after resets_at attempt of why"""
WORDS = """assistant user system result rate_limit_event stream_event text thinking tool_use
    tool_result init api_retry hook_response notification rejected TodoWrite TaskCreate TaskUpdate
    TaskList AskUserQuestion thread.started item.started item.updated item.completed turn.completed
    turn.failed error agent_message reasoning command_execution file_change mcp_tool_call
    web_search todo_list failed deleted message success warning write_todos write_file
    tool_not_registered policy_violation step_start step_finish stop tool-calls length
    content-filter completed cancelled todowrite invalid bash session action
    session/update session/request_permission elicitation/create _ralph/permission _ralph/ended
    agent_message_chunk agent_message agent_thought_chunk user_message tool_call tool_call_update
    tool_call_content_chunk terminal_update terminal_output_chunk plan usage_update end_turn error
    action_result used retry progress question git eval"""
keys, words = st.sampled_from(KEYS.split()), st.sampled_from(WORDS.split())
scalars = words | st.sampled_from(
    [None, True, 0, -1, 2**70, 0.5, float("nan"), "", "\ud83d", "é\n"]
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(keys, inner, max_size=4),
    max_leaves=6,
)
objects = st.dictionaries(keys, values, max_size=4)
lines = (
    values
    | st.builds(lambda kind, rest: {**rest, "type": kind}, words, objects)
    | st.builds(
        lambda kind, block, rest: {**rest, "type": kind, "message": {"content": [block]}},
        st.sampled_from(["assistant", "user"]),
        objects,
        objects,
    )
    | st.builds(
        lambda line, kind, item: {"type": line, "item": {**item, "type": kind}},
        st.sampled_from(["item.started", "item.completed"]),
        words,
        objects,
    )
    | st.builds(
        lambda kind, rest, more: {
            "method": "session/update",
            "params": {"update": {**rest, "content": more, "sessionUpdate": kind}},
        },
        words,
        objects,
        objects | st.lists(objects, max_size=2),
    )
    | st.builds(lambda kind, rest: {"method": kind, "params": rest}, words, objects)
    | st.builds(
        lambda line, part, state: {"type": line, "part": {**part, "state": state}},
        st.sampled_from(["text", "reasoning", "tool_use", "step_finish"]),
        objects,
        objects,
    )
)


def events_of(kind: str, data: bytes) -> list[AgentEvent]:
    return parse(kind, data, prompt="Say <promise>DONE</promise>", size=64)


@settings(max_examples=examples(100), deadline=None)
@given(data=st.binary())
def test_arbitrary_bytes(data: bytes) -> None:
    for kind in KINDS:
        events_of(kind, data)


@settings(max_examples=examples(150), deadline=None)
@given(values=st.lists(lines, min_size=1, max_size=4))
def test_arbitrary_json(values: list[object]) -> None:
    for kind in JSON_KINDS:
        events_of(kind, b"\n".join(json.dumps(value).encode() for value in values))


@pytest.mark.parametrize(
    ("kind", "source"),
    [
        ("amp", "claude/success"),
        ("claude", "claude/success"),
        ("codex", "codex/success-bypass"),
        ("gemini", "gemini/success"),
        ("opencode", "opencode/compaction"),
        ("ralph-agent", "ralph-agent/success"),
    ],
)
@settings(max_examples=examples(50), deadline=None)
@given(where=st.integers(0, 20_000), noise=st.binary(max_size=3))
def test_noise_changes_nothing_before_it(kind: str, source: str, where: int, noise: bytes) -> None:
    data = capture(*source.split("/"))
    where %= len(data)
    # Without the end of the stream: what is held back may depend on what follows.
    before = parser_for(kind).feed(data[: data.rfind(b"\n", 0, where) + 1])
    assert parse(kind, data[:where] + noise + data[where:])[: len(before)] == before


DONE = "<response>DONE</response>"
BY_CLAUDE: list[object] = [
    {"type": "assistant", "message": {"content": [{"type": "text", "text": DONE}]}}
]
SAID: dict[str, list[object]] = {  # by the assistant; acp and gemini say it letter by letter
    "acp": [
        {
            "method": "session/update",
            "params": {
                "update": {
                    "sessionUpdate": "agent_message_chunk",
                    "content": {"type": "text", "text": letter},
                }
            },
        }
        for letter in DONE
    ],
    "amp": BY_CLAUDE,
    "claude": BY_CLAUDE,
    "claude-transcript": BY_CLAUDE,
    "codex": [{"type": "item.completed", "item": {"type": "agent_message", "text": DONE}}],
    "gemini": [
        {"type": "message", "role": "assistant", "content": letter, "delta": True}
        for letter in DONE
    ],
    "opencode": [
        {"type": "text", "sessionID": "s", "part": {"text": DONE}},
        {"type": "step_finish", "sessionID": "s", "part": {"reason": "stop"}},
    ],
    "ralph-agent": [{"type": "text", "text": DONE}],
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_claim_is_heard_once_wherever_the_stream_is_cut(kind: str) -> None:
    """ADR 3: chunks end anywhere: within the tag, the JSON, or a character."""
    lines = [json.dumps(value).encode() for value in SAID.get(kind, ())] or [DONE.encode()]
    data = b"\n".join(["größer".encode(), *lines, b"noise"])
    for cut in range(len(data) + 1):
        found = parse_chunks(kind, [data[:cut], data[cut:]])
        assert claimed(found) == [DONE], data[:cut]


@pytest.mark.parametrize("kind", JSON_KINDS)
@pytest.mark.parametrize(
    "line",
    [
        b"npm warn deprecated",
        b'{"type":"assistant","message":{"content":[{"type":"te',
        b'{"type":"of_next_year"}',
        b'{"no":"type"}',
        b'{"type":7}',
        b"[]",
        b"null",
        b"\0\0\0",
        b"\xff\xfe",
        b'{"type":"assistant","message":"words"}',
        b'{"type":"result","result":1e999}',
        b'{"type":"result","result":' + b"9" * 5000 + b"}",
        b'{"type":"result","usage":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"type":"user","message":{},"tool_use_result":' + b'{"a":' * 100_000,
    ],
)
def test_a_line_that_is_not_understood_is_kept(kind: str, line: bytes) -> None:
    """Unknown events become `Unknown(raw)`, never an exception; its beginning is kept."""
    assert parse(kind, line + b"\n") == [Unknown(line[:2000].decode("utf-8", "replace"))]


@pytest.mark.parametrize("kind", JSON_KINDS)
def test_empty_lines_are_nothing(kind: str) -> None:
    assert parse(kind, b"\n\n  \n\r\n") == []


def test_an_odd_value_does_not_cost_the_line() -> None:
    """Wrong types in any field."""
    odd = {"total_cost_usd": "free", "usage": 7, "permission_denials": {}, "errors": "x"}
    found = parse_values("claude", {"type": "result", "result": "done", "session_id": 1, **odd})
    assert found[0] == parse_values("claude", {"type": "result", "result": "done"})[0]


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (b"cut \\ud83d off", "cut ? off"),  # half an emoji: what JSON.stringify makes of a cut
        (b"bad \xff byte", "bad � byte"),
        (b"raw \0 control", "raw \0 control"),
    ],
)
def test_one_bad_character_does_not_cost_the_line(raw: bytes, text: str) -> None:
    line = b'{"type":"assistant","message":{"content":[{"type":"text","text":"' + raw + b'"}]}}'
    assert parse("claude", line) == [Text(text)]


def test_a_broken_payload_that_nobody_needs_costs_nothing() -> None:
    block = b'{"type":"tool_result","tool_use_id":"t1","content":"ok"}'
    line = b'{"type":"user","message":{"content":[' + block + b']},"tool_use_result":"\xff"}'
    assert parse("claude", line) == [ToolEnd("t1", "ok")]


def test_a_broken_answer_changes_no_list() -> None:
    call = b'{"type":"tool_use","id":"t1","name":"TaskList"}'
    block = b'{"type":"tool_result","tool_use_id":"t1"}'
    lines = b'{"type":"assistant","message":{"content":[' + call + b"]}}\n"
    lines += b'{"type":"user","message":{"content":[' + block + b']},"tool_use_result":"\xff"}\n'
    assert parse("claude", lines)[1:] == [ToolEnd("t1")]


def test_a_value_over_two_lines_is_no_line() -> None:
    """What a block means must not depend on where the stream was cut."""
    lines = [b'{"type":\n', b'"turn.started"}\n']
    assert parse("codex", b"".join(lines)) == parse_chunks("codex", lines)


def test_a_bad_line_leaves_its_neighbours_alone() -> None:
    data = capture("claude", "trivial")
    first, rest = data.split(b"\n", 1)
    hit = parse("claude", first + b"\nnoise\n" + rest)
    assert [event for event in hit if not isinstance(event, Unknown)] == parse("claude", data)
    assert said(hit) == said(parse("claude", data))


def test_an_unknown_kind_prints_plain_text() -> None:
    assert isinstance(parser_for("some-other-agent"), TextParser)


@pytest.mark.parametrize("kind", KINDS)
def test_which_dialects_end_with_a_result(kind: str) -> None:
    parser: Parser = parser_for(kind)
    assert parser.has_result is (kind in JSON_KINDS and kind != "claude-transcript")


@settings(max_examples=examples(100))
@given(st.sampled_from(KINDS), st.lists(lines, max_size=6))
def test_all_arguments_are_json_and_nothing_else_changes(kind: str, some: list[object]) -> None:
    """Whoever wants them gets them, and the same events."""
    stream = b"".join(json.dumps(each).encode() + b"\n" for each in some)
    plain, whole = parser_for(kind), parser_for(kind, whole=True)
    bare = []
    for event in (*whole.feed(stream), *whole.end()):
        if isinstance(event, ToolStart):
            assert event.arguments == "" or json.loads(event.arguments) is not None
            event = replace(event, arguments="")  # noqa: PLW2901
        bare.append(event)
    assert bare == [*plain.feed(stream), *plain.end()]


@pytest.mark.parametrize("kind", ["claude", "gemini"])
def test_arguments_that_are_nested_too_deeply(kind: str) -> None:
    shapes = {
        "claude": '{"type":"assistant","message":{"content":[{"type":"tool_use","input":%s}]}}\n',
        "gemini": '{"type":"tool_use","parameters":%s}\n',
    }
    for depth in range(800, 1100):
        parser = parser_for(kind, whole=True)
        assert parser.feed((shapes[kind] % ("[" * depth + "]" * depth)).encode())
