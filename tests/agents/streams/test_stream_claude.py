"""Claude's stream (H §Claude Streaming JSON) and its traps (docs/facts.md §2)."""

import pytest
from stream_support import capture, of, parse, parse_values, result, said

from ralph.kernel.events import (
    AgentEvent,
    Failure,
    Progress,
    Question,
    RateLimited,
    Result,
    Retry,
    Speaker,
    Text,
    Thinking,
    ToolEnd,
    ToolStart,
    Usage,
)


def assistant(*blocks: object, **line: object) -> dict[str, object]:
    message = {"model": "claude-opus-4-8", "content": list(blocks)}
    return {"type": "assistant", "message": message, **line}


def user(*blocks: object, **line: object) -> dict[str, object]:
    return {"type": "user", "message": {"role": "user", "content": list(blocks)}, **line}


def text(words: str) -> dict[str, str]:
    return {"type": "text", "text": words}


def call(name: str, **arguments: object) -> dict[str, object]:
    return {"type": "tool_use", "id": "t1", "name": name, "input": arguments}


def rate_limit(**info: object) -> dict[str, object]:
    return {"type": "rate_limit_event", "rate_limit_info": info}


FAILED = {"type": "result", "subtype": "success", "is_error": True, "result": "limit reached"}
REJECTED = rate_limit(status="rejected", resetsAt=1794724160, rateLimitType="five_hour")


def events(*lines: object) -> list[AgentEvent]:
    return parse_values("claude", *lines)


def test_the_lines_of_the_specification() -> None:
    """H §Claude Streaming JSON, its own examples."""
    usage = {
        "input_tokens": 1000,
        "output_tokens": 500,
        "cache_read_input_tokens": 800,
        "cache_creation_input_tokens": 7,
    }
    found = events(
        {"type": "system", "session_id": "s1"},
        {"type": "assistant", "message": {"content": [text("hello")]}},
        {"type": "assistant", "message": {"content": [call("Read", file_path="/a.py")]}},
        user({"type": "tool_result", "tool_use_id": "t1", "content": "ok", "is_error": False}),
        {"type": "result", "result": "done", "total_cost_usd": 0.05, "usage": usage},
    )
    assert found == [
        Progress("session s1", "s1"),
        Text("hello"),
        ToolStart("t1", "Read", "/a.py"),
        ToolEnd("t1", "ok"),
        Result("done", cost_usd=0.05, usage=Usage(1000, 500, 800, 7)),
    ]


def test_thinking_is_not_text() -> None:
    """docs/facts.md §2: content may be `thinking`; the newest models send it empty."""
    blocks = [{"type": "thinking", "thinking": t, "signature": "x"} for t in ("hm", "")]
    assert events(assistant(*blocks)) == [Thinking("hm")]


@pytest.mark.parametrize(
    ("name", "arguments", "summary"),
    [
        ("Bash", {"description": "list", "command": "ls\n  -l"}, "ls -l"),
        ("Write", {"content": "x" * 9000, "file_path": "/a.py"}, "/a.py"),
        ("Grep", {"path": "/src", "pattern": "todo"}, "todo"),
        ("WebFetch", {"prompt": "read", "url": "http://127.0.0.1"}, "http://127.0.0.1"),
        ("Task", {"prompt": "long", "description": "short"}, "short"),
        ("mcp__tracker__get", {"number": 7, "key": "AB-1"}, "AB-1"),
        ("Bash", {"command": "x" * 5000}, "x" * 199 + "…"),
        ("Bash", {"command": ["not", "text"]}, ""),
        ("TaskList", {}, ""),
    ],
)
def test_a_call_is_summed_up_by_its_telling_argument(
    name: str, arguments: dict[str, object], summary: str
) -> None:
    """H §Event Model: EventToolStart has an input summary."""
    assert events(assistant(call(name, **arguments))) == [ToolStart("t1", name, summary)]


@pytest.mark.parametrize(
    ("content", "output"),
    [
        ("plain", "plain"),
        ([text("one"), {"type": "image", "source": {}}, text("two")], "one\ntwo"),
        (None, ""),
        (["odd", 7], ""),
    ],
)
def test_a_tools_result_is_a_string_or_blocks(content: object, output: str) -> None:
    block = {"type": "tool_result", "tool_use_id": "t1", "content": content, "is_error": True}
    assert events(user(block)) == [ToolEnd("t1", output, is_error=True)]


