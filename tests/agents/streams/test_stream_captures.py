"""Every captured stream of every CLI parses, and says what really happened."""

import json

import pytest
from stream_support import CAPTURES, capture, cases, claimed, of, parse, parse_chunks, result

from ralph.agents.streams.collect import Collector
from ralph.agents.streams.framing import Framer
from ralph.kernel.events import AgentEvent, Progress, Result, Text, ToolEnd, ToolStart, Unknown

KINDS = ["acp", "claude", "codex", "gemini", "opencode", "ralph-agent"]
ALL = [(kind, case) for kind in KINDS for case in cases(kind)]
PROMISE, RESPONSE = "<promise>DONE</promise>", "<response>DONE</response>"
CUT_OFF = {
    ("claude", "interrupted-sigterm"),
    ("codex", "interrupted-sigint"),
    ("codex", "interrupted-sigterm"),
    ("gemini", "api-429"),  # it tries again for minutes, without a word
    ("gemini", "api-500"),
    ("gemini", "interrupted-sigint"),
    ("gemini", "interrupted-sigint-group"),  # exit code 0
    ("gemini", "interrupted-sigterm-group"),  # exit code 0
    ("opencode", "interrupted-sigint"),
    ("opencode", "interrupted-sigint-group"),
    ("ralph-agent", "interrupted-sigterm"),
}

# Case: status, beginning of the message.
FAILURES = {
    ("acp", "claude-api-429"): (429, "Internal error: API Error: Request rejected (429)"),
    ("acp", "codex-api-429"): (429, "exceeded retry limit, last status: 429"),
    ("acp", "gemini-api-401"): (401, "bad key"),
    ("claude", "api-400-promptlong"): (400, "Prompt is too long"),
    ("claude", "api-401"): (401, "Invalid API key"),
    ("claude", "api-404-model"): (404, "There's an issue with the selected model"),
    ("claude", "api-429-ratelimit"): (429, "API Error: Request rejected (429)"),
    ("claude", "api-500"): (500, "API Error: 500 Internal server error."),
    ("claude", "api-529-overloaded"): (529, "API Error: 529 Overloaded."),
    ("claude", "hooks-api-error"): (400, "API Error: 400 nope"),
    ("claude", "interrupted-sigint"): (None, "[ede_diagnostic]"),
    ("claude", "max-budget"): (None, "Reached maximum budget ($0.5)"),
    ("claude", "max-turns"): (None, "Reached maximum number of turns (2)"),
    ("claude", "stream-cut-nofallback"): (None, "API Error: Stream ended without"),
    ("claude", "not-logged-in"): (401, "Not logged in · Please run /login"),
    ("claude", "rate-limit-rejected"): (429, "You've hit your session limit"),
    ("codex", "api-400-context"): (None, '{"error": {"message": "Your input exceeds'),
    ("codex", "api-401"): (401, "unexpected status 401 Unauthorized"),
    ("codex", "api-429-quota"): (None, "Quota exceeded. Check your plan"),
    ("codex", "api-429-ratelimit"): (429, "exceeded retry limit, last status: 429"),
    ("codex", "api-500"): (503, "We’re currently experiencing high demand"),
    ("codex", "stream-cut"): (None, "stream disconnected before completion"),
    ("codex", "stream-failed"): (429, "rate limit exceeded: Rate limit reached."),
    ("gemini", "api-400"): (400, "API error 400: bad request"),
    ("gemini", "api-401"): (401, "API error 401: API key not valid."),
    ("gemini", "api-429-given-up"): (429, "[API Error: Resource has been exhausted"),
    ("gemini", "api-500-given-up"): (500, "API error 500: Internal error"),
    ("gemini", "empty-answer"): (None, "The model returned an empty response"),
    ("opencode", "api-400"): (400, "bad request"),
    ("opencode", "api-401"): (401, "bad key"),
    ("opencode", "api-429"): (429, "Rate limit reached"),
    ("opencode", "content-filter"): (None, "The response was blocked by the provider's"),
    ("opencode", "permission-rejected"): (None, "no permission for bash"),
    ("ralph-agent", "api-400"): (400, "bad request"),
    ("ralph-agent", "api-401"): (401, "invalid x-api-key"),
    ("ralph-agent", "api-429"): (429, "slow down"),
    ("ralph-agent", "api-429-reset"): (429, "slow down"),
    ("ralph-agent", "interrupted-sigint"): (None, "interrupted"),
    ("ralph-agent", "model-refusal"): (400, "the model refused: "),
}

