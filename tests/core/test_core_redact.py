"""Secrets stay out of what people read and out of saved streams (ADR 13)."""

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ralph.core.redact import StreamRedactor, redact, redacted_json, secrets_of
from ralph.core.redact import redacted as redacted_value

KEYS = [
    "sk-ant-api03-abcdefghijklmnop",
    "sk-proj-0123456789abcdef",
    "sk-0123456789abcdefXYZ",
    "ghp_0123456789abcdefghij",
    "github_pat_0123456789abcdefghij",
    "AKIA0123456789ABCDEF",
    "AIza0123456789-0123456789_0123456789abc",
    "xoxb-0123456789",
    "glpat-0123456789abcdef",
    "hf_0123456789abcdefghij",
]
# Secrets that overlap, repeat and begin alike, over an alphabet of two letters and the mark's own.
SECRETS = st.lists(st.sampled_from([b"ab", b"abb", b"abbab", b"ba", b"aaaa", b"a]b"]), max_size=4)
STREAMS = st.lists(st.sampled_from([b"a", b"b", b"ab", b"bba", b"]", b"[redacted]"])).map(b"".join)


def redacted(secrets: list[bytes], chunks: list[bytes]) -> bytes:
    redactor = StreamRedactor(secrets)
    return b"".join([*(redactor.feed(chunk) for chunk in chunks), redactor.end()])


@st.composite
def chunked(draw: st.DrawFn) -> list[bytes]:
    stream = draw(STREAMS)
    cuts = sorted(draw(st.lists(st.integers(0, len(stream)))))
    return [stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True)]


@given(SECRETS, chunked())
@example([b"ab", b"abbab"], [b"xab", b"babx"])
@example([], [b"ab", b"", b"a"])
def test_any_chunking_gives_the_same_clean_stream(
    secrets: list[bytes], chunks: list[bytes]
) -> None:
    """A pipe cuts where it likes; a secret cut in two is a secret all the same."""
    assert redacted(secrets, chunks) == redacted(secrets, [b"".join(chunks)])


@given(st.lists(st.sampled_from([b"secret-one", b"secret-two", b"secret-one-more", b"\n"])))
def test_no_known_secret_comes_through(pieces: list[bytes]) -> None:
    secrets = [b"secret-one", b"secret-two", b"secret-one-more"]
    clean = redacted(secrets, pieces)
    assert clean == b"".join(b"[redacted]" if piece in secrets else piece for piece in pieces)


def test_of_two_secrets_that_begin_alike_the_longer_is_removed_whole() -> None:
    assert redacted([b"hunter", b"hunter22"], [b"a hunter", b"22 b"]) == b"a [redacted] b"


def test_without_secrets_nothing_is_held_back() -> None:
    redactor = StreamRedactor([b""])
    assert (redactor.feed(b"as it is"), redactor.end()) == (b"as it is", b"")


def test_only_as_much_is_held_back_as_a_secret_could_need() -> None:
    """What is on disk is what the agent said: others read along."""
    redactor = StreamRedactor([b"12345678", b"34"])
    assert redactor.feed(b"a line\n") == b"a line\n"
    assert redactor.feed(b"it is 123") == b"it is "
    assert redactor.feed(b"5") == b"1235"
    assert redactor.feed(b"12345") == b""
    assert redactor.feed(b"678 12") == b"[redacted] "
    assert redactor.end() == b"12"
    assert redactor.end() == b""


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize(
    "frame", ["{}", "key={} ", "'{}'", "a\n{}\nb", "Bearer {}", "“{}”", "→{}", "line\\n{}", "ü{}"]
)
def test_what_is_shaped_like_a_key_is_removed(key: str, frame: str) -> None:
    """ADR 13: "key-shaped values from everything people read", the journal's JSON too."""
    text = frame.format(key)
    assert redact(text) == frame.format("[redacted]")
    assert redacted_value({"text": [text, 7]}) == {"text": [frame.format("[redacted]"), 7]}


# What JSON writes in another way than it stands there: `\n`, `\"`, `\\`, `\u00e9` and so on.
ESCAPED = st.sampled_from(
    ["\n", "\t", '"', "\\", "\x00", "\x1b[0m", "é", "\u2028", "😀", "\ud83d", "n", " "]
)


@given(st.lists(st.sampled_from(KEYS) | ESCAPED | st.text(max_size=3)).map("".join))
@example("\n" + KEYS[0])
@example("\\" + KEYS[0] + '"')
@example("github_pat_" + "é" * 20)
def test_a_line_of_json_is_redacted_like_the_strings_in_it(text: str) -> None:
    """Although in `\\nsk-...` the key does not stand at a word's beginning."""
    value = {"type": "x", "text": [text, {"more": text}], "count": 7, "none": None}
    assert json.loads(redacted_json(value)) == redacted_value(value)
    assert redacted_json(value).isascii()
    assert "\n" not in redacted_json(value)


@pytest.mark.parametrize(
    "text",
    ["", "task-management-for-everyone", "sk-short", "a risk-averse-and-patient-person", "AKIA"],
)
def test_innocent_words_stay(text: str) -> None:
    assert redact(text) == text


def test_secrets_of_an_environment_are_known_by_their_names() -> None:
    environ = {
        "OPENAI_API_KEY": "0123456789",
        "my_token": "abcdefghijkl",
        "AWS_CREDENTIALS": "/home/me/credentials",
        "DB_PASSWORD": "short",
        "PATH": "/usr/bin:/usr/local/bin",
        "TOKENIZERS_PARALLELISM": "false-or-true",
        "OTHER_SECRET": "0123456789",
        "RAW_KEY": "caf\udce9-caf\udce9",
    }
    assert sorted(secrets_of(environ)) == [b"0123456789", b"abcdefghijkl", b"caf\xe9-caf\xe9"]