def test_blocks_without_words_say_nothing() -> None:
    assert events(user({"type": "image"}), assistant({"type": "redacted_thinking"})) == []


def test_a_subagents_lines_are_its_own() -> None:
    """docs/facts.md §2: sub-agent lines carry `parent_tool_use_id`."""
    parent = {"parent_tool_use_id": "toolu_1"}
    ended = {"type": "tool_result", "tool_use_id": "t1", "content": "<promise>DONE</promise>"}
    found = events(
        user(text("look around"), **parent),
        assistant(text("<promise>DONE</promise>"), **parent),
        assistant(call("TodoWrite", todos=[{"content": "mine"}]), **parent),
        assistant(call("AskUserQuestion", questions=[{"question": "eh?"}]), **parent),
        user(ended, **parent),
    )
    assert found == [
        Text("look around", Speaker.SUBAGENT),
        Text("<promise>DONE</promise>", Speaker.SUBAGENT),
        ToolStart("t1", "TodoWrite", "", subagent=True),
        ToolStart("t1", "AskUserQuestion", "", subagent=True),
        ToolEnd("t1", "<promise>DONE</promise>", subagent=True),
    ]


def test_hook_feedback_is_not_the_assistants() -> None:
    """docs/facts.md §2: `user` lines may be synthetic (hook feedback)."""
    found = parse("claude", capture("claude", "hooks-stop-block"))
    assert said(found, Speaker.HOOK)[0].startswith("Stop hook feedback:\nKeep going")
    assert events(user(text("Stop hook feedback:\n<response>DONE</response>"))) == [
        Text("Stop hook feedback:\n<response>DONE</response>", Speaker.HOOK)
    ]


def test_an_echo_of_the_prompt_is_the_prompt() -> None:
    """ADR 3: never the prompt or its echo."""
    echo = {"type": "user", "message": {"role": "user", "content": "Say <response>DONE</response>"}}
    assert events(echo) == [Text("Say <response>DONE</response>", Speaker.PROMPT)]
    interrupted = parse("claude", capture("claude", "interrupted-sigint"))
    assert said(interrupted, Speaker.PROMPT) == ["[Request interrupted by user for tool use]"]


@pytest.mark.parametrize(
    ("case", "words"),
    [
        ("api-401", "Invalid API key · Fix external API key"),
        ("slash-unknown", "Unknown command: /no-such-cmd"),
    ],
)
def test_the_cli_in_the_assistants_place_is_the_host(case: str, words: str) -> None:
    """docs/facts.md §2: an unknown slash command ends with exit code 0 and "Unknown command"."""
    found = parse("claude", capture("claude", case))
    assert said(found, Speaker.HOST) == [words]
    assert said(found) == []


def test_partial_messages_are_skipped_because_the_whole_block_follows() -> None:
    found = parse("claude", capture("claude", "partial-messages"))
    assert said(found)[0] == "writing now"
    assert len(said(found)) == 2


def test_usage_is_the_results() -> None:
    """docs/facts.md §2: each assistant line repeats usage: use `result.usage`."""
    found = result(parse("claude", capture("claude", "success")))
    assert found.usage == Usage(input=2900, output=190, cache_read=1200, cache_write=830)
    assert found.cost_usd == pytest.approx(0.0250375)


def test_a_promise_said_earlier_is_not_in_the_result() -> None:
    """docs/facts.md §2: `result.result` is only the last text."""
    found = events(
        assistant(text("<promise>DONE</promise>")),
        assistant(text("Bye.")),
        {"type": "result", "result": "Bye."},
    )
    assert said(found) == ["<promise>DONE</promise>", "Bye."]
    assert result(found).text == "Bye."


def test_an_empty_result_is_possible() -> None:
    """docs/facts.md §2."""
    assert result(parse("claude", capture("claude", "empty-answer"))) == Result(
        cost_usd=0.002, usage=Usage(input=200, output=40)
    )


