"""The console as a whole: what goes where, and what happens when a stream is gone."""

import io
import os
import time
from collections.abc import Iterator
from dataclasses import replace

import pytest

from ralph.kernel.events import Result, Text, ToolStart
from ralph.kernel.facts import Began, Ended, Fact, Settled, Started
from ralph.kernel.state import replay
from ralph.kernel.tasks.task import Assignment
from ralph.kernel.turn import Turn
from ralph.kernel.verdict import Reason, Stop
from ralph.ui.console import Console
from ralph.ui.lines import Briefing, Reader
from ralph.ui.style import Style

NOW = 1_700_000_000.0
BEGAN = Began(NOW, 1, Assignment("prompt"))
BRIEFING = Briefing(iterations=10)


class Screen:
    """A console and the two streams it writes to."""

    def __init__(
        self,
        style: Style = Style(),
        *,
        stream: bool = True,
        verbose: bool = False,
        err_style: Style | None = None,
    ) -> None:
        self.out, self.err = io.StringIO(), io.StringIO()
        self.time = NOW
        self.console = Console(
            self.out,
            self.err,
            style,
            stream=stream,
            verbose=verbose,
            briefing=BRIEFING,
            clock=lambda: self.time,
            err_style=err_style,
        )


@pytest.fixture
def utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "UTC")
        time.tzset()
        yield
    time.tzset()


def test_the_agent_speaks_on_stdout_and_ralph_on_stderr() -> None:
    """docs/how-to/run.md §What you see: "The agent's lines go to stdout, Ralph's own to stderr"."""
    screen = Screen()
    reader: Reader = screen.console
    reader.on_fact(BEGAN)
    reader.on_events([Text("Hello")])
    assert screen.out.getvalue() == "Hello\n"
    assert screen.err.getvalue() == "[ralph] Iteration 1/10 starting\n"


def test_what_comes_at_once_is_shown_in_order() -> None:
    screen = Screen()
    screen.console.on_events([Text("one"), ToolStart("1", "Bash", "ls"), Text("two")])
    assert screen.out.getvalue() == "one\n\n[*] Bash(ls)\n\ntwo\n"


def test_without_streaming_stdout_stays_empty() -> None:
    """H §Loop Behavior 4: the output is shown "if `streamAgentOutput` is enabled"."""
    screen = Screen(stream=False)
    screen.console.on_events([Text("Hello")])
    assert screen.out.getvalue() == ""


def test_each_turn_is_timed_from_its_own_beginning() -> None:
    screen = Screen()
    screen.console.on_events([ToolStart("1", "Bash")])
    screen.time += 100
    screen.console.on_fact(BEGAN)
    screen.time += 12
    screen.console.on_events([Result()])
    assert screen.out.getvalue().endswith("Turn ended (tools: 0, errors: 0, time: 12s)\n")


def test_notes_are_for_all_and_debug_for_the_verbose() -> None:
    """H §Verbose Output: `[ralph] Agent command: claude -p --model opus`."""
    quiet, loud = Screen(), Screen(verbose=True)
    for screen in (quiet, loud):
        screen.console.note("Received signal, shutting down...")
        screen.console.debug("Agent command: claude -p --model opus")
    assert quiet.err.getvalue() == "[ralph] Received signal, shutting down...\n"
    assert loud.err.getvalue().splitlines()[1] == "[ralph] Agent command: claude -p --model opus"


def test_the_prompt_is_shown_to_its_200th_character() -> None:
    """H §Verbose Output: "Prompt being sent (truncated to first 200 chars)"."""
    quiet, loud = Screen(), Screen(verbose=True)
    for screen in (quiet, loud):
        screen.console.prompt("first\nline " + "x" * 200)
        screen.console.prompt("short")
    assert quiet.err.getvalue() == ""
    assert loud.err.getvalue().splitlines() == [
        f"[ralph] Prompt: first line {'x' * 189}...",
        "[ralph] Prompt: short",
    ]


def test_what_ralph_quotes_is_clean_and_redacted() -> None:
    """ADR 13: key-shaped values never reach the console."""
    screen = Screen()
    screen.console.note("one\x1b[2J\ntwo sk-ant-0123456789abcdef0123")
    assert screen.err.getvalue() == "[ralph] one\n[ralph] two [redacted]\n"


@pytest.mark.usefixtures("utc")
def test_timestamps_and_colour_of_our_own_lines() -> None:
    fancy = Style(color=True, timestamps=True)
    screen = Screen(err_style=fancy)
    screen.console.on_fact(BEGAN)
    screen.console.on_events([Text("plain")])
    line = "[22:13:20] \x1b[1m[ralph]\x1b[0m \x1b[1mIteration 1/10 starting\x1b[0m\n"
    assert screen.err.getvalue() == line
    assert screen.out.getvalue() == "plain\n"


def test_a_closed_stdout_is_said_once_and_the_run_goes_on() -> None:
    screen = Screen()
    screen.out.close()
    for _ in range(3):
        screen.console.on_events([Text("Hello")])
    screen.console.on_fact(BEGAN)
    assert screen.err.getvalue().splitlines() == [
        "[ralph] stdout is closed; the run goes on without it.",
        "[ralph] Iteration 1/10 starting",
    ]


def test_with_both_streams_closed_nothing_is_raised() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w", encoding="utf-8") as err:
        console = Console(
            None,
            err,
            Style(),
            stream=True,
            verbose=True,
            briefing=BRIEFING,
            clock=lambda: NOW,
        )
        console.on_fact(BEGAN)
        console.on_events([Text("Hello")])
        console.note("still here")


def test_a_resumed_run_closes_with_all_its_totals() -> None:
    facts: list[Fact] = [
        Started(NOW, "r", "harness", "/w", 1, "0"),
        BEGAN,
        Ended(NOW + 60, Turn(cost_usd=1.0)),
    ]
    err = io.StringIO()
    console = Console(
        None,
        err,
        Style(),
        stream=False,
        verbose=False,
        briefing=replace(BRIEFING, journal="/j"),
        clock=lambda: NOW,
        state=replay(facts),
    )
    console.on_fact(Settled(NOW + 61, Stop(Reason.COMPLETED, evidence=("passed: make test",))))
    assert err.getvalue().splitlines() == [
        "[ralph] Completed after 1 iteration in 1m1s, $1.00.",
        "[ralph] Proof      make test passed (no tree: not a git repository)",
        "[ralph] Journal    /j",
    ]
