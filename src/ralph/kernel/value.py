"""`@value`: a dataclass that never changes. The type checker freezes it, the interpreter does not.

`@dataclass(frozen=True)` compiles six methods for each class, which costs every start of `ralph`
half a millisecond a class, and makes each object three times as slowly. A value compiles none: what
its methods have in common is shared, and what they have not is made when it is first asked for.
"""

from collections import ChainMap
from dataclasses import MISSING, Field, dataclass, field
from functools import cache, partial, wraps
from operator import attrgetter
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, dataclass_transform

_NOT_KEPT = ("__dict__", "__weakref__")  # of a class without slots
_Class = TypeVar("_Class", bound=type)


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def value(cls: _Class) -> _Class:
    """Make the class a value: compared, hashed and shown by its fields."""
    cls.__doc__ = cls.__doc__ or cls.__name__  # else dataclass writes one, and that takes long
    own, of_base = _own_types(cls), getattr(cls, "__match_args__", ())
    names = tuple(dict.fromkeys((*of_base, *own)))
    kept = {name: it for name, it in cls.__dict__.items() if name not in _NOT_KEPT}
    defaults = {name: kept.pop(name) for name in own if name in kept}
    return type(cls)(
        cls.__name__,
        cls.__bases__,
        kept
        | {
            "__qualname__": cls.__qualname__,
            "__slots__": tuple([name for name in own if name not in of_base]),
            "__match_args__": names,
            "__field_defaults__": getattr(cls, "__field_defaults__", {}) | defaults,
            "__dataclass_fields__": _Later(partial(_fields, cls)),
            "__init__": _Later(_init),
            "__eq__": _equals,
            "__hash__": _hashed,
            "__repr__": _shown,
        },
    )


if TYPE_CHECKING:
    from dataclasses import replace as replace  # noqa: PLC0414  mypy checks the fields given to it
else:

    def replace(old: Any, /, **changes: Any) -> Any:  # noqa: ANN401  any value
        """A copy with other fields: `dataclasses.replace` for values, three times as fast."""
        new = type(old)(*_parts(old))
        for name, changed in changes.items():
            setattr(new, name, changed)  # nobody has seen it yet
        return new


class _Later:
    """Stands in for a part of a class until that is asked for: of most it never is."""

    def __init__(self, make: Any) -> None:  # noqa: ANN401
        self._make = make

    def __set_name__(self, cls: type, name: str) -> None:
        self._cls, self._name = cls, name

    def __get__(self, instance: object, owner: type) -> Any:  # noqa: ANN401
        made = self._make(self._cls)
        setattr(self._cls, self._name, made)
        return made.__get__(instance, owner) if isinstance(made, FunctionType) else made


def _fields(plain: Any, cls: Any) -> Any:  # noqa: ANN401
    """The fields as `dataclass` finds them in the class as it was written."""
    found = dataclass(init=False, eq=False, repr=False)(plain)
    cls.__dataclass_params__ = found.__dataclass_params__  # asked for by classes that extend it
    return found.__dataclass_fields__


def _init(cls: Any) -> Any:  # noqa: ANN401  any value's class
    """The `__init__` that `dataclass` would make, for fields without its special wishes."""
    names, defaults = cls.__match_args__, cls.__field_defaults__
    types = ChainMap(*map(_own_types, cls.__mro__))
    told = {name: default for name, default in defaults.items() if isinstance(default, Field)}
    assert not hasattr(cls, "__post_init__"), cls
    assert all(field.init and field.kw_only is not True for field in told.values()), cls
    assert all(getattr(types[name], "__origin__", None) is not ClassVar for name in names), cls
    assert {*names[len(names) - len(defaults) :]} == {*defaults}, cls
    code = _storing(len(names)).replace(
        co_varnames=("self", *names),
        co_names=names,
        co_name="__init__",
        co_qualname=f"{cls.__qualname__}.__init__",  # it stands in a TypeError
    )
    given = {**defaults, **{name: field.default for name, field in told.items()}}
    made = FunctionType(code, {}, argdefs=tuple([given[n] for n in names if n in given]))
    made.__annotations__ = {name: types[name] for name in names} | {"return": None}
    makers = [(n, f.default_factory) for n, f in told.items() if f.default_factory is not MISSING]
    return _making(made, makers) if makers else made


def _own_types(cls: Any) -> Any:  # noqa: ANN401
    """The annotations of this very class. Python 3.14 keeps none in `__dict__`."""
    return getattr(cls, "__annotations__", {})


@cache
def _storing(count: int) -> CodeType:
    """The code of an `__init__` that stores so many arguments. It is compiled once for a number of
    fields and then told their names, which takes a fiftieth of the time."""
    names = [f"f{number}" for number in range(count)]
    lines = [f" self.{name} = {name}" for name in names] or [" pass"]
    scope: dict[str, Any] = {}
    exec("\n".join([f"def store({', '.join(['self', *names])}):", *lines]), scope)  # noqa: S102
    return scope["store"].__code__  # type: ignore[no-any-return]


def _making(init: Any, makers: list[tuple[str, Any]]) -> Any:  # noqa: ANN401
    """An `__init__` that also makes the defaults of some fields anew for each object."""

    @wraps(init)
    def init_and_make(self: object, *given: object, **named: object) -> None:
        init(self, *given, **named)
        for name, make in makers:
            if getattr(self, name) is MISSING:
                setattr(self, name, make())

    return init_and_make


@cache
def _reader(cls: Any) -> Any:  # noqa: ANN401
    """A function that reads all fields of an object at once."""
    names = cls.__match_args__
    if len(names) > 1:
        return attrgetter(*names)
    return lambda self: tuple([getattr(self, name) for name in names])


def _parts(self: Any) -> tuple[object, ...]:  # noqa: ANN401  any value
    return _reader(self.__class__)(self)  # type: ignore[no-any-return]


def _equals(self: Any, other: object) -> bool:  # noqa: ANN401
    return type(self) is type(other) and _parts(self) == _parts(other)


def _hashed(self: object) -> int:
    return hash(_parts(self))


def _shown(self: Any) -> str:  # noqa: ANN401
    told = [name for name, f in self.__dataclass_fields__.items() if f.repr]
    inner = ", ".join(f"{name}={getattr(self, name)!r}" for name in told)
    return f"{type(self).__qualname__}({inner})"
