"""Every protocol, by what the scripted model says: B §Actions needs words, calls and tokens."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kits.talks import NAMES, TOOL, answered, asked, heard, last, said, speaks, talk
from kits.thorough import examples
from ralph.kernel.events import Usage
from ralph.own_agent.talk import Reply, Trouble, arguments

TWO_CALLS = {
    "thinking": "hm",
    "text": "I look.",
    "tools": [{"name": "read", "input": {"path": "a"}}, {"name": "read", "input": {"path": "b"}}],
    "usage": {"input": 100, "output": 20, "cache_read": 30, "cache_write": 0},
}


@pytest.fixture(params=NAMES)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_an_answer_has_its_words_thoughts_calls_and_tokens(name: str) -> None:
    reply = heard(name, TWO_CALLS)
    assert (reply.words, reply.thoughts) == (("I look.",), ("hm",))
    assert [(call.name, call.input) for call in reply.calls] == [
        ("read", {"path": "a"}),
        ("read", {"path": "b"}),
    ]
    assert len({call.id for call in reply.calls}) == 2
    fresh = 100 if name == "anthropic" else 70  # the others count what was cached as input, too
    assert reply.usage == Usage(fresh, 20, 30)
    assert not reply.is_cut
    assert reply.refusal is None


def test_a_call_and_its_outcome_go_back_together(name: str) -> None:
    """Services refuse a call without its outcome, and an outcome without its call."""
    reply = heard(name, TWO_CALLS)
    _, body = asked(name, talk(reply, answered(reply, "one", "two", is_error=True)))
    told = str(body)
    assert told.index("I look.") < told.index("one") < told.index("two")
    for call in reply.calls:
        assert name == "google" or told.count(call.id) == 2


def test_tools_are_offered_only_where_there_are_some(name: str) -> None:
    _, without = asked(name, talk())
    _, body = asked(name, talk(tools=(TOOL,), longest=77, session="s"))
    assert "tools" not in without
    assert "Read a file." in str(body["tools"])
    assert "77" in str({k: v for k, v in body.items() if k != "tools"})
    assert "Be good." in str(body)


def test_the_key_goes_with_the_request_and_only_there(name: str) -> None:
    headers, body = asked(name, talk())
    assert "s3cret" in str(headers)
    assert "s3cret" not in str(body)
    assert "s3cret" not in str(asked(name, talk(), "")[0])
    assert {"x-api-key", "authorization", "x-goog-api-key"} & headers.keys()
    bare, _ = asked(name, talk(), "")
    assert not {"x-api-key", "authorization", "x-goog-api-key"} & bare.keys()


@pytest.mark.parametrize("turn", [{"text": "Done."}, TWO_CALLS])
def test_a_stream_without_its_end_broke_off(name: str, turn: dict[str, object]) -> None:
    many = {"anthropic": 2, "responses": 1, "chat": 2, "google": 1}[name]
    with pytest.raises(Trouble, match="broke off") as trouble:
        speaks(name).reply(last(said(name, turn), many))
    assert trouble.value.passes


def test_an_answer_that_is_too_long_is_cut(name: str) -> None:
    stop = {"anthropic": "max_tokens", "chat": "length", "google": "MAX_TOKENS"}.get(name)
    events = list(said(name, {"text": "On and", "stop": stop} if stop else {"text": "On and"}))
    if name == "responses":
        events[-1] = {
            "type": "response.incomplete",
            "response": {
                **events[-1]["response"],
                "incomplete_details": {"reason": "max_output_tokens"},
            },
        }
    reply = speaks(name).reply(events)
    assert (reply.text, reply.is_cut) == ("On and", True)


def refusing(name: str) -> Reply:
    stop = {"anthropic": "refusal", "chat": "content_filter", "google": "SAFETY"}.get(name)
    events = list(said(name, {"text": "No.", "stop": stop} if stop else {"text": "No."}))
    if name == "responses":
        part = {"type": "refusal", "refusal": "No."}
        events = [
            {
                "type": "response.output_item.done",
                "item": {"type": "message", "role": "assistant", "content": [part]},
            },
            {"type": "response.completed", "response": {"output": []}},
        ]
    return speaks(name).reply(events)


def test_a_refusal_is_none_of_its_words(name: str) -> None:
    assert "No." in str(refusing(name).refusal) or name == "google"
    assert refusing(name).refusal


@pytest.mark.parametrize(
    ("name", "event", "status"),
    [
        (
            "anthropic",
            {"type": "error", "error": {"type": "overloaded_error", "message": "m"}},
            529,
        ),
        ("anthropic", {"type": "error", "error": {"type": "rate_limit_error"}}, 429),
        ("anthropic", {"type": "error"}, 500),
        (
            "responses",
            {"type": "response.failed", "response": {"error": {"code": "server_error"}}},
            500,
        ),
        ("responses", {"type": "error", "code": "rate_limit_exceeded", "message": "m"}, 429),
        (
            "responses",
            {"type": "response.failed", "response": {"error": {"code": "insufficient_quota"}}},
            403,
        ),
        ("chat", {"error": {"message": "m", "code": 502}}, 502),
        ("chat", {"error": {"message": "m", "code": "odd"}}, 500),
        ("google", {"error": {"message": "m", "code": 503}}, 503),
        ("google", {"error": {}, "candidates": []}, None),
    ],
)
def test_an_error_in_the_stream_is_trouble(
    name: str, event: dict[str, object], status: int | None
) -> None:
    with pytest.raises(Trouble) as trouble:
        speaks(name).reply([event])
    assert trouble.value.status == status


BROKEN: dict[str, list[dict[str, object]]] = {
    "chat": [
        {
            "choices": [
                {
                    "delta": {"tool_calls": [{"function": {"name": "read", "arguments": "{"}}]},
                    "finish_reason": "tool_calls",
                }
            ]
        }
    ],
    "responses": [
        {
            "type": "response.output_item.done",
            "item": {"type": "function_call", "name": "read", "arguments": "[1]"},
        },
        {"type": "response.completed", "response": {}},
    ],
    "anthropic": [
        {"type": "content_block_start", "content_block": {"type": "tool_use", "name": "read"}},
        {
            "type": "content_block_delta",
            "delta": {"type": "input_json_delta", "partial_json": "{"},
        },
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}},
    ],
    "google": [
        {
            "candidates": [
                {
                    "content": {"parts": [{"functionCall": {"name": "read", "args": [1]}}]},
                    "finishReason": "STOP",
                }
            ]
        }
    ],
}


def test_arguments_that_are_broken_are_no_call_to_carry_out(name: str) -> None:
    """What a model writes may be no JSON; what goes back must be."""
    reply = speaks(name).reply(BROKEN[name])
    (call,) = reply.calls
    assert (call.name, call.input) == ("read", None)
    assert name == "google" or "{}" in str(reply.native)


def test_nothing_empty_goes_back(name: str) -> None:
    """Services refuse an assistant that says nothing."""
    reply = heard(name, {"text": ""})
    assert (reply.text, reply.calls) == ("", ())
    _, body = asked(name, talk(reply))
    assert name not in ("anthropic", "google") or "(nothing)" in str(body)


DEEP = "[" * 500 + "]" * 500


@pytest.mark.parametrize(
    "written", ['{"x": NaN}', '{"x": 1e999}', f'{{"x": {DEEP}}}', "[" * 99_999]
)
def test_arguments_that_could_not_be_sent_back_are_broken(written: str) -> None:
    """Every request has them from then on."""
    assert arguments(written) is None
    assert arguments('{"x": [[{"y": 1e9}]]}') == {"x": [[{"y": 1e9}]]}


KEYS = """type index delta content_block content message usage error text thinking partial_json
    stop_reason choices tool_calls function arguments name id finish_reason item response output
    summary incomplete_details reason candidates parts functionCall args finishReason thought
    promptFeedback blockReason usageMetadata signature code"""
SAID = """message_start content_block_start content_block_delta message_delta error tool_use text
    thinking text_delta thinking_delta input_json_delta end_turn refusal response.output_item.done
    response.completed response.failed function_call message reasoning STOP SAFETY stop tool_calls
    {} {"""
keys = st.sampled_from(KEYS.split())
scalars = st.sampled_from(SAID.split()) | st.sampled_from([None, True, 0, 1, -1, 0.5, ""])
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(keys, inner, max_size=4),
    max_leaves=8,
)


@given(st.lists(st.dictionaries(keys, values, max_size=4), max_size=5))
@settings(max_examples=examples(40))
def test_no_stream_makes_a_protocol_fail_otherwise(events: list[dict[str, object]]) -> None:
    """Whatever a service sends is an answer or Trouble, and an answer can be sent back."""
    for name in NAMES:
        try:
            reply = speaks(name).reply(events)
        except Trouble:
            continue
        outputs = ["x"] * len(reply.calls)
        asked(name, talk(reply, answered(reply, *outputs)))
