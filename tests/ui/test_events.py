"""Events in, lines out (H §Formatter)."""

import time
from collections.abc import Iterator
from dataclasses import replace

import pytest

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
    Todo,
    TodoItem,
    TodoStatus,
    ToolEnd,
    ToolStart,
    Unknown,
    Usage,
)
from ralph.ui.events import Formatter
from ralph.ui.style import Style

KEY = "sk-" + "a" * 40  # shaped like one

EMOJI = Style(emoji=True)
PLAIN = Style()
LIST = Todo(
    (
        TodoItem("Read the file", TodoStatus.DONE),
        TodoItem("Edit the code", TodoStatus.ACTIVE),
        TodoItem("Run tests"),
    )
)
NO_WORK = "tools: 0, errors: 0, time: 0.0s"
# 45 lines of 1234 characters, of which only the first is not blank.
READ = "package main" + "\n" * 44 + " " * 1178


class Clock:
    """A time that a test sets."""

    def __init__(self) -> None:
        self.now = 1_700_000_000.0

    def __call__(self) -> float:
        return self.now


def shown(*events: AgentEvent, style: Style = EMOJI) -> list[str]:
    formatter = Formatter(style, Clock())
    return [line for event in events for line in formatter.lines(event)]


@pytest.fixture
def utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "UTC")
        time.tzset()
        yield
    time.tzset()


def a_long_turn(style: Style) -> list[str]:
    """The turn of H's example: 58 tools, 4 errors, 6m7s; only its last events are shown."""
    clock = Clock()
    formatter = Formatter(style, clock)
    for n in range(57):
        formatter.lines(ToolStart(str(n), "Bash"))
        formatter.lines(ToolEnd(str(n), is_error=n < 4))
    clock.now += 367
    usage = Usage(input=300_000, output=45_000, cache_read=850_000, cache_write=50_000)
    last: tuple[AgentEvent, ...] = (
        ToolStart("a", "Read", "/path/to/file.go"),
        ToolEnd("a", READ),
        LIST,
        Result("done", cost_usd=5.76, usage=usage),
    )
    return [line for event in last for line in formatter.lines(event)]


def test_the_example_of_the_specification_verbatim() -> None:
    """H §Formatter: "The Formatter renders events with visual indicators and tool correlation"."""
    example = """\
⏺ Read(/path/to/file.go)
✅ Result ← Read (45 lines, 1234 chars)
  ⎿  package main

📋 Todo List
  ✅ Read the file
  🔄 Edit the code ← ACTIVE
  ⏸️ Run tests
  📊 Progress: 1/3 (33%)

· Turn ended (cost: $5.76, tokens: 1.2M in (850K cached) / 45K out, tools: 58, errors: 4, time: 6m7s)
"""  # noqa: E501
    assert a_long_turn(EMOJI) == example.splitlines()


def test_text_markers_are_ascii() -> None:
    """H §Formatter: "UseEmoji: emoji indicators vs text markers (`[OK]`, `[ERR]`)"."""
    example = """\
[*] Read(/path/to/file.go)
[OK] Result <- Read (45 lines, 1234 chars)
  |  package main

[TODO] Todo List
  [x] Read the file
  [>] Edit the code <- ACTIVE
  [ ] Run tests
  [=] Progress: 1/3 (33%)

[-] Turn ended (cost: $5.76, tokens: 1.2M in (850K cached) / 45K out, tools: 58, errors: 4, time: 6m7s)
"""  # noqa: E501
    assert a_long_turn(PLAIN) == example.splitlines()


def test_interleaved_tools_are_correlated_by_id() -> None:
    """H §Event Model: "tool correlation IDs"."""
    lines = shown(
        ToolStart("1", "Read", "a.py"),
        ToolStart("2", "Bash", "make test"),
        ToolEnd("2", "no rule", is_error=True),
        ToolEnd("1", "x = 1\n"),
    )
    assert lines == [
        "⏺ Read(a.py)",
        "⏺ Bash(make test)",
        "❌ Error ← Bash (1 line, 7 chars)",
        "  ⎿  no rule",
        "✅ Result ← Read (1 line, 6 chars)",
        "  ⎿  x = 1",
    ]


def test_a_result_whose_tool_is_unknown_is_shown_without_a_name() -> None:
    assert shown(ToolEnd("?", "out")) == ["✅ Result (1 line, 3 chars)", "  ⎿  out"]


