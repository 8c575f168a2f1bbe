"""Reads server-sent events, as far as they come and can be believed."""

import json
import time
from codecs import BOM_UTF8
from collections.abc import Iterator
from http.client import HTTPResponse
from itertools import chain

from ralph.own_agent.talk import END, Json, Trouble, is_deep

_LONGEST = 3600.0  # seconds of an answer
_LARGEST = 128 * 1024 * 1024  # bytes of it: each of 200,000 words comes in an envelope
_LONGEST_LINE = 32 * 1024 * 1024
_MOST_LINES = 10_000  # of an event
_CHUNK = 64 * 1024
_OTHER = 64 * 1024
_OK = 200
_FIELDS = (b":", b"event:", b"id:", b"retry:")  # of streams, beside the data; comments keep alive


class NoStream(Exception):  # noqa: N818
    """The answer is something else."""

    def __init__(self, body: bytes) -> None:
        super().__init__()
        self.body = body


def events(answer: HTTPResponse) -> Iterator[Json]:
    """The JSON of server-sent events; the end mark `[DONE]` is END. What is no JSON is passed
    over, but an answer that is no stream at all is NoStream."""
    data: list[bytes] = []
    other = b""
    is_stream = False
    for line in chain(_lines(answer), (b"",)):
        if line.startswith(b"data:") and len(data) < _MOST_LINES:
            data.append(line.removeprefix(b"data:"))
            is_stream = True
        elif not line and data:
            event, data = b"\n".join(data), []
            found = END if event.strip() == b"[DONE]" else decoded(event)
            if isinstance(found, dict):
                yield found
            if found == END:
                return  # not every service closes the connection then
        elif not is_stream and not line.startswith(_FIELDS):
            other = (other + line)[:_OTHER]
    if not is_stream and other:
        raise NoStream(other)


def _lines(answer: HTTPResponse) -> Iterator[bytes]:
    """The lines of an answer, which ends also where its service does not end it."""
    until, size, rest = time.monotonic() + _LONGEST, 0, b""
    while chunk := answer.read1(_CHUNK):
        *lines, rest = (rest + chunk).split(b"\n")
        yield from (line.rstrip(b"\r").removeprefix(BOM_UTF8) for line in lines)
        size += len(chunk)
        if size > _LARGEST or len(rest) > _LONGEST_LINE or time.monotonic() > until:
            raise Trouble("the answer does not end", _OK)
    yield rest


def decoded(data: bytes) -> object:
    """The JSON in it; None if there is none, or none that could be sent on."""
    try:
        found = json.loads(data.decode("utf-8", "replace"), strict=False)
    except (ValueError, RecursionError):
        return None
    return None if is_deep(found) else found
