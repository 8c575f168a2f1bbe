"""Signals from several places."""

import pytest

from ralph.kernel.world import Signals, together


@pytest.mark.parametrize(
    ("one", "other", "both"),
    [
        (Signals(), Signals(), Signals()),
        (Signals(1, 5.0), Signals(1, 3.0), Signals(1, 3.0)),
        (Signals(2, 5.0), Signals(1, 6.0), Signals(2, 5.0)),
        (Signals(paused=True), Signals(1, 3.0), Signals(1, 3.0, paused=True)),
        (
            Signals(done_at=1.0, wait="why"),
            Signals(problem="no"),
            Signals(done_at=1.0, wait="why", problem="no"),
        ),
    ],
)
def test_what_is_asked_in_two_places_is_asked_once(
    one: Signals, other: Signals, both: Signals
) -> None:
    """ADR 7: `ralph stop` beside a Ctrl+C is no second signal."""
    assert together(one, other) == both
    assert together(other, one) == both
