"""The steps of a turn: where one ends, whose they are, and that their costs add up."""

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ralph.export.lines import Json
from ralph.export.parts import Paid, Said
from ralph.export.steps import TurnSteps
from ralph.kernel import events
from ralph.kernel.events import Speaker, Text, Thinking, ToolEnd, ToolStart, Usage, Used

ONE, TWO = Used(Usage(10, 2), 0.01), Used(Usage(20, 3, 5), 0.02)


def told(*some: events.AgentEvent | Said, prompt: str = "", paid: Paid | None = None) -> list[Json]:
    turn = TurnSteps(prompt, paid)
    said = [each if isinstance(each, Said) else Said(each) for each in some]
    steps = [step.json() for each in said for step in turn.take(each)]
    return [*steps, *(step.json() for step in turn.end())]


def messages(steps: Iterable[Json]) -> list[tuple[str, str]]:
    return [(step["source"], step["message"]) for step in steps]


def usage(steps: Iterable[Json]) -> tuple[int, int, int, float]:
    found = [step.get("metrics", {}) for step in steps]
    names = ("prompt_tokens", "completion_tokens", "cached_tokens", "cost_usd")
    a, b, c, d = (sum(each.get(name) or 0 for each in found) for name in names)
    return int(a), int(b), int(c), d


def test_a_step_begins_after_an_answer() -> None:
    steps = told(
        Thinking("hm"),
        Text("I look."),
        Text("Closely."),
        ToolStart("a", "Read", "x.py", arguments='{"path":"x.py"}'),
        ToolStart("b", "Read"),
        ToolEnd("a", "1"),
        ToolEnd("b", "no", is_error=True),
        Text("Done."),
    )
    assert messages(steps) == [("agent", "I look.\nClosely."), ("agent", "Done.")]
    first = steps[0]
    assert first["reasoning_content"] == "hm"
    assert first["tool_calls"] == [
        {
            "tool_call_id": "a",
            "function_name": "Read",
            "arguments": {"path": "x.py"},
            "extra": {"summary": "x.py"},
        },
        {"tool_call_id": "b", "function_name": "Read", "arguments": {}},
    ]
    assert first["observation"]["results"] == [
        {"content": "1", "source_call_id": "a"},
        {"content": "no", "source_call_id": "b", "extra": {"is_error": True}},
    ]


def test_a_call_that_nobody_answers_and_answers_without_a_call() -> None:
    start = ToolStart("a", "Bash", arguments="[1]")
    steps = told(start, ToolStart("a", "Bash", arguments="{"), ToolEnd("z", "?"))
    assert [call["extra"] for call in steps[0]["tool_calls"]] == [
        {"arguments": "[1]", "answered": False},
        {"arguments": "{", "answered": False},
    ]
    assert steps[1]["source"] == "system"
    assert steps[1]["observation"]["results"][0]["extra"] == {"tool_call_id": "z"}


def test_a_step_waits_for_the_answer_of_its_call_until_the_end() -> None:
    starts = ToolStart("a", "Bash"), ToolStart("b", "Read")
    steps = told(*starts, ToolEnd("b", "1"), Text("On."))
    assert messages(steps) == [("agent", ""), ("agent", "On.")]
    assert [call.get("extra") for call in steps[0]["tool_calls"]] == [{"answered": False}, None]


def test_what_was_refused_is_a_step_of_ours_and_what_was_allowed_is_none() -> None:
    refused = events.Permission("rm -rf /", False, "guard: refused (file-system): it deletes /\nNo")
    steps = told(Text("I tidy up."), events.Permission("ls", True), refused)
    words = "Refused: rm -rf / (file-system): it deletes /"
    assert messages(steps) == [("agent", "I tidy up."), ("system", words)]


def test_the_echo_of_the_prompt_is_told_once() -> None:
    echo, other = Text("Do it\n", Speaker.PROMPT), Text("More", Speaker.PROMPT)
    steps = told(echo, other, Text("Go on", Speaker.HOOK), prompt="Do it")
    assert messages(steps) == [("user", "More"), ("system", "Go on")]
    assert [step["extra"] for step in steps] == [{"speaker": "prompt"}, {"speaker": "hook"}]


