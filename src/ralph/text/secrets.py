"""Finds the values that are secrets, by their names in an environment or a command line."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import pairwise

_NAME = re.compile(
    r"(?:^|_|API)(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASS|CREDENTIALS?)(?:_|$)", re.IGNORECASE
)
# Texts of patterns: each is compiled when something may match it. Most runs need not wait for that.
_MEMBER = r"(?i)(?:key|token|secret|password|credential|access|refresh)$"
_PLACE = r"(?i)(?:FILE|PATH|DIR|CREDENTIALS?|SOCK)$"
_FLAG = r"(?i)--?[\w-]*(?:api[-_]?key|token|secret|passw|credential)[\w-]*"
_IN_URL = r"(?i)[a-z][a-z0-9+.-]*://[^/?#\s:@]*:([^/?#\s@]+)@"
_PIECE = r"[^/:@?&=#]{16,}"
_NUMBER = re.compile(r"[0-9]+")
_SHORTEST = 8  # shorter values are words that would be cut out of innocent text
_SHORTEST_NUMBER = 12
_SHORTEST_LINE = 24  # of a secret of several lines
_LETTERS = 4  # a value of fewer different ones is a ruler, or a row of noughts
_COMMON = frozenset(
    {"administrator", "anonymous", "changeit", "changeme", "change-me", "change_me", "default"}
    | {"development", "disabled", "enabled", "example", "external", "keychain", "keyring"}
    | {"localhost", "minioadmin", "mypassword", "optional", "osxkeychain", "passw0rd", "password"}
    | {"password1", "password123", "placeholder", "postgres", "postgresql", "production"}
    | {"rabbitmq", "readonly", "redacted", "required", "undefined", "unlimited", "[redacted]"}
)
# Their values stand in paths and prompts everywhere, so what they hold is no secret.
_PUBLIC = (
    *("HOME", "PWD", "OLDPWD", "PATH", "USER", "LOGNAME", "HOSTNAME", "SHELL", "TMPDIR"),
    *("RALPH_STATE_DIR", "XDG_STATE_HOME", "RALPH_RUN", "RALPH_TASK_DIR"),
)


def secrets_of(environ: Mapping[str, str]) -> frozenset[str]:
    """The values in an environment whose names say that they are secret, and passwords in URLs."""
    named = {v for name, v in environ.items() if _NAME.search(name) and not _is_place(name, v)}
    passwords = {found for v in environ.values() if "@" in v for found in re.findall(_IN_URL, v)}
    pairs: list[tuple[str, object]] = []  # of objects that are JSON, such as a login
    for text in (v for v in environ.values() if v.lstrip()[:1] == "{"):
        with suppress(ValueError, RecursionError):
            json.loads(text, object_pairs_hook=pairs.extend)
    members = {v for name, v in pairs if isinstance(v, str) and re.search(_MEMBER, name)}
    public = [environ[name] for name in _PUBLIC if name in environ]
    return secret_among(named | passwords | members, public)


def secret_flags(words: Sequence[str]) -> frozenset[str]:
    """The values of a command's flags whose names say so: `--api-key V`, `--token=V`."""
    found = set()
    for word, following in pairwise((*words, "")):
        name, _, stuck = word.partition("=")
        if name.startswith("-") and re.fullmatch(_FLAG, name):
            found.add(stuck or following)
    return secret_among(word for word in found if not word.startswith("-"))


def secret_urls(urls: Iterable[str]) -> frozenset[str]:
    """URLs that hold passwords and tokens: each as a whole, and its long parts."""
    pieces = {p for url in urls for p in re.findall(_PIECE, url) if "." not in p}
    return secret_among({*urls, *pieces})


def secret_among(values: Iterable[str], public: Iterable[str] = ()) -> frozenset[str]:
    """Those that can be told from innocent text: neither short, nor common, nor public."""
    known = list(public)
    return frozenset(v for v in values if _is_telling(v) and not any(v in text for text in known))


def _is_place(name: str, value: str) -> bool:
    """True if it is the path of a file that holds a secret."""
    is_path = value.startswith(("/", "~/", "./", "../"))
    return is_path and (re.search(_PLACE, name) is not None or "." in value.rpartition("/")[2])


def _is_telling(value: str) -> bool:
    least = _SHORTEST_NUMBER if _NUMBER.fullmatch(value) else _SHORTEST
    few = len(set(value)) < _LETTERS
    return len(value.strip()) >= least and not few and value.strip().lower() not in _COMMON


def spellings(secret: str, mark: bytes) -> Iterator[tuple[bytes, bytes]]:
    """The secret as it is, and as JSON has it, also within a text that is JSON again; of one of
    several lines each that is long. With each what can stand in its place, so that a line of JSON
    stays one: also where a number or a whole object stood."""
    words = [word for word in secret.split() if len(word) >= _SHORTEST_LINE]
    # A backslash at its end may be half of an escape.
    texts = (text.rstrip("\\") for text in (secret.strip(), *words))
    for text in dict.fromkeys(filter(None, texts)):
        plain, *escaped = _escaped(text)
        instead = b"1" * len(text) if _NUMBER.fullmatch(text) else mark
        for spelled in escaped:
            yield from ((data, instead) for data in _encoded(spelled))
        instead = b'"%b"' % mark if _is_structure(plain) else instead
        yield from ((data, instead) for data in _encoded(plain))


def _escaped(text: str) -> Iterator[str]:
    yield text
    for ascii_only in (True, False):
        once = json.dumps(text, ensure_ascii=ascii_only)[1:-1]
        yield once
        yield json.dumps(once, ensure_ascii=ascii_only)[1:-1]


def _encoded(text: str) -> Iterator[bytes]:
    """As an environment has it, and as a text does that holds half a character."""
    if not any("\ud800" <= letter <= "\udc7f" for letter in text):
        yield text.encode("utf-8", "surrogateescape")
    yield text.encode("utf-8", "surrogatepass")


def _is_structure(text: str) -> bool:
    try:
        return '"' in text and bool(json.loads(text))
    except (ValueError, RecursionError):
        return False
