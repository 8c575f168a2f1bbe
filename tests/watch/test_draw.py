"""A view as lines of text, of any width."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ralph.journal.forecast import Bound, Forecast, Range
from ralph.kernel.facts import Started
from ralph.kernel.limits import Limits, Spent
from ralph.kernel.state import RunState
from ralph.kernel.tasks.task import Assignment
from ralph.kernel.value import replace
from ralph.kernel.verdict import Reason, Stop
from ralph.kernel.world import Signals
from ralph.text.plain import columns, without_escapes
from ralph.ui.lines import Briefing
from ralph.ui.live.activity import Doing
from ralph.ui.status.listing import Entry
from ralph.ui.status.report import Report
from ralph.ui.style import Style
from ralph.watch import draw, keys
from ralph.watch.model import GateView, OpenQuestion, View

NOW = 86_400.0
RUN = "20260101-100000-aaaa"
FANCY = Style(emoji=True, color=True, width=80)
LIMITS = Limits(10, seconds=7200.0, dollars=20.0)
STARTED = Started(
    NOW - 60, RUN, "tasks", "/home/me/shop", 7, "0.2", limits=LIMITS, agent="claude", model="opus"
)
REPORT = Report(
    RUN,
    "/s/runs/x",
    "/s/runs/x/journal.jsonl",
    NOW,
    state=RunState(
        iteration=3, limits=LIMITS, assignment=Assignment("T-3", title="Fix the parser")
    ),
    started=STARTED,
    pid=7,
)
VIEW = View(
    REPORT,
    Spent(3, 3600.0, 19.5),
    moments=(Doing("Bash(make test)", " 12s", ("turn 1m",), "T-3 3/10"),),
    gates=(GateView("make test", seconds=3.0, ok=False), GateView("lint", since=NOW - 2)),
    asks=(OpenQuestion("T-1", "Which database?"),),
    briefing=Briefing(iterations=10, tasks=True),
)


def head(view: View, width: int = 80, style: Style = FANCY) -> list[str]:
    return [without_escapes(line) for line in draw.head(view, style, width, 12)]


def test_eighty_columns_say_what_matters() -> None:
    assert head(VIEW) == [
        f"{RUN}  tasks run{'asking 1m':>49}",
        "/home/me/shop · claude opus · T-3: Fix the parser",
        "Iteration 3/10 ████░░░░░░░░   Time 1h/2h ██████░░░░░░",
        "Money $19.50/$20.00 ████████████   Tasks 0 done",
        "Gates  ✗ make test 3.0s  … lint 2s",
        "T-1 asks: Which database?",
        "⠋ T-3 3/10 · Bash(make test) 12s · turn 1m",
    ]
    assert "\x1b[31m████████████\x1b[0m" in "".join(draw.head(VIEW, FANCY, 80, 12)), "nearly spent"


def test_the_agent_is_the_one_that_took_the_last_turn() -> None:
    """ADR 45."""
    state = replace(REPORT.state, place=1, agent="codex with m")
    view = replace(VIEW, report=replace(REPORT, state=state))
    assert head(view)[1] == "/home/me/shop · codex with m · T-3: Fix the parser"


AHEAD = Forecast(
    34, "run", Range(4, 6, 9), None, Range(1.2, 2, 3.8), bounds=(Bound("$20", holds=False),)
)


def test_what_is_likely_left_is_one_line() -> None:
    view = replace(VIEW, forecast=AHEAD)
    lines = head(view)
    assert lines[4] == "4-9 more iterations, $1.20-$3.80; $20 will likely not be enough"
    assert [*lines[:4], *lines[5:]] == head(VIEW)
    assert "\x1b[35m4-9 more" in "".join(draw.head(view, FANCY, 80, 12)), "a warning"
    wide = [without_escapes(line) for line in draw.head(view, FANCY, 58, 30, airy=True)]
    assert "Forecast    4-9 more iterations, $1.20-$3.80; $20 will" in wide
    assert "            likely not be enough" in wide


def test_what_nobody_can_tell_takes_no_line() -> None:
    unknown = replace(AHEAD, iterations=None, why="too few runs to tell (0 of 5)")
    assert head(replace(VIEW, forecast=unknown)) == head(VIEW)
    stop = Stop(Reason.LIMIT, "10 iterations used up")
    over = replace(VIEW, report=replace(REPORT, state=replace(REPORT.state, stop=stop)))
    assert head(replace(over, forecast=AHEAD)) == head(over)


def test_old_terminals_and_no_colours() -> None:
    plain = draw.head(VIEW, Style(), 80, 12)
    assert all(line.isascii() and "\x1b" not in line for line in plain)
    assert "Iteration 3/10 ####........" in plain[2]
    assert plain[4] == "Gates  FAILED make test 3.0s  ... lint 2s"


def test_an_end_is_told_in_place_of_what_goes_on() -> None:
    over = replace(REPORT, pid=None)
    stop = Stop(Reason.LIMIT, "10 iterations used up")
    view = replace(VIEW, report=replace(over, state=replace(over.state, stop=stop, time=NOW - 5)))
    lines = head(view)
    assert lines[0].endswith("limit, 5s ago")
    assert any(line.startswith("Stopped: 10 iterations used up (limit).") for line in lines)
    assert any(line.startswith("Next       ralph resume") for line in lines)
    assert draw.short_lines(view, FANCY)[0].startswith("\x1b[35mStopped: 10 iterations")


def test_a_crash_says_what_to_type() -> None:
    lost = replace(VIEW, report=replace(REPORT, pid=None))
    assert f"Go on: ralph resume {RUN}" in head(lost)
    assert draw.short_lines(lost, FANCY)[-1] == f"Go on: ralph resume {RUN}"


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (Signals(cancels=1), "Asked: it stops after the current operation"),
        (Signals(cancels=2), "Asked: it stops at once"),
        (Signals(paused=True), "Asked: it pauses before the next turn"),
    ],
)
def test_what_was_asked_for_is_said(asked: Signals, words: str) -> None:
    assert words in head(replace(VIEW, report=replace(REPORT, asked=asked)))


def test_of_many_workers_those_are_shown_that_there_is_room_for() -> None:
    many = replace(VIEW, moments=VIEW.moments * 30)
    lines = draw.head(many, Style(), 80, 12)
    assert len(lines) <= 13
    assert "more workers" in lines[-1]


def test_of_many_gates_those_that_failed_are_shown() -> None:
    passed = tuple(GateView(f"check number {n}", seconds=1.0) for n in range(30))
    bad, runs = GateView("make test", ok=False), GateView("make lint", since=NOW - 2)
    rows = [line for line in head(replace(VIEW, gates=(*passed, runs, bad))) if "make" in line]
    assert rows[0].startswith("Gates  ✗ make test 0.0s  … make lint 2s  ✓ check number 0 1.0s")
    assert sum("check number" in line for line in head(replace(VIEW, gates=passed))) == 2


_WORDS = st.text(st.characters(exclude_categories=["Cs"]), max_size=200)


@given(_WORDS, st.integers(76, 200))
def test_nothing_is_wider_than_asked_for_nor_moves_the_cursor(text: str, width: int) -> None:
    state = replace(REPORT.state, assignment=Assignment(text, title=text))
    started = replace(STARTED, workspace=text, agent=text, model=text)
    view = replace(
        VIEW,
        report=replace(REPORT, state=state, started=started, problem=text),
        moments=(Doing(text, " 1s", (text,), "T-1"),),
        gates=(GateView(text, ok=False),),
        asks=(OpenQuestion("T-1", text),),
    )
    listed = Entry(RUN, "running", "/s", started, problem=text)
    shown = [
        *draw.head(view, FANCY, width, 12),
        *draw.list_rows([listed], NOW, FANCY, width),
        draw.list_heading(FANCY, width),
        keys.footer(view, FANCY, width),
    ]
    for line in shown:
        bare = without_escapes(line)
        assert columns(bare) <= width, line
        assert not set(bare) & set("\x1b\x07\x9b\r\n\t\u202e\u2066")


def test_a_list_shows_the_end_of_a_path() -> None:
    listed = Entry(RUN, "completed", "/s", replace(STARTED, workspace="/home/me/work/shop"))
    (row,) = draw.list_rows([listed], NOW, FANCY, 80)
    assert without_escapes(row).endswith("…me/work/shop")
    assert columns(without_escapes(row)) <= 80
