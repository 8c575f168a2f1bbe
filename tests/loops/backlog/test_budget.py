"""Leases of money: N workers cannot overspend (ADR 31)."""

from hypothesis import given
from hypothesis import strategies as st

from ralph.loops.backlog.parallel.budget import Budget


def test_shares_are_equal_and_what_is_not_spent_comes_back() -> None:
    """A lease is a part of what is free; the rest of it is free again when the turn is over."""
    purse = Budget(8.0, 4)
    assert all(purse.lease(worker) for worker in "abcd")
    assert [purse.held(worker) for worker in "abcd"] == [2.0, 2.0, 2.0, 2.0]
    purse.paid("a", 0.5)
    assert (purse.left(), purse.spent, purse.held("a")) == (7.5, 0.5, None)
    assert purse.lease("a")
    assert purse.held("a") == 1.5


def test_whoever_holds_a_lease_keeps_it() -> None:
    """Asked again, nothing more is put aside."""
    purse = Budget(8.0, 2)
    assert purse.lease("a")
    assert purse.lease("a")
    assert purse.held("a") == 4.0


def test_without_a_limit_nobody_waits() -> None:
    """There is nothing to share."""
    purse = Budget(None, 2, dearest=None)
    assert purse.lease("a")
    assert purse.lease("b")
    assert (purse.held("a"), purse.left()) == (None, None)


def test_while_nobody_knows_what_a_turn_costs_one_is_taken_alone() -> None:
    """And then as many as there is money for, by what it has cost."""
    purse = Budget(1.0, 4, dearest=None)
    assert purse.lease("a")
    assert not purse.lease("b")
    purse.paid("a", 0.4)
    assert purse.lease("b")
    assert purse.held("b") == 0.4
    assert not purse.lease("c")  # 0.2 would be too little


def test_a_turn_that_costs_nothing_tells_the_price_too() -> None:
    """And a lease of which no turn came tells nothing."""
    purse = Budget(1.0, 2, dearest=None)
    assert purse.lease("a")
    purse.give_back("a")
    assert purse.lease("a")
    assert not purse.lease("b")
    purse.paid("a", 0.0)
    assert purse.lease("a")
    assert purse.lease("b")


@given(
    st.floats(0.01, 100),
    st.integers(1, 8),
    st.lists(st.tuples(st.integers(0, 7), st.floats(0, 1)), max_size=60),
)
def test_leases_are_never_more_than_what_is_left(
    limit: float, workers: int, turns: list[tuple[int, float]]
) -> None:
    """Turns that keep to their leases never spend more than the limit."""
    purse = Budget(limit, workers, dearest=None)
    for number, part in turns:
        name = str(number % workers)
        held = purse.held(name)
        if held is not None:
            purse.paid(name, held * part)
        else:
            purse.lease(name)
        leases = sum(purse.held(str(n)) or 0.0 for n in range(workers))
        assert purse.spent + leases <= limit + 1e-9
