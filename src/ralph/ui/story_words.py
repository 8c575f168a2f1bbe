"""The lines of a run over stories about their reviews (R)."""

from collections.abc import Iterator

from ralph.kernel.facts import Step
from ralph.kernel.state import RunState
from ralph.review.law import APPROVED, CHANGES_REQUESTED
from ralph.review.stats import AUTO_APPROVED, review_of
from ralph.text.plain import first_line, one_line, shorten
from ralph.ui.lines import Line
from ralph.ui.style import Tone

STORY_STEPS = frozenset({"review", "correct", "cap", "commit"})
_LONGEST = 200  # characters of feedback
_OUTCOMES = {
    APPROVED: ("approved", Tone.GOOD),
    CHANGES_REQUESTED: ("changes requested", Tone.NOTICE),
    AUTO_APPROVED: ("approved at the review cap", Tone.NOTICE),
}


def story_words(state: RunState) -> str:
    """`: review US-002 (Title)`."""
    assignment = state.assignment
    if assignment is None:
        return ""
    title = f" ({one_line(assignment.title)})" if assignment.title else ""
    return f": {assignment.mode} {one_line(assignment.task)}{title}"


def story_step(fact: Step) -> Iterator[Line]:
    """The lines about what the host did to the list, and what a review found. What was approved
    at the cap is told by its review."""
    if fact.key == "review" and (review := review_of(fact.detail)) is not None:
        words, tone = _OUTCOMES[review.outcome]
        feedback = shorten(first_line(review.feedback), _LONGEST, None, "...")
        why = f": {feedback}" if feedback else ""
        yield Line(f"{one_line(review.story)} {words} (review {review.count}){why}", tone)
    elif fact.key == "correct" and fact.detail:
        yield Line(f"Put right: {first_line(fact.detail)}", Tone.NOTICE)
    elif fact.key == "commit":
        yield Line(f"Committed: {first_line(fact.detail)}", Tone.GOOD)
