"""Rules about a provider that does not serve, and an agent that may not work (ADR 5, 11, 15)."""

from dataclasses import replace

import pytest

from kits.cases import CRASHED, NOW, UNDER_WORK, closing, failed, said
from ralph.kernel.contracts import ResponseTag
from ralph.kernel.facts import Landed
from ralph.kernel.rules import Objections, RateLimit, barred, refused
from ralph.kernel.turn import Turn
from ralph.kernel.verdict import Continue, Reason, Stop, Wait


@pytest.mark.parametrize(
    ("turn", "waits", "seconds"),
    [
        (failed(status=429), 0, 30.0),
        (failed(status=429), 1, 60.0),
        (failed(status=429), 4, 480.0),
        (failed(status=429), 5, 900.0),
        (failed(status=429), 5000, 900.0),
        (failed(status=429, resets_at=NOW + 7200), 0, 7200.0),
        (failed(status=429, resets_at=NOW + 7200), 9, 7200.0),
        (failed(status=429, retry_after=12.0), 0, 12.0),
        (failed(status=429, retry_after=12.0, resets_at=NOW + 40), 0, 40.0),
        (failed(status=429, resets_at=NOW - 10), 1, 60.0),
        (failed(status=429, retry_after=0.0), 0, 30.0),
        (failed(status=429, retry_after=1.0), 6, 64.0),
    ],
)
def test_a_rate_limit_waits(turn: Turn, waits: int, seconds: float) -> None:
    """ADR 11: "to the stated reset, else 30 s doubling to 15 min"."""
    case = closing(turn, state=replace(UNDER_WORK, waits=waits))
    assert RateLimit()(case) == Wait(NOW + seconds, "API error")


@pytest.mark.parametrize("status", [500, 503, 529])
def test_an_overloaded_provider_is_tried_ten_times(status: int) -> None:
    """ADR 11: "5xx wait the same way, ten times in a row at most; then the turn has failed"."""
    turn = failed("busy.", status)
    tried = [
        RateLimit()(closing(turn, state=replace(UNDER_WORK, waits=n, overloads=n)))
        for n in (0, 1, 9, 10)
    ]
    assert tried == [
        Wait(NOW + 30.0, "busy (try 1 of 10)"),
        Wait(NOW + 60.0, "busy (try 2 of 10)"),
        Wait(NOW + 900.0, "busy (try 10 of 10)"),
        None,
    ]
    stated = failed(status=status, retry_after=5.0)
    assert RateLimit()(closing(stated)) == Wait(NOW + 5.0, "API error (try 1 of 10)")


@pytest.mark.parametrize(
    ("turn", "failures", "delay", "seconds"),
    [
        (CRASHED, 0, 1.0, 1.0),
        (CRASHED, 1, 1.0, 2.0),
        (CRASHED, 5, 1.0, 32.0),
        (CRASHED, 6, 1.0, 60.0),
        (CRASHED, 5000, 1.0, 60.0),
        (CRASHED, 3, 0.0, 0.0),
        (said("<response>done?</response>"), 3, 1.0, 0.0),
    ],
)
def test_failures_in_a_row_are_spaced(
    turn: Turn, failures: int, delay: float, seconds: float
) -> None:
    """ADR 11: "failed turns in a row are spaced: 1 s, doubling to a minute"."""
    case = closing(turn, state=replace(UNDER_WORK, failures=failures))
    answer = Objections(ResponseTag("done"), delay)(case)
    assert isinstance(answer, Continue)
    assert answer.after == seconds


def test_who_is_refused_or_barred_is_told_what_to_type() -> None:
    """ADR 15: "ends the run (2) and names what to type"."""
    refused_turn = replace(failed("bad key.", 401), remedy="Log in: x login")
    assert refused(closing(refused_turn)) == Stop(
        Reason.CONFIG, "the agent's credential was refused: bad key. Log in: x login"
    )
    denied = Turn(denied=("Write", "Bash"), remedy="Add --yes.")
    words = "permission denied: Write, Bash, and nothing was changed"
    assert barred(closing(denied)) == Stop(Reason.CONFIG, f"{words}. Add --yes.")
    assert barred(closing(replace(denied, remedy=""))) == Stop(Reason.CONFIG, words)
    landed = replace(UNDER_WORK, landed=Landed(NOW, kept=True))
    assert barred(closing(denied, state=landed)) is not None


@pytest.mark.parametrize(
    ("turn", "changes"),
    [(Turn(), 0), (Turn(denied=("Write",), wrote=True), 0), (Turn(denied=("Write",)), 1)],
)
def test_who_could_write_something_is_not_barred(turn: Turn, changes: int) -> None:
    """ADR 15: "no tool that writes came through, and no file has changed"; nor in a sandbox."""
    landed = Landed(NOW, kept=True, count=changes)
    assert barred(closing(turn, state=replace(UNDER_WORK, landed=landed))) is None


def test_waiting_is_bounded() -> None:
    """ADR 1: "`--max-wait` (24 h) bounds it"."""
    case = closing(failed("quota", 429), state=replace(UNDER_WORK, waited=71.0))
    assert RateLimit(max_wait=101.0)(case) == Wait(NOW + 30.0, "quota")
    used_up = Stop(Reason.LIMIT, "waiting used up (1m40s): quota")
    assert RateLimit(max_wait=100.0)(case) == used_up
    tomorrow = closing(failed(status=429, resets_at=NOW + 86_401))
    assert isinstance(RateLimit()(tomorrow), Stop)


@pytest.mark.parametrize("turn", [Turn(), CRASHED, failed(status=400), said("rate limit, 429")])
def test_other_failures_and_mere_words_do_not_wait(turn: Turn) -> None:
    """ADR 11: "never from assistant text, tool output, guardrails or stderr"."""
    assert RateLimit()(closing(turn)) is None
