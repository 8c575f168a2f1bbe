"""The law carried out: a list of stories with what was illegal taken back (ADR 20)."""

from collections.abc import Mapping
from typing import Any

from ralph.core.review import (
    APPROVED,
    AT_CAP,
    CHANGES_REQUESTED,
    DECIDED,
    NEEDS_REVIEW,
    REVIEW,
    Problem,
    has_shape,
    stories_of,
    violations,
    wrong_fields,
)
from ralph.core.value import value

Story = dict[str, Any]
Listing = Mapping[str, Any]
_TOP = ("project", "branchName", "description")
_BORN: Story = {"passes": False, "reviewStatus": None, "reviewCount": 0, "reviewFeedback": ""}
_REVIEWED = (*DECIDED, "reviewFeedback")
_SUBSTANCE = ("title", "description", "acceptanceCriteria")


@value
class Law:
    """What a turn is judged by."""

    mode: str
    cap: int = 5
    skip_review: bool = False

    def problems(self, before: Listing, listing: object) -> list[Problem]:
        """What is wrong with a list after a turn that began with `before`."""
        return violations(before, listing, self.mode, self.cap, skip_review=self.skip_review)

    def mended(self, before: Listing, listing: object) -> Listing | None:
        """The list as it must be, or None if it is right as it is. What only one story did wrong
        costs the others nothing."""
        problems = self.problems(before, listing)
        if not problems:
            return None
        if not has_shape(listing):
            return before
        suspects = self._suspects(problems, listing)
        mended = _with_old(before, listing, suspects, whole=self.mode == REVIEW)
        return mended if self._holds(before, mended) else before

    def _suspects(self, problems: list[Problem], listing: Listing) -> frozenset[str]:
        """Whose review goes back. A review that was wrong in anything decides nothing."""
        if self.mode == REVIEW:
            return frozenset(stories_of(listing))
        return frozenset(name for name, _ in problems)

    def _holds(self, before: Listing, mended: Listing) -> bool:
        """A review that was taken back is one that changed nothing, which is all right here."""
        mode = "implement" if self.mode == REVIEW else self.mode
        return not Law(mode, self.cap, self.skip_review).problems(before, mended)

    def capped(self, before: Listing, listing: object) -> tuple[Listing, str] | None:
        """The list with the story approved that was reviewed for the last time, and its id. None
        where no legal review has reached the cap (R §6)."""
        if self.mode != REVIEW or self.skip_review or not has_shape(listing):
            return None
        old, new = stories_of(before), stories_of(listing)
        asked = [
            name
            for name, story in new.items()
            if story.get("reviewStatus") == CHANGES_REQUESTED
            and name in old
            and old[name].get("reviewStatus") == NEEDS_REVIEW
        ]
        if len(asked) != 1:
            return None
        count = new[asked[0]].get("reviewCount")
        if not isinstance(count, int) or count < self.cap:
            return None
        approved = _replaced(listing, {asked[0]: _approved_at_cap(new[asked[0]], self.cap)})
        return None if self.problems(before, approved) else (approved, asked[0])


def _approved_at_cap(story: Mapping[str, Any], cap: int) -> Story:
    feedback = str(story.get("reviewFeedback", ""))
    notes = story.get("notes") or f"Approved by the host after {cap} reviews."
    return {
        **story,
        "passes": True,
        "reviewStatus": APPROVED,
        "reviewFeedback": feedback if feedback.startswith(AT_CAP) else f"{AT_CAP} {feedback}",
        "notes": notes,
    }


def undone(before: Listing, listing: object) -> Listing:
    """The list without anything that was decided since: for a turn that is taken again."""
    if not has_shape(listing):
        return before
    return _with_old(before, listing, frozenset(stories_of(listing)))


def _with_old(
    before: Listing, listing: Listing, suspects: frozenset[str], *, whole: bool = False
) -> Listing:
    """The list with the suspects' reviews, broken fields and deleted stories as they were; their
    wording too where they are approved, or the `whole` of them is put back."""
    old, kept = stories_of(before), []
    for story in listing["userStories"]:
        known = old.get(story["id"])
        if known is not None:
            kept.append(_put_back(known, story, suspect=story["id"] in suspects, whole=whole))
        elif not any(field not in _BORN for field, _ in wrong_fields(story)):
            kept.append({**story, **_BORN})
    for index, story in enumerate(before["userStories"]):
        if all(one["id"] != story["id"] for one in kept):
            kept.insert(index, story)
    top = {field: before[field] for field in _TOP if not isinstance(listing.get(field), str)}
    return {**listing, **top, "userStories": kept}


def _put_back(
    old: Mapping[str, Any], story: Mapping[str, Any], *, suspect: bool, whole: bool
) -> Story:
    broken = [field for field, _ in wrong_fields(story)]
    approved = APPROVED in (old.get("reviewStatus"), story.get("reviewStatus"))
    if suspect:
        broken += _REVIEWED
        broken += ["notes"] if old.get("passes") else []
        broken += _SUBSTANCE if approved or whole else ()
    back = {field: old[field] for field in broken if field in old}
    gone = {field for field in broken if field not in old}
    return {field: given for field, given in story.items() if field not in gone} | back


def _replaced(listing: Listing, stories: Mapping[str, Story]) -> Listing:
    changed = [stories.get(story["id"], story) for story in listing["userStories"]]
    return {**listing, "userStories": changed}
