"""What is to be said of a list of stories as it stands, without a turn: for people and for CI."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ralph.core.backlog import cycle
from ralph.core.review import (
    APPROVED,
    CHANGES_REQUESTED,
    DEFAULT_CAP,
    MODES,
    NEEDS_REVIEW,
    Problem,
    deleted,
    has_shape,
    illegal,
    inconsistent,
    malformed,
    stories_of,
)
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


@value
class Active:
    """What the marker of a run says about the turn that is under way."""

    mode: str = ""
    before: Mapping[str, Mapping[str, object]] | None = None

    @staticmethod
    def of(marker: Mapping[str, Any]) -> "Active":
        """What can be used of it: a mode that there is, and a snapshot that is one."""
        mode, before = marker.get("iterationMode"), marker.get("preIterationSnapshot")
        is_snapshot = isinstance(before, dict) and all(isinstance(s, dict) for s in before.values())
        return Active(mode if mode in MODES else "", before if is_snapshot else None)

    @property
    def usable(self) -> bool:
        """Whether check 2.5 can be made."""
        return bool(self.mode) and self.before is not None


def remarks(
    listing: object, cap: int = DEFAULT_CAP, *, skip_review: bool = False, active: Active = Active()
) -> list[Remark]:
    """Checks 1, 2 and 2.5, as far as the list can be read and there is a turn to compare with."""
    found = _named("1", malformed(listing))
    if not has_shape(listing):
        return found
    before = active.before if active.usable else None
    if skip_review:
        return [*found, *_named("2.5", deleted(before or (), stories_of(listing)))]
    found += _named("2", inconsistent(listing, cap, before))
    return found + _named(
        "2.5", illegal(before, listing, active.mode) if before is not None else ()
    )


def _named(check: str, problems: Iterable[Problem]) -> list[Remark]:
    return [Remark(check, name, words) for name, words in problems]


def about_order(tasks: Sequence[Task]) -> Iterator[Remark]:
    """What is wrong with `dependsOn`, and with a list of nothing."""
    if not tasks:
        words = "There are no stories: an empty list is never complete. Write some, or /ralph-plan."
        yield Remark("empty", "", words)
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
