"""One redactor before everything that Ralph writes or shows (ADR 13): it takes out the values that
the environment and the settings call secret, and whatever is shaped like a key."""

import json
import re
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any

from ralph.text.secrets import spellings

MARK = "[redacted]"
_MARK = MARK.encode()
_JSON = json.JSONEncoder(separators=(",", ":"))  # `json.dumps` would make one for each line
_ESCAPED = b'bfnrtu"\\/'  # what follows a backslash in JSON
_BACKSLASH = b"\\"
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
_PEM_BEGINS = "-----BEGIN "
# At a word's beginning, or right after a colour, or after an escape printed as two characters.
_BORDER = r"(?:(?<![A-Za-z0-9_])|(?<=[0-9;\[]m)|(?<=\\[nrt]))"
_CONTEXT = 2  # bytes before a key that tell whether it is one
_LINE_ENDS = r" {0,9}(?:[\r\n]|\\{1,4}[nr]){1,4} {0,40}"
# What belongs to a key however long it is. In a line of JSON it ends in the middle of no escape.
_GOES_ON = re.compile(rb"[A-Za-z0-9_-]*+")
_PEM_GOES_ON = re.compile(rb"(?:[A-Za-z0-9+/= \t\r\n]|\\++[nrt])*+")


Tail = re.Pattern[bytes]
# From where to where, what takes its place, and what more belongs to it.
_Span = tuple[int, int, bytes, Tail | None]


def _any_of(patterns: Iterable[str]) -> str:
    return f"(?:{'|'.join(patterns)})"


def _begun(start: str, rest: str) -> str:
    """A pattern for whatever begins like this, from the first letter on."""
    for letter in reversed(start):
        rest = f"{re.escape(letter)}(?:{rest})?"
    return rest


# Compiled when something looks like a key: most runs need not wait for it.
@cache
def _key() -> Tail:
    """A whole key."""
    shapes = (f"{start}{kind}{{{least}}}" for start, kind, least in _SHAPES)
    return re.compile((_BORDER + _any_of(shapes)).encode())


@cache
def _pem() -> Tail:
    """The beginning of a private key."""
    return re.compile(
        (
            rf"{_PEM_BEGINS}[A-Z ]{{0,30}}PRIVATE KEY-----{_LINE_ENDS}"
            rf"(?:(?:Proc-Type|DEK-Info): [A-Za-z0-9,-]{{1,60}}{_LINE_ENDS}){{0,2}}"
            r"[A-Za-z0-9+/]{16}"
        ).encode()
    )


# How keys are found fast: each pattern is one pass over the data for a letter that its signs share,
# and looks back from there. A pass for each sign, or for all keys by their shapes, takes longer.
_SIGNS = (
    re.compile(rb"-(?<=[kabprst]-)(?:(?<=(sk-))|(?<=(glpat-))|(?<=(xox[abprs]-)))"),
    re.compile(rb"h(?:[pousr]_(?<=(gh[pousr]_))|f_(?<=(hf_))|ub_pat_(?<=(github_pat_)))"),
    re.compile(rb"I(?:A(?<=(A[KS]IA))|za(?<=(AIza))|N (?<=(-----BEGIN )))"),
)


def keys_in(data: bytes, begin: int = 0) -> Iterator[tuple[int, int, Tail]]:
    """From where to where there are keys, and what more belongs to each; in no order."""
    for sign in _SIGNS:
        for found in sign.finditer(data, begin):
            start = found.start(found.lastindex or 0)
            is_pem = data.startswith(b"-", start)
            shape, tail = (_pem, _PEM_GOES_ON) if is_pem else (_key, _GOES_ON)
            if start >= begin and (key := shape().match(data, start)):
                yield start, _end_of(tail, data, key.end()), tail


def _end_of(tail: Tail, data: bytes, at: int) -> int:
    """The end of a key, as far as the data go."""
    found = tail.match(data, at)
    return at if found is None else found.end()


@cache
def _endings() -> tuple[tuple[int, Tail], ...]:
    """Patterns for what more letters may make a key, and among how many bytes at the end to look.
    Compiled when the first stream comes: an agent need not wait for it."""
    key = _BORDER + _any_of(_begun(s, f"{kind}{{0,{n - 1}}}") for s, kind, n in _SHAPES)
    pem = _begun(_PEM_BEGINS, r"[A-Za-z0-9+/=:, \\\r\n-]{0,560}")
    return tuple((n, re.compile(f"{text}\\Z".encode())) for n, text in ((64, key), (600, pem)))


