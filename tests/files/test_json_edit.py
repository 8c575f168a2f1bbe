"""JSON text edited in place: what an edit does not name keeps every byte."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ralph.files.json_edit import JsonText, JsonTextError

TEXTS = [
    "{}",
    "{ }\n",
    '{"a": 1}',
    '{\n  "a": 1\n}\n',
    '\ufeff{\r\n\t"a": [1,2],\r\n\t"b": {"c": null}\r\n}\r\n',
    '{"a" : 1e400, "ä": "\\u00e4\\ud800", "a": 2}',
]


@pytest.mark.parametrize("raw", TEXTS)
def test_what_is_appended_is_read_and_removed_to_the_byte(raw: str) -> None:
    text = JsonText.of(raw)
    longer = text.appended(text.top, 0, {"x": ["y"]}, "new")
    assert list(json.loads(longer.clear).items())[-1] == ("new", {"x": ["y"]})
    added = longer.member(longer.top, "new")
    assert added is not None
    assert longer.removed(longer.top, added.start) == text


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        ("", "line 1, column 1: Expecting value"),
        ('{"a": 1,}', "column"),
        ('{\n "a": 1\n "b"', "line 3, column 2: Expecting ',' delimiter"),
        ('{"a": NaN}', "NaN is not JSON"),
        ("{} {}", "line 1, column 4: Extra data"),
        ("[]", "it holds no JSON object"),
        ("null", "it holds no JSON object"),
        ("[" * 100_000, "it is nested too deeply"),
        ('{"a": ' + "9" * 5000 + "}", "digits"),
        ('{} // "a"', "Extra data"),
        ('{"a": "\t"}', "Invalid control character"),
    ],
)
def test_what_is_no_object_is_refused_with_its_place(raw: str, why: str) -> None:
    with pytest.raises(JsonTextError, match=re.escape(why)):
        JsonText.of(raw)


COMMENTED = """{ // first
  "a": [
    1, // one
    /* two, "2" */ 2, // after "two"
    3 // three
  ], "url": "http://x" // , {
}
"""


@pytest.mark.parametrize(("number", "left"), [(1, [2, 3]), (2, [1, 3]), (3, [1, 2])])
def test_comments_are_read_over_and_stay(number: int, left: list[int]) -> None:
    text = JsonText.of(COMMENTED, comments=True)
    assert json.loads(text.clear) == {"a": [1, 2, 3], "url": "http://x"}
    listed = text.member(text.top, "a")
    assert listed is not None
    start = next(item.start for item in text.items(listed.at) if item.content == number)
    shorter = text.removed(listed.at, start)
    assert json.loads(shorter.clear)["a"] == left
    for comment in ("// first", "// one", '/* two, "2" */', '// after "two"', "// three", "// , {"):
        assert comment in shorter.raw


def test_of_two_keys_that_are_the_same_the_last_counts() -> None:
    """As for every reader of JSON."""
    text = JsonText.of('{"a": 1, "b": 2, "a": 3}')
    found = text.member(text.top, "a")
    assert found is not None
    assert found.content == 3
    assert text.removed(text.top, found.start).raw == '{"a": 1, "b": 2}'


def test_indentation_and_line_ends_are_those_of_the_text() -> None:
    text = JsonText.of('{\r\n\t"a": 1\r\n}')
    longer = text.appended(text.top, 0, ["x"], "b")
    assert longer.raw == '{\r\n\t"a": 1,\r\n\t"b": [\r\n\t\t"x"\r\n\t]\r\n}'


@pytest.mark.parametrize(
    ("raw", "hollow"),
    [("{}", False), ("{ }", False), ("{\n}", False), ("{\n  \n}", True), ('{"a": 1}', False)],
)
def test_hollow_is_what_a_removal_leaves(raw: str, hollow: bool) -> None:
    assert JsonText.of(raw).is_hollow(0) is hollow


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=12,
)


@given(
    st.dictionaries(st.text(max_size=3), JSON, max_size=4),
    st.sampled_from([None, 0, 1, 2, "\t"]),
    st.integers(0, 3),
)
def test_any_member_can_be_removed(content: object, indent: "int | str | None", which: int) -> None:
    text = JsonText.of(json.dumps(content, indent=indent))
    items = text.items(text.top)
    expected = dict(content)  # type: ignore[call-overload]
    if items:
        item = items[which % len(items)]
        text = text.removed(text.top, item.start)
        del expected[item.key]
    assert json.loads(text.clear) == expected
