"""Scalars as people and other programs write them behind a key."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ralph.text.yaml_scalars import text_of, written

TEXTS = [
    ("plain words", "plain words"),
    ("  blanks around \t\r", "blanks around"),
    ("a#b # comment", "a#b"),
    ("a  \t# comment # more", "a"),
    ('"quoted \\u00fc"', "quoted ü"),
    ('"# no comment" # comment', "# no comment"),
    ('"null"', "null"),
    ('"7"', "7"),
    ('""', ""),
    ('"a\tb"', "a\tb"),
    ('"\\x41" # YAML', "\\x41"),
    ('"not closed', "not closed"),
    ('"', ""),
    ("'it''s' # comment", "it's"),
    ("'# no comment'", "# no comment"),
    ("'~'", "~"),
    ("'true'", "true"),
    ("''", ""),
    ("'not closed", "not closed"),
    ("'", ""),
    ("2026-11-15", "2026-11-15"),
    ("2026-11-15T14:00:00Z", "2026-11-15T14:00:00Z"),
    ("1.2.3", "1.2.3"),
    ("0x10", "0x10"),
    ("1_000", "1_000"),
    ("٣", "٣"),
    ("9" * 19, "9" * 19),
    ("yes", "yes"),
    ("nullable", "nullable"),
    (".", "."),
    ("-", "-"),
    ("nan", "nan"),
]


@pytest.mark.parametrize(("line", "read"), TEXTS)
def test_text(line: str, read: str) -> None:
    assert text_of(line) == read


@pytest.mark.parametrize("line", ["", "  ", "~", "null", "Null", "NULL", "~ # none", "# none"])
def test_nothing(line: str) -> None:
    assert text_of(line) is None


@pytest.mark.parametrize("number", ["0", "-12", "007", "1.5", "true"])
def test_what_looks_like_a_number_stays_as_it_was_written(number: str) -> None:
    assert text_of(f"{number} # so many") == number


@given(st.text())
def test_what_is_written_is_read(text: str) -> None:
    line = written(text)
    assert text_of(line) == json.loads(line) == text
    assert len(line.splitlines()) == 1, "in YAML too"


@given(st.text())
def test_whatever_json_says_is_read(text: str) -> None:
    assert text_of(json.dumps(text)) == text_of(json.dumps(text, ensure_ascii=False)) == text


@given(st.text())
def test_any_text_is_some_scalar(text: str) -> None:
    text_of(text)
