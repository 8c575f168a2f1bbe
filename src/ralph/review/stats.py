"""Statistics of the reviews of a list of stories (R §8, post-completion analytics)."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from ralph.kernel.value import value
from ralph.review.check import standing
from ralph.review.law import APPROVED, AT_CAP, CHANGES_REQUESTED, stories_of

AUTO_APPROVED = "auto_approved"
_OUTCOMES = (APPROVED, CHANGES_REQUESTED, AUTO_APPROVED)
_AT_CAP = "approved at the cap"


@value
class Review:
    """A review that took place, as the journal of its run has it."""

    story: str
    outcome: str
    count: int = 0  # the story's reviews with this one
    feedback: str = ""
    branch: str = ""  # of which list

    def detail(self) -> str:
        """The review as JSON, for a step of a journal."""
        told = {"story": self.story, "outcome": self.outcome, "count": self.count}
        return json.dumps({**told, "feedback": self.feedback, "list": self.branch})

    @property
    def caught(self) -> bool:
        """True if it found something."""
        return self.outcome != APPROVED and bool(self.feedback)


def review_of(detail: str) -> Review | None:
    """The review that a step of a journal tells; None if it is none."""
    try:
        told = json.loads(detail)
    except (ValueError, RecursionError):
        return None
    if not isinstance(told, dict) or told.get("outcome") not in _OUTCOMES:
        return None
    story, count = _text(told, "story"), _number(told, "count")
    if not story or not count:
        return None
    return Review(story, told["outcome"], count, _text(told, "feedback"), _text(told, "list"))


def _number(told: Mapping[str, Any], field: str) -> int:
    given = told.get(field)
    return max(given, 0) if type(given) is int else 0  # to Python, true is 1


def _text(told: Mapping[str, Any], field: str) -> str:
    given = told.get(field)
    return given if isinstance(given, str) else ""


@value
class StoryStats:
    """One story, and what its reviews came to."""

    id: str
    title: str
    reviews: int
    outcome: str
    done: bool = False
    cap_hit: bool = False
    recorded: int = 0  # reviews that journals here know of
    caught: tuple[tuple[int, str], ...] = ()  # by the how manieth review, what it found


@value
class Analytics:
    """All stories of a list, in its order, and what they add up to."""

    stories: tuple[StoryStats, ...] = ()
    done: int = 0
    reviews: int = 0
    recorded: int = 0
    average: float = 0.0  # reviews per story that was reviewed at all
    first_time: int = 0  # stories whose first review had nothing to say
    cap_hits: int = 0


def analytics(listing: Mapping[str, Any], reviews: Iterable[Review] = ()) -> Analytics:
    """The statistics of a list that has its shape, with the reviews of it, oldest first."""
    by_story: dict[str, list[Review]] = {}
    for review in reviews:
        by_story.setdefault(review.story, []).append(review)
    listed = stories_of(listing).items()
    stories = tuple(_stats(story, by_story.get(name, [])) for name, story in listed)
    counted = [story.reviews for story in stories if story.reviews]
    return Analytics(
        stories,
        done=sum(story.done for story in stories),
        reviews=sum(counted),
        recorded=sum(story.recorded for story in stories),
        average=sum(counted) / len(counted) if counted else 0.0,
        first_time=sum(story.outcome == "approved" and story.reviews == 1 for story in stories),
        cap_hits=sum(story.cap_hit for story in stories),
    )


def _stats(story: Mapping[str, Any], reviews: list[Review]) -> StoryStats:
    number, feedback = _number(story, "reviewCount"), _text(story, "reviewFeedback")
    outcome = standing(story)
    cap_hit = outcome == "approved" and feedback.startswith(AT_CAP)
    caught = {review.count: _plain(review.feedback) for review in reviews if review.caught}
    if (cap_hit or outcome == "to fix") and _plain(feedback):
        caught.setdefault(number, _plain(feedback))  # a journal may be elsewhere
    return StoryStats(
        story["id"],
        _text(story, "title"),
        number,
        _AT_CAP if cap_hit else outcome,
        done=outcome in ("approved", "passed"),
        cap_hit=cap_hit,
        recorded=len({review.count for review in reviews}),
        caught=tuple(sorted(caught.items())),
    )


def _plain(feedback: str) -> str:
    return feedback.removeprefix(AT_CAP).strip()
