"""Numbers and dates in headers of HTTP (`ralph.text.headers`)."""

import pytest

from ralph.text.headers import date, number


@pytest.mark.parametrize(
    ("text", "found"),
    [("30", 30.0), ("0.5", 0.5), ("0", 0.0)]
    + [(text, None) for text in (None, "", "soon", "-1", "inf", "nan", "1e999")],
)
def test_a_number_is_a_wait_or_nothing(text: str | None, found: float | None) -> None:
    assert number(text) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Thu, 01 Jan 1970 00:01:00 GMT", 60.0),
        *[(text, None) for text in (None, "", "30", "Thu, 99 Jan 1970 00:00:00 GMT")],
    ],
)
def test_a_date_is_seconds_or_nothing(text: str | None, found: float | None) -> None:
    assert date(text) == found
