"""ADR 46: what is likely left, as a median and an 80 % interval, and whether limits will hold."""

import math
import random
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ralph.journal.efforts import FILE, Efforts, read_efforts
from ralph.journal.forecast import (
    LEAST,
    NOTHING,
    Begun,
    Bound,
    Effort,
    Forecast,
    Range,
    Share,
    Waiting,
    forecast,
    judged,
    remaining,
    together,
)
from ralph.kernel.facts import Began, Decided, Ended, Fact, Settled, Started
from ralph.kernel.limits import Limits, Spent
from ralph.kernel.tasks.task import Assignment
from ralph.kernel.turn import Turn
from ralph.kernel.verdict import Accept, Boundary, Continue, Reason, Stop

SAME = [Effort(4, 400.0, 2.0)] * 20
amounts = st.floats(0, 1e6) | st.sampled_from((0.0, 5e-324, 1e-12, 1e9))
efforts = st.lists(
    st.builds(
        Effort,
        st.integers(1, 50),
        amounts,
        st.none() | amounts,
        st.booleans(),
        st.sampled_from(("", "bug", "feature")),
        st.sampled_from((0.0, 1e-3, 1.0, 3.0, 1e9)),
        st.none() | st.tuples(amounts, amounts),
    ),
    max_size=40,
)
waiting = st.lists(
    st.builds(Waiting, st.sampled_from(("", "bug")), st.sampled_from((0.0, 2.0, 5.0))), max_size=30
)
begun = st.lists(st.builds(Begun, st.integers(0, 60), amounts, st.none() | amounts), max_size=4)


def ranges(found: Forecast) -> list[Range | None]:
    return [found.iterations, found.seconds, found.cost_usd]


# ------------------------------------------------------------------ what always holds


@given(efforts, waiting, begun, st.integers(1, 8), st.sampled_from(("run", "task", "story")))
def test_intervals_are_ordered_and_nothing_is_negative(
    past: list[Effort], wait: list[Waiting], under_way: list[Begun], workers: int, unit: str
) -> None:
    found = forecast(past, waiting=wait, begun=under_way, workers=workers, unit=unit)
    for each in ranges(found):
        if each is not None:
            assert 0 <= each.low <= each.median <= each.high < math.inf
    assert (found.iterations is None) == bool(found.why)
    if found.iterations is not None and (wait or under_way):
        assert found.iterations.low >= len(wait) + len(under_way)


@given(efforts, waiting, begun, st.integers(1, 8))
def test_more_open_tasks_are_never_forecast_to_take_less(
    past: list[Effort], wait: list[Waiting], under_way: list[Begun], workers: int
) -> None:
    found = [
        ranges(forecast(past, waiting=wait[:n], begun=under_way, workers=workers, unit="task"))
        for n in range(len(wait) + 1)
    ]
    for fewer, more in pairwise(found):
        for before, after in zip(fewer, more, strict=True):
            if before is not None and after is not None:
                slack = 1e-6 * (1 + after.high)
                assert after.low >= before.low - slack
                assert after.median >= before.median - slack
                assert after.high >= before.high - slack


@given(efforts, waiting, begun)
def test_the_same_history_gives_the_same_forecast(
    past: list[Effort], wait: list[Waiting], under_way: list[Begun]
) -> None:
    one, other = (forecast(past, waiting=wait, begun=under_way) for _ in range(2))
    assert one == other


@given(efforts, st.integers(0, 60))
def test_the_chances_of_what_remains_are_all_there_are(past: list[Effort], taken: int) -> None:
    if any(each.ended for each in past):
        found = remaining(past, taken)
        assert sum(found.chances) == pytest.approx(1)
        assert sum(chance for _, chance in found.binned()) == pytest.approx(1)
        mean = sum(n * chance for n, chance in found.binned())
        assert mean == pytest.approx(found.mean)


@given(st.lists(st.tuples(amounts, amounts, amounts).map(lambda t: Range(*sorted(t))), max_size=6))
def test_a_sum_of_amounts_is_at_least_each_of_them(parts: list[Range]) -> None:
    whole = together(parts)
    for part in parts:
        slack = 1e-9 * (1 + whole.high)
        assert whole.low >= part.low - slack
        assert whole.high >= part.high - slack


# ------------------------------------------------------------------ who cannot tell


def test_without_a_history_nobody_can_tell() -> None:
    found = forecast([], begun=[Begun()])
    assert ranges(found) == [None, None, None]
    assert found.observations == 0
    assert found.why == "too few runs to tell (0 of 5)"


