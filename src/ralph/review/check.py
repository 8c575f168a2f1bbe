"""Checks a list of stories as it stands, without a turn: for people and for CI."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ralph.kernel.tasks.task import Task, cycle
from ralph.kernel.value import value
from ralph.review import law
from ralph.review.law import Marked, deleted, has_shape, problems, stories_of

_BY_STATUS = {
    law.APPROVED: "approved",
    law.NEEDS_REVIEW: "to review",
    law.CHANGES_REQUESTED: "to fix",
    None: "to do",
}


@value
class Remark:
    """Something wrong: by which check of R §5b, with which story ("" for the whole list)."""

    check: str
    story: str
    text: str


def remarks(listing: object, marked: Marked = Marked({})) -> list[Remark]:
    """Checks 1, 2 and 2.5, as far as the list can be read and there is a turn to compare with.
    Even without reviews a list must not be shortened."""
    found = [Remark(*one) for one in problems(listing, marked)]
    if marked.skip_review and not marked.lacks and has_shape(listing):
        gone = deleted(marked.before or (), stories_of(listing))
        found += [Remark("2.5", name, words) for name, words in gone]
    return found


def about_order(tasks: Sequence[Task]) -> Iterator[Remark]:
    """The problems with `dependsOn`, and with an empty list."""
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


def about_titles(tasks: Sequence[Task]) -> Iterator[Remark]:
    """The stories that do not say what they are."""
    for task in tasks:
        if not task.title.strip():
            yield Remark("title", task.id, f"Story {task.id}: 'title' is empty.")


def tally(listing: object) -> dict[str, int]:
    """The number of stories, in all and of each kind; zero where the list has not its shape."""
    kinds = list(map(standing, stories_of(listing).values())) if has_shape(listing) else []
    names = ("approved", "passed", "to review", "to fix", "to do")
    return {"total": len(kinds), **{name: kinds.count(name) for name in names}}


def standing(story: Mapping[str, Any]) -> str:
    """The progress of a story. One that passes without a review is `passed`."""
    status = story.get("reviewStatus")
    if status != law.APPROVED and story.get("passes") is True:
        return "passed"
    return _BY_STATUS.get(status if isinstance(status, str) else None, "to do")