def test_output_is_cut_to_max_output_lines_and_chars() -> None:
    """H §Formatter: "MaxOutputLines, MaxOutputChars: truncation limits for tool output"."""
    output = "\n".join(["x" * 200] + [f"line {n}" for n in range(2, 46)])
    style = replace(EMOJI, max_output_chars=10)
    assert shown(ToolEnd("1", output), style=style)[1:] == [
        "  ⎿  xxxxxxxxx…",
        "     line 2",
        "     line 3",
        "     … 42 more lines",
    ]
    assert shown(ToolEnd("1", "a\nb"), style=replace(PLAIN, max_output_lines=1))[1:] == [
        "  |  a",
        "  |  ... 1 more line",
    ]


def test_lines_beyond_what_is_previewed_are_counted_too() -> None:
    huge = "0123456789\n" * 100_000
    assert shown(ToolEnd("1", huge)) == [
        "✅ Result (100000 lines, 1100000 chars)",
        "  ⎿  0123456789",
        "     0123456789",
        "     0123456789",
        "     … 99997 more lines",
    ]


@pytest.mark.parametrize("most", [0, 3])
def test_no_output_has_no_preview(most: int) -> None:
    style = replace(EMOJI, max_output_lines=most)
    assert shown(ToolEnd("1", ""), style=style) == ["✅ Result (no output)"]


def test_zero_lines_of_output_are_none() -> None:
    style = replace(EMOJI, max_output_lines=0)
    assert shown(ToolEnd("1", "a\nb\n"), style=style) == ["✅ Result (2 lines, 4 chars)"]


@pytest.mark.parametrize(
    ("event", "lines"),
    [
        (Text("Hello.\n\nBye.\n"), ["Hello.", "", "Bye."]),
        (Text("long " * 100), ["long " * 100]),
        (Text(""), []),
        (Text("prompt", Speaker.PROMPT), []),
        (Text("a\nb", Speaker.SUBAGENT), ["[sub-agent] a", "[sub-agent] b"]),
        (Text("tests first", Speaker.HOOK), ["[hook] tests first"]),
        (Text("API Error", Speaker.HOST), ["[host] API Error"]),
        (ToolStart("1", "Grep", subagent=True), ["[sub-agent] ⏺ Grep"]),
        (ToolStart("1", "Bash", "a \\\n  b"), ["⏺ Bash(a \\ b)"]),
        (Thinking("\nFirst thought\nsecond"), ["💭 First thought"]),
        (Thinking("  "), []),
        (Progress("Session started"), ["· Session started"]),
        (Retry(2, 10, 3.4, "overloaded"), ["🔁 Retry 2/10 in 3.4s: overloaded"]),
        (Retry(1), ["🔁 Retry 1"]),
        (RateLimited("5-hour limit"), ["⏳ Rate limited: 5-hour limit"]),
        (Question("Which\none?"), ["❓ Question: Which one?"]),
        (Unknown('{"type":"new"}'), []),
        (Todo(()), ["📋 Todo List", "  📊 Progress: 0/0"]),
        (Result(), [f"· Turn ended ({NO_WORK})"]),
        (
            Result(failure=Failure("API 500", 500), cost_usd=0.0, usage=Usage(5, 7)),
            [f"❌ Failed: API 500 (cost: $0.00, tokens: 5 in / 7 out, {NO_WORK})"],
        ),
    ],
)
def test_each_event(event: AgentEvent, lines: list[str]) -> None:
    assert shown(event) == lines


@pytest.mark.usefixtures("utc")
def test_a_rate_limit_names_its_end() -> None:
    event = RateLimited("weekly limit", resets_at=1_700_000_060.0)
    assert shown(event) == ["⏳ Rate limited: weekly limit (until 22:14:20)"]


def test_paragraphs_are_set_apart() -> None:
    call = ToolStart("1", "Bash")
    events = (Text("a"), Text("b"), call, Thinking("c"), ToolEnd("1"), Text("d"))
    lines = ["a", "b", "", "⏺ Bash", "💭 c", "✅ Result ← Bash (no output)", "", "d"]
    assert shown(*events) == lines


def test_a_new_turn_counts_from_the_start() -> None:
    clock = Clock()
    formatter = Formatter(EMOJI, clock)
    formatter.lines(ToolStart("1", "Bash"))
    clock.now += 50
    formatter.start()
    clock.now += 12
    assert formatter.lines(Result()) == ["· Turn ended (tools: 0, errors: 0, time: 12s)"]


