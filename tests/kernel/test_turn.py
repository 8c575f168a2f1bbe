"""What a turn amounts to, before any rule judges it."""

import pytest

from kits.cases import CRASHED, CUT, MISSING, failed
from ralph.kernel.turn import Ending, Turn, ended_by
from ralph.kernel.verdict import Cut


@pytest.mark.parametrize(
    ("turn", "is_failed", "by_itself"),
    [
        (Turn(), False, True),
        (Turn(exit_code=None), False, True),
        (CRASHED, True, True),
        (Turn(exit_code=-9), True, True),
        (failed(), True, False),
        (CUT, True, False),
        (Turn(Ending.CUT, exit_code=0), True, False),
        (MISSING, True, False),
    ],
)
def test_how_a_turn_ended(turn: Turn, is_failed: bool, by_itself: bool) -> None:
    """ADR 4: "A failed turn (non-zero exit, `is_error`, ...) is not believed"."""
    assert (turn.failed, turn.by_itself) == (is_failed, by_itself)


@pytest.mark.parametrize(
    ("cut", "turn"),
    [
        (None, Turn(exit_code=3)),
        (Cut("too long"), Turn(Ending.CUT, exit_code=3, why="too long")),
        (Cut("would not exit", finished=True), Turn(exit_code=0, why="would not exit")),
    ],
)
def test_what_a_cut_makes_of_a_turn(cut: Cut | None, turn: Turn) -> None:
    """ADR 6: one that had said its result and only would not exit is the success it was."""
    assert ended_by(Turn(), 3, cut) == turn
