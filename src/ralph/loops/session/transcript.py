"""What the agent of a session has said and done since a loop began, by its host's transcript.

A transcript is lines of JSON that only grow, to gigabytes. It is read from where it was read last,
whole lines only: a torn last one waits. Lines that are no JSON, or hold control characters, are
skipped. Only the text of the session's own agent counts: never that of people, tools, hooks and
helpers.
"""

import os

from ralph.hosts.protocol import scanned

TYPE_CHECKING = False  # as typing has it, which takes a while to import
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

_BLOCK = 1 << 20
_LONGEST_LINE = 8 << 20
_OURS = (b'"assistant"', b'"gemini"', b'"response_item"')  # what a line must hold to count
_NOT_OURS = (b'"tool_result"', b'_call_output"', b'"isSidechain":true', b'"isSidechain": true')


class Seen:
    """What is new in a transcript."""

    def __init__(self, offset: int) -> None:
        self.offset = offset  # where to go on
        self.texts: list[str] = []  # of the agent
        self.calls: set[str] = set()  # of its tools
        self.overheard = False  # somebody else said the marker
        self.read = 0  # bytes, all told


class Since:
    """From when on words count, and work."""

    def __init__(self, words: float, work: float) -> None:
        self.words, self.work = _iso(words), _iso(work)
        self.placed = True  # where a line stands tells whether it is new, if it has no time


def seen(path: str, offset: int | None, since: Since, marker: str) -> Seen | None:
    """What is new in a transcript from an offset; None offset: nobody knows where the loop began,
    so its lines' times tell. None where it cannot be read."""
    try:
        # Not a pipe, which would keep us waiting.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError):
        return None
    try:
        return _seen(descriptor, offset, since, marker.encode("utf-8", "surrogatepass"))
    except OSError:
        return None
    finally:
        os.close(descriptor)


def size_of(path: str) -> int | None:
    """How long a transcript is; 0 where there is none yet, None where nobody can tell."""
    if not path:
        return None
    try:
        return os.stat(path).st_size
    except FileNotFoundError:
        return 0
    except (OSError, ValueError):
        return None


def _seen(descriptor: int, offset: int | None, since: Since, marker: bytes) -> Seen | None:
    import stat

    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode):
        return None
    size, torn, looked = found.st_size, False, 0
    if offset is None or offset > size:  # it was begun anew, or made compact
        offset, looked = _begin(descriptor, size, since)
        torn, since.placed = offset > 0, False
    new = Seen(offset)
    new.read = looked
    for line in _lines(descriptor, size, new):
        if torn:
            torn = False  # where we began is in the middle of a line
            continue
        if any(word in line for word in _OURS):
            _take(line, since, new)
        if not new.overheard and marker in line:
            new.overheard = _is_overheard(line, since)
    return new


def _lines(descriptor: int, size: int, new: Seen) -> "Iterator[bytes]":
    """Every whole line from the offset on, which moves along. A line that is too long is
    dropped."""
    rest, dropping, at = b"", False, new.offset
    while at < size and (block := os.pread(descriptor, min(_BLOCK, size - at), at)):
        at += len(block)
        new.read += len(block)
        first, newline, more = block.partition(b"\n")
        if not newline:
            rest = b"" if dropping or len(rest) > _LONGEST_LINE else rest + block
            dropping = dropping or not rest
            new.offset = at if dropping else new.offset
            continue
        yield b"" if dropping else rest + first
        dropping = False
        *whole, rest = more.split(b"\n")
        yield from whole
        new.offset = at - len(rest)


def _begin(descriptor: int, size: int, since: Since) -> tuple[int, int]:
    """A place before everything that is new, by the lines' times, looked for from the end; and how
    many bytes that took. Where no line has a time there is only the last block to go by."""
    at = size
    while at > 0:
        at = max(0, at - _BLOCK)
        block = os.pread(descriptor, min(_BLOCK, size - at), at)
        oldest = next(_times(block), "")
        if not oldest or not _is_new(oldest, since.work):
            break
    return at, size - at


def _times(block: bytes) -> "Iterator[str]":
    """The times of the lines in a block, in order."""
    at = -1
    while (at := block.find(b'"timestamp"', at + 1)) >= 0:
        text = block[at + 11 : at + 50].decode("ascii", "replace").lstrip(": ")
        if text[:1] == '"':
            yield text[1:].partition('"')[0]


# ------------------------------------------------------------------ one line


def _take(line: bytes, since: Since, new: Seen) -> None:
    try:
        record = scanned(line)
    except ValueError:
        return
    if not isinstance(record, dict):
        return
    time = record.get("timestamp")
    if not _is_timed(time) and not since.placed:
        return
    if not _is_new(time, since.work):
        return
    texts, calls = _said(record)
    new.calls.update(call or f"{new.offset}:{len(new.calls)}" for call in calls)
    if _is_new(time, since.words, after=True):
        new.texts += texts


def _is_overheard(line: bytes, since: Since) -> bool:
    foreign = any(word in line for word in _NOT_OURS)
    time = next(_times(line), "")
    return foreign and (since.placed or _is_timed(time)) and _is_new(time, since.words, after=True)


def _said(record: "dict[str, Any]") -> tuple[list[str], list[str]]:
    """What the session's own agent said in a line, and the tool calls it made."""
    kind = record.get("type")
    if kind == "assistant":
        return _by_claude(record)
    if kind == "response_item":
        return _by_codex(record.get("payload"))
    if kind == "gemini":
        calls = record.get("toolCalls")
        return _texts(record.get("content")), _ids(calls if isinstance(calls, list) else [])
    return [], []


def _by_claude(record: "dict[str, Any]") -> tuple[list[str], list[str]]:
    message = record.get("message")
    foreign = record.get("isSidechain") or record.get("isApiErrorMessage")
    if foreign or record.get("parent_tool_use_id") or not isinstance(message, dict):
        return [], []
    if message.get("model") == "<synthetic>":  # the CLI's own words, which may quote the prompt
        return [], []
    content = message.get("content")
    blocks = content if isinstance(content, list) else []
    calls = [b for b in blocks if isinstance(b, dict) and b.get("type") == "tool_use"]
    return _texts(content), _ids(calls)


def _by_codex(payload: object) -> tuple[list[str], list[str]]:
    if not isinstance(payload, dict):
        return [], []
    kind = payload.get("type")
    if kind == "message" and payload.get("role") == "assistant":
        return _texts(payload.get("content")), []
    if isinstance(kind, str) and kind.endswith("_call"):
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


def _ids(calls: "list[Any]") -> list[str]:
    return [str(call.get("id") or "") for call in calls if isinstance(call, dict)]


# ------------------------------------------------------------------ times


def _iso(moment: float) -> str:
    """A time as transcripts have it, to the millisecond: `2026-11-15T06:23:17.181Z`."""
    import time

    whole = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(moment))
    return f"{whole}.{int(moment % 1 * 1000):03}Z"


def _is_new(given: object, since: str, *, after: bool = False) -> bool:
    """Whether a line's time is not before that, or `after` it; a line without a time goes by its
    place."""
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
