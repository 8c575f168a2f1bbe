"""The log of a watched run: lines on disk, and a window over them."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ralph.text.plain import columns, without_escapes
from ralph.ui.replay import LogLine
from ralph.ui.style import Style, Tone
from ralph.watch import lines as lines_module
from ralph.watch.lines import LONGEST, Filter, Kind, Lines, Selection
from ralph.watch.model import TrackLine
from ralph.watch.pager import Pager
from ralph.watch.wrap import wrapped

PLAIN = Style()


OPEN: list[Lines] = []


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    """The logs of a test are closed after it."""
    yield
    while OPEN:
        OPEN.pop().close()


def log(*entries: TrackLine) -> Lines:
    made = Lines()
    OPEN.append(made)
    for entry in entries:
        made.append(entry)
    return made


def agent(text: str, task: str = "", tone: Tone = Tone.PLAIN) -> TrackLine:
    return TrackLine(LogLine(text, tone, by_agent=True), task)


def ralph(text: str, tone: Tone = Tone.PLAIN, time: float | None = 86_400.0) -> TrackLine:
    return TrackLine(LogLine(text, tone, time))


MIXED = (
    TrackLine(LogLine("Friday", Tone.FAINT, is_day=True)),
    ralph("Iteration 1 starting", Tone.HEAD),
    agent("Hello", "T-1"),
    agent("❌ Error", "T-2", Tone.BAD),
    ralph("Guardrail failed", Tone.BAD),
    ralph("goes on", time=None),
)


def texts(pager: Pager, width: int = 60, height: int = 10) -> list[str]:
    return [row.strip() for row in pager.rows(width, height)]


# ------------------------------------------------------------------ lines


def test_lines_come_back_as_they_were() -> None:
    kept = log(*MIXED)
    assert [kept.get(number) for number in range(kept.end)] == list(MIXED)
    assert list(kept.between(1, 3)) == list(MIXED[1:3])


@given(st.lists(st.text(st.characters(exclude_characters="\n\t\r")), max_size=20))
def test_any_text_comes_back_on_a_line(said: list[str]) -> None:
    kept = log(*(agent(text) for text in said))
    found = [entry.line.text for entry in kept.between(0, kept.end)]
    assert found == [text.rstrip() for text in said]


def test_a_line_without_end_is_cut() -> None:
    (entry,) = log(agent("x" * 1_000_000)).between(0, 1)
    assert len(entry.line.text) == LONGEST
    assert entry.line.text.endswith("x…")


def test_of_a_very_long_log_the_beginning_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines_module, "_MOST_LINES", 100)
    kept = log(*(agent(f"line {number}") for number in range(1001)))
    assert (kept.first, kept.end) == (900, 1001)
    assert [e.line.text for e in kept.between(0, 902)] == ["line 900", "line 901"]
    selection = Selection(kept, Filter(Kind.AGENT))
    assert list(selection.numbers()) == list(range(900, 1001))
    for number in range(300):
        kept.append(agent(f"more {number}"))
    assert selection.numbers()[0] == kept.first


def test_the_file_has_no_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    log(*MIXED)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("wanted", "numbers"),
    [
        (Filter(), [0, 1, 2, 3, 4, 5]),
        (Filter(Kind.AGENT), [2, 3]),
        (Filter(Kind.RALPH), [0, 1, 4, 5]),
        (Filter(Kind.PROBLEMS), [3, 4]),
        (Filter(task="T-1"), [2]),
        (Filter(Kind.PROBLEMS, "T-2"), [3]),
    ],
)
def test_a_filter_takes_lines_of_a_kind_and_of_a_task(wanted: Filter, numbers: list[int]) -> None:
    kept = log(*MIXED)
    selection = Selection(kept, wanted)
    assert list(selection.numbers()) == numbers
    kept.append(MIXED[3])
    more = [6] if wanted.kind in (Kind.ALL, Kind.AGENT, Kind.PROBLEMS) else []
    assert list(selection.numbers()) == numbers + more * (wanted.task != "T-1")


# ------------------------------------------------------------------ the window


def test_it_follows_the_end_until_somebody_goes_up() -> None:
    kept = log(*(agent(f"line {number}") for number in range(100)))
    pager = Pager(kept, PLAIN)
    assert texts(pager, height=3) == ["line 97", "line 98", "line 99"]
    kept.append(agent("new"))
    assert texts(pager, height=3) == ["line 98", "line 99", "new"]
    pager.scroll(-2)
    kept.append(agent("newer"))
    assert texts(pager, height=3) == ["line 96", "line 97", "line 98"]
    assert pager.place() == "line 97 of 102"
    pager.page(-1)
    assert texts(pager, height=3) == ["line 94", "line 95", "line 96"]
    pager.home()
    assert texts(pager, height=3) == ["line 0", "line 1", "line 2"]
    pager.scroll(-5)
    assert texts(pager, height=3) == ["line 0", "line 1", "line 2"]
    pager.page(1000)
    assert texts(pager, height=3) == ["line 99", "new", "newer"]
    assert pager.follows, "who reaches the end follows it"


def test_rows_of_a_wrapped_line_are_scrolled_one_by_one() -> None:
    kept = log(agent("first"), agent("one two three four five six"), agent("last"))
    pager = Pager(kept, PLAIN)
    assert texts(pager, 12, 4) == ["one two", "three four", "five six", "last"]
    pager.scroll(-1)
    assert texts(pager, 12, 4) == ["first", "one two", "three four", "five six"]
    assert texts(pager, 40, 4) == ["first", "one two three four five six", "last"], "it is wider"


def test_a_search_finds_forwards_and_backwards_round_about() -> None:
    kept = log(*(agent(f"Line {number % 10}") for number in range(100)))
    pager = Pager(kept, PLAIN)
    pager.rows(40, 5)
    pager.home()
    assert pager.seek("line 7")
    assert texts(pager, height=1) == ["\x1b[7mLine 7\x1b[0m"]
    assert pager.place() == "line 8 of 100"
    assert pager.seek("line 7")
    assert pager.place() == "line 18 of 100"
    assert pager.seek("line 7", back=True)
    assert pager.seek("line 7", back=True)
    assert pager.place() == "line 98 of 100", "round about"
    assert pager.seek("line 7")
    assert pager.place() == "line 8 of 100", "the other way too"
    assert not pager.seek("line 7X")
    assert not pager.seek("LINE 7"), "a capital letter is meant"
    pager.want(Filter(Kind.RALPH))
    assert not pager.seek("line 7"), "it is not shown"


def test_the_window_of_a_filter_stays_near_its_place() -> None:
    kept = log(*(ralph(f"r {n}") if n % 10 == 0 else agent(f"a {n}") for n in range(100)))
    pager = Pager(kept, PLAIN)
    pager.rows(40, 3)
    pager.home()
    pager.scroll(45)
    assert texts(pager, height=1) == ["a 45"]
    pager.want(Filter(Kind.RALPH))
    assert texts(pager, height=1)[0].endswith("r 50")
    seen = []
    for _ in Kind:
        pager.next_kind()
        seen.append(pager.wanted.kind)
    assert seen == [Kind.PROBLEMS, Kind.ALL, Kind.AGENT, Kind.RALPH]


def test_an_empty_log_can_be_moved_in() -> None:
    pager = Pager(log(), PLAIN)
    assert pager.rows(40, 5) == []
    for move in (pager.home, lambda: pager.scroll(-1), lambda: pager.scroll(3), pager.next_task):
        move()
        assert pager.rows(40, 5) == []
    assert not pager.seek("x")
    assert pager.place() == "0 lines"


@given(st.text(), st.integers(min_value=2, max_value=30))
def test_no_row_is_wider_than_the_window_and_no_word_is_lost(text: str, width: int) -> None:
    rows = wrapped(text, width)
    assert all(columns(row) <= width for row in rows)
    assert "".join(rows).replace(" ", "") == text.replace(" ", "")


@given(st.text(st.characters(exclude_categories=["Cs", "Cc"])), st.integers(20, 90))
def test_whatever_is_said_fits(text: str, width: int) -> None:
    kept = log(agent(text, "T-1"), ralph(text, Tone.BAD))
    rows = Pager(kept, Style(color=True)).rows(width, 50)
    assert all(columns(without_escapes(row)) <= width for row in rows)
