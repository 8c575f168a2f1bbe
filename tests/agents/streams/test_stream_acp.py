"""ACP as our client prints it (ADR 53): text in pieces, calls told bit by bit, and how it ended."""

import json
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from stream_support import claimed, of, parse, parse_chunks, parse_values, result, said

from kits.thorough import examples
from ralph.agents.streams.collect import Collector
from ralph.kernel import events
from ralph.kernel.events import AgentEvent
from ralph.kernel.turn import Ending, Turn

DONE = "<response>DONE</response>"
Json = dict[str, object]


def update(kind: str, /, **fields: object) -> Json:
    return {"method": "session/update", "params": {"update": {"sessionUpdate": kind, **fields}}}


def piece(text: str, kind: str = "agent_message_chunk", **fields: object) -> Json:
    return update(kind, content={"type": "text", "text": text}, **fields)


def whole(text: str, kind: str = "agent_message", **fields: object) -> Json:
    return update(kind, content=[{"type": "text", "text": text}], **fields)


def ended(**params: object) -> Json:
    return {"method": "_ralph/ended", "params": params}


def ours(kind: str, **params: object) -> Json:
    return {"method": f"_ralph/{kind}", "params": params}


GOOD = ended(response={"stopReason": "end_turn"})


def turn_of(*lines: Json) -> Turn:
    collector = Collector()
    collector.add(parse_values("acp", *lines))
    return collector.turn(has_result=True)


@pytest.mark.parametrize(
    ("lines", "texts"),
    [
        ((piece("a"), piece("b")), ["ab"]),
        ((piece("a\nb"), piece("c")), ["a\n", "bc"]),
        ((piece("a", messageId="1"), piece("b", messageId="2")), ["a", "b"]),
        ((piece("a", messageId="1"), update("usage_update"), piece("b", messageId="1")), ["ab"]),
        (
            (piece("a"), update("tool_call", toolCallId="1", status="completed"), piece("b")),
            ["a", "b"],
        ),
        ((piece("a"), piece("hm", "agent_thought_chunk"), piece("b")), ["a", "b"]),
        ((whole("ab", messageId="1"),), ["ab"]),
        ((piece("a", messageId="1"), whole("ab", messageId="1")), ["ab"]),
        ((piece("a", messageId="1"), whole("other", messageId="1")), ["a", "other"]),
        ((whole("a", messageId="1"), piece("b", messageId="1")), ["ab"]),
        ((update("agent_message", messageId="1", content=None),), []),
        ((piece("x" * 70_000), piece("y")), ["x" * 70_000, "y"]),
    ],
)
def test_pieces_are_one_text(lines: tuple[Json, ...], texts: list[str]) -> None:
    assert said(parse_values("acp", *lines)) == texts


def test_a_promise_split_over_pieces_is_found() -> None:
    events = parse_values("acp", piece("It is done.\n<response>DONE<"), piece("/response>"), GOOD)
    assert claimed(events) == [DONE]


@settings(max_examples=examples(60), deadline=None)
@given(
    text=st.text("<response>DONE</ \nä", max_size=40).map(lambda text: f"{text}{DONE}"),
    cuts=st.lists(st.integers(0, 70), max_size=6),
    at=st.integers(0, 4000),
)
def test_cutting_anywhere_changes_nothing(text: str, cuts: list[int], at: int) -> None:
    """Neither where the agent cuts its text, nor where the stream is cut."""
    places = sorted({0, *(cut for cut in cuts if cut < len(text)), len(text)})
    pieces = [piece(text[a:b]) for a, b in pairwise(places)]
    data = b"".join(json.dumps(line).encode() + b"\n" for line in (*pieces, GOOD))
    events = parse_chunks("acp", [data[: at % len(data)], data[at % len(data) :]])
    assert "".join(said(events)) == text
    assert events == parse("acp", data)


