"""Anybody's words as one line that is safe to show and to keep."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ralph.text.plain import escaped, plain, without_escapes

KEY = "sk-ant-api03-abcdefghijklmnopqrstuvwxyz"
ENDS = ["\x07", "\x1b\\", "\x9c"]
BEGINNINGS = ["\x1b]", "\x1bP", "\x1bX", "\x1b^", "\x1b_", "\x90", "\x98", "\x9d", "\x9e", "\x9f"]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", ""),
        ("one line", "one line"),
        (" a\r\n\tb\u2028c \0 d ", "a b c d"),
        (f"a\x1b[31m{KEY}\x07b", "a[redacted] b"),
        (f"{KEY[:5]}\x1b[0m{KEY[5:]}", "[redacted]"),
        ("\x1b]0;a title\x07text", "text"),
        ("\x1b[2J\x1b[1;1Hgone", "gone"),
        ("left \u202eright", "left right"),
        ("naïve Ünïcödé 文字", "naïve Ünïcödé 文字"),
        ("\ud800 alone", "alone"),
        ("x" * 300, "x" * 300),
        ("x" * 301, "x" * 299 + "…"),
        (" " * 2000 + "far away", ""),
    ],
)
def test_a_line_is_safe_to_show(text: str, line: str) -> None:
    """ "no control characters, no secrets, not too long"."""
    assert plain(text) == line


@pytest.mark.parametrize(
    ("most", "line"), [(1, "…"), (4, "abc…"), (5, "abcd…"), (6, "abcdef"), (99, "abcdef")]
)
def test_a_line_is_as_long_as_it_may_be(most: int, line: str) -> None:
    assert plain("abcdef", most) == line


@given(st.text(), st.integers(1, 50))
def test_whatever_is_said_is_one_printable_line(text: str, most: int) -> None:
    line = plain(text, most)
    assert line.isprintable()
    assert line == line.strip()
    assert len(line) <= most


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x9b31mred", "red"),
        ("\x1b(Bplain", "plain"),
        ("\x1bcreset", "reset"),
        ("\x1b]0;never ends", "0;never ends"),
        ("a\x9db\x9dc\x07d", "a\x9dbd"),
        *((f"a{begin}b{end}c", "ac") for begin in BEGINNINGS for end in ENDS),
    ],
)
def test_orders_to_a_terminal_are_taken_out(text: str, left: str) -> None:
    assert without_escapes(text) == left


@pytest.mark.parametrize("beginning", ["\x1b", "\x1b[", "\x9b", *BEGINNINGS])
def test_a_million_orders_that_never_end_are_no_wait(beginning: str) -> None:
    """Whatever an agent prints: it took five seconds for 32,000 of them once."""
    left = without_escapes(beginning * 1_000_000)
    assert len(left) <= 2_000_000


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("a/b c.txt", "a/b c.txt"),
        ("näh", "näh"),
        ("a\nb\x1b[0m", "a\\nb\\x1b[0m"),
        ("a\udcffb", "a\\xffb"),
    ],
)
def test_a_path_is_shown_on_one_line_whatever_it_holds(path: str, shown: str) -> None:
    """Nobody's file name moves the cursor, and no byte is lost."""
    assert escaped(path) == shown
