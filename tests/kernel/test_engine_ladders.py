"""Property (a): some rule always answers, and only with what is legal there (ADR 1)."""

from dataclasses import replace

import pytest
from engine_cases import cases, policies
from hypothesis import given, settings
from hypothesis import strategies as st

from kits.thorough import examples
from ralph.kernel.case import Case, Ladder, decide
from ralph.kernel.ports import Policy
from ralph.kernel.verdict import LEGAL, Boundary, Continue, Cut, Release, Stop, Wait
from ralph.kernel.world import Signals
from ralph.testing.fakes import FakeWorld

POLICIES = policies(FakeWorld())
FEWER = settings(max_examples=examples(60))  # a case has thirty fields to draw, and this runs often
STARTING = [name for name in POLICIES if name != "session"]


def ladder(policy: Policy, boundary: Boundary) -> Ladder:
    return {
        Boundary.OPENING: policy.opening,
        Boundary.WATCHING: policy.watching,
        Boundary.STOPPING: policy.stopping,
        Boundary.CLOSING: policy.closing,
    }[boundary]


@pytest.mark.parametrize(
    ("name", "boundary"),
    [
        *((name, Boundary.OPENING) for name in STARTING),
        *((name, Boundary.CLOSING) for name in STARTING),
        *((name, Boundary.STOPPING) for name in POLICIES),
    ],
)
@FEWER
@given(data=st.data())
def test_some_rule_always_answers(name: str, boundary: Boundary, data: st.DataObject) -> None:
    """`decide` itself refuses what is not legal: an AssertionError."""
    answer = decide(data.draw(cases(boundary)), ladder(POLICIES[name], boundary))
    assert isinstance(answer, LEGAL[boundary])


@pytest.mark.parametrize("name", STARTING)
@FEWER
@given(case=cases(Boundary.WATCHING))
def test_watching_cuts_or_says_nothing(name: str, case: Case) -> None:
    answer = decide(case, POLICIES[name].watching)
    assert answer is None or isinstance(answer, Cut)


@pytest.mark.parametrize("name", ["harness", "tasks", "reviewed", "unreviewed"])
@FEWER
@given(data=st.data())
def test_a_turn_never_begins_with_nothing_to_do(name: str, data: st.DataObject) -> None:
    """What the engine takes for granted when a ladder says Continue."""
    policy, case = POLICIES[name], data.draw(cases(Boundary.OPENING))
    answer = decide(case, policy.opening)
    assert (policy.select(case) is not None) or not isinstance(answer, Continue)


@pytest.mark.parametrize("name", STARTING)
@FEWER
@given(data=st.data())
def test_after_a_signal_no_turn_begins_and_none_is_accepted(name: str, data: st.DataObject) -> None:
    """ADR 2 and 7, for every profile."""
    boundary = data.draw(st.sampled_from([Boundary.OPENING, Boundary.CLOSING]))
    case = replace(data.draw(cases(boundary)), signals=Signals(data.draw(st.integers(1, 2)), 990.0))
    answer = decide(case, ladder(POLICIES[name], boundary))
    assert isinstance(answer, Stop)
    assert answer.reason.exit_code == 130


def test_what_is_legal_where() -> None:
    """ADR 1, the table under the verdicts."""
    assert {boundary: len(kinds) for boundary, kinds in LEGAL.items()} == {
        Boundary.OPENING: 4,
        Boundary.WATCHING: 1,
        Boundary.STOPPING: 4,
        Boundary.CLOSING: 5,
    }
    assert LEGAL[Boundary.WATCHING] == (Cut,)
    assert Wait not in LEGAL[Boundary.STOPPING]
    assert [b for b, kinds in LEGAL.items() if Release in kinds] == [Boundary.STOPPING]