def test_denied_permissions_are_named_once() -> None:
    """ADR 15: when a stream reports denied permissions the flag to add is named."""
    found = result(parse("claude", capture("claude", "permission-denied")))
    assert found.denied == ("Write", "Bash")
    twice = [{"tool_name": "Bash"}, {"tool_name": "Bash"}, {}]
    assert result(events({"type": "result", "permission_denials": twice})).denied == ("Bash",)


@pytest.mark.parametrize(
    ("output", "denied"),
    [
        ("PreToolUse:Bash hook error: [x]: guard: refused (device): no", ()),
        ("guard: refused (device): it overwrites a disk", ()),
        ("Claude requested permissions to use Bash", ("Bash",)),
    ],
)
def test_what_a_hook_refuses_is_no_permission_that_is_missing(
    output: str, denied: tuple[str, ...]
) -> None:
    """ADR 15: "What a hook refused, our guard above all, is no permission that is missing"."""
    answer = {"type": "tool_result", "tool_use_id": "t1", "is_error": True, "content": output}
    denial = {"tool_name": "Bash", "tool_use_id": "t1"}
    last = {"type": "result", "permission_denials": [denial]}
    assert result(events(assistant(call("Bash")), user(answer), last)).denied == denied
    assert result(parse("claude", capture("claude", "hooks-pre-exit2"))).denied == ()


def test_a_call_that_a_hook_would_refuse_but_that_came_through_is_not_taken_for_refused() -> None:
    answer = {"type": "tool_result", "tool_use_id": "t1", "content": "guard: refused (x)"}
    denial = {"tool_name": "Bash", "tool_use_id": "t1"}
    assert result(
        events(user(answer), {"type": "result", "permission_denials": [denial]})
    ).denied == ("Bash",)


def test_a_login_that_is_missing_is_a_refused_credential() -> None:
    """ADR 5: a CLI that asks for a login "is refused its credential"; by the line's own field."""
    lost = assistant(text("Please run /login"), error="authentication_failed")
    last = {"type": "result", "is_error": True, "result": "Please run /login"}
    assert result(events(lost, last)).failure == Failure("Please run /login", 401)
    overloaded = {**last, "api_error_status": 529}
    assert result(events(lost, overloaded)).failure == Failure("Please run /login", 529)
    assert result(events(lost, assistant(text("well")), last)).failure == Failure(
        "Please run /login"
    )


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ({"errors": ["one", 2, "three"]}, "one; three"),
        ({"subtype": "error_max_turns"}, "error_max_turns"),
        ({}, "the agent reports an error"),
        ({"result": "x" * 9000}, "x" * 2000),
    ],
)
def test_a_failure_always_says_something(line: dict[str, object], message: str) -> None:
    found = result(events({"type": "result", "is_error": True, **line}))
    assert found.failure == Failure(message)


def test_a_rejection_gives_its_failure_the_time_to_wait_for() -> None:
    """ADR 11: `rate_limit_event` with status `rejected` and `resetsAt`."""
    limited, failed = events(REJECTED, FAILED)
    assert limited == RateLimited("the five hour limit is used up", 1794724160)
    assert failed == Result(
        "limit reached", failure=Failure("limit reached", 429, resets_at=1794724160)
    )


def test_a_failure_keeps_its_own_status_beside_a_rejection() -> None:
    failed = result(events(REJECTED, {**FAILED, "api_error_status": 529}))
    assert failed.failure == Failure("limit reached", 529, resets_at=1794724160)


@pytest.mark.parametrize(
    "lines",
    [
        (FAILED,),
        (REJECTED, rate_limit(status="allowed"), FAILED),
        (REJECTED, {**FAILED, "subtype": "error_max_turns"}),
    ],
)
def test_other_failures_are_not_rate_limits(lines: tuple[object, ...]) -> None:
    """docs/facts.md §4: false positives of rate limits."""
    failure = result(events(*lines)).failure
    assert failure == Failure("limit reached")


def test_a_success_after_a_rejection_is_a_success() -> None:
    assert result(events(REJECTED, {"type": "result", "result": "ok"})).failure is None


