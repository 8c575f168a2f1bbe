"""The words and tool calls of a session's agent since a loop began, by its host's transcript.

A transcript is lines of JSON that only grow, to gigabytes. It is read from where it was read last,
whole lines only: a torn last one waits. Lines that are no JSON, or hold control characters, are
skipped. Only the text of the session's own agent counts: never that of people, tools, hooks and
helpers.
"""

import os
from _collections_abc import Iterator  # `os` has it; `collections` is slow

from ralph.hosts.protocol import scanned

_BLOCK = 1 << 20
_LONGEST_LINE = 8 << 20
_OURS = (b'"assistant"', b'"gemini"', b'"response_item"')  # what a line must hold to count
_NOT_OURS = (b'"tool_result"', b'_call_output"', b'"isSidechain":true', b'"isSidechain": true')


def seen(path: str, offset: int | None, marker: str, *, words: float, work: float) -> "Seen | None":
    """The new lines of a transcript from an offset; None offset: nobody knows where the loop began,
    so its lines' times tell. None where it cannot be read. `words` and `work` are the times from
    when on these count."""
    import stat

    try:
        # Not a pipe, which would keep us waiting.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError):
        return None
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            return None
        new = Seen(descriptor, found.st_size, marker, _iso(words), _iso(work))
        new.read_from(offset)
    except OSError:
        return None
    finally:
        os.close(descriptor)
    return new


def size_of(path: str) -> int | None:
    """The length of a transcript; 0 where there is none yet, None where nobody can tell."""
    if not path:
        return None
    try:
        return os.stat(path).st_size
    except FileNotFoundError:
        return 0
    except (OSError, ValueError):
        return None


class Seen:
    """The new lines of a transcript."""

    def __init__(self, descriptor: int, size: int, marker: str, words: str, work: str) -> None:
        self.offset = 0  # where to go on
        self.texts: list[str] = []  # of the agent
        self.calls: set[str] = set()  # of its tools
        self.overheard = False  # somebody else said the marker
        self._descriptor, self._size = descriptor, size
        self._marker = marker.encode("utf-8", "surrogatepass")
        self._words, self._work = words, work
        self._placed = True  # where a line stands tells whether it is new, if it has no time

    def read_from(self, offset: int | None) -> None:
        """Take every line that counts, once."""
        torn = False
        if offset is None or offset > self._size:  # it was begun anew, or made compact
            offset, self._placed = self._begin(), False
            torn = offset > 0  # that is in the middle of a line
        self.offset = offset
        for line in self._lines():
            if torn:
                torn = False
                continue
            if any(word in line for word in _OURS):
                self._take(line)
            if not self.overheard and self._marker in line:
                time = next(_times(line), "")
                foreign = any(word in line for word in _NOT_OURS)
                timed = self._placed or _is_timed(time)
                self.overheard = foreign and timed and _is_new(time, self._words, after=True)

    def _block(self, at: int) -> bytes:
        return os.pread(self._descriptor, min(_BLOCK, self._size - at), at)

    def _begin(self) -> int:
        """A place before everything that is new, by the lines' times, looked for from the end.
        Where no line has a time there is only the last block to go by."""
        at = self._size
        while at > 0:
            at = max(0, at - _BLOCK)
            oldest = next(_times(self._block(at)), "")
            if not oldest or not _is_new(oldest, self._work):
                break
        return at

    def _lines(self) -> Iterator[bytes]:
        """Every whole line from the offset on, which moves; lines that are too long are dropped."""
        rest, dropping, at = b"", False, self.offset
        while at < self._size and (block := self._block(at)):
            at += len(block)
            first, newline, more = block.partition(b"\n")
            if not newline:
                rest = b"" if dropping or len(rest) > _LONGEST_LINE else rest + block
                dropping = dropping or not rest
                self.offset = at if dropping else self.offset
                continue
            yield b"" if dropping else rest + first
            dropping = False
            *whole, rest = more.split(b"\n")
            yield from whole
            self.offset = at - len(rest)

    def _take(self, line: bytes) -> None:
        try:
            record = scanned(line)
        except ValueError:
            return
        time = record.get("timestamp") if isinstance(record, dict) else None
        timed = self._placed or _is_timed(time)
        if not isinstance(record, dict) or not timed or not _is_new(time, self._work):
            return
        texts, calls = _said(record)
        self.calls.update(call or f"{self.offset}:{len(self.calls)}" for call in calls)
        if _is_new(time, self._words, after=True):
            self.texts += texts


def _said(record: dict[str, object]) -> tuple[list[str], list[str]]:
    """The words of the session's own agent in a line, and the tool calls it made."""
    kind, message, payload = (record.get(name) for name in ("type", "message", "payload"))
    if kind == "gemini":
        return _texts(record.get("content")), _ids(record.get("toolCalls"))
    if kind == "assistant" and isinstance(message, dict):
        foreign = record.get("isSidechain") or record.get("isApiErrorMessage")
        # The CLI's own words may quote the prompt.
        synthetic = message.get("model") == "<synthetic>"
        if not (foreign or synthetic or record.get("parent_tool_use_id")):
            content = message.get("content")
            return _texts(content), _ids(content, "tool_use")
    if kind == "response_item" and isinstance(payload, dict):  # of codex
        what = payload.get("type")
        if what == "message" and payload.get("role") == "assistant":
            return _texts(payload.get("content")), []
        if isinstance(what, str) and what.endswith("_call"):
            return [], [str(payload.get("call_id") or payload.get("id") or "")]
    return [], []


def _texts(content: object) -> list[str]:
    """The texts in a message's content; thoughts are none."""
    if isinstance(content, str):
        return [content]
    blocks = content if isinstance(content, list) else []
    found = [
        block.get("text")
        for block in blocks
        if isinstance(block, dict) and block.get("type", "text") in ("text", "output_text")
    ]
    return [text for text in found if isinstance(text, str)]


def _ids(calls: object, kind: str = "") -> list[str]:
    """The ids of the calls among these."""
    listed = calls if isinstance(calls, list) else []
    found = [each for each in listed if isinstance(each, dict)]
    return [str(each.get("id") or "") for each in found if not kind or each.get("type") == kind]


def _times(block: bytes) -> Iterator[str]:
    """The times of the lines in a block, in order."""
    at = -1
    while (at := block.find(b'"timestamp"', at + 1)) >= 0:
        text = block[at + 11 : at + 50].decode("ascii", "replace").lstrip(": ")
        if text[:1] == '"':
            yield text[1:].partition('"')[0]


def _iso(moment: float) -> str:
    """A time as transcripts have it, to the millisecond: `2026-11-15T06:23:17.181Z`."""
    import time

    whole = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(moment))
    return f"{whole}.{int(moment % 1 * 1000):03}Z"


def _is_new(given: object, since: str, *, after: bool = False) -> bool:
    """True if a time is not before that, or `after` it; a line without one goes by its place."""
    if not isinstance(given, str) or not _is_timed(given):
        return True
    if given[-1] not in "Zz":
        given = _in_utc(given)
    fraction = given[20:-1].strip("0")
    # A clock that tells whole seconds tells them too early.
    if not fraction:
        return given[:19] >= since[:19]
    return given[:23] > since[:23] if after else given[:23] >= since[:23]


def _is_timed(given: object) -> bool:
    return isinstance(given, str) and len(given) >= 20 and given[10] == "T"


def _in_utc(given: str) -> str:
    from datetime import UTC, datetime

    try:
        moment = datetime.fromisoformat(given).astimezone(UTC)
    except (ValueError, OverflowError):
        return "9999-01-01T00:00:00Z"  # which is no time: it goes by its place too
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
