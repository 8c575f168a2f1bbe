"""Which tasks of a merge train are tried together, land, go back and board again."""

from math import ceil, log2

from hypothesis import given
from hypothesis import strategies as st

from ralph.loops.backlog.parallel.train import Train

CARS = tuple("abcdefghijkl")
some = st.integers(0, len(CARS)).map(lambda number: CARS[:number])


def ridden(train: Train, bad: set[str], tells: set[str] = set()) -> tuple[Train, list[int]]:  # noqa: B006
    """The train once nothing is left to find out, and what was tried; `tells` fail by name."""
    tried = []
    while train.trial:
        tried.append(train.trial)
        there = train.cars[: train.trial]
        named = [car for car in there if car in tells]
        if named and not bad.intersection(there):
            train = train.failed(named[0])
        else:
            train = train.failed() if bad.intersection(there) else train.passed()
    return train, tried


def test_a_train_that_passes_is_tried_once() -> None:
    train, tried = ridden(Train(CARS), set())
    assert (train.lands, train.guilty, train.again, tried) == (CARS, (), (), [12])


def test_what_is_proven_already_is_not_tried() -> None:
    assert Train(("a",), good=1).trial == 0
    assert ridden(Train(("a", "b"), good=1), {"b"}) == (Train(("a", "b"), 1, 2), [2])


def test_the_guilty_one_is_found_by_halves() -> None:
    train, tried = ridden(Train(tuple("abcdefgh")), {"f"})
    assert (train.lands, train.guilty, train.again) == (tuple("abcde"), ("f",), ("g", "h"))
    assert tried == [8, 4, 6, 5]


def test_who_is_named_by_its_own_check_leaves_once_that_fails_without_those_behind_it() -> None:
    train, tried = ridden(Train(tuple("abcd")), set(), {"b"})
    assert (train.lands, train.guilty, train.again, tried) == (tuple("acd"), ("b",), (), [4, 2, 3])
    train, tried = ridden(Train(tuple("abcd")), set(), {"d"})
    assert (train.lands, train.guilty, train.again, tried) == (tuple("abc"), ("d",), (), [4, 3])


def test_whose_check_another_breaks_is_innocent() -> None:
    """`c` undoes what `b` has done."""
    train = Train(tuple("abcd")).failed("b")
    assert train.trial == 2
    train = train.passed().failed("b")
    assert (train.trial, train.lands, train.guilty, train.again) == (0, ("a", "b"), ("c",), ("d",))


def test_what_has_passed_lands_without_the_one_who_left_behind_it() -> None:
    train = Train(tuple("abcd"), good=1, bad=3, hint=2).failed("b")
    assert (train.cars, train.lands, train.trial) == (tuple("acd"), ("a",), 3)


@given(some, st.sets(st.sampled_from(CARS)), st.sets(st.sampled_from(CARS)))
def test_each_car_lands_goes_back_or_boards_again(
    cars: tuple[str, ...], bad: set[str], tells: set[str]
) -> None:
    train, tried = ridden(Train(cars), bad, tells)
    assert sorted((*train.lands, *train.guilty, *train.again)) == sorted(cars)
    assert not {*train.lands} & (bad | tells), "the innocent"
    assert {*train.guilty} <= bad | tells, "the guilty"
    assert bool(train.guilty) == bool({*cars} & (bad | tells))
    assert not train.lands or train.good in tried


@given(some, st.sampled_from(CARS))
def test_one_of_k_is_found_by_few_trials(cars: tuple[str, ...], guilty: str) -> None:
    train, tried = ridden(Train(cars), {guilty})
    assert len(tried) <= 1 + ceil(log2(max(1, len(cars))))
    assert train.guilty == ((guilty,) if guilty in cars else ())