class Redactor:
    """Takes out secrets that it knows, and keys by their shape."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._secrets = frozenset(secrets)
        self._known = dict(pair for secret in self._secrets for pair in spellings(secret, _MARK))

    def knowing(self, secrets: Iterable[str]) -> "Redactor":
        """The same with more secrets."""
        more = self._secrets.union(secrets)
        return self if more == self._secrets else Redactor(more)

    def may_find(self, data: bytes) -> bool:
        """A first look, much faster than the shapes: if not, there is nothing to take out."""
        if any(known in data for known in self._known):
            return True
        return any(sign.search(data) for sign in _SIGNS)

    def text(self, text: str) -> str:
        """The text without secrets."""
        data = text.encode("utf-8", "surrogatepass")
        if not self.may_find(data):
            return text
        pieces, done = [], 0
        for start, end, _, _ in self.spans(data):
            if start >= done:
                pieces += [data[done:start], _MARK]
                done = end
        return b"".join((*pieces, data[done:])).decode("utf-8", "surrogatepass")

    def spans(self, data: bytes, begin: int = 0) -> list[_Span]:
        """Spans to be taken out, by their beginning, the longest first; they may overlap."""
        found: list[_Span] = [(a, b, _MARK, tail) for a, b, tail in keys_in(data, begin)]
        for known, mark in self._known.items():
            at = data.find(known, begin)
            while at >= 0:
                found.append((at, at + len(known), mark, None))
                at = data.find(known, at + 1)
        return sorted(found, key=lambda span: (span[0], -span[1]))

    def undecided(self, data: bytes, begin: int) -> int:
        """From where on more bytes may make a secret of what is there."""
        ends = [end.search(data, max(begin, len(data) - size)) for size, end in _endings()]
        first = min((match.start() for match in ends if match), default=len(data))
        for known in self._known:
            at = data.find(known[:1], max(begin, len(data) - len(known) + 1))
            while 0 <= at < first and not known.startswith(data[at:]):
                at = data.find(known[:1], at + 1)
            first = min(first, at) if at >= 0 else first
        return _before_backslashes(data, begin, first)


class StreamRedactor:
    """The same for bytes that come in pieces, however they are cut. A stream of JSON lines stays
    one. Of what is there nothing is held back but what may be the beginning of a secret."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._before = b""  # the last bytes that were let go, as they were
        self._rest = b""
        self._tail: Tail | None = None  # what still belongs to the key that was taken out last

    def feed(self, chunk: bytes) -> bytes:
        """The part that may be written now."""
        return self._clean(chunk, final=False)

    def end(self) -> bytes:
        """The part that was held back."""
        return self._clean(b"", final=True)

    def _clean(self, chunk: bytes, *, final: bool) -> bytes:
        data, begin = self._before + self._rest + chunk, len(self._before)
        if self._tail is not None:
            begin = _end_of(self._tail, data, begin)
            if not final and not data[begin:].strip(_BACKSLASH):
                return self._keep(data, begin)
        self._tail = None
        until = len(data) if final else self._redactor.undecided(data, begin)
        pieces, done = [], begin
        for start, end, mark, tail in self._redactor.spans(data, begin):
            if start >= until:
                break
            if start < done:
                continue
            first = _whole(data, done, start) if tail is None else start
            pieces += [data[done:first], mark]
            done = end
            if tail is not None and not final and not data[end:].strip(_BACKSLASH):
                self._tail, until = tail, end
        cut = max(done, until)
        pieces.append(data[done:cut])
        self._keep(data, cut)
        return b"".join(pieces)

    def _keep(self, data: bytes, cut: int) -> bytes:
        self._before, self._rest = data[max(0, cut - _CONTEXT) : cut], data[cut:]
        return b""


def _whole(data: bytes, begin: int, start: int) -> int:
    """The place to cut before a secret: in JSON its first letter may belong to an escape."""
    return _before_backslashes(data, begin, start) if data[start] in _ESCAPED else start


def _before_backslashes(data: bytes, begin: int, end: int) -> int:
    if data[end - 1 : end] != _BACKSLASH:
        return end  # nearly always: the rest is not copied
    return begin + len(data[begin:end].rstrip(_BACKSLASH))


class _Process:
    """The secrets that this process must never tell. There is one list for all: a sink that
    somebody forgot to tell of a secret would be a leak."""

    redactor = Redactor()


def know(secrets: Iterable[str]) -> None:
    """From now on these are taken out of everything, wherever it goes."""
    _Process.redactor = _Process.redactor.knowing(secrets)


def forget() -> None:
    """Know no secrets, as at the beginning."""
    _Process.redactor = Redactor()


def redact(text: str) -> str:
    """The text without secrets."""
    return _Process.redactor.text(text)


def redacting() -> StreamRedactor:
    """For a stream that begins now."""
    return StreamRedactor(_Process.redactor)


def redacted(value: Any) -> Any:  # noqa: ANN401  JSON
    """A copy of a JSON value in which every string is redacted, so that it stays valid."""
    match value:
        case str():
            return redact(value)
        case list() | tuple():
            return [redacted(item) for item in value]
        case dict():
            return {key: redacted(item) for key, item in value.items()}
        case _:
            return value


def redacted_json(value: Any) -> str:  # noqa: ANN401
    """The value as one line of JSON, redacted."""
    line = _JSON.encode(value)
    # JSON escapes no sign of a key, and a secret is known as JSON spells it: what is not in the
    # line is in no string. The shapes would be misled, by the `n` of a `\n` in front of a key.
    return _JSON.encode(redacted(value)) if _Process.redactor.may_find(line.encode()) else line
