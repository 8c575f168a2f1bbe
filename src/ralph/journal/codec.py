"""Values to JSON and back: every dataclass is an object with a `type`, enums are their values."""

import re
import types
import typing
from collections.abc import Iterable
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from typing import Any

from ralph.kernel.facts import Fact
from ralph.kernel.sight import Sight
from ralph.kernel.tasks.task import Task
from ralph.kernel.world import Signals

_SPARSE = frozenset({Sight, Signals, Task})  # they stand in the journal without their defaults
_PLAIN = frozenset({str, int, float, bool, types.NoneType})


def encode(value: object) -> Any:  # noqa: ANN401  JSON is what it is
    """A JSON-able copy of a core value."""
    cls: type = type(value)
    if cls in _PLAIN:  # nearly always
        return value
    if isinstance(value, Enum):
        return value.value
    if is_dataclass(cls):
        names = _field_names(cls) if cls not in _SPARSE else _told(value)
        named = {name: encode(getattr(value, name)) for name in names}
        return {"type": snake(cls.__name__), **named}
    assert isinstance(value, tuple), value
    return [encode(v) for v in value]


def decode_fact(data: dict[str, Any]) -> Fact:
    """The fact that `encode` wrote; ValueError if it is none."""
    try:
        return _decode(data, Fact)  # type: ignore[no-any-return]
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"not a fact: {error}") from error


@cache
def snake(name: str) -> str:
    """`ToolStart` -> `tool_start`."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


@cache
def _field_names(cls: type) -> tuple[str, ...]:
    return tuple(f.name for f in fields(cls))


def _told(value: Any) -> list[str]:  # noqa: ANN401  a value
    """The fields that are not as they are by default; -0.0 is not 0.0."""
    cls: type = type(value)
    defaults, told = value.__field_defaults__, []
    for name in _field_names(cls):
        given, usual = getattr(value, name), defaults.get(name)
        if given is usual and name in defaults:
            continue
        if name not in defaults or given != usual or repr(given) != repr(usual):
            told.append(name)
    return told


@cache
def _hints(cls: type) -> dict[str, Any]:
    return typing.get_type_hints(cls)


@cache
def _by_tag(hint: Any) -> dict[str, type]:  # noqa: ANN401  a type, or a union of them
    is_union = typing.get_origin(hint) in (types.UnionType, typing.Union)
    members: Iterable[Any] = typing.get_args(hint) if is_union else (hint,)
    classes = [m for m in members if isinstance(m, type) and is_dataclass(m)]
    return {snake(c.__name__): c for c in classes}


def _decode(data: Any, hint: Any) -> Any:  # noqa: ANN401
    if isinstance(data, dict):
        cls = _by_tag(hint)[data["type"]]
        return cls(**{n: _decode(data[n], h) for n, h in _hints(cls).items() if n in data})
    if isinstance(data, list):
        items = typing.get_args(hint)
        if len(items) == 2 and items[1] is Ellipsis:
            return tuple(_decode(v, items[0]) for v in data)
        return tuple(_decode(v, h) for v, h in zip(data, items, strict=True))
    if isinstance(data, str) and (kind := _enum_in(hint)):
        return kind(data)
    return data


@cache
def _enum_in(hint: Any) -> type[Enum] | None:  # noqa: ANN401  a type, or one that may be None
    for kind in (hint, *typing.get_args(hint)):
        if isinstance(kind, type) and issubclass(kind, Enum):
            return kind
    return None
