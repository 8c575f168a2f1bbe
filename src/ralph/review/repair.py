"""Applies the law by the host's copy of a list, which holds more than a snapshot: finds what was
illegal, and takes it back (ADR 20)."""

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from ralph.kernel.value import replace, value
from ralph.review import law

_SUBSTANCE = ("title", "description", "acceptanceCriteria")  # what a story asks for
Story = dict[str, Any]
Listing = Mapping[str, Any]
Stories = Mapping[str, Mapping[str, Any]]  # by id
_CLEAN: Story = {**law.BORN, "reviewFeedback": ""}  # a new story
_REVIEWED = (*law.DECIDED, "reviewFeedback")
_STANDING = ("reviewStatus", "reviewCount")  # without reviews, a turn may say that a story passes


@value
class Law:
    """The terms by which a turn is judged."""

    mode: str
    cap: int = law.DEFAULT_CAP
    skip_review: bool = False
    failed: bool = False  # the turn crashed or was cut off: it is not believed (ADR 4)

    def problems(self, before: Listing, listing: object) -> list[law.Problem]:
        """The problems with a list after a turn that began with `before`."""
        found = law.malformed(listing)
        if not law.has_shape(listing):
            return found
        if not self.skip_review:
            found += law.inconsistent(listing, self.cap, law.snapshot(before))
        return [*found, *self.transitions(before, listing)]

    def transitions(self, before: Listing, listing: Listing) -> Iterator[law.Problem]:
        """Check 2.5 of a list that has its shape: illegal changes of the stories by the turn."""
        old, new = law.stories_of(before), law.stories_of(listing)
        now = _commands_of(listing)
        gone = [command for command in _commands_of(before) if command not in now]
        if gone:  # reviews go by these commands
            yield "", f"Leave 'verifyCommands' as they were: {law.shown(gone[0])} is gone."
        if self.skip_review:  # a list must still not be shortened, and nothing be called reviewed
            yield from law.deleted(old, new)
            yield from _unreviewed(old, new)
        else:
            yield from law.illegal(law.snapshot(before), listing, self.mode)
            yield from _reworded(old, new, self.mode)
        if self.failed and (self.mode == law.REVIEW or self.skip_review):
            was, is_ = law.snapshot(before), law.snapshot(listing)
            for name in (name for name in was if name in is_ and was[name] != is_[name]):
                words = "the iteration failed, so what it decided does not count"
                yield name, f"Story {name}: {words}."

    def repaired(self, before: Listing, listing: object) -> Listing | None:
        """The list as it must be; None if it is right. A story pays only for its own problems."""
        problems = self.problems(before, listing)
        if not problems:
            return None
        if not law.has_shape(listing):
            return before
        suspects, terms = frozenset(name for name, _ in problems), self
        attempts: tuple[tuple[str, ...], ...] = (_REVIEWED,)
        if self.mode == law.REVIEW:
            # A review that was wrong in anything decides nothing, and its wording goes back too.
            # What is left is a review that changed nothing, which is all right here.
            suspects, terms = frozenset(law.stories_of(listing)), replace(self, mode=law.IMPLEMENT)
            attempts = ((*_REVIEWED, *_SUBSTANCE),)
        if self.skip_review:  # as little of a suspect goes back as will do
            attempts = (_STANDING, _REVIEWED)
        for fields in attempts:
            repaired = _with_old(before, listing, suspects, fields)
            if not terms.problems(before, repaired):
                return repaired
        return before

    def capped(self, before: Listing, listing: object) -> tuple[Listing, str] | None:
        """The list with the story approved that was reviewed for the last time, and its id. None
        if no legal review has reached the cap (R §6)."""
        if self.mode != law.REVIEW or self.skip_review or not law.has_shape(listing):
            return None
        old, new = law.stories_of(before), law.stories_of(listing)
        asked = [
            name
            for name, story in new.items()
            if story.get("reviewStatus") == law.CHANGES_REQUESTED
            and old.get(name, {}).get("reviewStatus") == law.NEEDS_REVIEW
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


def _commands_of(listing: Listing) -> list[Any]:
    """The commands that verify a project."""
    given = listing.get("verifyCommands")
    return given if isinstance(given, list) else []


def _unreviewed(old: Stories, new: Stories) -> Iterator[law.Problem]:
    """A later run with reviews must not find an approval that no review gave."""
    for name, story in new.items():
        for field in _STANDING:
            was = old.get(name, law.BORN).get(field)
            if not law.same(was, story.get(field)):
                words = f"leave its {field} at {law.shown(was)}"
                yield name, f"Story {name}: this run has no reviews, so {words}."


def _reworded(old: Stories, new: Stories, mode: str) -> Iterator[law.Problem]:
    """A story is reviewed as it was sent there: its wording may not change, before or after. The
    findings of a review stay until its story goes to the next one."""
    shared = [(name, old[name], new[name]) for name in old if name in new]
    for name, was, now in shared:
        if mode == law.REVIEW:
            why = "Review iterations leave stories as they are"
        elif was.get("reviewStatus") is not None:
            why = f"Story {name} has been sent to its review"
        else:
            continue
        for field in _SUBSTANCE:
            if not law.same(was.get(field), now.get(field)):
                yield name, f"{why}: leave the {field} of {name} alone."
    for name, was, now in shared:
        status = was.get("reviewStatus")
        decided = status in (law.APPROVED, law.CHANGES_REQUESTED)
        stays = decided and now.get("reviewStatus") == status
        if stays and not law.same(was.get("reviewFeedback"), now.get("reviewFeedback")):
            yield name, f"Story {name}: its reviewFeedback is the reviewer's. Leave it as it was."


def _approved_at_cap(story: Mapping[str, Any], cap: int) -> Story:
    feedback, notes = story["reviewFeedback"], story.get("notes") or ""
    at_cap = feedback if feedback.startswith(law.AT_CAP) else f"{law.AT_CAP} {feedback}"
    return {
        **story,
        "passes": True,
        "reviewStatus": law.APPROVED,
        "reviewFeedback": at_cap,
        "notes": notes if notes.strip() else f"Approved by the host after {cap} reviews.",
    }


def undone(before: Listing, listing: object) -> Listing:
    """The list without anything that was decided since: for a turn that is taken again."""
    if not law.has_shape(listing):
        return before
    return _with_old(before, listing, frozenset(law.stories_of(listing)), _REVIEWED)


def same_list(one: Listing, other: Listing) -> bool:
    """True if both are of one plan: another branch or a new plan may have stories of these ids."""
    old, new = law.stories_of(one), law.stories_of(other)
    shared = (name for name in old if name in new)
    told = any(law.same(old[name].get("title"), new[name].get("title")) for name in shared)
    return told and all(one.get(field) == other.get(field) for field in ("project", "branchName"))


def unproven(before: Listing, listing: Listing) -> Listing:
    """The list after a turn that nobody judged, for a later run: neither what it gained counts,
    nor what it took away. Stories that a person put back to be done again stay so."""
    old, kept = law.stories_of(before), list[Story]()
    for story in listing["userStories"]:
        known = old.get(story["id"], _CLEAN)
        gained = not _is_put_back(known, story)
        kept.append({**story, **{field: known[field] for field in _REVIEWED}} if gained else story)
    return {**listing, "userStories": _merged(before, kept)}


def _is_put_back(old: Mapping[str, Any], story: Mapping[str, Any]) -> bool:
    """True if a story has come no nearer to its approval, and no further than its reviews."""
    if all(law.same(old[field], story.get(field)) for field in _REVIEWED):
        return True
    count, status = story.get("reviewCount"), story.get("reviewStatus")
    fewer = type(count) is int and count <= old["reviewCount"]
    redone = status is None or (old["reviewStatus"] == law.APPROVED and status != law.APPROVED)
    return fewer and redone and story.get("passes") is False


def _with_old(
    before: Listing, listing: Listing, suspects: frozenset[str], fields: tuple[str, ...]
) -> Listing:
    """The list with broken fields, deleted stories, and these fields of suspects as they were."""
    old, kept = law.stories_of(before), []
    for story in listing["userStories"]:
        known = old.get(story["id"])
        if known is not None:
            kept.append(_put_back(known, story, fields if story["id"] in suspects else ()))
        elif not any(field not in _CLEAN for field, _ in law.wrong_fields(story)):
            kept.append({**story, **_CLEAN})
    lost = [field for field in law.TOP if not isinstance(listing.get(field), str)]
    top = {field: before[field] for field in lost if field in before}
    had, now = _commands_of(before), _commands_of(listing)
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
    reviewed = old.get("reviewStatus") is not None or story.get("reviewStatus") == law.APPROVED
    if fields and reviewed:
        back += _SUBSTANCE
    back += (field for field, _ in law.wrong_fields(story))
    gone = {field for field in back if field not in old}
    kept = {field: given for field, given in story.items() if field not in gone}
    return kept | {field: old[field] for field in back if field in old}