def test_of_too_few_nobody_can_tell() -> None:
    assert forecast(SAME[: LEAST - 1], begun=[Begun()]).iterations is None
    assert forecast(SAME[:LEAST], begun=[Begun()]).iterations is not None


def test_a_run_that_was_cut_off_is_none_that_came_to_its_end() -> None:
    cut = [Effort(9, 1.0, ended=False)] * 20
    found = forecast([*SAME[: LEAST - 1], *cut], begun=[Begun()])
    assert found.why == "too few runs that came to their end to tell (4 of 5)"


def test_stories_have_a_plural_of_their_own() -> None:
    assert forecast([], waiting=[Waiting()], unit="story").why.startswith("too few stories to tell")


def test_a_run_that_outlasts_the_others_is_not_guessed_at() -> None:
    found = forecast(SAME, begun=[Begun(4, 400.0, 2.0)])
    assert found.why == "longer than nearly all of 20 runs"
    task = forecast(SAME, begun=[Begun(4, 400.0, 2.0)], waiting=[Waiting()], unit="task")
    assert task.iterations is not None, "of one of many tasks the others tell"


def test_a_cost_that_nobody_told_is_not_forecast() -> None:
    found = forecast([Effort(4, 400.0)] * 20, begun=[Begun()])
    assert found.cost_usd is None
    assert found.seconds is not None


def test_efforts_without_an_iteration_tell_nothing() -> None:
    assert forecast([Effort(0, 0.0)] * 20, begun=[Begun()]).observations == 0


def test_where_nothing_is_left_nothing_is_forecast() -> None:
    found = forecast([], unit="task")
    assert ranges(found) == [NOTHING, NOTHING, NOTHING]
    assert not found.why


# ------------------------------------------------------------------ what is found


def test_what_was_always_the_same_will_be_so_again() -> None:
    found = forecast(SAME, begun=[Begun()])
    assert found.iterations == Range(4, 4, 4)
    assert found.seconds is not None
    assert found.seconds.low < 400 < found.seconds.high < 600


def test_what_was_taken_is_not_left() -> None:
    found = forecast(SAME, begun=[Begun(3, 300.0, 1.5)])
    assert found.iterations == Range(1, 1, 1)


def test_a_run_that_was_cut_off_makes_the_others_look_short() -> None:
    """Censored: it would have taken more, and is neither left out nor taken for its end."""
    short, long = [Effort(2, 2.0)] * 6, [Effort(8, 8.0)] * 6
    cut = [Effort(4, 4.0, ended=False)] * 12
    left_out = forecast([*short, *long], begun=[Begun()]).iterations
    told = forecast([*short, *long, *cut], begun=[Begun()]).iterations
    taken_for_an_end = forecast([*short, *long, *[Effort(4, 4.0)] * 12], begun=[Begun()]).iterations
    assert left_out
    assert told
    assert taken_for_an_end
    assert taken_for_an_end.median == 4
    assert told.median == 8
    assert told.median >= left_out.median


def test_the_longer_a_run_has_taken_the_more_the_long_ones_tell() -> None:
    past = [*[Effort(1, 1.0)] * 10, *[Effort(10, 10.0)] * 10]
    first = forecast(past, begun=[Begun()]).iterations
    later = forecast(past, begun=[Begun(1, 1.0)]).iterations
    assert first
    assert later
    assert (first.low, first.high) == (1, 10)
    assert later.median == 9


def test_a_run_that_is_dearer_than_others_goes_on_so() -> None:
    cheap = forecast(SAME, begun=[Begun(2, 200.0, 1.0)]).cost_usd
    dear = forecast(SAME, begun=[Begun(2, 200.0, 4.0)]).cost_usd
    assert cheap
    assert dear
    assert dear.median > 1.5 * cheap.median


def test_squares_tell_runs_that_differ_from_iterations_that_do() -> None:
    """By these a run of one dear iteration is not taken for a dear run."""
    steady = [Effort(4, 40.0 * n, squares=(400.0 * n * n, 0.0)) for n in range(1, 11)]
    wild = [Effort(4, 40.0 * n, squares=(1600.0 * n * n, 0.0)) for n in range(1, 11)]
    one, other = (forecast(past, begun=[Begun(1, 200.0)]).seconds for past in (steady, wild))
    assert one
    assert other
    assert one.median > other.median