def test_what_the_cli_says_about_itself() -> None:
    failure = events.Failure("overloaded", 529)
    steps = told(
        events.Progress("session s", "s"),
        events.Progress("compacted"),
        events.Retry(2, seconds=1.5, why="busy"),
        events.Retry(3, why="busy"),
        events.RateLimited("used up", 5.0),
        events.Unknown("noise"),
        events.Result(failure=failure),
        events.Result("fine"),
    )
    assert [step["source"] for step in steps] == ["system"] * 7
    assert [step["message"] for step in steps] == [
        "session s",
        "compacted",
        "Retry 2 in 1.5s: busy",
        "Retry 3: busy",
        "Rate limited: used up",
        "noise",
        "overloaded",
    ]
    assert steps[0]["extra"] == {"session": "s"}
    assert "extra" not in steps[1]
    assert steps[-1]["extra"] == {"failed": True, "status": 529}


def test_lists_and_questions_belong_to_a_step() -> None:
    todo = events.Todo((events.TodoItem("read"),))
    steps = told(todo, events.Question("Which?"))
    assert len(steps) == 1
    assert steps[0]["extra"] == {
        "todo": [{"text": "read", "status": "pending"}],
        "question": "Which?",
    }
    assert told(events.Question("Which?"))[0]["extra"] == {"question": "Which?"}


def test_times_are_those_of_the_stream() -> None:
    steps = told(
        Said(ToolStart("a", "Read"), 1_795_000_000.5), Said(ToolEnd("a", "x"), 1_795_000_001.0)
    )
    assert steps[0]["timestamp"] == "2026-11-18T11:06:40.500Z"
    result = steps[0]["observation"]["results"][0]
    assert result["extra"] == {"timestamp": "2026-11-18T11:06:41.000Z"}


def test_subagents_have_steps_of_their_own_and_their_call_refers_to_them() -> None:
    turn = TurnSteps("")
    theirs: list[Json] = []
    ours: list[Json] = []
    for event in (
        ToolStart("task", "Task"),
        Text("I search.", Speaker.SUBAGENT),
        ToolStart("s", "Grep", subagent=True),
        ToolEnd("s", "found", subagent=True),
        ToolEnd("late", "?", subagent=True),
        Text("There.", Speaker.SUBAGENT),
        ToolEnd("task", "They found it."),
        Text("Thanks."),
    ):
        ours += [step.json() for step in turn.take(Said(event))]
        theirs += [step.json() for step in turn.of_subagents()]
    theirs += [step.json() for step in turn.of_subagents(all_of_them=True)]
    ours += [step.json() for step in turn.end()]
    assert messages(theirs) == [("agent", "I search."), ("system", ""), ("agent", "There.")]
    assert theirs[0]["observation"]["results"][0]["content"] == "found"
    assert messages(ours) == [("agent", ""), ("agent", "Thanks.")]
    assert ours[0]["observation"]["results"][0]["subagents"] is True


def test_what_is_not_there_is_told() -> None:
    turn = TurnSteps("")
    steps = [*turn.gap("left out", 12), *turn.gap("gone", 0)]
    assert [step.json()["extra"] for step in steps] == [
        {"gap": "left out", "bytes": 12},
        {"gap": "gone"},
    ]


# ------------------------------------------------------------------ costs


def test_tokens_behind_a_step_and_before_one() -> None:
    """opencode tells them behind, our own agent before; the last step has what nobody told."""
    paid = Paid(ONE.usage + TWO.usage, 0.05)
    behind = told(ToolStart("a", "x"), ToolEnd("a"), ONE, Text("So."), TWO, paid=paid)
    before = told(ONE, ToolStart("a", "x"), ToolEnd("a"), TWO, Text("So."), paid=paid)
    for steps in (behind, before):
        assert [step["metrics"]["prompt_tokens"] for step in steps] == [10, 25]
        assert [step["metrics"]["cost_usd"] for step in steps] == [0.01, pytest.approx(0.04)]
        assert steps[1]["extra"] == {"metrics_of": "turn"}


