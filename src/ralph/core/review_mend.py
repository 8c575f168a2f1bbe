"""The law carried out: a list of stories with what was illegal taken back (ADR 20)."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

from ralph.core.review import (
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
from ralph.core.review_memory import SUBSTANCE, commands_of, transitions, undecided
from ralph.core.value import replace, value

Story = dict[str, Any]
Listing = Mapping[str, Any]
_CLEAN: Story = {**BORN, "reviewFeedback": ""}  # a new story
_REVIEWED = (*DECIDED, "reviewFeedback")
_STANDING = ("reviewStatus", "reviewCount")  # without reviews, a turn may say that a story passes


@value
class Law:
    """What a turn is judged by."""

    mode: str
    cap: int = DEFAULT_CAP
    skip_review: bool = False
    failed: bool = False  # the turn crashed or was cut off: it is not believed (ADR 4)

    def problems(self, before: Listing, listing: object) -> list[Problem]:
        """What is wrong with a list after a turn that began with `before`."""
        found = malformed(listing)
        if not has_shape(listing):
            return found
        if not self.skip_review:
            found += inconsistent(listing, self.cap, snapshot(before))
        return [*found, *self.transitions(before, listing)]

    def transitions(self, before: Listing, listing: Listing) -> Iterator[Problem]:
        """What the turn may not have done to the stories."""
        yield from transitions(before, listing, self.mode, skip_review=self.skip_review)
        if self.failed and (self.mode == REVIEW or self.skip_review):
            yield from undecided(before, listing)

    def mended(self, before: Listing, listing: object) -> Listing | None:
        """The list as it must be, or None if it is right as it is. What only one story did wrong
        costs the others nothing."""
        problems = self.problems(before, listing)
        if not problems:
            return None
        if not has_shape(listing):
            return before
        suspects = self._suspects(problems, listing)
        for fields in self._guarded():
            mended = _with_old(before, listing, suspects, fields)
            if self._holds(before, mended):
                return mended
        return before

    def _guarded(self) -> tuple[tuple[str, ...], ...]:
        """What of a suspect goes back: as little as will do, and after a review its wording too."""
        if self.skip_review:
            return _STANDING, _REVIEWED
        return ((*_REVIEWED, *SUBSTANCE) if self.mode == REVIEW else _REVIEWED,)

    def _suspects(self, problems: list[Problem], listing: Listing) -> frozenset[str]:
        """Whose review goes back. A review that was wrong in anything decides nothing."""
        if self.mode == REVIEW:
            return frozenset(stories_of(listing))
        return frozenset(name for name, _ in problems)

    def _holds(self, before: Listing, mended: Listing) -> bool:
        """A review that was taken back is one that changed nothing, which is all right here."""
        mode = IMPLEMENT if self.mode == REVIEW else self.mode
        return not replace(self, mode=mode).problems(before, mended)

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
        [name] = asked
        count = new[name].get("reviewCount")
        if not isinstance(count, int) or count < self.cap:
            return None
        if replace(self, cap=count).problems(before, listing):  # legal, but for the cap
            return None
        return _replaced(listing, {name: _approved_at_cap(new[name], self.cap)}), name


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
    """Whether both are of one plan: another branch or a new plan may have stories of these ids."""
    old, new = stories_of(one), stories_of(other)
    shared = (name for name in old if name in new)
    told = any(same(old[name].get("title"), new[name].get("title")) for name in shared)
    return told and all(one.get(field) == other.get(field) for field in ("project", "branchName"))


def unproven(before: Listing, listing: Listing) -> Listing:
    """The list after a turn that nobody has judged, by whoever comes later: nothing that it gained
    counts, nor that it took away. What a person has put back to be done again stays so."""
    old, kept = stories_of(before), list[Story]()
    for story in listing["userStories"]:
        known = old.get(story["id"], _CLEAN)
        gained = not _is_put_back(known, story)
        kept.append({**story, **{field: known[field] for field in _REVIEWED}} if gained else story)
    return {**listing, "userStories": _merged(kept, _gone(before, kept))}


def _gone(before: Listing, kept: Iterable[Story]) -> list[tuple[int, Story]]:
    """Stories that were there, and where."""
    there = {story["id"] for story in kept}
    return [(n, one) for n, one in enumerate(before["userStories"]) if one["id"] not in there]


def _is_put_back(old: Mapping[str, Any], story: Mapping[str, Any]) -> bool:
    """Whether a story has come no nearer to its approval, and no further than its reviews."""
    if all(same(old[field], story.get(field)) for field in _REVIEWED):
        return True
    count, approved = story.get("reviewCount"), old["reviewStatus"] == APPROVED
    fewer = type(count) is int and count <= old["reviewCount"]
    redone = story.get("reviewStatus") is None or (approved and story["reviewStatus"] != APPROVED)
    return fewer and redone and story.get("passes") is False


def _with_old(
    before: Listing, listing: Listing, suspects: frozenset[str], fields: Iterable[str]
) -> Listing:
    """The list with those fields of the suspects, broken ones and deleted stories as they were."""
    old, kept = stories_of(before), []
    for story in listing["userStories"]:
        known = old.get(story["id"])
        if known is not None:
            guarded = _fields_back(known, story, fields) if story["id"] in suspects else []
            kept.append(_put_back(known, story, guarded))
        elif not any(field not in _CLEAN for field, _ in wrong_fields(story)):
            kept.append({**story, **_CLEAN})
    lost = [field for field in TOP if not isinstance(listing.get(field), str)]
    top = {field: before[field] for field in lost if field in before}
    return {
        **listing,
        **top,
        **_verified(before, listing),
        "userStories": _merged(kept, _gone(before, kept)),
    }


def _verified(before: Listing, listing: Listing) -> dict[str, Any]:
    """The commands of both, where some of the old ones are gone."""
    old, now = commands_of(before), commands_of(listing)
    if all(command in now for command in old):
        return {}
    return {"verifyCommands": [*old, *(command for command in now if command not in old)]}


def _merged(kept: list[Story], gone: Iterable[tuple[int, Story]]) -> list[Story]:
    """Each story that was gone in the place that it had, and the others around it."""
    rest, merged = iter(kept), list[Story]()
    for place, story in gone:
        merged += islice(rest, max(0, place - len(merged)))
        merged.append(story)
    return [*merged, *rest]


def _fields_back(
    old: Mapping[str, Any], story: Mapping[str, Any], fields: Iterable[str]
) -> list[str]:
    """What goes back of a story that did wrong."""
    reviewed = old.get("reviewStatus") is not None or story.get("reviewStatus") == APPROVED
    notes = ("notes",) if old.get("passes") else ()
    return [*fields, *notes, *(SUBSTANCE if reviewed else ())]


def _put_back(old: Mapping[str, Any], story: Mapping[str, Any], fields: Iterable[str]) -> Story:
    """The story with those fields, and those that are broken, as they were."""
    back = [*fields, *(field for field, _ in wrong_fields(story))]
    gone = {field for field in back if field not in old}
    kept = {field: given for field, given in story.items() if field not in gone}
    return kept | {field: old[field] for field in back if field in old}


def _replaced(listing: Listing, stories: Mapping[str, Story]) -> Listing:
    changed = [stories.get(story["id"], story) for story in listing["userStories"]]
    return {**listing, "userStories": changed}
