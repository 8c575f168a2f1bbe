"""What is to be said of a list of stories as it stands, without a turn: for people and for CI."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ralph.core.backlog import cycle
from ralph.core.review import (
    APPROVED,
    CHANGES_REQUESTED,
    NEEDS_REVIEW,
    deleted,
    has_shape,
    stories_of,
)
from ralph.core.review_marker import Marked, problems
from ralph.core.task import Task
from ralph.core.value import value

_BY_STATUS = {
    APPROVED: "approved",
    NEEDS_REVIEW: "to review",
    CHANGES_REQUESTED: "to fix",
    None: "to do",
}


@value
class Remark:
    """Something wrong: by which check of R §5b, with which story ("" for the whole list)."""

    check: str
    story: str
    text: str


def remarks(listing: object, marked: Marked = Marked({})) -> list[Remark]:
    """Checks 1, 2 and 2.5, as far as the list can be read and there is a turn to compare with. A
    list that is worked on without reviews must still not be shortened."""
    found = [Remark(*one) for one in problems(listing, marked)]
    if marked.skip_review and not marked.lacks and has_shape(listing):
        gone = deleted(marked.before or (), stories_of(listing))
        found += [Remark("2.5", name, words) for name, words in gone]
    return found


def about_order(tasks: Sequence[Task]) -> Iterator[Remark]:
    """What is wrong with `dependsOn`, and with a list of nothing."""
    if not tasks:
        words = "There are no stories: an empty list is never complete."
        yield Remark("empty", "", f"{words} Write some, or /ralph:ralph-plan.")
    known = {task.id for task in tasks}
    for task in tasks:
        for other in (name for name in task.blocked_by if name not in known):
            words = f"Story {task.id}: 'dependsOn' names {other}: no such story."
            yield Remark("dependencies", task.id, words)
    circle = cycle(task for task in tasks if not task.passes)
    if circle:
        words = f"These stories wait for each other: {' → '.join((*circle, circle[0]))}."
        yield Remark("dependencies", circle[0], f"{words} Take one out of a 'dependsOn'.")


def tally(listing: object) -> dict[str, int]:
    """How many stories there are, and how many of each kind; those that are none are left out."""
    stories = stories_of(listing).values() if has_shape(listing) else ()
    counts = dict.fromkeys(("approved", "passed", "to review", "to fix", "to do"), 0)
    for story in stories:
        counts[standing(story)] += 1
    return {"total": len(stories), **counts}


def standing(story: Mapping[str, Any]) -> str:
    """How far a story is. One that passes without a review is `passed`."""
    status = story.get("reviewStatus")
    if status != APPROVED and story.get("passes") is True:
        return "passed"
    return _BY_STATUS.get(status if isinstance(status, str) else None, "to do")
