"""S §Restart Counter: how each attempt is told."""

import pytest

from ralph.kernel.events import Failure
from ralph.kernel.turn import Ending, Turn
from ralph.kernel.verdict import Continue, Reason, Stop, Verdict
from ralph.ui.attempt_words import outcome, timeout

AGAIN = Continue(after=1.0)
DONE = Stop(Reason.COMPLETED)
WAITING = Stop(Reason.BLOCKED, "waiting without restart: exit code 42")
GOOD, BAD = Turn(), Turn(exit_code=1, stderr="oops")


@pytest.mark.parametrize(
    ("turn", "verdict", "words"),
    [
        (BAD, AGAIN, "Attempt 1: Agent failed (exit 1), restarting..."),
        (BAD, DONE, "Attempt 1: Agent failed (exit 1)"),
        (GOOD, DONE, "Attempt 1: Agent succeeded"),
        (GOOD, AGAIN, "Attempt 1: Agent succeeded without DONE, restarting..."),
        (
            Turn(Ending.CUT, exit_code=137, why="timed out after 5m"),
            AGAIN,
            "Attempt 1: Agent failed (timed out after 5m), restarting...",
        ),
        (
            Turn(failure=Failure("overloaded", 529), exit_code=1),
            AGAIN,
            "Attempt 1: Agent failed (overloaded), restarting...",
        ),
        (
            Turn(Ending.UNSTARTABLE, exit_code=None, why="not found"),
            Stop(Reason.CONFIG, "not found"),
            "Attempt 1: Agent could not be started: not found",
        ),
        (
            Turn(Ending.CUT, exit_code=143, why="DONE, and it would not end"),
            DONE,
            "Attempt 1: Agent was ended: DONE, and it would not end",
        ),
        (
            Turn(exit_code=42),
            WAITING,
            "Attempt 1: Agent stopped, waiting without restart: exit code 42",
        ),
    ],
)
def test_an_attempt_in_words(turn: Turn, verdict: Verdict, words: str) -> None:
    assert outcome(1, turn, verdict, 3) == outcome(1, turn, verdict) == words


@pytest.mark.parametrize(
    ("why", "words"),
    [
        ("timed out after 5m", "Agent timeout after 5m, killing process group"),
        ("silent for 30s", "Agent silent for 30s, killing process group"),
        ("asked to stop", None),
    ],
)
def test_a_timeout_is_told_as_s_has_it(why: str, words: str | None) -> None:
    """S §Timeout Behavior, Logging; the issue: "S's log lines about timeouts exist"."""
    turn = Turn(Ending.CUT, exit_code=137, why=why)
    told = (words, "Process group killed, treating as failure") if words else ()
    assert timeout(turn) == told
    assert timeout(BAD) == ()


@pytest.mark.parametrize(
    ("turn", "words"),
    [
        (BAD, "Attempt 3: Agent failed (exit 1)"),
        (GOOD, "Attempt 3: Agent succeeded without DONE"),
    ],
)
def test_the_last_one_is_not_restarted(turn: Turn, words: str) -> None:
    assert outcome(3, turn, AGAIN, 3) == words