@pytest.mark.parametrize(
    ("line", "speaker"),
    [
        (piece(DONE, "user_message_chunk"), events.Speaker.PROMPT),
        (whole(DONE, "user_message"), events.Speaker.PROMPT),
        (piece(DONE, _meta={"claudeCode": {"parentToolUseId": "t"}}), events.Speaker.SUBAGENT),
    ],
)
def test_words_of_others_complete_nothing(line: Json, speaker: events.Speaker) -> None:
    found = parse_values("acp", line, GOOD)
    assert said(found, speaker) == [DONE]
    assert claimed(found) == []


def test_thoughts_are_no_words_of_the_assistant() -> None:
    found = parse_values("acp", piece(DONE, "agent_thought_chunk"), GOOD)
    assert of(found, events.Thinking) == [events.Thinking(DONE)]
    assert claimed(found) == []


def call(**fields: object) -> Json:
    return update("tool_call_update", toolCallId="c", **fields)


TEXT = {"type": "content", "content": {"type": "text", "text": "seen"}}
SHOWN = {"type": "terminal", "terminalId": "t"}
SEEN = "c2Vlbg=="  # "seen" in base64


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (  # what it does is told after that it is
            (
                call(name="Bash", title="Terminal", kind="execute", status="pending", rawInput={}),
                call(title="ls -l", rawInput={"command": "ls -l"}),
                call(status="completed", content=[TEXT]),
                call(status="completed"),  # again: nothing is counted twice
            ),
            [events.ToolStart("c", "Bash", "ls -l"), events.ToolEnd("c", "seen")],
        ),
        (
            (call(kind="edit", title="edit", rawInput={"path": "a.py"}), call(status="failed")),
            [events.ToolStart("c", "edit", "a.py"), events.ToolEnd("c", "", True)],
        ),
        (  # the first that is heard of it is how it ended
            (call(status="completed", rawOutput="out"),),
            [events.ToolStart("c", "tool", ""), events.ToolEnd("c", "out")],
        ),
        (  # a terminal of version 2
            (
                call(title="x", status="in_progress", content=[SHOWN]),
                update("terminal_update", terminalId="t", output={"data": SEEN}),
                update("terminal_output_chunk", terminalId="t", data=SEEN),
                update("terminal_update", terminalId="t", exitStatus={"exitCode": 3}),
                call(status="completed"),
            ),
            [events.ToolStart("c", "tool", "x"), events.ToolEnd("c", "seenseen", True)],
        ),
        (  # output in pieces, and one that says which program told the rest
            (
                call(status="in_progress", title="x", _meta={"claudeCode": {"toolName": "Read"}}),
                update("tool_call_content_chunk", toolCallId="c", content=TEXT),
                update("tool_call_content_chunk", toolCallId="other", content=TEXT),
                call(status="completed"),
            ),
            [events.ToolStart("c", "Read", "x"), events.ToolEnd("c", "seen")],
        ),
        (  # version 1 of codex-acp and of opencode: the exit code stands aside
            (
                call(
                    status="completed",
                    title="x",
                    _meta={
                        "terminal_output_delta": {"data": "seen"},
                        "terminal_exit": {"exit_code": 1},
                    },
                ),
            ),
            [events.ToolStart("c", "tool", "x"), events.ToolEnd("c", "seen", True)],
        ),
        (
            (call(status="completed", rawOutput={"output": "o", "metadata": {"exit": 2}}),),
            [events.ToolStart("c", "tool", ""), events.ToolEnd("c", "o", True)],
        ),
        ((call(title="never", status="pending"),), [events.ToolStart("c", "tool", "never")]),
        (
            (update("terminal_update", terminalId="t", output={"data": "a"}),),
            [],
        ),
    ],
)
def test_tool_calls(lines: tuple[Json, ...], expected: list[AgentEvent]) -> None:
    assert parse_values("acp", *lines) == expected


