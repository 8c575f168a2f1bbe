"""What a run over stories says of their reviews (R)."""

import json
from collections.abc import Iterator

from ralph.core.facts import Step
from ralph.core.state import RunState
from ralph.ui.clean import first_line, one_line
from ralph.ui.lines import Line
from ralph.ui.style import Tone

STORY_STEPS = frozenset({"review", "correct", "cap"})
_OUTCOMES = {
    "approved": ("approved", Tone.GOOD),
    "changes_requested": ("changes requested", Tone.NOTICE),
    "auto_approved": ("approved at the review cap", Tone.NOTICE),
}


def story_words(state: RunState) -> str:
    """`: review US-002 (Title)`."""
    assignment = state.assignment
    if assignment is None:
        return ""
    title = f" ({one_line(assignment.title)})" if assignment.title else ""
    return f": {assignment.mode} {one_line(assignment.task)}{title}"


def story_step(fact: Step) -> Iterator[Line]:
    """What the host did about the list, and what a review found."""
    if not fact.detail:
        return
    if fact.key == "review":
        yield _review(json.loads(fact.detail))
    elif fact.key == "correct":
        yield Line(f"Put right: {first_line(fact.detail)}", Tone.NOTICE)


def _review(told: dict[str, object]) -> Line:
    words, tone = _OUTCOMES.get(str(told["outcome"]), (str(told["outcome"]), Tone.PLAIN))
    feedback = first_line(str(told["feedback"]))
    why = f": {feedback}" if feedback else ""
    return Line(f"{one_line(str(told['story']))} {words} (review {told['count']}){why}", tone)
