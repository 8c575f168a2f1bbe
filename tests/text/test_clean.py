"""Nothing an agent prints may steer the terminal."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ralph.text.plain import clean, columns, one_line, shorten


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("plain words", "plain words"),
        ("tab\tand\nnewline", "tab\tand\nnewline"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b[2J\x1b[Hgone", "gone"),
        ("\x9b31mred", "red"),
        ("\x1b]0;new title\x07shown", "shown"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1bPq#0;2\x1b\\after", "after"),
        ("\x1b(Bcharset", "charset"),
        ("\x1b]0;never ended", "0;never ended"),
        ("\x1b", ""),
        ("\x1b\x1b[31m[31mtwice", "[31mtwice"),
        ("bell\x07, backspace\x08, null\x00, delete\x7f", "bell, backspace, null, delete"),
        ("10%\r20%\r\ndone", "10%\n20%\ndone"),
        ("one\u2028two", "one\ntwo"),
        ("access \u202etxt.exe", "access txt.exe"),
        ("\u2066isolated\u2069", "isolated"),
        ("family 👨‍👩‍👧 and café", "family 👨‍👩‍👧 and café"),
    ],
)
def test_control_characters_and_escape_sequences_are_taken_out(said: str, shown: str) -> None:
    assert clean(said) == shown


@given(st.text(st.characters(max_codepoint=0x2FFF)))
def test_no_control_character_is_ever_left(text: str) -> None:
    left = {c for c in clean(text) if unicodedata.category(c) == "Cc"}
    assert left <= {"\t", "\n"}


def test_one_line_has_a_known_width() -> None:
    assert one_line("\tif x:\n\ty  ") == "    if x:   y"


@pytest.mark.parametrize(
    ("text", "chars", "width", "shown"),
    [
        ("short", 120, 80, "short"),
        ("0123456789", 10, None, "0123456789"),
        ("0123456789", 9, None, "01234567…"),
        ("0123456789", 120, 5, "0123…"),
        ("日本語の文", 120, 10, "日本語の文"),
        ("日本語の文", 120, 8, "日本語…"),
        ("anything", 0, None, "…"),
        ("/home/me/project/module.py", 120, 16, "/home…/module.py"),
        ("/home/me/project/module.py", 16, None, "/home…/module.py"),
        ("/日本語/日本語/日本語.py", 120, 16, "/日本…/日本語.py"),
        ("cat /home/me/module.py", 120, 16, "cat /home/me/mo…"),
        ("a/b", 0, None, "…"),
        ("a/b", 1, 1, "…"),
    ],
)
def test_shortening(text: str, chars: int, width: int | None, shown: str) -> None:
    assert shorten(text, chars, width, "…") == shown


@given(st.text(), st.integers(1, 30))
def test_what_is_shortened_fits(text: str, width: int) -> None:
    assert columns(shorten(text, 1000, width, "…")) <= width


def test_combining_characters_take_no_column() -> None:
    assert (columns("abc"), columns("e\u0301"), columns("日本")) == (3, 1, 4)


def test_a_character_shown_as_an_emoji_is_wide() -> None:
    assert (columns("⏸"), columns("⏸\ufe0f")) == (1, 2)
