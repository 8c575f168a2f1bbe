"""The message bus of a task as bytes (S): entries one after another, appended and never changed.

An entry is a header, YAML whose scalars are JSON, and a body of as many bytes as the header says:

    ---
    msg_id: "MSG-20261115-140000-123456-4711-0001-a1b2"
    ...
    length: 5
    ---
    hello

A writer that is killed leaves a torn entry, and others append behind it. People and other programs
write entries without `length`: the body of such a one goes on to the next header.
"""

import re
from collections.abc import Iterator

from ralph.kernel.value import value
from ralph.text.yaml_scalars import text_of, written

_OPENING = b"\n---\nmsg_id: "  # no entry begins in another way
_CLOSING = b"\n---\n"
_FIRST_KEY = b"msg_id: "
_START = _OPENING[1:]
# What stands behind a whole entry: the next one, or a scrap of one that was torn and then the next.
_SCRAPS = tuple(_START[:size] for size in range(1, len(_START)))
_NEXT = (_START, *(scrap.removesuffix(b"\n") + _OPENING for scrap in _SCRAPS))
_LONGEST_NEXT = max(map(len, _NEXT))
_LONGEST_HEADER = 1024 * 1024
_LENGTH = re.compile(r"length: ([0-9]{1,18})")  # the last line, or the header was torn

LARGEST = 1024 * 1024 * 1024  # bytes of a body: no writer may post a larger one
HEADER = ("msg_id", "ts", "type", "project_id", "task_id", "run_id")  # what stands above a body


@value
class Message:
    """One message. Its body is any text, also none."""

    msg_id: str
    ts: str
    type: str
    project_id: str
    task_id: str
    run_id: str
    body: str


def encode(message: Message) -> bytes:
    """One whole entry of the bus file."""
    body = message.body.encode("utf-8", "replace")
    header = "".join(f"{name}: {written(getattr(message, name))}\n" for name in HEADER)
    # A name that is not UTF-8 on disk holds lone surrogates; JSON has an escape for these.
    start = header.encode("utf-8", "backslashreplace")
    return b"---\n%blength: %d\n---\n%b\n" % (start, len(body), body)


@value
class _Header:
    """The lines above a body, and where that begins; no length where none is told."""

    fields: dict[str, str]
    length: int | None
    body: int


@value
class _End:
    """The place where an entry ends and others may begin; one that is not whole is torn."""

    at: int
    whole: bool = True


_TORN = _End(1, whole=False)  # right behind where it began: its end may be another's beginning


