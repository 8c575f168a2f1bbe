"""`@value`: a dataclass that never changes. The type checker freezes it, the interpreter does not.

`@dataclass(frozen=True)` compiles six methods for each class, which costs every start of `ralph`
half a millisecond a class, and makes each object three times as slowly. A value compiles one and
shares the rest.
"""

from dataclasses import dataclass, field
from typing import Any, TypeVar, dataclass_transform

_Class = TypeVar("_Class", bound=type)


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def value(cls: _Class) -> _Class:
    """Make the class a value: compared, hashed and shown by its fields."""
    made: Any = dataclass(eq=False, repr=False, slots=True)(cls)
    made.__eq__, made.__hash__, made.__repr__ = _equals, _hash, _shown
    return made  # type: ignore[no-any-return]


def _parts(self: Any) -> tuple[object, ...]:  # noqa: ANN401  any value
    return tuple([getattr(self, name) for name in self.__dataclass_fields__])


def _equals(self: Any, other: object) -> bool:  # noqa: ANN401
    return type(self) is type(other) and _parts(self) == _parts(other)


def _hash(self: Any) -> int:  # noqa: ANN401
    return hash(_parts(self))


def _shown(self: Any) -> str:  # noqa: ANN401
    told = [name for name, f in self.__dataclass_fields__.items() if f.repr]
    inner = ", ".join(f"{name}={getattr(self, name)!r}" for name in told)
    return f"{type(self).__qualname__}({inner})"
