"""One redactor before everything that Ralph writes or shows (ADR 13): it takes out the values that
the environment and the settings call secret, and whatever is shaped like a key."""

import json
from collections.abc import Callable, Iterable
from typing import Any

from ralph.text.keys import CONTEXT, Tail, end_of, has_sign, keys_in, unfinished
from ralph.text.secrets import spellings

_MARK = b"[redacted]"
_JSON = json.JSONEncoder(separators=(",", ":"))  # `json.dumps` would make one for each line
_ESCAPED = b'bfnrtu"\\/'  # what follows a backslash in JSON
_BACKSLASH = b"\\"

# From where to where, what takes its place, and what more belongs to it.
_Span = tuple[int, int, bytes, Tail | None]


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
        """A first look: if not, there is nothing to take out."""
        return has_sign(data) or any(known in data for known in self._known)

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
        """Spans to be taken out, from left to right; of those that begin together the longest is
        first. They may overlap."""
        found: list[_Span] = [(a, b, _MARK, tail) for a, b, tail in keys_in(data, begin)]
        for known, mark in self._known.items():
            at = data.find(known, begin)
            while at >= 0:
                found.append((at, at + len(known), mark, None))
                at = data.find(known, at + 1)
        return sorted(found, key=lambda span: (span[0], -span[1]))

    def undecided(self, data: bytes, begin: int) -> int:
        """From where on more bytes may make a secret of what is there."""
        first = unfinished(data, begin)
        for known in self._known:
            at = data.find(known[:1], max(begin, len(data) - len(known) + 1))
            while 0 <= at < first and not known.startswith(data[at:]):
                at = data.find(known[:1], at + 1)
            first = min(first, at) if at >= 0 else first
        while first > begin and data[first - 1 : first] == _BACKSLASH:
            first -= 1
        return first


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
            begin = end_of(self._tail, data, begin)
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
        self._before, self._rest = data[max(0, cut - CONTEXT) : cut], data[cut:]
        return b""


def _whole(data: bytes, begin: int, start: int) -> int:
    """The place to cut before a secret: in JSON its first letter may belong to an escape."""
    if data[start : start + 1] in _ESCAPED:
        while start > begin and data[start - 1 : start] == _BACKSLASH:
            start -= 1
    return start


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


def redacted(value: Any, by: Callable[[str], str] = redact) -> Any:  # noqa: ANN401  JSON
    """A copy of a JSON value in which every string is redacted, so that it stays valid."""
    match value:
        case str():
            return by(value)
        case list() | tuple():
            return [redacted(item, by) for item in value]
        case dict():
            return {key: redacted(item, by) for key, item in value.items()}
        case _:
            return value


def redacted_json(value: Any) -> str:  # noqa: ANN401
    """The value as one line of JSON, redacted."""
    line = _JSON.encode(value)
    # JSON escapes no sign of a key, and a secret is known as JSON spells it: what is not in the
    # line is in no string. The shapes would be misled, by the `n` of a `\n` in front of a key.
    return _JSON.encode(redacted(value)) if _Process.redactor.may_find(line.encode()) else line
