"""Words for times, counts and texts, and times that people write."""

import pytest

from ralph.text.words import quoted, seconds_of, written


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        *(("90", 90), ("90s", 90), ("1.5h", 5400), ("30m", 1800), ("2d", 172_800), ("0", 0)),
        *(("", None), ("h", None), ("1h30m", None), ("-1", None), (" 1", None), ("1e3", None)),
        ("٣", None),
    ],
)
def test_durations_as_people_write_them(text: str, seconds: float | None) -> None:
    assert seconds_of(text) == seconds


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0s"), (90, "90s"), (1800, "30m"), (5400, "90m"), (28_800, "8h"), (0.5, "0.5s")],
)
def test_what_is_written_can_be_read(seconds: float, text: str) -> None:
    assert written(seconds) == text
    assert seconds_of(text) == seconds


@pytest.mark.parametrize(
    ("text", "shown"),
    [("x", '"x"'), ("\n  one\ntwo", '"one"'), ("", '""'), ("x" * 61, f'"{"x" * 57}..."')],
)
def test_a_text_is_quoted_by_its_first_line(text: str, shown: str) -> None:
    assert quoted(text) == shown
