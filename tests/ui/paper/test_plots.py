"""The plots: well-formed, within their frame, sane whatever the numbers are, and none without
anything to say."""

import math
import re
from itertools import pairwise
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kits.recaps import BEGAN, bare, crew, hostile, single
from ralph.kernel.value import replace
from ralph.ui.paper.compare import compared
from ralph.ui.paper.plots.catalog import plots_of
from ralph.ui.paper.plots.svg import MOST_POINTS, thinned, ticks, time_ticks
from ralph.ui.recap.values import Iteration, Lane, Point, Recap, ReviewRow

MANY = 1_000
ALL = {"workers", "burndown", "money", "turns", "reviews", "tokens", "tools"}
ODD = st.floats(width=32) | st.sampled_from([math.nan, math.inf, -math.inf, 0.0, 1e300, -1.0])
COUNT = st.integers(0, 10**12)
POINTS = st.lists(st.builds(Point, ODD, ODD, COUNT, COUNT, COUNT, st.none() | COUNT), max_size=9)
LANES = st.lists(st.builds(Lane, st.just("w"), st.just("T"), ODD, st.none() | ODD), max_size=9)
SECONDS = st.tuples(ODD, ODD, ODD)


def reviewed() -> Recap:
    """A night of tasks, and of stories as well."""
    reviews = [
        ReviewRow(BEGAN + n, f"S-{n % 3}", "approved" if n > 5 else "changes_requested", "too long")
        for n in range(9)
    ]
    return replace(crew(), reviews=tuple(reviews))


def long() -> Recap:
    """A thousand of everything."""
    iteration, lane = crew().iterations[1], crew().lanes[0]
    return replace(
        reviewed(),
        iterations=tuple(replace(iteration, number=n) for n in range(MANY)),
        points=tuple(Point(BEGAN + n, n / 9, n, n // 2, n, MANY - n) for n in range(MANY)),
        lanes=tuple(
            replace(lane, began=BEGAN + n, ended=BEGAN + n + MANY / 3) for n in range(MANY)
        ),
        reviews=tuple(ReviewRow(BEGAN, f"S-{n}", "approved") for n in range(MANY)),
        tools=tuple((f"tool {n}", n, n // 2) for n in range(MANY)),
    )


def edited() -> Recap:
    """What nobody spends."""
    first, *others = crew().points
    return replace(crew(), points=(replace(first, dollars=-1e9, tokens_out=10**12), *others))


def plots(recap: Recap) -> dict[str, str]:
    return {plot.name: plot.svg for plot in plots_of(recap)}


def assert_sane(recap: Recap) -> None:
    """XML, with numbers that a screen can draw, and within the frame but for labels' halos."""
    for name, svg in plots(recap).items():
        root = ET.fromstring(svg)
        width, height = map(float, root.attrib["viewBox"].split()[2:])
        assert root.attrib["role"] == "img"
        assert root.attrib["aria-label"]
        for element in root.iter():
            for key, value in element.attrib.items():
                if key in ("x", "x1", "x2", "cx"):
                    assert -1 <= float(value) <= width + 1, (name, key, value)
                elif key in ("y", "y1", "y2", "cy"):
                    assert -1 <= float(value) <= height + 1, (name, key, value)
                elif key in ("width", "height", "r"):
                    assert 0 <= float(value) <= width, (name, key, value)
                elif key == "d":
                    assert all(
                        abs(float(n)) <= max(width, height) + 9
                        for n in re.findall(r"-?[\d.]+", value)
                    )
                    assert not re.search("nan|inf", value)
                else:
                    assert key != "style"


@pytest.mark.parametrize("recap", [crew(), hostile(), reviewed(), long(), edited(), bare()])
def test_plots_are_well_formed_and_within_their_frames(recap: Recap) -> None:
    assert_sane(recap)


@given(POINTS, LANES, st.lists(SECONDS, max_size=5), st.none() | ODD)
def test_no_number_breaks_a_plot(
    points: list[Point],
    lanes: list[Lane],
    seconds: list[tuple[float, float, float]],
    limit: float | None,
) -> None:
    """A journal may have been edited."""
    turns = tuple(
        Iteration(n, agent_seconds=a, gate_seconds=g, wait_seconds=w)
        for n, (a, g, w) in enumerate(seconds)
    )
    spent = replace(crew().spent, max_dollars=limit)
    odd = replace(
        crew(), points=tuple(points), lanes=tuple(lanes), iterations=turns, spent=spent, now=BEGAN
    )
    assert_sane(odd)
    other = compared([odd, crew()])
    assert other is None or ET.fromstring(other.svg) is not None


def test_a_plot_with_nothing_to_say_is_left_out() -> None:
    assert plots(bare()) == {}
    assert set(plots(single())) <= {"tools"}
    free = replace(crew(), points=tuple(replace(p, dollars=0.0) for p in crew().points))
    assert set(plots(free)) == ALL - {"money", "reviews"}
    assert set(plots(reviewed())) == ALL
    assert "workers" not in plots(replace(crew(), workers=1, lanes=crew().lanes[:1]))


def test_a_long_run_is_drawn_with_few_elements() -> None:
    sizes = {name: len(svg) for name, svg in plots(long()).items()}
    assert max(sizes.values()) < 60_000, sizes
    assert len(list(thinned(range(MANY)))) == MOST_POINTS
    assert [*thinned(range(MANY))][:: MOST_POINTS - 1] == [0, MANY - 1]


def test_each_plot_says_its_gist_and_has_its_numbers() -> None:
    told = {plot.name: (plot.gist, plot.rows[-1]) for plot in plots_of(crew())}
    assert told["money"] == ("$7.14 of $12.00 spent in 25m12s.", ("25m12s", "$7.14"))
    assert told["burndown"] == ("1 of 12 tasks left after 25m12s.", ("25m12s", 1))
    assert told["turns"][0].startswith("In all 1h25m of the agent, 6m32s of checks, 1m10s of wait")
    assert told["workers"][0] == "12 tasks in 25m12s, 3.7 at once on average."
    assert told["tools"] == ("332 tool calls, 17 with an error.", ("Fetch", 2, 2))


def test_workers_stand_in_as_few_rows_as_hold_them() -> None:
    assert 'aria-label="The first 96 of 1000 tasks in ' in plots(long())["workers"]
    rows = {row[0] for plot in plots_of(crew()) if plot.name == "workers" for row in plot.rows}
    assert rows == {1, 2, 3, 4}


@given(st.floats(1e-6, 1e12), st.integers(2, 8))
def test_ticks_are_round_and_hold_the_highest(high: float, most: int) -> None:
    marks = ticks(high, most)
    assert marks[-1] >= high * 0.999
    assert len(marks) <= most + 2
    step = marks[1]
    assert round(float(f"{step:e}".split("e")[0]), 6) in (1, 2, 3, 5)
    assert all(math.isclose(b - a, step, rel_tol=1e-6) for a, b in pairwise(marks))


@given(st.floats(0, 1e9))
def test_ticks_of_time_are_few(seconds: float) -> None:
    assert 1 <= len(time_ticks(seconds)) <= 7
