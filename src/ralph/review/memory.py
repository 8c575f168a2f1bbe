"""Check 2.5 by the host's copy of the list, which holds more than a snapshot (ADR 20)."""

from collections.abc import Iterator, Mapping
from typing import Any

from ralph.review.law import (
    APPROVED,
    BORN,
    CHANGES_REQUESTED,
    REVIEW,
    Problem,
    deleted,
    illegal,
    same,
    snapshot,
    stories_of,
)
from ralph.review.text import shown

SUBSTANCE = ("title", "description", "acceptanceCriteria")  # what a story asks for
Story = Mapping[str, Any]
Listing = Mapping[str, Any]


def transitions(
    before: Listing, listing: Listing, mode: str, *, skip_review: bool = False
) -> Iterator[Problem]:
    """Check 2.5 of a list that has its shape. Without reviews a list must still not be shortened,
    and nothing in it be called reviewed."""
    old, new = stories_of(before), stories_of(listing)
    yield from _loosened(before, listing)
    if skip_review:
        yield from deleted(old, new)
        yield from _unreviewed(old, new)
    else:
        yield from illegal(snapshot(before), listing, mode)
        yield from _reworded(old, new, mode)
        yield from _talked_over(old, new)


def undecided(before: Listing, listing: Listing) -> Iterator[Problem]:
    """Decisions of a turn that failed: it had not finished its review, whatever it wrote."""
    old, new = snapshot(before), snapshot(listing)
    for name in (name for name in old if name in new and old[name] != new[name]):
        yield name, f"Story {name}: the iteration failed, so what it decided does not count."


def commands_of(listing: Listing) -> list[Any]:
    """The commands that verify a project."""
    given = listing.get("verifyCommands")
    return given if isinstance(given, list) else []


def _loosened(before: Listing, listing: Listing) -> Iterator[Problem]:
    """Reviews go by these commands: a turn may add some, and take none away."""
    now = commands_of(listing)
    gone = [command for command in commands_of(before) if command not in now]
    if gone:
        yield "", f"Leave 'verifyCommands' as they were: {shown(gone[0])} is gone."


def _unreviewed(old: Mapping[str, Story], new: Mapping[str, Story]) -> Iterator[Problem]:
    """A later run with reviews must not find an approval that no review gave."""
    for name, story in new.items():
        for field in ("reviewStatus", "reviewCount"):
            was = old.get(name, BORN).get(field)
            if not same(was, story.get(field)):
                words = f"leave its {field} at {shown(was)}"
                yield name, f"Story {name}: this run has no reviews, so {words}."


def _reworded(old: Mapping[str, Story], new: Mapping[str, Story], mode: str) -> Iterator[Problem]:
    """A story is reviewed as it was sent there: its wording may not change, before or after."""
    for name in (name for name in old if name in new):
        if mode == REVIEW:
            why = "Review iterations leave stories as they are"
        elif old[name].get("reviewStatus") is not None:
            why = f"Story {name} has been sent to its review"
        else:
            continue
        for field in SUBSTANCE:
            if not same(old[name].get(field), new[name].get(field)):
                yield name, f"{why}: leave the {field} of {name} alone."


def _talked_over(old: Mapping[str, Story], new: Mapping[str, Story]) -> Iterator[Problem]:
    """The findings of a review stay until its story goes to the next one."""
    for name in (name for name in old if name in new):
        status, feedback = (old[name].get(f) for f in ("reviewStatus", "reviewFeedback"))
        if status not in (APPROVED, CHANGES_REQUESTED) or new[name].get("reviewStatus") != status:
            continue
        if not same(feedback, new[name].get("reviewFeedback")):
            yield name, f"Story {name}: its reviewFeedback is the reviewer's. Leave it as it was."
