"""What the checks of a commit come to."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ralph.forge.judging import Green, Nobody, Pending, Red, Terms, judged
from ralph.forge.port import Check, CheckState
from ralph.kernel.value import replace

PASSED, FAILED, PENDING = CheckState.PASSED, CheckState.FAILED, CheckState.PENDING
NEUTRAL, SKIPPED = CheckState.NEUTRAL, CheckState.SKIPPED


def checks(**states: CheckState) -> tuple[Check, ...]:
    return tuple(Check(name, state) for name, state in states.items())


@pytest.mark.parametrize(
    ("found", "terms", "quiet", "answer"),
    [
        # Nothing is pending first, and then nobody's: never green.
        (checks(), Terms(), 0, Pending("waiting for a first check to begin")),
        (checks(), Terms(), 119.9, Pending("waiting for a first check to begin")),
        (checks(), Terms(), 120, Nobody("no CI here: no check has begun within 2m")),
        (checks(), Terms(start=0), 0, Nobody("no CI here: no check has begun within 0.0s")),
        (checks(a=PASSED), Terms(), 0, Green("a passed")),
        (checks(a=PASSED, b=PENDING), Terms(), 999, Pending("waiting for b")),
        # Red at once, with all that failed.
        (
            checks(a=FAILED, b=PENDING, c=FAILED),
            Terms(),
            0,
            Red((Check("a", FAILED), Check("c", FAILED))),
        ),
        # Neutral and skipped are as the settings have them.
        (checks(a=NEUTRAL, b=SKIPPED), Terms(), 0, Green("a, b passed")),
        (checks(a=NEUTRAL), Terms(neutral="fail"), 0, Red((Check("a", NEUTRAL),))),
        (checks(a=SKIPPED), Terms(skipped="fail"), 0, Red((Check("a", SKIPPED),))),
        (checks(a=SKIPPED), Terms(neutral="fail"), 0, Green("a passed")),
        # With required ones, only those count, and all must be there.
        (checks(a=PASSED, b=FAILED), Terms(("a",)), 0, Green("a passed")),
        (checks(a=PASSED, b=PENDING), Terms(("a",)), 0, Green("a passed")),
        (checks(a=PASSED), Terms(("a", "b")), 0, Pending("waiting for b to begin")),
        (checks(a=PENDING), Terms(("b",)), 999, Pending("waiting for b to begin")),
        (
            checks(a=PASSED),
            Terms(("a", "b", "b")),
            120,
            Nobody("no check b has begun within 2m; there is a"),
        ),
        (checks(), Terms(("b",)), 120, Nobody("no CI here: no check b has begun within 2m")),
        (checks(b=FAILED), Terms(("a", "b")), 0, Red((Check("b", FAILED),))),
    ],
)
def test_what_they_come_to(
    found: tuple[Check, ...], terms: Terms, quiet: float, answer: object
) -> None:
    assert judged(found, terms, quiet) == answer


def test_red_in_words() -> None:
    assert Red(checks(a=FAILED, b=NEUTRAL)).words == "failed: a, b"


NAMES = st.sampled_from("abcdef")
FOUND = st.dictionaries(NAMES, st.sampled_from(CheckState)).map(lambda found: checks(**found))
TERMS = st.builds(
    Terms,
    required=st.lists(NAMES, max_size=3).map(tuple),
    neutral=st.sampled_from(["pass", "fail"]),
    skipped=st.sampled_from(["pass", "fail"]),
    start=st.floats(0, 300),
)
QUIET = st.floats(0, 1000)


@given(FOUND, TERMS, QUIET)
def test_green_is_what_everything_that_counts_says(
    found: tuple[Check, ...], terms: Terms, quiet: float
) -> None:
    counted = [check for check in found if not terms.required or check.name in terms.required]
    good = {PASSED} | ({NEUTRAL} if terms.neutral == "pass" else set())
    good |= {SKIPPED} if terms.skipped == "pass" else set()
    all_there = set(terms.required) <= {check.name for check in found}
    is_green = bool(counted) and all_there and all(check.state in good for check in counted)
    assert isinstance(judged(found, terms, quiet), Green) == is_green


@given(FOUND, TERMS, QUIET)
def test_red_is_at_once_whatever_the_rest_says(
    found: tuple[Check, ...], terms: Terms, quiet: float
) -> None:
    answer = judged(found, terms, quiet)
    assert judged(found[::-1], terms, quiet) == (
        Red(answer.checks[::-1])
        if isinstance(answer, Red)
        else replace(answer, words=judged(found[::-1], terms, quiet).words)
    )
    counted = [check for check in found if not terms.required or check.name in terms.required]
    assert isinstance(answer, Red) or not any(check.state is FAILED for check in counted)
    if isinstance(answer, Red):
        assert set(answer.checks) <= set(counted)
        assert not any(check.state in (PASSED, PENDING) for check in answer.checks)


@given(FOUND, TERMS, QUIET, QUIET)
def test_time_only_ends_the_waiting_for_what_does_not_begin(
    found: tuple[Check, ...], terms: Terms, quiet: float, more: float
) -> None:
    before, after = judged(found, terms, quiet), judged(found, terms, quiet + more)
    assert before == after or (isinstance(before, Pending) and isinstance(after, Nobody))
    if isinstance(after, Nobody):
        assert quiet + more >= terms.start
        assert not any(check.state is PENDING for check in found)
