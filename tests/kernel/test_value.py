"""`@value`: compared, hashed and shown by its fields."""

import copy
import dataclasses
import inspect
import pickle
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar

import pytest

from ralph.kernel.value import replace, value


@value
class Point:
    x: int
    y: int = 0
    note: str = field(default="", repr=False)


@value
class Other:
    x: int
    y: int = 0
    note: str = ""


@value
class Empty:
    """No field at all."""


@value
class One:
    word: str = "one"


@value
class Listed:
    """A default that each object makes for itself."""

    items: list[int] = field(default_factory=list)
    last: str = ""


@value
class Point3(Point):
    """A value that extends another."""

    z: int = 0


class Named(Point):
    """An ordinary class that extends a value."""

    @property
    def name(self) -> str:
        return f"{self.x}/{self.y}"


@dataclass(slots=True)
class Plain:
    """What a dataclass says to wrong arguments, a value says too."""

    x: int
    y: int = 0


@value
class Strict:
    x: int
    y: int = 0


def test_values_compare_by_class_and_fields() -> None:
    assert Point(1) == Point(1, 0)
    assert Point(1) != Point(2)
    others: list[object] = [Other(1), (1, 0, "")]
    assert Point(1) not in others


def test_values_hash_by_their_fields() -> None:
    assert len({Point(1), Point(1), Point(2)}) == 2


def test_values_show_their_fields_but_hidden_ones() -> None:
    assert repr(Point(1, note="secret")) == "Point(x=1, y=0)"


@pytest.mark.parametrize("change", [replace, dataclasses.replace])
def test_values_can_be_replaced_and_matched(change: Callable[..., Point]) -> None:
    old = Point(1, note="kept")
    match change(old, y=5):
        case Point(1, 5, "kept"):
            pass
        case other:
            raise AssertionError(other)
    assert old == Point(1, 0, "kept")


def test_a_field_that_does_not_exist_cannot_be_replaced() -> None:
    change: Callable[..., Point] = replace
    with pytest.raises(AttributeError, match="'z'"):
        change(Point(1), z=1)


def test_values_have_no_room_for_more() -> None:
    assert not hasattr(Point(1), "__dict__")


def test_values_of_no_field_and_of_one() -> None:
    assert Empty() == Empty() == replace(Empty())
    assert replace(One(), word="two") == One("two") != One()
    assert hash(One()) == hash(One("one"))


def test_a_default_that_is_made_is_not_shared() -> None:
    first, second = Listed(), Listed(last="x")
    first.items.append(1)
    assert (first.items, second.items, Listed([2]).items) == ([1], [], [2])


def test_values_can_be_extended() -> None:
    """In either order: what a class is asked for first differs, what it answers does not."""

    @value
    class Point4(Point3):
        y: int = 7
        w: int = 0

    assert [f.name for f in dataclasses.fields(Point4)] == ["x", "y", "note", "z", "w"]
    assert Point4(1) == replace(Point4(1, w=5), w=0) == Point4(1, 7, "", 0, 0)
    assert dataclasses.asdict(Point4(1)) == {"x": 1, "y": 7, "note": "", "z": 0, "w": 0}
    assert Point3(1, z=3) == replace(Point3(1), z=3)
    assert Point3(1) != Point(1)
    assert [f.name for f in dataclasses.fields(Point3)] == ["x", "y", "note", "z"]
    assert Named(1, y=2).name == "1/2"
    assert replace(Named(1), y=3).name == "1/3"


@pytest.mark.parametrize(
    "keep", [copy.copy, copy.deepcopy, lambda v: pickle.loads(pickle.dumps(v))]
)
@pytest.mark.parametrize("old", [Point(1, 2, "note"), Empty(), Listed([1]), Point3(1, z=2)])
def test_values_can_be_copied_and_kept(keep: Callable[[object], object], old: object) -> None:
    assert keep(old) == old


def test_what_looks_at_a_class_sees_its_arguments() -> None:
    """Before an object was made, too."""

    @value
    class New:
        x: int
        y: str = "why"
        z: list[int] = field(default_factory=list)

    assert list(inspect.signature(New).parameters) == ["x", "y", "z"]
    assert inspect.signature(New).parameters["y"] == inspect.Parameter(
        "y", inspect.Parameter.POSITIONAL_OR_KEYWORD, default="why", annotation=str
    )
    assert New(1) == New(x=1, z=[])


def test_a_class_that_extends_one_may_ask_for_its_init_first() -> None:
    @value
    class Base:
        x: int

    class Seven(Base):
        def __init__(self) -> None:
            super().__init__(7)

    assert Seven().x == 7


@pytest.mark.parametrize(
    ("args", "named"),
    [((), {}), ((1, 2, 3), {}), ((1,), {"z": 1}), ((1,), {"x": 1}), ((), {"y": 1})],
)
def test_wrong_arguments_are_refused_as_by_a_dataclass(
    args: tuple[int, ...], named: dict[str, int]
) -> None:
    def complaint(cls: Callable[..., object]) -> str:
        with pytest.raises(TypeError) as caught:
            cls(*args, **named)
        return str(caught.value).replace(Strict.__name__, Plain.__name__)

    assert complaint(Strict) == complaint(Plain)


def test_what_a_value_cannot_be_is_said_when_the_first_one_is_made() -> None:
    @value
    class Checked:
        x: int

        def __post_init__(self) -> None: ...

    @value
    class Counted:
        x: int = field(default=0, init=False)

    @value
    class Shared:
        x: ClassVar[int] = 0

    for odd in (lambda: Checked(1), Counted, Shared):
        with pytest.raises(AssertionError):
            odd()
