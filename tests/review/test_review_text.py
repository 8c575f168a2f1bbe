"""An agent writes the list: it may be anything, and what is read can be written and shown."""

import json

import pytest

from kits.review_cases import listing, story
from ralph.review.law import NotAListError, is_name, malformed, parsed, shown, some


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (b"", "not valid JSON: Expecting value"),
        (b"{", "not valid JSON"),
        (b'{"a": 1} x', "not valid JSON: Extra data"),
        (b"\xff\xfe{", "not UTF-8 text (byte 0)"),
        (b'{"a": "\xe2\x82"}', "not UTF-8 text (byte 7)"),
        (b'{"a": "\x00"}', "not valid JSON: Invalid control character"),
        (b'{"priority": NaN}', "not valid JSON: NaN is not a number"),
        (b'{"priority": -Infinity}', "-Infinity is not a number"),
        (b'{"priority": 1e999}', "1e999 is too large a number"),
        (b'{"priority": -1e999}', "-1e999 is too large a number"),
        (b'{"priority": ' + b"9" * 101 + b"}", "a number of 101 digits is too large"),
        (b'{"priority": ' + b"9" * 100_000 + b"}", "a number of 100000 digits is too large"),
        (b'{"passes": false, "x": 1, "passes": true}', 'the key "passes" is twice in one object'),
        (b'[{"a": {"b": 1, "b": 1}}]', 'the key "b" is twice'),
        (b'{"\\u001b[2J": 1, "\\u001b[2J": 1}', r'the key "\u001b[2J" is twice'),
        (b"[" * 100_000 + b"]" * 100_000, "nested too deeply"),
        (b'{"a":' * 100_000 + b"1" + b"}" * 100_000, "nested too deeply"),
        (b"[" * 66 + b"]" * 66, "nested too deeply: more than 64 levels"),
    ],
)
def test_what_is_no_list_is_told_in_words(raw: bytes, words: str) -> None:
    """R §5b, check 1: "File exists and is valid JSON"."""
    with pytest.raises(NotAListError) as caught:
        parsed(raw)
    assert words in str(caught.value)
    assert len(str(caught.value)) < 120
    assert str(caught.value).isprintable()


@pytest.mark.parametrize(
    ("raw", "found"),
    [
        (b"\xef\xbb\xbf{}", {}),  # as some editors begin a file
        (b' {"a": "\xc3\xa4"}\r\n', {"a": "ä"}),
        (b"null", None),
        (b"[1, 1.5, -0.0, 1e300]", [1, 1.5, -0.0, 1e300]),
        (b"9" * 100, 10**100 - 1),
        (b"[" * 65 + b"]" * 65, eval("[" * 65 + "]" * 65)),
        (rb'{"a": "\ud83d\ude00"}', {"a": "\U0001f600"}),
        (rb'{"a": "\ud83d"}', {"a": "?"}),  # cut in half by a program that counts wrongly
        (rb'{"\uDE00": ["x\ud83d\u0041"]}', {"?": ["x?A"]}),
        (rb'{"a": "\\ud83d"}', {"a": r"\ud83d"}),
    ],
)
def test_what_is_read_can_be_written(raw: bytes, found: object) -> None:
    assert parsed(raw) == found
    assert parsed(json.dumps(parsed(raw), ensure_ascii=False, indent=2).encode()) == found


def test_two_keys_that_differ_in_half_a_character_are_one() -> None:
    with pytest.raises(NotAListError, match='the key "\\?" is twice'):
        parsed(rb'{"\ud83d": 1, "\ud83e": 2}')


NAMES = {
    "US-001": True,
    "story 1: Ünïcode, 名前 & more/../..": True,
    "x" * 100: True,
    "x" * 101: False,
    "": False,
    " ": False,
    "US-001 ": False,
    "\tUS-001": False,
    "US  001": False,
    "US-001\nMode: review": False,
    "US-001\r": False,
    "\x1b[2JUS-001": False,
    "US\x9b2J": False,
    "US\u200b-001": False,  # looks like another
    "US\u00a0001": False,
    "\u202eUS-001": False,
    "US\0": False,
}


@pytest.mark.parametrize("name", list(NAMES))
def test_what_can_stand_for_a_story(name: str) -> None:
    """It goes into prompts, commit messages and consoles, each on one line."""
    assert is_name(name) is NAMES[name]
    problems = malformed(listing(story(), story(name) if name != "US-001" else story("other")))
    assert (problems == []) is NAMES[name]
    assert all(words.isprintable() and "Story number 2" in words for _, words in problems)


@pytest.mark.parametrize("given", [None, 1, True, ["US-001"], {"id": "US-001"}])
def test_what_is_no_text_stands_for_no_story(given: object) -> None:
    assert not is_name(given)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (None, "null"),
        (True, "true"),
        (1.0, "1.0"),
        ("ä", '"ä"'),
        ("\x1b[31m\n", r'"\u001b[31m\n"'),
        ("\x9b\u202e", r'"\u009b\u202e"'),
        ("\ud83d", r'"\ud83d"'),
        ("x" * 59, '"' + "x" * 56 + "..."),
        ("x" * 58, '"' + "x" * 58 + '"'),
    ],
)
def test_a_value_in_a_message(given: object, words: str) -> None:
    assert shown(given) == words


def test_a_few_of_many_names() -> None:
    assert some(["a", "b"]) == "a, b"
    assert some(list("abcde")) == "a, b, c, d, e"
    assert some(list("abcdefg")) == "a, b, c, d, e and 2 more"
