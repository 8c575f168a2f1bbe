"""`@value`: compared, hashed and shown by its fields."""

from dataclasses import field, replace

from ralph.core.value import value


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


def test_values_compare_by_class_and_fields() -> None:
    assert Point(1) == Point(1, 0)
    assert Point(1) != Point(2)
    others: list[object] = [Other(1), (1, 0, "")]
    assert Point(1) not in others


def test_values_hash_by_their_fields() -> None:
    assert len({Point(1), Point(1), Point(2)}) == 2


def test_values_show_their_fields_but_hidden_ones() -> None:
    assert repr(Point(1, note="secret")) == "Point(x=1, y=0)"


def test_values_can_be_replaced_and_matched() -> None:
    match replace(Point(1), y=5):
        case Point(1, 5):
            pass
        case other:
            raise AssertionError(other)


def test_values_have_no_room_for_more() -> None:
    assert not hasattr(Point(1), "__dict__")