def test_a_list_takes_what_its_tasks_do() -> None:
    found = forecast(SAME, waiting=[Waiting()] * 10, unit="task")
    assert found.iterations
    assert found.seconds
    assert found.cost_usd
    assert found.iterations.median == 40
    assert found.seconds.median == pytest.approx(4000, rel=0.01)
    assert found.cost_usd.low < 20 < found.cost_usd.high


def test_many_tasks_are_known_better_than_one() -> None:
    past = [Effort(n, float(n)) for n in (1, 2, 3, 8, 2, 1, 5, 9, 2, 3)]
    one, many = (forecast(past, waiting=[Waiting()] * n, unit="task").seconds for n in (1, 50))
    assert one
    assert many
    assert one.high / one.low > 2 * many.high / many.low


def test_workers_share_the_time_and_not_the_money() -> None:
    alone, crew = (
        forecast(SAME, waiting=[Waiting()] * 30, workers=workers, unit="task") for workers in (1, 3)
    )
    assert alone.seconds
    assert crew.seconds
    assert crew.seconds.median == pytest.approx(alone.seconds.median / 3)
    assert crew.cost_usd == alone.cost_usd
    assert crew.iterations == alone.iterations


def test_a_crew_is_not_done_before_its_longest_task() -> None:
    past = [Effort(n, 100.0 * n) for n in (1, 2, 3, 8, 2, 1, 5, 9, 2, 3)]
    one, eight = (
        forecast(past, waiting=[Waiting()] * n, workers=8, unit="task").seconds for n in (1, 8)
    )
    assert one
    assert eight
    assert eight.median > 1.5 * one.median
    assert eight.high >= one.high


def test_an_estimate_counts_where_it_has_helped() -> None:
    sized = [Effort(n, 100.0 * n, size=float(n)) for n in (1, 2, 3, 4, 5, 6, 7, 8, 2, 3, 4, 5)]
    small, large = (
        forecast(sized, waiting=[Waiting(size=size)], unit="task").seconds for size in (1.0, 8.0)
    )
    assert small
    assert large
    assert small.median == pytest.approx(100, rel=0.1)
    assert large.median == pytest.approx(800, rel=0.1)


def test_an_estimate_that_tells_nothing_does_not_count() -> None:
    past = [Effort(n, 100.0 * n, size=9.0 - n) for n in (1, 2, 3, 4, 5, 6, 7, 8, 2, 3, 4, 5)]
    small, large = (
        forecast(past, waiting=[Waiting(size=size)], unit="task").seconds for size in (1.0, 8.0)
    )
    assert small == large


def test_a_type_counts_where_it_has_helped() -> None:
    past = [Effort(n, 10.0 * n, kind="bug") for n in (1, 2, 1, 2, 1, 1)]
    past += [Effort(n, 10.0 * n, kind="feature") for n in (8, 9, 8, 9, 8, 9)]
    bug, feature, unknown = (
        forecast(past, waiting=[Waiting(kind)], unit="task").iterations
        for kind in ("bug", "feature", "chore")
    )
    assert bug
    assert feature
    assert unknown
    assert bug.high < feature.low
    assert bug.median < unknown.median < feature.median


# ------------------------------------------------------------------ limits


def told(low: float, median: float, high: float) -> Forecast:
    between = Range(low, median, high)
    return Forecast(20, "run", between, between, between)


@pytest.mark.parametrize(
    ("limit", "holds"), [(30, True), (29, None), (25, None), (24, False), (10, False)]
)
def test_a_limit_holds_if_the_high_end_stays_within_it(limit: int, holds: bool | None) -> None:
    """True: the 90th percentile stays within it. False: the median does not. Else: uncertain."""
    spent = Spent(iterations=10)
    found = judged(told(5, 15, 20), Limits(iterations=limit), spent)
    assert found.bounds == (Bound(f"{limit} iterations", holds),)
    assert found.limit_holds is holds
    assert found.after == spent


def test_the_worst_limit_speaks_for_all() -> None:
    limits = Limits(iterations=100, seconds=12.0, dollars=1.0)
    found = judged(told(5, 10, 15), limits, Spent())
    assert [bound.holds for bound in found.bounds] == [True, None, False]
    assert found.limit_holds is False
    assert judged(told(5, 10, 15), Limits(100, 12.0), Spent()).limit_holds is None


def test_no_limit_neither_holds_nor_does_not() -> None:
    assert judged(told(1, 2, 3), Limits(), Spent()).limit_holds is None


