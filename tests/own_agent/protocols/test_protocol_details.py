"""What only one of the services has."""

from collections.abc import Iterator

import pytest

from kits.talks import TOOL, answered, asked, heard, speaks, talk
from ralph.kernel.events import Usage
from ralph.own_agent.talk import END, Json, Reply, Trouble, Words


def chat(*deltas: Json, finish: str = "tool_calls") -> Reply:
    chunks = [{"choices": [{"delta": delta}]} for delta in deltas]
    return speaks("chat").reply([*chunks, {"choices": [{"finish_reason": finish}]}])


def test_anthropic_reads_what_was_said_before_from_its_cache() -> None:
    reply = heard("anthropic", {"tools": [{"name": "read"}]})
    entries = (reply, answered(reply, "one"), heard("anthropic", {"text": "ok"}), Words("more"))
    _, body = asked("anthropic", talk(*entries, tools=(TOOL,)))
    marked = [m for m in body["messages"] if "cache_control" in str(m)]
    assert len(marked) == 2
    assert marked[-1] is body["messages"][-1]
    assert "cache_control" in body["system"][0]


def anthropic(*blocks: Json, **delta: object) -> Reply:
    """An answer of blocks, each with its last delta beside it."""
    events: list[Json] = []
    for at, block in enumerate(blocks):
        more = block.pop("delta", {})
        events.append({"type": "content_block_start", "index": at, "content_block": block})
        events.append({"type": "content_block_delta", "index": at, "delta": more})
    end = {"type": "message_delta", "delta": {"stop_reason": "end_turn", **delta}}
    return speaks("anthropic").reply([*events, end, {"type": "message_stop"}])


def test_anthropic_gets_no_blank_text_and_what_is_hidden_as_it_was() -> None:
    """It refuses the one, and the other must not be changed."""
    hidden: Json = {"type": "redacted_thinking", "data": "xyz"}
    reply = anthropic(dict(hidden), {"type": "text", "text": " ", "delta": {"text": "\n"}})
    assert reply.native == [hidden]


def test_anthropic_says_why_it_refuses() -> None:
    reply = anthropic(stop_reason="refusal", stop_details={"explanation": "It may harm."})
    assert reply.refusal == "It may harm."


def test_anthropic_ends_where_it_says_so() -> None:
    """A gateway may keep the connection open."""

    def events() -> Iterator[Json]:
        yield {"type": "message_delta", "delta": {"stop_reason": "end_turn"}}
        yield {"type": "message_stop"}
        raise AssertionError("read on")

    assert speaks("anthropic").reply(events()).text == ""


def test_anthropic_may_err_in_a_gateways_words() -> None:
    with pytest.raises(Trouble, match="too busy"):
        speaks("anthropic").reply([{"error": {"message": "too busy"}}])


def test_anthropic_counts_by_its_last_words() -> None:
    """They count all of it again; what they do not name stays."""
    first = {"input_tokens": 5, "cache_read_input_tokens": 7, "output_tokens": 1}
    last = {"input_tokens": None, "output_tokens": 9}
    begin: Json = {"type": "message_start", "message": {"usage": first}}
    end: Json = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": last}
    assert speaks("anthropic").reply([begin, end]).usage == Usage(5, 9, 7)


def test_anthropic_takes_a_token_of_a_login() -> None:
    request = speaks("anthropic").request("m", ("ANTHROPIC_AUTH_TOKEN", "t"), talk())
    assert request.headers["authorization"] == "Bearer t"
    assert "x-api-key" not in request.headers


def test_anthropic_gets_its_thoughts_back_as_they_were_signed() -> None:
    reply = heard("anthropic", {"thinking": "hm", "text": "ok"})
    _, body = asked("anthropic", talk(reply))
    (thought, _) = body["messages"][1]["content"]
    assert thought == {"type": "thinking", "thinking": "hm", "signature": "c2NyaXB0ZWQ="}


def test_responses_gets_encrypted_thoughts_back_and_no_id() -> None:
    """Nothing is kept there, so that an id would be looked up in vain."""
    secret = {"type": "reasoning", "id": "rs_1", "encrypted_content": "xyz", "summary": []}
    bare: Json = {"type": "reasoning", "id": "rs_2", "encrypted_content": None, "summary": []}
    events = [{"type": "response.output_item.done", "item": item} for item in (secret, bare)]
    reply = speaks("responses").reply([*events, {"type": "response.completed", "response": {}}])
    _, body = asked("responses", talk(reply))
    assert body["input"][1:] == [
        {"type": "reasoning", "encrypted_content": "xyz", "summary": []},
    ]
    assert body["store"] is False


def test_responses_asks_for_thoughts_where_a_model_has_some() -> None:
    old = speaks("responses").request("gpt-4.1", ("", ""), talk())
    new = speaks("responses").request("gpt-6-sol", ("", ""), talk())
    assert "include" not in old.body
    assert new.body["include"] == ["reasoning.encrypted_content"]