def test_a_limit_that_is_near_is_only_told() -> None:
    """docs/facts.md §2: status allowed|allowed_warning|rejected."""
    warning = rate_limit(status="allowed_warning", rateLimitType="seven_day")
    assert events(warning) == [Progress("the seven day limit is near")]
    assert events(rate_limit(status="allowed"), {"type": "rate_limit_event"}) == []


def test_a_retry_of_the_cli_is_told() -> None:
    """docs/facts.md §2: `system/api_retry` has `retry_delay_ms`."""
    found = of(parse("claude", capture("claude", "api-429-ratelimit")), Retry)
    assert found == [Retry(1, 1, 1.0, "rate_limit 429")]
    assert events({"type": "system", "subtype": "api_retry"}) == [Retry(0)]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (
            {"subtype": "hook_response", "hook_name": "Stop", "outcome": "success"},
            "hook Stop: success",
        ),
        ({"subtype": "notification", "text": "look\nhere"}, "look here"),
        ({"subtype": "informational", "content": "blocked"}, "blocked"),
        ({"subtype": "task_started", "description": "tests"}, "tests"),
        ({"subtype": "task_notification", "summary": "tests passed"}, "tests passed"),
        ({"subtype": "notification"}, "notification"),
        ({"subtype": "compact_boundary"}, "the context was compacted"),
        ({"subtype": "hook_started", "hook_name": "Stop"}, None),
        ({"subtype": "thinking_tokens"}, None),
        ({"subtype": "status", "status": "requesting"}, None),
        ({"subtype": "init"}, None),
        ({"subtype": "of-next-year", "text": "?"}, None),
    ],
)
def test_system_lines_have_many_subtypes(line: dict[str, object], expected: str | None) -> None:
    """docs/facts.md §2: `system` has many subtypes."""
    told = [Progress(expected)] if expected else []
    assert events({"type": "system", **line}) == told


def test_hook_lines_can_precede_the_beginning() -> None:
    """docs/facts.md §2: hook lines can precede init."""
    first, second, *_ = parse("claude", capture("claude", "slash-unknown"))
    assert first == Progress("hook SessionStart:startup: success")
    assert isinstance(second, Progress)
    assert second.session


def test_a_question_nobody_answers() -> None:
    """Issue §3: Question. It follows its ToolStart."""
    asked = call("AskUserQuestion", questions=[{"question": "Which?"}, {"question": "When?"}])
    assert events(assistant(asked)) == [
        ToolStart("t1", "AskUserQuestion"),
        Question("Which?\nWhen?"),
    ]
    assert events(assistant(call("AskUserQuestion")))[1] == Question("the agent asks a question")


def test_a_single_result_object_holds_the_assistants_text() -> None:
    """`--output-format json`: nothing is printed but the result."""
    first, last = parse("claude", capture("claude", "json-format"))
    assert isinstance(last, Result)
    assert first == Text(last.text)


INIT = {"type": "system", "subtype": "init", "session_id": "s"}
SYNTHETIC = {"type": "assistant", "message": {"model": "<synthetic>", "content": [text("No")]}}


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ((INIT,), ["All is <b>well</b>"]),
        ((INIT, assistant(call("Bash"))), ["All is <b>well</b>"]),
        ((assistant(text("x"), parent_tool_use_id="t1"),), ["All is <b>well</b>"]),
        ((assistant(text("So.")),), ["So."]),
        ((SYNTHETIC,), []),
    ],
)
def test_the_text_of_a_result_counts_where_nobody_has_spoken_before(
    lines: tuple[object, ...], words: list[str]
) -> None:
    """ADR 3: "Where a stream has no words but those of its result, the result's text is the
    assistant's"; `<synthetic>` messages are the CLI's."""
    assert said(events(*lines, {"type": "result", "result": "All is <b>well</b>"})) == words


@pytest.mark.parametrize(
    "line",
    [
        {"num_turns": 0, "result": "blocked by hook. Prompt: <promise>DONE</promise>"},
        {"num_turns": 1, "result": "API Error: 500", "is_error": True},
        {"num_turns": 1, "result": ""},
    ],
)
def test_a_single_result_may_be_the_clis_own_word(line: dict[str, object]) -> None:
    assert said(events({"type": "result", **line})) == []