class Decoder:
    """Messages from the bytes of a bus, the same however these are cut into chunks.

    Every whole entry comes back, whatever its body holds and wherever others were torn. Only one
    whose body has more than `most` bytes is left out, whether these are there or not: it counts as
    torn, and no more than that is ever kept. Bytes that do not begin `at_start` of a line may be
    the rest of an entry.
    """

    def __init__(self, most: int = LARGEST, *, at_start: bool = True) -> None:
        self._most = most
        # From the newline before the entry that is looked at.
        self._data = bytearray(b"\n" if at_start else b"")
        self._header: _Header | None = None  # of that entry, once it is known
        self._searched = 0  # before this no other one begins

    def feed(self, chunk: bytes) -> list[Message]:
        """The messages that are known to be whole. The last entry waits for more where it may yet
        turn out to be torn."""
        self._data += chunk
        return list(self._messages(settled=False))

    def settle(self) -> list[Message]:
        """Those that are whole if nobody is writing just now: an entry without a length ends here,
        and one that lacks bytes although others stand behind it is torn."""
        return list(self._messages(settled=True))

    def skip(self) -> list[Message]:
        """The whole messages before bytes that are left out; it goes on behind these, mid-line."""
        found = [*self.feed(b"\0"), *self.settle()]
        self._go_on_at(len(self._data))
        return found

    def _messages(self, *, settled: bool) -> Iterator[Message]:
        while (header := self._header or self._next_header()) is not None:
            end = self._end_of(header, settled=settled)
            if end is None:
                return
            if end.whole:
                named = {name: header.fields.get(name, "") for name in HEADER}
                # A body may be large: it is not copied more often than it must be.
                with memoryview(self._data) as view, view[header.body : end.at] as body:
                    text = str(body, "utf-8", "replace")
                yield Message(**named, body=text)
            self._go_on_at(end.at)

    def _next_header(self) -> _Header | None:
        """The next one that is whole and makes sense; what stands before it is forgotten."""
        data = self._data
        while (start := data.find(_OPENING)) >= 0:
            del data[:start]
            end = data.find(_CLOSING, len(_CLOSING), _LONGEST_HEADER)
            if end < 0 and len(data) < _LONGEST_HEADER:
                return None
            self._header = _parsed(bytes(data[len(_CLOSING) : end])) if end >= 0 else None
            if self._header is not None:
                return self._header
            del data[:1]
        del data[: 1 - len(_OPENING)]
        return None

    def _end_of(self, header: _Header, *, settled: bool) -> _End | None:
        """The end of the entry; None while that is not known."""
        if header.length is not None:
            too_large = header.length > self._most
            end = header.body + header.length
            return _TORN if too_large else self._measured_end(end, settled=settled)
        found = self._open_end(header, settled=settled)
        least = found.at if found else len(self._data) + 1 - len(_OPENING)
        return _TORN if least - header.body > self._most else found

    def _measured_end(self, end: int, *, settled: bool) -> _End | None:
        data = self._data
        if len(data) <= end:
            return _TORN if settled and self._opening_behind(1) >= 0 else None
        if data[end : end + 1] != b"\n":
            return _TORN
        behind = bytes(data[end + 1 : end + 1 + _LONGEST_NEXT])
        # Another entry may begin inside this one.
        another = data.find(_OPENING, 1, end - 1 + len(_OPENING)) >= 0
        if behind.startswith(_NEXT) or not (another or self._cut_off_opening(1) < end):
            return _End(end)
        if not any(known.startswith(behind) for known in _NEXT):
            return _TORN
        return _End(end) if settled else None

    def _open_end(self, header: _Header, *, settled: bool) -> _End | None:
        data, start = self._data, header.body
        if data.startswith(_FIRST_KEY, start):
            return _TORN  # within its header: what seems to close it opens the next one
        end = self._opening_behind(start - 1)
        if end >= 0:
            return _End(end)
        if settled and data.endswith(b"\n"):
            return _End(self._cut_off_opening(start - len(_CLOSING)))
        return None

    def _opening_behind(self, first: int) -> int:
        """The place where another entry begins, or -1; no byte is searched twice for this one."""
        found = self._data.find(_OPENING, max(first, self._searched))
        if found < 0:
            self._searched = len(self._data) + 1 - len(_OPENING)
        return found

    def _cut_off_opening(self, first: int) -> int:
        """The place where an entry may begin of which no more is known yet; the end if none."""
        data = self._data
        for start in range(max(first, len(data) - len(_OPENING) + 1), len(data)):
            if _OPENING.startswith(bytes(data[start:])):
                return start
        return len(data)

    def _go_on_at(self, place: int) -> None:
        del self._data[:place]
        self._header = None
        self._searched = 0


def _parsed(header: bytes) -> _Header | None:
    """A header's fields; None where they name no message. Lines that are no field are left out."""
    lines = header.decode("utf-8", "replace").split("\n")
    fields = {}
    for line in lines:
        key, _, written = line.partition(":")
        if key in HEADER and not written[:1].strip():
            fields[key] = text_of(written) or ""
    if not fields.get("msg_id"):
        return None
    length = _LENGTH.fullmatch(lines[-1])
    start = 2 * len(_CLOSING) + len(header)
    return _Header(fields, int(length[1]) if length else None, start)