def test_responses_are_whole_in_the_last_event_of_some_services() -> None:
    part = {"type": "output_text", "text": "ok"}
    item = {"type": "message", "role": "assistant", "content": [part]}
    done = {"type": "response.completed", "response": {"output": [item]}}
    assert speaks("responses").reply([done]).text == "ok"


def test_responses_that_were_filtered_are_refused() -> None:
    why = {"incomplete_details": {"reason": "content_filter"}}
    reply = speaks("responses").reply([{"type": "response.incomplete", "response": why}])
    assert "filtered" in str(reply.refusal)


def test_responses_end_with_an_error_of_their_own() -> None:
    for event in ({"type": "error", "message": "m"}, {"type": "error", "error": {"message": "m"}}):
        with pytest.raises(Trouble, match="m"):
            speaks("responses").reply([{"type": "other"}, event])


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("slow_down", 503),
        ("bio_policy", 400),
        ("usage_not_included", 403),
        ("odd", 500),
        (None, 500),
    ],
)
def test_responses_fail_with_a_code_that_says_whether_it_passes(
    code: str | None, status: int
) -> None:
    error = {"code": code, "message": "Limit reached. Try again in 11.5s."}
    with pytest.raises(Trouble) as trouble:
        speaks("responses").reply([{"type": "response.failed", "response": {"error": error}}])
    assert trouble.value.status == status


def test_a_wait_that_is_stated_in_a_stream_is_heard() -> None:
    error = {"code": "rate_limit_exceeded", "message": "Please try again in 11.5s."}
    with pytest.raises(Trouble) as trouble:
        speaks("responses").reply([{"type": "response.failed", "response": {"error": error}}])
    assert (trouble.value.status, trouble.value.retry_after) == (429, 11.5)


def test_responses_may_hold_what_nobody_knows() -> None:
    odd = [{"type": "response.output_item.done", "item": {"type": "web_search_call"}}]
    reply = speaks("responses").reply([*odd, {"type": "response.completed", "response": {}}])
    assert (reply.text, reply.calls) == ("", ())


def test_chat_joins_calls_that_come_in_pieces() -> None:
    first = {"index": 0, "id": "a", "function": {"name": "read", "arguments": '{"pa'}}
    more = {"index": 0, "function": {"arguments": 'th": "x"}'}}
    second = {"index": 1, "id": "b", "function": {"name": "read", "arguments": ""}}
    reply = chat({"tool_calls": [first]}, {"tool_calls": [more, second]})
    assert [(c.id, c.input) for c in reply.calls] == [("a", {"path": "x"}), ("b", {})]


def test_chat_takes_calls_without_number_or_id_and_arguments_as_an_object() -> None:
    """As ollama has sent them."""
    call = {"function": {"name": "read", "arguments": {"path": "x"}}}
    reply = chat({"tool_calls": [call, call]}, {"reasoning": "hm"}, finish="stop")
    assert [(c.id, c.input) for c in reply.calls] == [
        ("call-1", {"path": "x"}),
        ("call-2", {"path": "x"}),
    ]
    assert reply.thoughts == ("hm",)


def test_chat_takes_calls_that_all_have_the_number_0() -> None:
    """As Google's gateway has numbered them; and others name one anew in each piece."""
    a = {"index": 0, "id": "a", "function": {"name": "read", "arguments": '{"path": '}}
    more = {"index": 0, "id": "other", "function": {"arguments": '"x"}'}}
    b = {"index": 0, "id": "b", "function": {"name": "read", "arguments": "{}"}}
    reply = chat({"tool_calls": [a]}, {"tool_calls": [more]}, {"tool_calls": [b, "odd"]})
    assert [c.input for c in reply.calls] == [{"path": "x"}, {}]


def test_chat_gets_back_what_it_thought_before_a_call() -> None:
    """DeepSeek refuses calls without it; elsewhere the field has another name."""
    call = {"index": 0, "id": "a", "function": {"name": "read", "arguments": '{"path":  "x"}'}}
    for name in ("reasoning_content", "reasoning"):
        reply = chat({name: "h"}, {name: "m"}, {"tool_calls": [call]})
        assert (reply.native[name], reply.thoughts) == ("hm", ("hm",))
        assert reply.native["tool_calls"][0]["function"]["arguments"] == '{"path":  "x"}'
        assert name not in chat({name: "hm"}, {"content": "ok"}, finish="stop").native


def test_chat_gets_back_what_was_signed() -> None:
    """By OpenRouter beside a call, by Google's gateway in it."""
    text = {"type": "reasoning.text", "index": 0, "text": "h"}
    more = {"type": "reasoning.text", "index": 0, "text": "m", "signature": "sig", "format": None}
    secret = {"type": "reasoning.encrypted", "index": 0, "data": "xyz"}
    extra = {"google": {"thought_signature": "sig"}}
    call = {"id": "a", "function": {"name": "read"}, "extra_content": extra}
    reply = chat(
        {"reasoning_details": [text], "reasoning": "hm"},
        {"reasoning_details": [more, secret, "odd"]},
        {"tool_calls": [call]},
    )
    assert reply.native["reasoning_details"] == [text | {"text": "hm", "signature": "sig"}, secret]
    assert "reasoning" not in reply.native
    assert reply.native["tool_calls"][0]["extra_content"] == extra


