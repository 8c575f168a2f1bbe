"""What only one of the services has."""

import pytest

from kits.talks import TOOL, answered, asked, heard, speaks, talk
from ralph.own_agent.talk import Json, Reply, Trouble, Words


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


def test_google_gets_the_id_of_a_call_that_has_one() -> None:
    reply = google({"functionCall": {"name": "read", "id": "g1"}})
    _, body = asked("google", talk(reply, answered(reply, "x", is_error=True)))
    response = body["contents"][2]["parts"][0]["functionResponse"]
    assert response == {"name": "read", "id": "g1", "response": {"error": "x"}}


def test_google_refuses_a_prompt_before_it_reads_it() -> None:
    reply = speaks("google").reply([{"promptFeedback": {"blockReason": "SAFETY"}}])
    assert "SAFETY" in str(reply.refusal)


def test_google_tries_again_what_its_model_called_in_vain() -> None:
    with pytest.raises(Trouble) as trouble:
        google({"text": ""}, finish="MALFORMED_FUNCTION_CALL")
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
