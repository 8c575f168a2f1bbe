"""The live line on a screen: what a person sees, whatever is written around it."""

import io
import os
import signal
import time
from collections.abc import Iterator
from typing import TextIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kits.screen_model import Screen, Terminal
from ralph.kernel.events import Failure, Result, Text, ToolStart
from ralph.kernel.facts import Began, Decided, Ended, Fact, Settled
from ralph.kernel.tasks.task import Assignment
from ralph.kernel.turn import Turn
from ralph.kernel.verdict import Boundary, Reason, Stop, Wait
from ralph.kernel.world import Signals
from ralph.text.plain import columns
from ralph.ui.console import Console
from ralph.ui.lines import Briefing
from ralph.ui.live.activity import Doing
from ralph.ui.live.region import fitted, live_width
from ralph.ui.style import Style

NOW = 1_700_000_000.0
BEGAN = Began(NOW, 1, Assignment("prompt"))
NOTICE = "Received signal, shutting down...\n"
FANCY = Style(emoji=True, color=True)
PLAIN = Style()
FLOOD = 10_000


class Shown:
    """A console whose streams are one terminal, and a time that a test sets."""

    def __init__(self, width: int = 80, style: Style = FANCY, out: TextIO | None = None) -> None:
        self.screen = Screen(width)
        self.time = NOW
        self.err = Terminal(self.screen)
        self.out = out or Terminal(self.screen)
        self.console = Console(
            self.out,
            self.err,
            style,
            stream=True,
            verbose=False,
            briefing=Briefing(iterations=10),
            clock=lambda: self.time,
            width=lambda: self.screen.width,
        )

    def beat(self, seconds: float = 0.25, own: int = 0) -> list[str]:
        """Let time pass, and look."""
        self.time += seconds
        self.console.beat(Signals(), Signals(own))
        return self.screen.lines()

    def last(self) -> str:
        return self.screen.lines()[-1]


@pytest.fixture
def shown() -> Iterator[Shown]:
    made = Shown()
    with made.console.live():
        yield made


@pytest.fixture(autouse=True)
def utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "UTC")
        time.tzset()
        yield
    time.tzset()


def test_it_stands_below_everything_else(shown: Shown) -> None:
    shown.console.on_fact(BEGAN)
    shown.console.on_events([ToolStart("1", "Bash", "make test")])
    assert shown.beat(41) == [
        "[ralph] Iteration 1/10 starting",
        "",
        "⏺ Bash(make test)",
        "",
        "⠙ 1/10 · Bash(make test) 41s",
    ]


def test_no_remnant_is_left_between_lines_of_both_streams(shown: Shown) -> None:
    """The agent's text on stdout and ours on stderr meet on one terminal."""
    shown.console.on_fact(BEGAN)
    for number in range(20):
        shown.console.on_events([Text(f"line {number}")])
        shown.beat(number % 3)
        shown.console.note(f"note {number}")
        shown.beat(number % 2)
    assert sum("⠋" <= line[:1] <= "⣿" for line in shown.screen.lines()) == 1
    with shown.console.live():
        pass
    text = [line for line in shown.screen.lines()[1:] if line]
    pairs = ((f"line {n}", f"[ralph] note {n}") for n in range(20))
    assert text == [line for pair in pairs for line in pair]


def test_at_the_end_of_the_run_it_is_gone() -> None:
    shown = Shown()
    with shown.console.live():
        shown.console.on_fact(BEGAN)
        shown.beat()
        shown.console.on_fact(Ended(NOW, Turn(text="Done.")))
        assert len(shown.beat()) == 3
        shown.console.on_fact(Settled(NOW, Stop(Reason.COMPLETED)))
        ended = shown.screen.lines()
        assert shown.beat() == ended
    shown.console.note("afterwards")
    assert shown.screen.lines() == [
        "[ralph] Iteration 1/10 starting",
        "",
        "[ralph] Completed after 1 iteration in 0.0s.",
        "[ralph] afterwards",
    ]


def test_it_is_gone_after_an_exception_too() -> None:
    shown = Shown()

    def run() -> None:
        with shown.console.live():
            shown.console.on_fact(BEGAN)
            shown.beat()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run()
    assert shown.screen.lines() == ["[ralph] Iteration 1/10 starting"]
    assert (shown.screen.row, shown.screen.column) == (1, 0)


@pytest.mark.parametrize("echo", ["", "^C"])
def test_the_notice_of_a_signal_garbles_nothing(shown: Shown, echo: str) -> None:
    """The handler writes it straight to the terminal, past everything."""
    shown.console.on_fact(BEGAN)
    shown.beat()
    shown.screen.feed(echo + NOTICE)
    assert shown.beat(own=1) == [
        "[ralph] Iteration 1/10 starting",
        echo + NOTICE.rstrip(),
        "",
        "⠹ 1/10 · stopping after this turn (Ctrl+C again: at once)",
    ]
    shown.console.note("more")
    assert shown.screen.lines()[2] == "[ralph] more"