def test_chat_may_end_without_a_reason() -> None:
    """As ollama has; but not without an end."""
    said: Json = {"choices": [{"delta": {"content": "ok"}, "finish_reason": None}]}
    assert speaks("chat").reply([said, END]).text == "ok"
    with pytest.raises(Trouble, match="broke off"):
        speaks("chat").reply([said])
    with pytest.raises(Trouble, match="broke off"):
        chat({"content": "half"}, finish="error")


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("gpt-6.1-sol", "max_completion_tokens"),
        ("o4-mini", "max_completion_tokens"),
        ("gpt-oss:20b", "max_tokens"),
        ("qwen3", "max_tokens"),
        ("openai/gpt-6", "max_tokens"),
    ],
)
def test_chat_says_how_long_an_answer_may_be_as_the_service_calls_it(model: str, name: str) -> None:
    assert speaks("chat").request(model, ("", ""), talk(longest=7)).body[name] == 7


def test_chat_counts_what_was_cached() -> None:
    details = {"cached_tokens": 3, "cache_write_tokens": 2}
    told = {"prompt_tokens": 10, "completion_tokens": 4, "prompt_tokens_details": details}
    end: Json = {"choices": [{"finish_reason": "stop"}]}
    assert speaks("chat").reply([end, {"choices": [], "usage": told}]).usage == Usage(5, 4, 3, 2)


@pytest.mark.parametrize(
    ("error", "status"),
    [
        ("no such model", 500),
        ({"code": "429", "message": "slow"}, 429),
        ({"code": "rate_limit_exceeded"}, 429),
        ({"code": None, "type": "insufficient_quota"}, 403),
        ({"code": "9" * 5000}, 500),
    ],
)
def test_chat_fails_in_many_words(error: object, status: int) -> None:
    with pytest.raises(Trouble) as trouble:
        speaks("chat").reply([{"error": error}])
    assert trouble.value.status == status


def test_chat_refuses_with_words_of_its_own_or_with_none() -> None:
    assert chat({"refusal": "No."}, finish="stop").refusal == "No."
    assert "filtered" in str(chat({}, finish="content_filter").refusal)


def google(*parts: Json, finish: str = "STOP") -> Reply:
    events = [{"candidates": [{"content": {"parts": [part]}}]} for part in parts]
    return speaks("google").reply([*events, {"candidates": [{"finishReason": finish}]}])


def test_google_gets_signed_parts_back_as_they_came() -> None:
    call = {"functionCall": {"name": "read", "args": {}}, "thoughtSignature": "sig"}
    reply = google({"text": "a"}, {"text": "b"}, {"text": "hm", "thought": True}, call)
    assert reply.words == ("ab",)
    _, body = asked("google", talk(reply, answered(reply, "x")))
    assert body["contents"][1]["parts"][-1] == call
    response = body["contents"][2]["parts"][0]["functionResponse"]
    assert response == {"name": "read", "response": {"output": "x"}}


def test_google_signs_the_end_of_a_text_by_itself() -> None:
    """One text for us, and two parts for it: none that is signed may be joined."""
    end: Json = {"text": "NE", "thoughtSignature": "sig"}
    reply = google({"text": "D"}, {"text": "O"}, end, {"text": "", "thoughtSignature": "more"})
    assert (reply.words, reply.text) == (("DONE",), "DONE")
    assert reply.native == [{"text": "DO"}, end, {"text": "", "thoughtSignature": "more"}]


def test_google_gets_the_id_of_a_call_that_has_one() -> None:
    reply = google({"functionCall": {"name": "read", "id": "g1"}})
    _, body = asked("google", talk(reply, answered(reply, "x", is_error=True)))
    response = body["contents"][2]["parts"][0]["functionResponse"]
    assert response == {"name": "read", "id": "g1", "response": {"error": "x"}}


def test_google_refuses_a_prompt_before_it_reads_it() -> None:
    reply = speaks("google").reply([{"promptFeedback": {"blockReason": "SAFETY"}}])
    assert "SAFETY" in str(reply.refusal)


@pytest.mark.parametrize("finish", ["MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "OTHER"])
def test_google_tries_again_what_its_model_called_in_vain(finish: str) -> None:
    with pytest.raises(Trouble) as trouble:
        google({"text": ""}, finish=finish)
    assert trouble.value.passes
    with pytest.raises(Trouble, match="nobody there") as trouble:
        speaks("google").reply([{"error": {"message": "nobody there"}}])
    assert trouble.value.status == 500


def test_google_passes_over_what_is_no_part() -> None:
    event = {"candidates": [{"content": {"parts": ["odd"]}, "finishReason": "STOP"}]}
    assert speaks("google").reply([event]).text == ""


def test_google_names_a_model_as_it_is_called() -> None:
    request = speaks("google").request("models/gemini-x", ("", ""), talk())
    assert request.path == "/v1beta/models/gemini-x:streamGenerateContent?alt=sse"