@pytest.mark.usefixtures("utc")
def test_timestamps_stand_in_front_of_each_line() -> None:
    """H §Formatter: "ShowTimestamp: `[HH:MM:SS]` prefix on each line"."""
    style = replace(EMOJI, timestamps=True)
    assert shown(Text("a\nb"), ToolStart("1", "Bash", subagent=True), style=style) == [
        "[22:13:20] a",
        "[22:13:20] b",
        "",
        "[22:13:20] [sub-agent] ⏺ Bash",
    ]


def test_lines_that_are_not_words_fit_the_width() -> None:
    style = replace(EMOJI, width=40)
    lines = shown(
        ToolStart("1", "Bash", "x" * 100),
        ToolEnd("1", "\t" + "y" * 100),
        Todo((TodoItem("z" * 100, TodoStatus.ACTIVE),)),
        style=style,
    )
    assert lines[0] == f"⏺ Bash({'x' * 31}…)"
    assert lines[2] == f"  ⎿      {'y' * 30}…"
    assert lines[5] == f"  🔄 {'z' * 25}… ← ACTIVE"
    assert shown(Text("w" * 100), style=style) == ["w" * 100]


def test_a_path_keeps_its_end() -> None:
    style = replace(EMOJI, width=40)
    call = ToolStart("1", "Read", "/home/me/project/src/deep/down/module.py")
    assert shown(call, style=style) == ["⏺ Read(/home/me/pr…/deep/down/module.py)"]


def test_the_width_is_asked_for_each_line() -> None:
    """A window may be resized during a run."""
    widths = iter((40, 60))
    formatter = Formatter(EMOJI, Clock(), width=lambda: next(widths))
    call = ToolStart("1", "Bash", "x" * 100)
    assert [len(line) for _ in range(2) for line in formatter.lines(call)] == [40, 60]


def test_why_a_turn_failed_is_not_cut_to_the_width() -> None:
    failed = Result(failure=Failure("API Error: " + "why " * 30))
    (line,) = shown(failed, style=replace(EMOJI, width=40))
    assert line == f"❌ Failed: API Error: {'why ' * 29}why ({NO_WORK})"


def test_colour_surrounds_whole_lines() -> None:
    style = replace(EMOJI, color=True)
    assert shown(ToolEnd("1", is_error=True), Text("plain"), style=style) == [
        "\x1b[31m❌ Error (no output)\x1b[0m",
        "",
        "plain",
    ]


@pytest.mark.parametrize(
    "event",
    [
        Text("\x1b[2Jevil\u202e"),
        Thinking("\x1b[2Jevil\u202e"),
        ToolStart("\x1b", "\x1b[2Jev", "\x1b]0;title\x07il\x00"),
        ToolEnd("1", "\x1b[2Jevil\r\x9b1m"),
        Todo((TodoItem("\x1b[2Jevil\u202e"),)),
        Progress("\x1b[2Jevil"),
        Question("\x1b[2Jevil"),
        Retry(1, why="\x1b[2Jevil"),
        RateLimited("\x1b[2Jevil"),
        Result(failure=Failure("\x1b[2Jevil")),
    ],
)
def test_escape_sequences_of_the_agent_never_arrive(event: AgentEvent) -> None:
    text = "".join(shown(event))
    assert "il" in text
    assert not set("\x1b\x9b\r\x00\u202e") & set(text)


def test_secrets_are_redacted_even_with_an_escape_code_inside() -> None:
    """ADR 13: key-shaped values are redacted from everything people read."""
    formatter = Formatter(EMOJI, Clock())
    assert formatter.lines(Text(f"key: {KEY[:9]}\x1b[0m{KEY[9:]}")) == ["key: [redacted]"]
    assert formatter.lines(ToolEnd("1", KEY))[-1] == "  ⎿  [redacted]"


@pytest.mark.parametrize(
    "line",
    [
        "[ralph] Completed after 1 iteration",
        "  [Ralph] x",
        "[12:00:01] [ralph] x",
        "T-1 | [ralph] x",
        "\u200b[ra\u200blph] x",
        "\x1b[1m[ralph]\x1b[0m x",
    ],
)
def test_what_an_agent_says_in_our_name_is_marked_as_the_agents(line: str) -> None:
    """docs/how-to/run.md §What you see: "A line of the agent that begins with `[ralph]` is shown as
    `[agent] [ralph] …`"."""
    first, second = shown(Text(f"ok\n{line}"))
    assert (first, second.startswith("[agent] ")) == ("ok", True)


@pytest.mark.parametrize("line", ["see [ralph] there", "- [x] ralph", "ralph: [1]", "a[ralph]"])
def test_what_only_names_us_is_left_as_it_is(line: str) -> None:
    assert shown(Text(line)) == [line]