def test_a_call_that_is_told_by_its_request_alone() -> None:
    """Gemini says nothing before, and of a refused one nothing after."""
    asked = {"toolCall": {"toolCallId": "c", "title": "rm x", "kind": "execute"}}
    request = {"method": "session/request_permission", "id": 0, "params": asked}
    answer = ours("permission", toolCallId="c", what="rm x", allowed=False, why="no")
    found = parse_values("acp", request, answer, GOOD)
    assert found[:3] == [
        events.ToolStart("c", "execute", "rm x"),
        events.Permission("rm x", False, "no"),
        events.ToolEnd("c", "no", True),
    ]


def test_answers_to_requests_are_part_of_the_turn() -> None:
    """Of many, refusals are kept before others: a turn is small."""
    yes = ours("permission", what="ls", allowed=True, why="")
    no = ours("permission", what="git push -f", allowed=False, why="guard: refused (x): y\n more")
    turn = turn_of(*[yes] * 60, no, *[no] * 60, GOOD)
    assert turn.asked == 121
    assert len(turn.permissions) == 50
    assert not any(one.allowed for one in turn.permissions)
    assert turn.permissions[0].refusal == "Refused: git push -f (x): y"
    assert events.Permission("a", False, "no").refusal == "Refused: a: no"


def test_the_agents_plan_is_shown_where_it_changes() -> None:
    entries = [{"content": "Write", "status": "in_progress"}]
    other = {
        "type": "items",
        "planId": "p",
        "entries": [{"content": "Write", "status": "completed"}],
    }
    found = parse_values(
        "acp", update("plan", entries=entries), update("plan", entries=entries),
        update("plan_update", plan=other),
    )  # fmt: skip
    assert found == [
        events.Todo((events.TodoItem("Write", events.TodoStatus.ACTIVE),)),
        events.Todo((events.TodoItem("Write", events.TodoStatus.DONE),)),
    ]


def test_an_elicitation_is_a_question() -> None:
    ask = {"method": "elicitation/create", "id": 1, "params": {"message": "Which colour?"}}
    turn = turn_of(piece("I wonder."), ask, GOOD)
    assert turn.question == "Which colour?"
    assert turn_of({"method": "elicitation/create"}, GOOD).question == "the agent asks a question"


TOLD = {"inputTokens": 7, "outputTokens": 3, "cachedReadTokens": 2, "cachedWriteTokens": 1}
QUOTA = {"quota": {"token_count": {"input_tokens": 7, "output_tokens": 3}}}


@pytest.mark.parametrize(
    ("response", "usage"),
    [
        ({"usage": TOLD}, events.Usage(7, 3, 2, 1)),
        ({"_meta": QUOTA}, events.Usage(7, 3)),
        ({"usage": "many"}, events.Usage()),
        ({}, events.Usage()),
    ],
)
def test_tokens(response: Json, usage: events.Usage) -> None:
    found = result(parse_values("acp", ended(response={"stopReason": "end_turn", **response})))
    assert found.usage == usage


def dollars(amount: float, currency: str = "USD") -> Json:
    return update("usage_update", used=5, size=9, cost={"amount": amount, "currency": currency})


@pytest.mark.parametrize(
    ("lines", "live", "cost"),
    [
        ((dollars(0.25), dollars(0.25), dollars(0.75)), [0.25, 0.5], 0.75),
        ((dollars(0.25, "EUR"),), [], None),
        ((dollars(0.0),), [], None),  # it does not know the model's price
    ],
)
def test_cost_is_that_of_the_session(
    lines: tuple[Json, ...], live: list[float], cost: float | None
) -> None:
    good = ended(response={"stopReason": "end_turn", "usage": TOLD})
    found = parse_values("acp", *lines, good)
    assert [e.cost_usd for e in found if isinstance(e, events.Used)] == live
    assert result(found).cost_usd == cost
    assert turn_of(*lines, good).cost_usd == cost


