"""Keys that are known by their shape, in bytes that may come in pieces."""

import re
from collections.abc import Iterable, Iterator
from functools import cache

# How a key begins, which letters follow, and how many at least.
_SHAPES = (
    ("sk-", "[A-Za-z0-9_-]", 16),  # Anthropic, OpenAI, OpenRouter
    *((f"gh{kind}_", "[A-Za-z0-9]", 20) for kind in "pousr"),
    ("github_pat_", "[A-Za-z0-9_]", 20),
    *((f"A{kind}IA", "[0-9A-Z]", 16) for kind in "KS"),
    ("AIza", "[0-9A-Za-z_-]", 30),
    *((f"xox{kind}-", "[A-Za-z0-9-]", 10) for kind in "abprs"),
    ("glpat-", "[A-Za-z0-9_-]", 16),
    ("hf_", "[A-Za-z0-9]", 20),
)
# By these a key is found fast; it begins so many letters before. One pattern for all of them, or
# the shapes themselves, would take several times as long.
_SIGNS = tuple(
    (re.compile(sign), before)
    for sign, before in (
        *((rb"sk-", 0), (rb"gh[pousr]_", 0), (rb"_pat_", 6), (rb"glpat-", 0), (rb"hf_", 0)),
        *((rb"A(?:[KS]IA|Iza)", 0), (rb"xox[abprs]-", 0)),
    )
)
_PEM_BEGINS = "-----BEGIN "
# At a word's beginning, or right after a colour, or after an escape printed as two characters.
_BORDER = r"(?:(?<![A-Za-z0-9_])|(?<=[0-9;\[]m)|(?<=\\[nrt]))"
CONTEXT = 2  # bytes before a key that tell whether it is one
_LINE_ENDS = r" {0,9}(?:[\r\n]|\\{1,4}[nr]){1,4} {0,40}"
# What belongs to a key however long it is. In a line of JSON it ends in the middle of no escape.
_GOES_ON = re.compile(rb"[A-Za-z0-9_-]*+")
_PEM_GOES_ON = re.compile(rb"(?:[A-Za-z0-9+/= \t\r\n]|\\++[nrt])*+")


def _any_of(patterns: Iterable[str]) -> str:
    return f"(?:{'|'.join(patterns)})"


def _begun(start: str, rest: str) -> str:
    """A pattern for whatever begins like this, from the first letter on."""
    for letter in reversed(start):
        rest = f"{re.escape(letter)}(?:{rest})?"
    return rest


_KEY = re.compile(
    (_BORDER + _any_of(f"{start}{kind}{{{least}}}" for start, kind, least in _SHAPES)).encode()
)
_PEM = re.compile(
    (
        rf"{_PEM_BEGINS}[A-Z ]{{0,30}}PRIVATE KEY-----{_LINE_ENDS}"
        rf"(?:(?:Proc-Type|DEK-Info): [A-Za-z0-9,-]{{1,60}}{_LINE_ENDS}){{0,2}}"
        r"[A-Za-z0-9+/]{16}"
    ).encode()
)
# What more letters may make a key: of this many at the end, if the pattern is there.
_MAY_BECOME = (
    (64, _BORDER + _any_of(_begun(s, f"{kind}{{0,{n - 1}}}") for s, kind, n in _SHAPES)),
    (600, _begun(_PEM_BEGINS, r"[A-Za-z0-9+/=:, \\\r\n-]{0,560}")),
)

Tail = re.Pattern[bytes]


def has_sign(data: bytes) -> bool:
    """A first look, much faster than the shapes: without a sign there is no key."""
    return _PEM_BEGINS.encode() in data or any(sign.search(data) for sign, _ in _SIGNS)


def keys_in(data: bytes, begin: int = 0) -> Iterator[tuple[int, int, Tail]]:
    """From where to where there are keys, and what more belongs to each; in no order."""
    for sign, before in _SIGNS:
        for found in sign.finditer(data, begin):
            key = _KEY.match(data, max(begin, found.start() - before))
            if key is not None:
                yield key.start(), end_of(_GOES_ON, data, key.end()), _GOES_ON
    at = data.find(_PEM_BEGINS.encode(), begin)
    while at >= 0:
        key = _PEM.match(data, at)
        if key is not None:
            yield at, end_of(_PEM_GOES_ON, data, key.end()), _PEM_GOES_ON
        at = data.find(_PEM_BEGINS.encode(), at + 1)


def end_of(tail: Tail, data: bytes, at: int) -> int:
    """The end of a key, as far as the data go."""
    found = tail.match(data, at)
    return at if found is None else found.end()


@cache
def _unfinished() -> tuple[tuple[int, Tail], ...]:
    """Compiled when the first stream comes: an agent need not wait for it."""
    return tuple((size, re.compile(f"{text}\\Z".encode())) for size, text in _MAY_BECOME)


def unfinished(data: bytes, begin: int = 0) -> int:
    """The place where a key may begin that the end of the data cuts off; the length if nowhere."""
    windows = ((max(begin, len(data) - size), pattern) for size, pattern in _unfinished())
    found = (pattern.search(data, start) for start, pattern in windows)
    return min((match.start() for match in found if match is not None), default=len(data))
