"""opencode's stream and its traps (docs/facts.md §2)."""

import pytest
from stream_support import capture, claimed, of, parse, parse_values, result, said

from ralph.kernel.events import (
    AgentEvent,
    Failure,
    Progress,
    Result,
    Speaker,
    Text,
    Thinking,
    ToolEnd,
    ToolStart,
    Unknown,
    Usage,
    Used,
)

DONE = "<response>DONE</response>"
BEGAN = Progress("session main", "main")


def line(kind: str, session: str = "main", **part: object) -> dict[str, object]:
    return {"type": kind, "sessionID": session, "part": part}


def text(words: object, *, synthetic: bool = False) -> dict[str, object]:
    return line("text", text=words, synthetic=synthetic)


def finish(reason: object, session: str = "main", **more: object) -> dict[str, object]:
    return line("step_finish", session, reason=reason, **more)


def tool(name: str, session: str = "main", **state: object) -> dict[str, object]:
    return line("tool_use", session, tool=name, callID="c1", state=state)


def error(data: object, name: str = "APIError", session: str = "main") -> dict[str, object]:
    return {"type": "error", "sessionID": session, "error": {"name": name, "data": data}}


def events(*lines: object) -> list[AgentEvent]:
    began, *rest = parse_values("opencode", line("step_start"), *lines)
    assert began == BEGAN
    return rest


def test_a_turn_from_beginning_to_end() -> None:
    tokens = {"input": 100, "output": 20, "reasoning": 7, "cache": {"read": 5, "write": 3}}
    found = events(
        line("reasoning", text="hm"),
        text("I work."),
        tool("bash", status="completed", input={"command": "ls"}, output="a.py\n"),
        finish("tool-calls", tokens=tokens, cost=0.5),
        line("step_start"),
        text(DONE),
        finish("stop", tokens=tokens, cost=0.25),
    )
    used = Usage(input=100, output=27, cache_read=5, cache_write=3)
    assert found == [
        Thinking("hm"),
        Text("I work."),
        ToolStart("c1", "bash", "ls"),
        ToolEnd("c1", "a.py\n"),
        Used(used, 0.5),
        Used(used, 0.25),
        Text(DONE),
        Result(cost_usd=0.75, usage=used + used),
    ]


def test_a_step_that_stops_is_the_result_only_if_nothing_follows() -> None:
    """docs/facts.md §2: when the context is full, opencode sums up in a step that stops."""
    found = events(finish("stop"), line("step_start"), text("on"))
    assert of(found, Result) == []


def test_a_summary_that_quotes_the_prompt_claims_nothing() -> None:
    """ADR 3: never the prompt or its echo."""
    found = parse("opencode", capture("opencode", "compaction"))
    assert claimed(found) == ["<promise>DONE</promise>"]
    quoted, hint = said(found, Speaker.HOST)
    assert DONE in quoted
    assert hint.startswith("Continue if you have next steps")
    assert result(found).failure is None


@pytest.mark.parametrize("after", [line("step_start"), text("Go on.", synthetic=True)])
def test_what_was_claimed_right_before_a_summary_is_not_believed(after: object) -> None:
    found = events(text(f"a {DONE}"), text("b"), finish("stop"), after, text("c"), finish("stop"))
    assert said(found) == ["c"]
    assert said(found, Speaker.HOST)[:2] == [f"a {DONE}", "b"]


def test_a_claim_before_a_tool_call_is_the_assistants() -> None:
    found = events(text(DONE), tool("bash"), finish("tool-calls"), line("step_start"))
    assert claimed(found) == [DONE]
    assert isinstance(found[0], Text)


def test_a_text_without_a_tag_is_told_at_once() -> None:
    """People wait for it."""
    assert events(text("I work."), text(""), text(None)) == [Text("I work.")]


@pytest.mark.parametrize("reason", ["tool-calls", "unknown"])
def test_reasons_after_which_it_goes_on(reason: str) -> None:
    """docs/facts.md §2: a step of unknown reason is asked again, for ever if need be."""
    assert events(finish(reason)) == [Used()]


def test_an_answer_that_was_cut_off_is_no_failure() -> None:
    found = events(text("I beg"), finish("length"))
    assert found[2:] == [Progress("the model's answer ended with: length"), Result()]


@pytest.mark.parametrize("reason", ["content-filter", "error"])
def test_reasons_that_are_failures(reason: str) -> None:
    expected = Failure(f"the model's answer ended with: {reason}")
    assert result(events(finish(reason))).failure == expected


def test_an_error_line_says_better_what_went_wrong() -> None:
    found = events(finish("content-filter"), error({"message": "blocked"}, "ContentFilterError"))
    assert result(found).failure == Failure("blocked")