@pytest.mark.parametrize(
    ("params", "failure"),
    [
        ({"response": {"stopReason": "end_turn"}}, None),
        ({"response": {"stopReason": "max_tokens"}}, None),
        (
            {"response": {"stopReason": "refusal"}},
            events.Failure("the model refused to go on"),
        ),
        ({"response": {"stopReason": "_new"}}, events.Failure("the agent stopped: _new")),
        ({"response": {}}, events.Failure("the agent stopped: it does not say why")),
        ({"error": {"code": 429, "message": "slow"}}, events.Failure("slow", 429)),
        ({"error": {"code": -32000, "message": "Log in"}}, events.Failure("Log in", 401)),
        (
            {"error": {"code": -32603, "message": "x", "data": {"errorKind": "rate_limit"}}},
            events.Failure("x", 429),
        ),
        (
            {"error": {"code": -32603, "message": "last status: 429 Too Many Requests"}},
            events.Failure("last status: 429 Too Many Requests", 429),
        ),
        (  # version 2 of claude-agent-acp and codex-acp
            {"response": {"stopReason": "error", "error": {"message": "API Error: 500 oops"}}},
            events.Failure("API Error: 500 oops", 500),
        ),
        (
            {"error": {"code": 500, "message": '{"error":{"code":500,"message":"oops"}}'}},
            events.Failure("oops", 500),
        ),
        ({"error": {}}, events.Failure("the agent reports an error")),
        (
            {"error": {"message": "retry in 30s", "code": 429}},
            events.Failure("retry in 30s", 429, 30),
        ),
    ],
)
def test_how_it_ended(params: Json, failure: events.Failure | None) -> None:
    """`end_turn` is no evidence, and everything else is a failure but a full answer."""
    assert turn_of(ended(**params)).failure == failure


UNPAID = ended(response={"stopReason": "end_turn", "usage": None})


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ((piece("exceeded retry limit, last status: 429"), UNPAID), "exceeded retry limit"),
        ((piece("x"), ended(response={"stopReason": "end_turn", "_meta": QUOTA})), None),
        ((piece("x"), GOOD), None),  # it never tells of tokens: nobody can know
        ((piece("x"), update("usage_update", used=3), UNPAID), None),
        ((piece("x"), call(status="completed"), UNPAID), None),
        ((piece("x"), call(status="completed"), piece("y"), UNPAID), "y"),
        ((UNPAID,), None),
    ],
)
def test_an_error_as_words_without_tokens_is_a_failed_turn(
    lines: tuple[Json, ...], words: str | None
) -> None:
    """codex-acp, version 1: the text is its own, and no model was paid for it."""
    failure = turn_of(*lines).failure
    assert (failure is not None) == (words is not None)
    assert words is None or (failure is not None and failure.message.startswith(words))


def test_a_limit_that_is_told_so_is_one() -> None:
    failure = turn_of(piece("exceeded retry limit, last status: 429"), UNPAID).failure
    assert failure is not None
    assert failure.limited


def test_an_agent_that_cannot_be_spoken_with_ends_the_run() -> None:
    turn = turn_of(ended(error={"message": "version 7"}, unstartable=True))
    assert (turn.ending, turn.why) == (Ending.UNSTARTABLE, "version 7")


def test_the_clients_other_lines() -> None:
    found = parse_values(
        "acp",
        ours("session", session="s", agent="Gemini CLI 1", protocol=1),
        ours("progress", text="it  is\nso"),
        ours("noise", text="npm warn"),
        ours("aside", id=1, result={}),
        {"method": "_auth/status_update", "params": {}},
        update("of_next_year"),
        {"method": "session/request_permission", "params": {"subject": {"type": "command"}}},
        {"id": 1, "result": {}},
    )
    assert found == [
        events.Progress("session s: Gemini CLI 1, ACP v1", "s"),
        events.Progress("it is so"),
        events.Unknown("npm warn"),
        events.Unknown('{"id": 1, "result": {}}'),
    ]


def test_a_stream_that_breaks_off_is_a_failed_turn() -> None:
    assert turn_of(piece(DONE)).failure is not None
