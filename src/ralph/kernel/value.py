"""`@value`: a dataclass that never changes. The type checker freezes it, the interpreter does not.

`@dataclass(frozen=True)` compiles six methods for each class, which costs every start of `ralph`
half a millisecond a class, and makes each object three times as slowly. A value compiles one, when
its first object is made, and shares the rest.
"""

from dataclasses import MISSING, dataclass, field, fields
from functools import cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeVar, dataclass_transform

_Class = TypeVar("_Class", bound=type)


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def value(cls: _Class) -> _Class:
    """Make the class a value: compared, hashed and shown by its fields."""
    cls.__doc__ = cls.__doc__ or cls.__name__  # else dataclass writes one, and that takes long
    made: Any = dataclass(init=False, eq=False, repr=False, slots=True)(cls)
    made.__init__ = _Init(made)
    made.__eq__, made.__repr__ = _equals, _shown
    made.__hash__ = lambda self: hash(_parts(self))
    return made  # type: ignore[no-any-return]


if TYPE_CHECKING:
    from dataclasses import replace as replace  # noqa: PLC0414  mypy checks the fields given to it
else:

    def replace(old: Any, /, **changes: Any) -> Any:  # noqa: ANN401  any value
        """A copy with other fields: `dataclasses.replace` for values, three times as fast."""
        new = type(old)(*_parts(old))
        for name, changed in changes.items():
            setattr(new, name, changed)  # nobody has seen it yet
        return new


class _Init:
    """Stands in for `__init__` until it is asked for: of a hundred classes a run uses sixty."""

    def __init__(self, cls: Any) -> None:  # noqa: ANN401  any value's class
        self._cls = cls

    def __get__(self, instance: object, owner: type) -> Any:  # noqa: ANN401
        made = self._cls.__init__ = _compiled_init(self._cls)
        return made.__get__(instance, owner)


def _compiled_init(cls: Any) -> Any:  # noqa: ANN401
    """The `__init__` that `dataclass` would make, for fields without its special wishes."""
    assert not hasattr(cls, "__post_init__"), cls
    assert all(f.init and not f.kw_only for f in fields(cls)), cls
    known: dict[str, Any] = {"MISSING": MISSING}
    for f in fields(cls):
        known |= {f"default_{f.name}": f.default, f"make_{f.name}": f.default_factory}
    parameters, lines = ["self"], []
    for f in fields(cls):
        name = f.name
        if f.default_factory is not MISSING:
            parameters.append(f"{name}=MISSING")
            lines.append(f" self.{name} = make_{name}() if {name} is MISSING else {name}")
        else:
            parameters.append(name if f.default is MISSING else f"{name}=default_{name}")
            lines.append(f" self.{name} = {name}")
    text = "\n".join([f"def __init__({', '.join(parameters)}):", *(lines or [" pass"])])
    exec(text, known)  # noqa: S102  names of ours
    made = known["__init__"]
    made.__qualname__ = f"{cls.__qualname__}.__init__"  # it stands in a TypeError
    made.__annotations__ = {f.name: f.type for f in fields(cls)} | {"return": None}
    return made


@cache
def _reader(cls: Any) -> Any:  # noqa: ANN401
    """A function that reads all fields of an object at once."""
    names = tuple(cls.__dataclass_fields__)
    if len(names) > 1:
        return attrgetter(*names)
    return lambda self: tuple([getattr(self, name) for name in names])


def _parts(self: Any) -> tuple[object, ...]:  # noqa: ANN401  any value
    return _reader(self.__class__)(self)  # type: ignore[no-any-return]


def _equals(self: Any, other: object) -> bool:  # noqa: ANN401
    return type(self) is type(other) and _parts(self) == _parts(other)


def _shown(self: Any) -> str:  # noqa: ANN401
    told = [name for name, f in self.__dataclass_fields__.items() if f.repr]
    inner = ", ".join(f"{name}={getattr(self, name)!r}" for name in told)
    return f"{type(self).__qualname__}({inner})"