# What the model said in the cases that do not fail; docs/facts.md §4: the false completions.
CLAIMS = {
    # In two pieces each.
    **{("acp", f"{agent}-work"): [PROMISE, RESPONSE] for agent in ("claude", "codex", "gemini")},
    ("acp", "opencode-work"): [],  # a refusal ends its turn
    ("acp", "claude-question"): [],
    ("claude", "success"): [PROMISE, RESPONSE],
    ("claude", "hooks-stop-block"): [PROMISE, RESPONSE],
    ("claude", "json-format"): [PROMISE, RESPONSE],
    ("claude", "trivial"): [PROMISE],
    ("claude", "hooks-prompt-block"): [],  # the prompt is quoted in the result
    ("claude", "slash-unknown"): [],
    ("claude", "empty-answer"): [],
    ("codex", "success-bypass"): [PROMISE, RESPONSE],
    ("codex", "hooks-stop-block"): [PROMISE, RESPONSE],
    ("codex", "hooks-untrusted"): [],
    ("codex", "interrupted-sigint"): [],
    ("gemini", "success"): [PROMISE, RESPONSE],
    ("gemini", "trivial"): [PROMISE],
    ("gemini", "hooks-afteragent"): [],
    ("opencode", "success"): [PROMISE, RESPONSE],
    ("opencode", "stdin-prompt"): [PROMISE, RESPONSE],
    ("opencode", "compaction"): [PROMISE],  # the summary quotes the prompt: that is no claim
    ("opencode", "subagent"): [],  # its words come back as a tool's output
    ("ralph-agent", "success"): [PROMISE, RESPONSE],
    ("ralph-agent", "trivial"): [PROMISE],  # the result repeats it
    ("ralph-agent", "stream-cut"): [PROMISE, RESPONSE],
    ("ralph-agent", "question"): [],
}

# Case: tools, failed tools, input, output and cached tokens, cost, denied tools.
TURNS = {
    ("acp", "claude-work"): (2, 1, 300, 60, 0, 0.0024, ()),
    ("acp", "codex-work"): (2, 1, 300, 60, 0, None, ()),
    ("acp", "gemini-work"): (2, 1, 300, 60, 0, None, ()),
    ("acp", "opencode-work"): (1, 1, 100, 20, 0, 0.0006, ()),
    ("acp", "claude-api-429"): (0, 0, 0, 0, 0, None, ()),
    ("gemini", "success"): (4, 0, 700, 140, 1200, None, ()),
    ("gemini", "tool-error"): (2, 1, 200, 40, 0, None, ()),
    ("gemini", "no-approval"): (2, 2, 200, 40, 0, None, ("run_shell_command", "write_file")),
    ("gemini", "empty-answer"): (0, 0, 400, 80, 0, None, ()),
    ("gemini", "interrupted-sigint"): (2, 0, 0, 0, 0, None, ()),
    ("opencode", "success"): (4, 0, 700, 140, 1200, 0.00456, ()),
    ("opencode", "tool-error"): (2, 2, 200, 40, 0, 0.0012, ()),
    ("opencode", "permission-rejected"): (1, 1, 100, 20, 0, 0.0006, ("bash",)),
    ("opencode", "permission-denied"): (1, 1, 200, 40, 0, 0.0012, ()),
    ("opencode", "compaction"): (2, 0, 29300, 560, 0, 0.0963, ()),
    ("opencode", "api-401"): (0, 0, 0, 0, 0, None, ()),
    **{
        ("ralph-agent", case): (6, 0, 700, 140, 1200, None, ())
        for case in ("success-openai", "success-chat", "success-google")
    },
    # Anthropic's input excludes what was read from the cache.
    ("ralph-agent", "success"): (6, 0, 1900, 140, 1200, None, ()),
    ("ralph-agent", "tool-error"): (3, 3, 200, 40, 0, None, ()),
    ("ralph-agent", "refused"): (1, 1, 200, 40, 0, None, ()),
    ("ralph-agent", "interrupted-sigterm"): (1, 0, 100, 20, 0, None, ()),
}


