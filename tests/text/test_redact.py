"""Secrets stay out of what people read and out of saved streams (ADR 13)."""

import json
from collections.abc import Callable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ralph.text.redact import (
    Redactor,
    StreamRedactor,
    forget,
    know,
    redact,
    redacted_json,
    redacting,
)
from ralph.text.redact import redacted as redacted_value
from ralph.text.secrets import secret_among, secret_flags, secret_urls, secrets_of

KEYS = [
    "sk-ant-api03-abcdefghijklmnop",
    "sk-proj-0123456789abcdef",
    "sk-0123456789abcdefXYZ",
    *(f"gh{kind}_0123456789abcdefghij" for kind in "pousr"),
    "github_pat_0123456789abcdefghij",
    "AKIA0123456789ABCDEF",
    "ASIA0123456789ABCDEF",
    "AIza0123456789-0123456789_0123456789abc",
    *(f"xox{kind}-0123456789" for kind in "abprs"),
    "glpat-0123456789abcdef",
    "hf_0123456789abcdefghij",
]
PEM = (
    "-----BEGIN RSA PRIVATE KEY-----\nMIIEowIBAAKCAQEA0123456789+/ab\nMIIEowIBAAKCAQEA01234567==\n"
    "-----END RSA PRIVATE KEY-----"
)
# With all that JSON spells in another way, that is a number or an object in it, or that begins like
# a key or like an escape.
SECRETS = [
    *('tok"en-abc\\123', "sk-ant-known.withdots", "ünïcödé-pass", "123456789012345"),
    *('{"a":"bcdefgh"}', "n0tasecretnow", "ends-with-one\\", "hunter", "hunter22", "aab", "aabaab"),
    f"several lines\n{'x9' * 12}\n{'y8' * 12}",
]
PIECES = [
    *SECRETS,
    *KEYS,
    PEM,
    *("\\", "\n", "n", "t", "a", "_", "-----", "é", "\x1b[0m", " ", '"', "[redacted]", "ab", "gi"),
    *(text[:cut] for text in (*SECRETS, *KEYS, PEM) for cut in (1, 3, 8, 20, 50)),
]
TEXTS = st.lists(st.sampled_from(PIECES), max_size=6).map("".join)


def redacted(secrets: list[str], chunks: list[bytes]) -> bytes:
    redactor = StreamRedactor(Redactor(secrets))
    return b"".join([*(redactor.feed(chunk) for chunk in chunks), redactor.end()])


@st.composite
def streams(draw: st.DrawFn) -> bytes:
    """A text, or a line of JSON with it, or one with JSON in JSON."""
    text = draw(TEXTS)
    ascii_only = draw(st.booleans())
    value = {"text": text, "number": 123456789012345, "object": {"a": "bcdefgh"}}
    line = json.dumps(value, ensure_ascii=ascii_only, separators=(",", ":"))
    return draw(st.sampled_from([text, line, json.dumps([line])])).encode()


def is_json(data: bytes) -> bool:
    try:
        json.loads(data)
    except ValueError:
        return False
    return True


@given(streams(), st.data())
def test_any_chunking_gives_the_same_clean_stream(stream: bytes, data: st.DataObject) -> None:
    """A pipe cuts where it likes; a secret cut in two, at whatever byte, is one all the same."""
    whole = redacted(SECRETS, [stream])
    assert redacted(SECRETS, [bytes([byte]) for byte in stream]) == whole
    cut = data.draw(st.integers(0, len(stream)))
    assert redacted(SECRETS, [stream[:cut], stream[cut:]]) == whole


@given(streams())
@example(b'{"text":"\\\\n0tasecretnow"}')
@example(b'{"text":"\\n0tasecretnow"}')
def test_a_line_of_json_stays_one(stream: bytes) -> None:
    """Whatever stood there: part of a string, next to an escape, a number, an object."""
    if is_json(stream):
        assert is_json(redacted(SECRETS, [stream]))


@pytest.mark.parametrize("secret", SECRETS)
@pytest.mark.parametrize("encode", [str, json.dumps, lambda text: json.dumps(json.dumps(text))])
def test_no_secret_comes_through(secret: str, encode: Callable[[str], str]) -> None:
    """As it is, as JSON has it, and within a text that is JSON again."""
    text = encode(f"a {secret} b")
    clean = redacted([secret], [text.encode()]).decode()
    assert encode(secret).strip('"\\') not in clean
    assert clean.strip('"\\').startswith("a ")
    assert clean.strip('"\\').endswith(" b")


def test_each_long_line_of_a_secret_is_one() -> None:
    """A key that is printed with line numbers."""
    assert redact_with(SECRETS[-1], f"1: {'x9' * 12}") == "1: [redacted]"


def redact_with(secret: str, text: str) -> str:
    know([secret])
    try:
        return redact(text)
    finally:
        forget()


def test_of_two_secrets_that_begin_alike_the_longer_is_removed_whole() -> None:
    assert redacted(["hunter", "hunter22"], [b"a hunter", b"22 b"]) == b"a [redacted] b"


def test_without_secrets_nothing_is_held_back() -> None:
    redactor = StreamRedactor(Redactor([""]))
    assert (redactor.feed(b"\0\xff as it is"), redactor.end()) == (b"\0\xff as it is", b"")