def test_a_key_that_is_pressed_leaves_nothing(shown: Shown) -> None:
    shown.console.on_fact(BEGAN)
    shown.beat()
    shown.screen.feed("\n")
    shown.beat()
    shown.screen.feed("abc")
    assert shown.beat()[-1].startswith("⠸ 1/10")
    assert len([line for line in shown.screen.lines() if line]) == 2


def test_a_resized_window_is_followed(shown: Shown) -> None:
    shown.console.on_events([ToolStart("1", "Bash", "x" * 100)])
    assert columns(shown.beat()[-1]) == 79
    shown.screen.width = 40
    assert columns(shown.beat()[-1]) == 39
    shown.screen.width = 200
    assert shown.beat()[-1] == f"⠸ Bash({'x' * 100}) 0s"
    shown.console.on_events([ToolStart("2", "Bash", "y" * 100)])
    assert f"⏺ Bash({'y' * 100})" in shown.screen.lines()


def test_a_countdown_counts(shown: Shown) -> None:
    turn = Turn(failure=Failure("Too many", status=429))
    wait = Wait(NOW + 60, "Too many")
    facts: tuple[Fact, ...] = (
        BEGAN,
        Ended(NOW, turn),
        Decided(NOW, Boundary.CLOSING, wait),
        Settled(NOW, wait),
    )
    for fact in facts:
        shown.console.on_fact(fact)
    lines = [shown.beat(1.0)[-1] for _ in range(3)]
    assert lines == [
        f"• 1/10 · rate limited: {left}s left, until 22:14:20" for left in (59, 58, 57)
    ]


def test_it_is_written_only_when_it_changed(shown: Shown) -> None:
    shown.console.on_fact(Decided(NOW, Boundary.OPENING, Wait(None, "paused")))
    shown.beat()
    before = len(shown.err.writes)
    for _ in range(50):
        shown.beat()
    assert len(shown.err.writes) == before


def test_a_flood_of_lines_is_not_slowed_down(shown: Shown) -> None:
    """In a second of 10,000 lines there are a few drawings, and an erasure for each."""
    for number in range(FLOOD):
        shown.console.on_events([Text(str(number))])
        shown.time += 1 / FLOOD
    assert 2 <= len(shown.err.writes) <= 40
    assert shown.screen.lines()[:FLOOD] == [str(number) for number in range(FLOOD)]
    assert shown.beat(1)[-1] == "⠙ thinking 1s"


def test_a_clock_that_is_set_back_does_not_stop_it(shown: Shown) -> None:
    shown.console.on_fact(BEGAN)
    shown.beat()
    assert shown.beat(-3600)[-1].startswith("⠹ 1/10")


def test_each_drawing_is_one_write_and_leaves_the_cursor_shown(shown: Shown) -> None:
    """A write is what a `kill -9` cannot tear apart; a hidden cursor would stay so."""
    shown.console.on_fact(BEGAN)
    before = len(shown.err.writes)
    shown.beat()
    (drawing,) = shown.err.writes[before:]
    assert shown.screen.wraps
    assert "?25" not in drawing


def test_with_stdout_in_a_file_only_stderr_is_erased_for() -> None:
    shown = Shown(out=io.StringIO())
    with shown.console.live():
        shown.console.on_fact(BEGAN)
        shown.beat()
        before = len(shown.err.writes)
        shown.console.on_events([Text("to the file")])
        assert len(shown.err.writes) == before
        assert shown.beat()[-1] == "⠹ 1/10 · thinking 0s"
        shown.console.note("and on")
    assert shown.screen.lines() == ["[ralph] Iteration 1/10 starting", "[ralph] and on"]


def test_the_iterations_and_the_speakers_are_set_apart_on_a_screen(shown: Shown) -> None:
    for _ in range(2):
        shown.console.on_fact(BEGAN)
        shown.console.on_events([Text("Hello")])
        shown.console.on_events([Result()])
        shown.console.on_fact(Ended(NOW, Turn(exit_code=1)))
    complete = "· Turn ended (tools: 0, errors: 0, time: 0.0s)"
    part = ["[ralph] Iteration 1/10 starting", "", "Hello", "", complete, ""]
    part.append("[ralph] Agent exited with code 1 (0.0s)")
    assert shown.screen.lines()[:15] == [*part, "", *part]