def test_more_tokens_than_the_run_has_paid_are_no_metrics() -> None:
    steps = told(Text("a"), ONE, Text("b"), TWO, paid=Paid(ONE.usage, 0.01))
    assert usage(steps) == (10, 2, 0, 0.01)
    assert steps[1]["extra"]["used"]["usage"]["input"] == 20
    lost = told(Text("a"), ONE, Text("b"))
    assert usage(lost) == (0, 0, 0, 0)
    assert "used" in lost[0]["extra"]


def test_a_turn_without_a_word_has_a_step_for_its_cost() -> None:
    steps = told(ONE, TWO, events.Progress("over"), paid=Paid(Usage(30, 5, 5, 7), None))
    assert messages(steps) == [("system", "over"), ("agent", "")]
    assert steps[1]["metrics"] == {
        "prompt_tokens": 42,
        "completion_tokens": 5,
        "cached_tokens": 5,
        "extra": {"cache_write_tokens": 7},
    }
    assert told(paid=Paid(Usage(), 0.0)) == []


MADE = st.one_of(
    st.sampled_from(
        [
            Text("a"),
            Text("b", Speaker.HOST),
            Text("c", Speaker.SUBAGENT),
            Thinking("t"),
            events.Progress("p"),
            events.Unknown("u"),
            events.Question("q"),
            events.Todo(()),
        ]
    ),
    st.builds(ToolStart, st.sampled_from("xyz"), st.just("Tool"), subagent=st.booleans()),
    st.builds(ToolEnd, st.sampled_from("xyz"), st.just("out"), subagent=st.booleans()),
    st.builds(
        Used,
        st.builds(Usage, *[st.integers(0, 9)] * 4),
        st.one_of(st.none(), st.integers(0, 4).map(lambda cents: cents / 100)),
    ),
)
PAID = st.builds(
    Paid, st.builds(Usage, *[st.integers(0, 30)] * 4), st.one_of(st.none(), st.floats(0, 1))
)


@given(st.lists(MADE, max_size=30), PAID)
def test_steps_cost_what_the_turn_has_cost(some: list[events.AgentEvent], paid: Paid) -> None:
    """Whatever the stream says, and in whatever order: not a token more or less."""
    steps = told(*some, paid=paid)
    expected = (paid.usage.all_input, paid.usage.output, paid.usage.cache_read)
    *tokens, cost = usage(steps)
    assert tuple(tokens) == expected
    assert cost == pytest.approx(paid.cost_usd or 0.0)
    numbers = [
        metric for s in steps for name, metric in s.get("metrics", {}).items() if name != "extra"
    ]
    assert all(number >= 0 for number in numbers)
    said = "".join(step["message"] for step in steps if step["source"] == "agent")
    assert said.count("a") == sum(event == Text("a") for event in some)


def test_little_is_kept_of_a_turn_that_is_long() -> None:
    """Though the first of its calls is never answered, or very late."""
    turn, most = TurnSteps(""), 0
    steps = list(turn.take(Said(ToolStart("never", "Wait"))))
    for number in range(300):
        for event in (ToolStart(f"{number}", "Read"), ToolEnd(f"{number}", "x" * 1_000_000)):
            steps += turn.take(Said(event))
        most = max(most, number - len(steps))
        steps += turn.take(Said(events.Unknown("noise")))
    assert most < 20
    steps += turn.take(Said(ToolEnd("never", "late")))
    steps += turn.end()
    results = [r for step in steps for r in step.json().get("observation", {}).get("results", ())]
    assert len(results) == 301


def test_what_belongs_to_one_step_stays_together_however_long_it_is() -> None:
    calls = [ToolStart(name, "Read") for name in "abc"]
    steps = told(*calls, *(ToolEnd(name, "x" * 6_000_000) for name in "abc"))
    assert [len(step["observation"]["results"]) for step in steps] == [3]


def test_a_long_text_goes_on_in_the_next_step() -> None:
    said = TurnSteps("")
    texts = [step for _ in range(10) for step in said.take(Said(Text("y" * 600_000)))]
    assert [len(step.json()["message"]) for step in (*texts, *said.end())] == [1_200_001] * 5
