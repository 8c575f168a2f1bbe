"""Carries out the law: takes back what was illegal in a list of stories (ADR 20)."""

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from ralph.kernel.value import replace, value
from ralph.review.law import (
    APPROVED,
    AT_CAP,
    BORN,
    CHANGES_REQUESTED,
    DECIDED,
    DEFAULT_CAP,
    IMPLEMENT,
    NEEDS_REVIEW,
    REVIEW,
    TOP,
    Problem,
    has_shape,
    inconsistent,
    malformed,
    same,
    snapshot,
    stories_of,
    wrong_fields,
)
from ralph.review.memory import SUBSTANCE, commands_of, transitions, undecided

Story = dict[str, Any]
Listing = Mapping[str, Any]
_CLEAN: Story = {**BORN, "reviewFeedback": ""}  # a new story
_REVIEWED = (*DECIDED, "reviewFeedback")
_STANDING = ("reviewStatus", "reviewCount")  # without reviews, a turn may say that a story passes


@value
class Law:
    """The terms by which a turn is judged."""

    mode: str
    cap: int = DEFAULT_CAP
    skip_review: bool = False
    failed: bool = False  # the turn crashed or was cut off: it is not believed (ADR 4)

    def problems(self, before: Listing, listing: object) -> list[Problem]:
        """The problems with a list after a turn that began with `before`."""
        found = malformed(listing)
        if not has_shape(listing):
            return found
        if not self.skip_review:
            found += inconsistent(listing, self.cap, snapshot(before))
        return [*found, *self.transitions(before, listing)]

    def transitions(self, before: Listing, listing: Listing) -> Iterator[Problem]:
        """The illegal changes of the turn to the stories."""
        yield from transitions(before, listing, self.mode, skip_review=self.skip_review)
        if self.failed and (self.mode == REVIEW or self.skip_review):
            yield from undecided(before, listing)

    def mended(self, before: Listing, listing: object) -> Listing | None:
        """The list as it must be, or None if it is right as it is. A story pays only for its own
        problems."""
        problems = self.problems(before, listing)
        if not problems:
            return None
        if not has_shape(listing):
            return before
        suspects, law = frozenset(name for name, _ in problems), self
        attempts: tuple[tuple[str, ...], ...] = (_REVIEWED,)
        if self.mode == REVIEW:
            # A review that was wrong in anything decides nothing, and its wording goes back too.
            # What is left is a review that changed nothing, which is all right here.
            suspects, law = frozenset(stories_of(listing)), replace(self, mode=IMPLEMENT)
            attempts = ((*_REVIEWED, *SUBSTANCE),)
        if self.skip_review:  # as little of a suspect goes back as will do
            attempts = (_STANDING, _REVIEWED)
        for fields in attempts:
            mended = _with_old(before, listing, suspects, fields)
            if not law.problems(before, mended):
                return mended
        return before

    def capped(self, before: Listing, listing: object) -> tuple[Listing, str] | None:
        """The list with the story approved that was reviewed for the last time, and its id. None
        if no legal review has reached the cap (R §6)."""
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
        [name] = asked
        count = new[name].get("reviewCount")
        if not isinstance(count, int) or count < self.cap:
            return None
        if replace(self, cap=count).problems(before, listing):  # legal, but for the cap
            return None
        stories = [
            _approved_at_cap(story, self.cap) if story["id"] == name else story
            for story in listing["userStories"]
        ]
        return {**listing, "userStories": stories}, name


def _approved_at_cap(story: Mapping[str, Any], cap: int) -> Story:
    feedback, notes = story["reviewFeedback"], story.get("notes") or ""
    return {
        **story,
        "passes": True,
        "reviewStatus": APPROVED,
        "reviewFeedback": feedback if feedback.startswith(AT_CAP) else f"{AT_CAP} {feedback}",
        "notes": notes if notes.strip() else f"Approved by the host after {cap} reviews.",
    }


def undone(before: Listing, listing: object) -> Listing:
    """The list without anything that was decided since: for a turn that is taken again."""
    if not has_shape(listing):
        return before
    return _with_old(before, listing, frozenset(stories_of(listing)), _REVIEWED)


def same_list(one: Listing, other: Listing) -> bool:
    """True if both are of one plan: another branch or a new plan may have stories of these ids."""
    old, new = stories_of(one), stories_of(other)
    shared = (name for name in old if name in new)
    told = any(same(old[name].get("title"), new[name].get("title")) for name in shared)
    return told and all(one.get(field) == other.get(field) for field in ("project", "branchName"))


def unproven(before: Listing, listing: Listing) -> Listing:
    """The list after a turn that nobody judged, for a later run: neither what it gained counts,
    nor what it took away. Stories that a person put back to be done again stay so."""
    old, kept = stories_of(before), list[Story]()
    for story in listing["userStories"]:
        known = old.get(story["id"], _CLEAN)
        gained = not _is_put_back(known, story)
        kept.append({**story, **{field: known[field] for field in _REVIEWED}} if gained else story)
    return {**listing, "userStories": _merged(before, kept)}


def _is_put_back(old: Mapping[str, Any], story: Mapping[str, Any]) -> bool:
    """True if a story has come no nearer to its approval, and no further than its reviews."""
    if all(same(old[field], story.get(field)) for field in _REVIEWED):
        return True
    count, approved = story.get("reviewCount"), old["reviewStatus"] == APPROVED
    fewer = type(count) is int and count <= old["reviewCount"]
    redone = story.get("reviewStatus") is None or (approved and story["reviewStatus"] != APPROVED)
    return fewer and redone and story.get("passes") is False


def _with_old(
    before: Listing, listing: Listing, suspects: frozenset[str], fields: tuple[str, ...]
) -> Listing:
    """The list with broken fields, deleted stories, and these fields of suspects as they were."""
    old, kept = stories_of(before), []
    for story in listing["userStories"]:
        known = old.get(story["id"])
        if known is not None:
            kept.append(_put_back(known, story, fields if story["id"] in suspects else ()))
        elif not any(field not in _CLEAN for field, _ in wrong_fields(story)):
            kept.append({**story, **_CLEAN})
    lost = [field for field in TOP if not isinstance(listing.get(field), str)]
    top = {field: before[field] for field in lost if field in before}
    had, now = commands_of(before), commands_of(listing)
    if not all(command in now for command in had):
        top["verifyCommands"] = [*had, *(command for command in now if command not in had)]
    return {**listing, **top, "userStories": _merged(before, kept)}


def _merged(before: Listing, kept: list[Story]) -> list[Story]:
    """The stories with those that are gone, each in the place that it had."""
    there, rest, merged = {story["id"] for story in kept}, iter(kept), list[Story]()
    for place, story in enumerate(before["userStories"]):
        if story["id"] not in there:
            merged += islice(rest, max(0, place - len(merged)))
            merged.append(story)
    return [*merged, *rest]


def _put_back(old: Mapping[str, Any], story: Mapping[str, Any], fields: tuple[str, ...]) -> Story:
    """The story with those fields as they were, and those that are broken. With fields of a review
    go the notes of a story that passed, and the wording of one that was reviewed."""
    back = list(fields)
    if fields and old.get("passes"):
        back.append("notes")
    if fields and (old.get("reviewStatus") is not None or story.get("reviewStatus") == APPROVED):
        back += SUBSTANCE
    back += (field for field, _ in wrong_fields(story))
    gone = {field for field in back if field not in old}
    kept = {field: given for field, given in story.items() if field not in gone}
    return kept | {field: old[field] for field in back if field in old}