def test_only_as_much_is_held_back_as_a_secret_could_need() -> None:
    """What is on disk is what the agent said: others read along."""
    redactor = StreamRedactor(Redactor(["abcdefgh", "cd"]))
    assert redactor.feed(b"1 line\n") == b"1 line\n"
    assert redactor.feed(b"it is abc") == b"it is "
    assert redactor.feed(b"5") == b"abc5"
    assert redactor.feed(b"abcde") == b""
    assert redactor.feed(b"fgh ab") == b"[redacted] "
    assert redactor.end() == b"ab"
    assert redactor.end() == b""
    assert redactor.feed(b"the sk-0123456789abcdefXYZ") == b"the [redacted]"
    assert redactor.feed(b"Z" * 9000) == b""
    assert redactor.feed(b" and on") == b" and on"


@pytest.mark.parametrize("newline", ["\n", "\\n", "\\\\n", "\r\n"])
def test_a_private_key_is_removed_but_for_its_last_line(newline: str) -> None:
    text = f"cat key\n{PEM.replace(chr(10), newline)}\nend"
    assert redact(text) == "cat key\n[redacted]-----END RSA PRIVATE KEY-----\nend"
    encrypted = PEM.replace(
        "\nMIIE", "\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00FF\n\nMIIE", 1
    )
    assert redact(encrypted) == "[redacted]-----END RSA PRIVATE KEY-----"
    for innocent in (PEM.replace("PRIVATE", "PUBLIC"), "a -----BEGIN PRIVATE KEY----- line"):
        assert redact(innocent) == innocent


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


def test_what_is_known_is_removed_from_texts_and_from_json() -> None:
    """ADR 13: "One redactor stands before every sink"."""
    know(['pass"word-9', "123456789012345"])
    know(["another-one"])
    text = 'It is pass"word-9, 123456789012345 and another-one.'
    assert redact(text) == "It is [redacted], [redacted] and [redacted]."
    assert json.loads(redacted_json({"a": [text, 1]})) == {"a": [redact(text), 1]}
    assert redacted_value(("another-one",)) == ["[redacted]"]


def test_secrets_that_overlap_leave_no_half_of_the_first() -> None:
    know(["abcd-efgh", "efgh-ijkl"])
    assert redact("abcd-efgh-ijkl") == "[redacted]-ijkl"
    stream = redacting()
    assert stream.feed(b"abcd-efgh-ijkl") + stream.end() == b"[redacted]-ijkl"


def test_half_a_character_is_no_reason_to_fail() -> None:
    """JSON can hold one, and so can a settings file."""
    assert redact_with("pass-\ud83d-word", "the pass-\ud83d-word is") == "the [redacted] is"


def test_secrets_of_an_environment_are_known_by_their_names() -> None:
    environ = {
        "OPENAI_API_KEY": "0123456789ab",
        "my_token": "abcdefghijkl",
        "AWS_CREDENTIALS": "/home/me/credentials",
        "TLS_KEY": "/etc/tls/server.key",
        "AWS_SECRET_ACCESS_KEY": "/wJalrXUtnFEMI/K7MDENG",
        "DB_PASSWORD": "short",
        "PATH": "/usr/bin:/usr/local/bin",
        "TOKENIZERS_PARALLELISM": "false-or-true",
        "OTHER_SECRET": "0123456789ab",
        "RAW_KEY": "caf\udce9-caf\udce9",
        "DATABASE_URL": "postgres://me:s3cr3t-pass@localhost/db",
        "HOME": "/home/my-project-1",
        "PROJECT_KEY": "my-project-1",
    }
    assert sorted(secrets_of(environ)) == [
        *("/wJalrXUtnFEMI/K7MDENG", "0123456789ab", "abcdefghijkl", "caf\udce9-caf\udce9"),
        "s3cr3t-pass",
    ]
    assert redacted(["caf\udce9-caf\udce9"], [b"a caf\xe9-caf\xe9"]) == b"a [redacted]"


@pytest.mark.parametrize("indent", [None, 2])
def test_a_credential_that_is_json_itself(indent: int | None) -> None:
    """What is usually the path of a file may stand in the variable as a whole."""
    value = json.dumps({"type": "service_account", "private_key_id": "0a1b2c3d"}, indent=indent)
    know(secrets_of({"GOOGLE_APPLICATION_CREDENTIALS": value}))
    assert redact(f"It is {value}.") == "It is [redacted]."
    (line,) = redacted_json({"a": value, "b": 1}).splitlines()
    assert json.loads(line) == {"a": "[redacted]", "b": 1}


def test_members_of_a_credential_are_known_by_themselves() -> None:
    """An agent prints the token alone; `auth.json` of opencode may stand in a variable."""
    login = {"a": [{"type": "authorized_user", "refresh_token": "1//0gAbCdEf", "expires": 3600}]}
    assert secrets_of({"AUTH_CONTENT": json.dumps(login)}) == {"1//0gAbCdEf"}
    assert secrets_of({"AUTH_CONTENT": '{"key": "1//0gAbCdEf'}) == set()


@pytest.mark.parametrize(
    "value",
    ["1", "true", "", "       8", "password", "Postgres", "xxxxxxxx", "20260101", "12121212"],
)
def test_what_is_too_short_or_too_common_eats_no_text(value: str) -> None:
    assert secret_among([value]) == frozenset()


def test_flags_and_urls_of_the_settings_hold_secrets_too() -> None:
    flags = ["-x", "--api-key", "abc-def-123", "--auth-token=ghi-jkl-456", "--max-tokens", "4096"]
    assert secret_flags([*flags, "--token", "--verbose", "--secret"]) == {
        "abc-def-123",
        "ghi-jkl-456",
    }
    url = "slack://T0KEN-A-0123456789/mail.example.invalid-host"
    assert secret_urls([url]) == {url, "T0KEN-A-0123456789"}