@pytest.mark.parametrize(("kind", "case"), ALL)
def test_a_capture_says_what_happened(kind: str, case: str) -> None:
    """docs/facts.md §2: judge by `is_error`, not by the subtype; codex by `turn.failed` only.
    SIGTERM leaves no result; a codex that is interrupted never sends one. An exit code says less:
    gemini leaves an empty answer with 0."""
    events = parse(kind, capture(kind, case))
    assert of(events, Unknown) == [], "every line is understood"
    assert_tools_end_after_they_start(events)
    expected = 0 if (kind, case) in CUT_OFF else 1
    assert len(of(events, Result)) == expected
    assert isinstance(events[-1], Result) is bool(expected), "the result is the last event"
    failure = result(events).failure if expected else None
    if failure is None:
        assert (kind, case) not in FAILURES
    else:
        status, message = FAILURES[kind, case]
        assert (failure.status, failure.message.startswith(message)) == (status, True)
    about = json.loads((CAPTURES / kind / f"{case}.json").read_text("utf-8"))
    collector = Collector()
    collector.add(events)
    # ADR 4: the stream alone says that these failed, as their exit codes do.
    assert not about["rc"] or collector.turn(has_result=True).failed


def assert_tools_end_after_they_start(events: list[AgentEvent]) -> None:
    """H §Event Model: tool correlation IDs. A command that still runs has no end."""
    started: set[str] = set()
    for event in events:
        if isinstance(event, ToolStart):
            started.add(event.id)
        elif isinstance(event, ToolEnd):
            assert event.id in started


@pytest.mark.parametrize(("kind", "case"), ALL)
def test_a_capture_may_come_in_any_pieces(kind: str, case: str) -> None:
    """Events do not depend on chunks; a torn stream loses only its torn line."""
    data = capture(kind, case)
    for size in (1, 7, 1000):
        assert parse(kind, data[:20_000], size=size) == parse(kind, data[:20_000]), size
    torn = data[: len(data) - len(data.rstrip(b"\n").rpartition(b"\n")[2]) // 2]
    events = parse(kind, torn)
    whole = parse(kind, Framer().feed(torn))
    assert [event for event in events if not isinstance(event, Unknown)] == whole
    assert len(events) <= len(whole) + 1


@pytest.mark.parametrize(("kind", "case"), TURNS)
def test_what_a_turn_amounts_to(kind: str, case: str) -> None:
    collector = Collector()
    collector.add(parse(kind, capture(kind, case)))
    turn = collector.turn(has_result=True)
    *counts, cost, denied = TURNS[kind, case]
    usage = turn.usage
    assert [turn.tools, turn.tool_errors, usage.input, usage.output, usage.cache_read] == counts
    assert turn.cost_usd == (cost and pytest.approx(cost))
    assert turn.denied == denied


@pytest.mark.parametrize(("kind", "case"), CLAIMS)
def test_only_the_assistants_own_claims_are_found(kind: str, case: str) -> None:
    """ADR 3: only assistant text of this turn."""
    assert claimed(parse(kind, capture(kind, case))) == CLAIMS[kind, case]


@pytest.mark.parametrize("kind", KINDS)
def test_the_session_is_known(kind: str) -> None:
    """H §Event Model: EventProgress, session info."""
    began = parse(kind, capture(kind, "gemini-work" if kind == "acp" else "trivial"))[0]
    assert isinstance(began, Progress)
    assert began.session
    assert began.session in began.text


@pytest.mark.parametrize(("kind", "case"), [("claude", "text-format"), ("codex", "text-mode")])
def test_plain_output_is_assistant_text(kind: str, case: str) -> None:
    text = "All finished.\n\n<promise>DONE</promise>\n<response>DONE</response>\n"
    assert parse_chunks("text", [capture(kind, case)]) == [Text(text)]


ANSWERS = {"claude-work": [False, True], "codex-work": [], "gemini-work": [False, True]}


@pytest.mark.parametrize("case", ANSWERS)
def test_the_answers_to_an_agent_are_in_its_turn(case: str) -> None:
    """ADR 53: by the guard; codex asks nobody."""
    collector = Collector()
    collector.add(parse("acp", capture("acp", case)))
    answers = collector.turn(has_result=True).permissions
    assert [answer.allowed for answer in answers] == ANSWERS[case]
    assert all(answer.allowed == (not answer.why) for answer in answers)


def test_a_question_by_acp_is_for_a_person() -> None:
    collector = Collector()
    collector.add(parse("acp", capture("acp", "claude-question")))
    assert collector.turn(has_result=True).question == "Which colour?"
