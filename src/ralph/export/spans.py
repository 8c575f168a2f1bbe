"""Spans as OTLP/JSON has them: ids in hexadecimal, 64-bit numbers as strings, enums as numbers."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from ralph.export.lines import Json
from ralph.files.digest import digest_of

INTERNAL, CLIENT = 1, 3  # kinds
_ERROR = 2  # a status
_MOST_EVENTS = 128

Attributes = Mapping[str, object]


@dataclass
class Span:
    """A span that has begun. Its key is its own within the trace, and the id follows from it."""

    trace: str
    key: str
    name: str
    start: float
    parent: str = ""  # its key
    kind: int = INTERNAL
    attributes: dict[str, object] = field(default_factory=dict)
    error: str = ""  # its type, if it failed
    events: list[Json] = field(default_factory=list)
    dropped: int = 0

    def event(self, name: str, time: float, attributes: Attributes) -> None:
        """Something that happened in it; of very many only the first are kept."""
        if len(self.events) >= _MOST_EVENTS:
            self.dropped += 1
            return
        told = {"timeUnixNano": _nanoseconds(time), "name": name}
        self.events.append({**told, "attributes": attributes_of(attributes)})

    def ended(self, end: float) -> Json:
        """The span, complete."""
        error = {"error.type": self.error} if self.error else {}
        found: Json = {
            "traceId": self.trace,
            "spanId": _id(self.trace, self.key),
            "name": self.name,
            "kind": self.kind,
            "startTimeUnixNano": _nanoseconds(self.start),
            "endTimeUnixNano": _nanoseconds(max(self.start, end)),
            "attributes": attributes_of({**self.attributes, **error}),
        }
        if self.parent:
            found["parentSpanId"] = _id(self.trace, self.parent)
        if self.events:
            found["events"] = self.events
        if self.dropped:
            found["droppedEventsCount"] = self.dropped
        if self.error:
            found["status"] = {"code": _ERROR, "message": self.error}
        return found


def trace_id(run: str, started: float) -> str:
    """The id of a run's trace."""
    return digest_of([f"ralph {run} {started!r}".encode()], size=16)


def attributes_of(attributes: Attributes) -> list[Json]:
    """Attributes as OTLP has them; what is not known is left out."""
    return [
        {"key": key, "value": _value(it)}
        for key, it in attributes.items()
        if it is not None and it not in ("", ())
    ]


def _value(it: object) -> Json:
    match it:
        case bool():
            return {"boolValue": it}
        case int():
            return {"intValue": str(it)}
        case float():
            return {"doubleValue": it}
        case tuple():
            return {"arrayValue": {"values": [_value(each) for each in it]}}
    return {"stringValue": str(it)}


def _id(trace: str, key: str) -> str:
    return digest_of([f"{trace} {key}".encode("utf-8", "replace")], size=8)


def _nanoseconds(time: float) -> str:
    return str(round(max(0.0, time) * 1e6) * 1000)
