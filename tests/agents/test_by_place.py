"""Several agents of one run: who takes a turn, and a turn that nobody judges (ADR 45)."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from ralph.agents.by_place import ByPlace
from ralph.kernel.events import Failure, Usage
from ralph.kernel.ports import Watch
from ralph.kernel.turn import Order, Role, Turn
from ralph.kernel.value import replace

WELL = Turn(text="Add it", cost_usd=0.5, usage=Usage(1, 2))
LIMITED = Turn(exit_code=1, failure=Failure("no", 429), cost_usd=0.25, usage=Usage(10, 20))
REFUSED = replace(LIMITED, failure=Failure("no", 401), cost_usd=0.0)
BROKEN = Turn(exit_code=1, failure=Failure("no"))
UNTOLD = replace(LIMITED, cost_usd=None)


@dataclass
class Player:
    turn: Turn
    places: list[int] = field(default_factory=list)

    def take_turn(self, order: Order, watch: Watch) -> Turn:
        self.places.append(order.place)
        return self.turn


def taken(turns: Sequence[Turn], order: Order, fallbacks: int = 2) -> tuple[Turn, str]:
    """The turn, and the places that were asked."""
    players = tuple(map(Player, turns))
    turn = ByPlace(players, fallbacks).take_turn(order, lambda _: None)
    asked = [place for player in players for place in player.places]
    return turn, "".join(map(str, asked))


@pytest.mark.parametrize("place", [0, 1, 2, 3])
@pytest.mark.parametrize("turn", [WELL, LIMITED, REFUSED, BROKEN])
def test_a_turn_is_taken_by_the_one_it_is_for(place: int, turn: Turn) -> None:
    """Whatever becomes of it: it is judged, and then another one may go on."""
    turns = [replace(turn, text=str(number)) for number in range(4)]
    assert taken(turns, Order("x", 1, Role.WORK, place=place)) == (turns[place], str(place))


@pytest.mark.parametrize(
    ("turns", "place", "asked"),
    [
        ([WELL, WELL, WELL, WELL], 0, "0"),
        ([LIMITED, WELL, WELL, WELL], 0, "01"),
        ([REFUSED, LIMITED, WELL, WELL], 0, "012"),
        ([WELL, LIMITED, WELL, WELL], 1, "12"),  # the first one had its reasons
        ([WELL, WELL, WELL, LIMITED], 3, "31"),  # a cheaper model of the first one
        ([LIMITED, LIMITED, LIMITED, WELL], 0, "012"),
        ([BROKEN, WELL, WELL, WELL], 0, "0"),
    ],
)
def test_a_message_is_asked_of_the_next_one(turns: list[Turn], place: int, asked: str) -> None:
    order = Order("x", 1, Role.MESSAGE, place=place)
    turn, places = taken(turns, order)
    assert sorted(places) == sorted(asked)
    assert turn.text == turns[int(asked[-1])].text


def test_what_all_of_them_have_cost_counts() -> None:
    order = Order("x", 1, Role.MESSAGE)
    turn, _ = taken([LIMITED, REFUSED, WELL], order)
    assert (turn.cost_usd, turn.usage) == (0.75, Usage(21, 42))
    unknown, _ = taken([UNTOLD, WELL, WELL], order)
    assert unknown.uncounted