@pytest.mark.parametrize(
    ("data", "name", "expected"),
    [
        ({"message": "no", "statusCode": 401}, "APIError", Failure("no", 401)),
        (
            {"message": "slow", "statusCode": 429, "responseHeaders": {"retry-after": "7"}},
            "APIError",
            Failure("slow", 429, 7.0),
        ),
        (
            {
                "message": "slow",
                "responseHeaders": {"retry-after": "Sun, 15 Nov 2026 06:31:07 GMT"},
            },
            "APIError",
            Failure("slow"),
        ),
        ({"message": "slow", "responseHeaders": {"retry-after": "²"}}, "E", Failure("slow")),
        ({"message": "no key"}, "ProviderAuthError", Failure("no key", 401)),
        ({}, "MessageAbortedError", Failure("MessageAbortedError")),
        (None, "", Failure("the agent reports an error")),
    ],
)
def test_an_error_says_why(data: object, name: str, expected: Failure) -> None:
    """ADR 11: status and retry-after are fields of the failure."""
    assert result(events(error(data, name))).failure == expected


def test_an_error_that_was_overcome_is_forgotten() -> None:
    """A context that is too long is an error first, and then summed up."""
    found = events(error({"message": "too long"}), line("step_start"), finish("stop"))
    assert found[-1] == Result()


@pytest.mark.parametrize(
    ("name", "state", "expected"),
    [
        ("bash", {"status": "completed", "metadata": {"exit": 0}}, False),
        ("bash", {"status": "completed", "metadata": {"exit": 3}}, True),
        ("read", {"status": "completed"}, False),
        ("read", {"status": "error", "error": "no such file"}, True),
    ],
)
def test_a_tool_fails_by_its_status_or_exit_code(
    name: str, state: dict[str, object], expected: bool
) -> None:
    """docs/facts.md §2: a command with exit code 3 is still `completed`."""
    *_, ended = events(line("tool_use", tool=name, callID="c1", state=state))
    assert ended == ToolEnd("c1", str(state.get("error", "")), is_error=expected)


def test_a_call_to_a_tool_that_is_not_there_failed() -> None:
    found = parse("opencode", capture("opencode", "permission-denied"))
    (start,) = of(found, ToolStart)
    assert isinstance(start, ToolStart)
    assert start.name == "bash"
    assert [e.is_error for e in found if isinstance(e, ToolEnd)] == [True]
    assert events(tool("invalid"))[0] == ToolStart("c1", "invalid")


def test_what_a_tool_does_is_told_by_its_arguments_or_its_title() -> None:
    found = events(tool("read", input={"filePath": "/p/a.py"}), tool("x", title="1 todo\nlist"))
    starts = [event.summary for event in found if isinstance(event, ToolStart)]
    assert starts == ["/p/a.py", "1 todo list"]


def test_a_rejected_permission_ends_the_turn_and_is_named() -> None:
    """docs/facts.md §2: the run ends there, with exit code 0 and no other word."""
    found = result(parse("opencode", capture("opencode", "permission-rejected")))
    assert found.failure == Failure("no permission for bash")
    assert (found.denied, found.usage) == (("bash",), Usage(100, 20))


def test_a_rejected_permission_that_was_survived_is_named_too() -> None:
    rejected = tool("bash", status="error", error="The user rejected permission to use this.")
    assert result(events(rejected, line("step_start"), finish("stop"))) == Result(denied=("bash",))


def test_a_sub_agent_speaks_for_itself() -> None:
    """ADR 3: never a sub-agent's text. Its steps cost money, and end nothing."""
    found = events(
        line("text", "sub", text=DONE),
        tool("bash", "sub"),
        finish("stop", "sub", cost=0.5),
        error({"message": "no"}, session="sub"),
    )
    assert found == [
        Text(DONE, Speaker.SUBAGENT),
        ToolStart("c1", "bash", subagent=True),
        ToolEnd("c1", subagent=True),
        Used(cost_usd=0.5),
        Progress("a sub-agent failed: no"),
    ]


def test_a_cost_of_nothing_is_a_price_that_is_not_known() -> None:
    """So that `agent.prices` can tell it."""
    assert events(finish("unknown", cost=0)) == [Used()]


@pytest.mark.parametrize("odd", [{"type": "text"}, {"type": "tool_use", "part": "words"}])
def test_a_line_without_its_part_is_unknown(odd: object) -> None:
    (found,) = parse_values("opencode", odd)
    assert isinstance(found, Unknown)


def test_empty_reasoning_is_no_event() -> None:
    assert events(line("reasoning")) == []


def test_a_stream_without_sessions_is_one_session() -> None:
    found = parse_values("opencode", {"type": "text", "part": {"text": "hi"}})
    assert found == [Text("hi")]