def test_a_limit_of_what_nobody_knows_is_uncertain() -> None:
    unknown = Forecast(20, "run", Range(1, 2, 3))
    paid = Spent(dollars=0.5)
    assert judged(unknown, Limits(iterations=9, dollars=5.0), paid).limit_holds is None
    assert judged(unknown, Limits(iterations=1, dollars=5.0), paid).limit_holds is False


def test_money_that_no_turn_tells_reaches_no_limit() -> None:
    unknown = Forecast(20, "run", Range(1, 2, 3))
    found = judged(unknown, Limits(iterations=9, dollars=5.0), Spent())
    assert found.bounds == (Bound("9 iterations", holds=True),)


def test_tasks_and_a_day_have_limits_too() -> None:
    found = judged(told(1, 2, 3), Limits(tasks=4), Spent(dollars=1.0), units=5, day=(6.0, 2.0))
    assert found.bounds == (Bound("$6 a day", True), Bound("4 tasks", False))
    assert judged(told(1, 2, 3), Limits(tasks=5), Spent(), units=5).limit_holds is True
    day = judged(told(1, 2, 3), Limits(), Spent(dollars=1.0), day=(6.5, 3.0))
    assert day.bounds == (Bound("$6.50 a day", None),)


def test_the_largest_of_many_is_larger() -> None:
    one, many = Share(10.0, 25.0, 30).range(), Share(10.0, 25.0, 30).range(8)
    assert many.low > one.low
    assert many.median > one.median
    assert many.high > one.high


# ------------------------------------------------------------------ coverage


def journal(run: str, seconds: Sequence[float], *, limit: int) -> list[Fact]:
    """The facts of a run whose iterations take so long, and cost a cent a second."""
    facts: list[Fact] = [Started(1000.0, run, "harness", "/w", 1, "1", limits=Limits(limit))]
    now = 1000.0
    for number, long in enumerate(seconds[:limit], 1):
        facts.append(Began(now, number, Assignment("prompt")))
        now += long
        last = number == len(seconds)
        verdict = Accept(("claim",)) if last else Continue()
        cost = long / 100
        facts += [
            Ended(now, Turn(cost_usd=cost, seconds=long)),
            Decided(now, Boundary.CLOSING, verdict),
            Settled(now, verdict),
        ]
    reason = Reason.COMPLETED if len(seconds) <= limit else Reason.LIMIT
    return [*facts, Decided(now, Boundary.OPENING, Stop(reason)), Settled(now, Stop(reason))]


KINDS: dict[str, Callable[[random.Random], int]] = {
    "geometric": lambda chance: min(40, 1 + int(math.log(chance.random()) / math.log(0.75))),
    "2 to 8": lambda chance: chance.randint(2, 8),
    "short or long": lambda chance: chance.choice((1, 2, 2, 8, 10)),
    "heavy tail": lambda chance: min(40, 1 + int(chance.lognormvariate(1, 0.8))),
}


@pytest.mark.parametrize("limit", [100, 6])
def test_the_truth_lies_in_the_interval_as_often_as_it_says(tmp_path: Path, limit: int) -> None:
    """The pinned version of `python -m bench.forecasts`: 45 runs of each kind, written and read as
    Ralph does, with a forecast at the start and after every iteration."""
    chance = random.Random(46)
    inside = {"iterations": 0, "seconds": 0, "cost_usd": 0}
    count = 0
    for name, draw in KINDS.items():
        project = tmp_path / name
        project.mkdir()
        for number in range(45):
            mean = 60 * chance.lognormvariate(0, 0.3)
            took = [mean * chance.lognormvariate(0, 0.4) for _ in range(draw(chance))]
            past = read_efforts(str(project / FILE), "harness")
            for over in range(min(limit, len(took))):
                used, rest = sum(took[:over]), sum(took[over:])
                found = forecast(past, begun=[Begun(over, used, used / 100)])
                if found.iterations is not None and found.seconds and found.cost_usd:
                    count += 1
                    left = len(took) - over
                    inside["iterations"] += found.iterations.low <= left <= found.iterations.high
                    inside["seconds"] += found.seconds.low <= rest <= found.seconds.high
                    inside["cost_usd"] += found.cost_usd.low <= rest / 100 <= found.cost_usd.high
            keeper = Efforts(str(project), pytest.fail)
            for fact in journal(f"run-{number}", took, limit=limit):
                keeper.on_fact(fact)
    assert count > 400
    shares = {amount: number / count for amount, number in inside.items()}
    assert all(0.7 <= share <= 0.95 for share in shares.values()), shares
