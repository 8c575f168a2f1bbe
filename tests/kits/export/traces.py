"""OTLP/JSON read strictly: hexadecimal ids, 64-bit numbers as strings, enums as numbers, no names
but those of the protocol; and a tree."""

from typing import Any

import msgspec


class Value(msgspec.Struct, forbid_unknown_fields=True):
    stringValue: str | None = None  # noqa: N815  the protocol's names
    intValue: str | None = None  # noqa: N815
    doubleValue: float | None = None  # noqa: N815
    boolValue: bool | None = None  # noqa: N815
    arrayValue: dict[str, list["Value"]] | None = None  # noqa: N815

    @property
    def plain(self) -> Any:  # noqa: ANN401
        if self.intValue is not None:
            return int(self.intValue)
        if self.arrayValue is not None:
            return [each.plain for each in self.arrayValue["values"]]
        found = (self.stringValue, self.doubleValue, self.boolValue)
        return next(it for it in found if it is not None)


class KeyValue(msgspec.Struct, forbid_unknown_fields=True):
    key: str
    value: Value


class _Attributed(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    attributes: list[KeyValue] = []

    @property
    def told(self) -> dict[str, Any]:
        found = {each.key: each.value.plain for each in self.attributes}
        assert len(found) == len(self.attributes)
        return found


class Event(_Attributed, kw_only=True):
    timeUnixNano: str  # noqa: N815
    name: str


class Status(msgspec.Struct, forbid_unknown_fields=True):
    code: int
    message: str = ""


class Span(_Attributed, kw_only=True):
    traceId: str  # noqa: N815
    spanId: str  # noqa: N815
    name: str
    kind: int
    startTimeUnixNano: str  # noqa: N815
    endTimeUnixNano: str  # noqa: N815
    parentSpanId: str = ""  # noqa: N815
    events: list[Event] = []
    droppedEventsCount: int = 0  # noqa: N815
    status: Status | None = None


class Scope(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    version: str


class ScopeSpans(msgspec.Struct, forbid_unknown_fields=True):
    scope: Scope
    spans: list[Span]


class Resource(_Attributed):
    pass


class ResourceSpans(msgspec.Struct, forbid_unknown_fields=True):
    resource: Resource
    scopeSpans: list[ScopeSpans]  # noqa: N815


class Request(msgspec.Struct, forbid_unknown_fields=True):
    resourceSpans: list[ResourceSpans]  # noqa: N815

    @property
    def spans(self) -> list[Span]:
        return [s for r in self.resourceSpans for each in r.scopeSpans for s in each.spans]


def request(text: str | bytes) -> Request:
    """A request to a collector, or a file, in which each span by itself is right."""
    found = msgspec.json.decode(text, type=Request)
    for span in found.spans:
        assert len(bytes.fromhex(span.traceId)) == 16
        assert len(bytes.fromhex(span.spanId)) == 8
        assert not span.parentSpanId or len(bytes.fromhex(span.parentSpanId)) == 8
        assert 0 < int(span.startTimeUnixNano) <= int(span.endTimeUnixNano)
        assert all(int(event.timeUnixNano) > 0 for event in span.events)
    return found


def tree(spans: list[Span]) -> dict[str, list[Span]]:
    """The spans below each span, by its id; those of "" have no parent. It is one trace, and each
    parent is in it."""
    assert len({span.traceId for span in spans}) == 1
    ids = {span.spanId for span in spans}
    assert len(ids) == len(spans)
    found: dict[str, list[Span]] = {}
    for span in spans:
        assert not span.parentSpanId or span.parentSpanId in ids
        found.setdefault(span.parentSpanId, []).append(span)
    assert len(found[""]) == 1
    return found


def sums(spans: list[Span]) -> tuple[int, int, int, float]:
    """The sums of all turns: prompt, completion and cached tokens, and dollars."""
    told = [span.told for span in spans]
    usage = "gen_ai.usage."
    return (
        sum(each.get(f"{usage}input_tokens", 0) for each in told),
        sum(each.get(f"{usage}output_tokens", 0) for each in told),
        sum(each.get(f"{usage}cache_read.input_tokens", 0) for each in told),
        sum(each.get("ralph.cost_usd", 0.0) for each in told if "ralph.role" in each),
    )
