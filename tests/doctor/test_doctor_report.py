"""The lines of `ralph doctor`: one a check, readable on a terminal and in a file."""

import io

import pytest

from ralph.doctor.checks import Area, Check, CheckState, ok, problem, warning
from ralph.doctor.report import Waiting, area_lines, summary_line
from ralph.ui.style import Style

FINE = ok("git", "2.39.5 at /usr/bin/git")
DOUBT = warning("identity", "not set: git may refuse to commit", "git config user.name You")
WRONG = problem("settings", "first line\nsecond line", "Mend it.")


def lines(check: Check, style: Style = Style()) -> list[str]:
    return list(area_lines(Area("Area", (check,)), style))


@pytest.mark.parametrize(
    ("check", "shown"),
    [
        (FINE, ["  ok      git             2.39.5 at /usr/bin/git"]),
        (
            DOUBT,
            [
                "  warning identity        not set: git may refuse to commit",
                "                          -> git config user.name You",
            ],
        ),
        (
            WRONG,
            [
                "  problem settings        first line",
                "                          second line",
                "                          -> Mend it.",
            ],
        ),
        (ok("x", ""), ["  ok      x"]),
    ],
)
def test_plain_lines(check: Check, shown: list[str]) -> None:
    assert lines(check) == ["Area", *shown, ""]


def test_on_a_terminal_the_text_keeps_to_its_column() -> None:
    shown = lines(DOUBT, Style(emoji=True, width=52))
    assert shown[1:-1] == [
        "  ! identity        not set: git may refuse to",
        "                    commit",
        "                    → git config user.name You",
    ]


def test_what_is_to_be_copied_stays_whole() -> None:
    path = "/" + "long/" * 30
    shown = lines(warning("x", f"at {path}", f"chmod 700 {path}"), Style(width=40))
    assert any(line.endswith(f"-> chmod 700 {path}") for line in shown)
    assert any(line.endswith(path) for line in shown)


def test_colours_tell_the_state() -> None:
    shown = "\n".join(lines(WRONG, Style(color=True)))
    assert "\x1b[31mproblem\x1b[0m" in shown


def test_nothing_hostile_and_no_key_is_shown() -> None:
    shown = "\n".join(lines(ok("x\x1b[2J", "a\x1b]0;t\x07b sk-ant-api03-" + "k" * 30)))
    assert "\x1b" not in shown
    assert "kkk" not in shown


@pytest.mark.parametrize(
    ("checks", "words"),
    [
        ((FINE,), "All is well."),
        ((FINE, DOUBT), "1 warning."),
        ((WRONG, DOUBT, DOUBT), "1 problem, 2 warnings."),
        ((WRONG, WRONG), "2 problems."),
    ],
)
def test_the_last_line_counts(checks: tuple[Check, ...], words: str) -> None:
    assert summary_line((Area("Area", checks),), Style()) == words


def test_waiting_leaves_nothing_behind() -> None:
    stream = io.StringIO()
    waiting = Waiting(stream, 12)
    for words in ("Asking claude ...", "Asking claude ...", ""):
        waiting.show(words)
    assert stream.getvalue() == "\r\x1b[KAsking c...\r\x1b[K"


def test_without_a_terminal_nobody_is_told_to_wait() -> None:
    Waiting(None, 80).show("Asking claude ...")
    Waiting(None, None).show("")


def test_a_terminal_of_unknown_width_is_taken_for_80_columns() -> None:
    stream = io.StringIO()
    Waiting(stream, None).show("x" * 200)
    assert stream.getvalue() == "\r\x1b[K" + "x" * 76 + "..."


def test_a_terminal_that_is_gone_is_no_matter() -> None:
    stream = io.StringIO()
    stream.close()
    waiting = Waiting(stream, 80)
    waiting.show("Asking claude ...")
    waiting.show("")


def test_the_states_are_words() -> None:
    assert [str(state) for state in CheckState] == ["ok", "warning", "problem"]