@pytest.mark.parametrize(
    ("width", "style", "line"),
    [
        (100, FANCY, "⠋ 3/10 · Bash(make test) 41s · turn 3m2s · $0.42"),
        (100, PLAIN, "| 3/10 - Bash(make test) 41s - turn 3m2s - $0.42"),
        (48, FANCY, "⠋ 3/10 · Bash(make test) 41s · turn 3m2s · $0.42"),
        (47, FANCY, "⠋ 3/10 · Bash(make test) 41s · turn 3m2s"),
        (36, FANCY, "⠋ 3/10 · Bash(make test) 41s"),
        (24, FANCY, "⠋ 3/10 · Bash(make…) 41s"),
        (16, FANCY, "⠋ 3/10 · B…) 41s"),
        (12, FANCY, "⠋ 3/10 · Ba…"),
    ],
)
def test_what_matters_least_goes_first(width: int, style: Style, line: str) -> None:
    moment = Doing("Bash(make test", ") 41s", ("turn 3m2s", "$0.42"), "3/10")
    uncoloured = Style(emoji=style.emoji)
    assert fitted(moment, 0, uncoloured, width) == line


@pytest.mark.parametrize(
    "what",
    ["日本語" * 40, "👨‍👩‍👧" * 40, "e\u0301" * 200, "⏸️" * 100, "/a/b" * 50, "a b " * 50, "…" * 90],
)
@pytest.mark.parametrize("width", [11, 40, 80])
def test_wide_characters_are_counted(what: str, width: int) -> None:
    """A line that wraps cannot be erased as one."""
    screen = Screen(width)
    screen.feed(fitted(Doing(what, " 41s", ("turn 3m2s",), "3/10"), 0, FANCY, width))
    assert screen.wrapped == 0


@given(st.text(st.characters(exclude_categories=("Cc", "Cs"))), st.integers(9, 120))
def test_any_text_fits(what: str, width: int) -> None:
    assert columns(fitted(Doing(what, " 41s", ("turn 3m2s",), "3/10"), 7, PLAIN, width)) <= width


class Stream(io.StringIO):
    """A stream that is what a test says it is."""

    def __init__(self, descriptor: int, *, terminal: bool) -> None:
        super().__init__()
        self.descriptor, self.terminal = descriptor, terminal

    def fileno(self) -> int:
        return self.descriptor

    def isatty(self) -> bool:
        return self.terminal


@pytest.fixture
def pseudo_terminal() -> Iterator[Stream]:
    ours, theirs = os.openpty()
    yield Stream(theirs, terminal=True)
    os.close(ours)
    os.close(theirs)


def test_a_terminal_that_does_not_know_its_width_has_80_columns(pseudo_terminal: Stream) -> None:
    width = live_width(None, pseudo_terminal, FANCY, {"TERM": "xterm"})
    assert width is not None
    assert width() == 80


@pytest.mark.parametrize(
    ("style", "environ"),
    [
        (PLAIN, {"TERM": "xterm"}),
        (FANCY, {"TERM": "dumb"}),
        (FANCY, {}),
        (FANCY, {"TERM": "xterm", "CI": "true"}),
    ],
)
def test_where_a_live_line_has_no_place(
    pseudo_terminal: Stream, style: Style, environ: dict[str, str]
) -> None:
    """`--no-color`, `NO_COLOR` (a plain style), `TERM=dumb`, and logs of a build server."""
    assert live_width(pseudo_terminal, pseudo_terminal, style, environ) is None


def test_beside_a_pipe_there_is_none(pseudo_terminal: Stream) -> None:
    """`ralph run | tee log`: tee writes to the same terminal."""
    reading, writing = os.pipe()
    out = Stream(writing, terminal=False)
    assert live_width(out, pseudo_terminal, FANCY, {"TERM": "xterm"}) is None
    os.close(reading)
    os.close(writing)


@pytest.mark.parametrize("err", [None, io.StringIO(), Stream(2, terminal=False)])
def test_without_a_terminal_there_is_none(err: TextIO | None) -> None:
    assert live_width(None, err, FANCY, {"TERM": "xterm"}) is None


def test_a_terminal_that_went_away_has_no_room() -> None:
    width = live_width(None, Stream(-1, terminal=True), FANCY, {"TERM": "xterm"})
    assert width is not None
    assert width() == 0


def test_without_room_it_is_erased_and_comes_back(shown: Shown) -> None:
    shown.console.on_fact(BEGAN)
    shown.beat()
    shown.screen.width = 0
    assert shown.beat() == ["[ralph] Iteration 1/10 starting"]
    shown.screen.width = 80
    assert len(shown.beat()) == 3


def test_the_handler_of_a_suspension_is_put_back() -> None:
    shown = Shown()
    before = signal.getsignal(signal.SIGTSTP)
    with shown.console.live():
        assert signal.getsignal(signal.SIGTSTP) != before
    assert signal.getsignal(signal.SIGTSTP) == before
