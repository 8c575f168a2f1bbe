"""One story of a `prd.json` and its kin, to a task and back.

A story is kept in the fields of a task; of what these cannot say exactly, the story's own word is
kept beside, and stands as long as nobody changes the field here.
"""

import json
import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from ralph.formats.base import ListedTask
from ralph.formats.records import (
    MEMBER,
    NOTHING,
    beside,
    from_beside,
    notes_of,
    status_of,
    text_of,
    texts_of,
)
from ralph.kernel.tasks import completion
from ralph.kernel.tasks.task import Status
from ralph.kernel.value import value
from ralph.review.law import CHANGES_REQUESTED, NEEDS_REVIEW

Story = Mapping[str, Any]
KEYS = "$keys"  # among what is kept: the story's keys, where they are not the usual ones
REVIEW = ("reviewStatus", "reviewCount", "reviewFeedback")
_FEEDBACK = "A review asks for changes:\n"
_LARGEST = 10**9  # priorities
_HEAD = "Acceptance criteria:"
_FIELDS = {  # of ours, by a story's key
    "title": "title",
    "description": "description",
    "acceptanceCriteria": "description",
    "priority": "priority",
    "passes": "status",
    "status": "status",
    "notes": "notes",
    "labels": "tags",
    "dependsOn": "blockedBy",
    MEMBER: MEMBER,  # all that stories have no key for
}
_WORDS = {"open": Status.PENDING, "in_progress": Status.IN_PROGRESS, "done": Status.DONE}
_SPELLED = {status: word for word, status in _WORDS.items()}
_EMPTY: Story = {"labels": [], "dependsOn": [], MEMBER: {}}  # usually left out, and it was there


@value
class Shape:
    """The form of a format's stories."""

    name: str
    stories: str  # the key of the list
    root: tuple[str, ...]  # keys of a new list
    keys: tuple[str, ...]  # that every story has
    more: tuple[str, ...] = ()  # and those with something to say
    refused_at_root: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()

    @property
    def reviews(self) -> bool:
        """True if a story is done only by its review (R)."""
        return "reviewStatus" in self.keys

    @property
    def statuses(self) -> frozenset[Status]:
        """Statuses that a story can have."""
        known = {Status.PENDING, Status.DONE}
        known |= {Status.REVIEW} if self.reviews else set()
        return frozenset(known | ({Status.IN_PROGRESS} if "status" in self.keys else set()))

    @property
    def held(self) -> frozenset[str]:
        """Our fields for which a story has a key."""
        return frozenset(_FIELDS[key] for key in (*self.keys, *self.more) if key in _FIELDS)

    def field(self, key: str) -> str | None:
        """Our field for a story's key."""
        return _FIELDS.get(key) if key in self.keys or key in self.more else None


# ------------------------------------------------------------------ reading


def keys_of(stories: Sequence[object], where: str) -> list[str]:
    """The names of all stories; ValueError where they cannot be told apart."""
    keys: dict[str, int] = {}
    for number, story in enumerate(stories, 1):
        if not isinstance(story, dict):
            raise ValueError(f"{where}[{number - 1}] is not an object")
        key = story.get("id")
        if type(key) not in (str, int) or not str(key).strip():
            raise ValueError(f"{where}[{number - 1}] has no id")
        if str(key) in keys:
            first = keys[str(key)]
            raise ValueError(f"the id {str(key)[:80]} is there twice: {where}[{first}] and later")
        keys[str(key)] = number - 1
    return list(keys)


def read_story(shape: Shape, story: Story, keys: Collection[str]) -> ListedTask:
    """A story with an id, as a task. ValueError for what makes it none."""
    key, title = str(story["id"]), story.get("title")
    if not isinstance(title, str) or not title.strip():
        raise ValueError(f"story {key[:80]} has no title")
    fields = fields_of(shape, story, keys)
    of_review = (*REVIEW, "passes") if shape.reviews else ()
    review = {name: story[name] for name in of_review if name in story}
    usual = _usual(shape, Written(key, fields, review), max(1, -(fields["priority"] or 0)))
    kept = {name: held for name, held in story.items() if name not in usual}
    for name in usual:  # in JSON, since to Python 1 is 1.0 and true
        if name in story and json.dumps(story[name]) != json.dumps(usual[name]):
            kept[name] = story[name]
    kept |= review
    if list(story) != [*usual, *(name for name in kept if name not in usual)]:
        kept[KEYS] = list(story)
    fields |= fields.pop(MEMBER)
    return ListedTask(
        key, {name: held for name, held in fields.items() if held not in NOTHING}, kept
    )


def fields_of(shape: Shape, story: Story, keys: Collection[str]) -> dict[str, Any]:
    """The words of a story, in our fields, all of which are there. Of those it waits for, the ones
    in the list."""
    said = {name: held for name, held in story.items() if shape.field(name)}
    criteria = said.get("acceptanceCriteria")
    if not isinstance(criteria, list):
        criteria = [criteria] if criteria else []
    notes, feedback = _text(said.get("notes")), feedback_of(shape, story)
    if feedback:
        notes = f"{notes}\n\n{_FEEDBACK}{feedback}" if notes else f"{_FEEDBACK}{feedback}"
    status = _status(shape, story).value
    return {
        "title": said.get("title"),
        "description": with_criteria(_text(said.get("description")), list(map(_text, criteria))),
        "status": status,
        "priority": our_priority(said.get("priority")),
        "notes": notes,
        "tags": texts_of(said, "labels"),
        "blockedBy": [name for name in _names(said.get("dependsOn")) if name in keys],
        MEMBER: from_beside(said.get(MEMBER), shape.held, str(story.get("id")), status),
    }


def strangers_of(story: Story, keys: Collection[str]) -> list[str]:
    """Names that a story waits for, and that are not in the list."""
    return [name for name in _names(story.get("dependsOn")) if name not in keys]


def feedback_of(shape: Shape, story: Story) -> str:
    """The changes that a review asks for: the agent must read them."""
    asks = shape.reviews and story.get("reviewStatus") == CHANGES_REQUESTED
    return _text(story.get("reviewFeedback")) if asks else ""


def _status(shape: Shape, story: Story) -> Status:
    if "status" in shape.keys:
        return _WORDS.get(str(story.get("status", "open")), Status.PENDING)
    passes = story.get("passes", False)
    if not isinstance(passes, bool):
        shown = json.dumps(passes)[:40]
        raise ValueError(f"story {story.get('id')}: passes must be true or false, not {shown}")
    if passes:
        return Status.DONE
    waits = shape.reviews and story.get("reviewStatus") == NEEDS_REVIEW
    return Status.REVIEW if waits else Status.PENDING


def our_priority(given: object) -> int | None:
    """1 is the most urgent there, the highest with us."""
    if isinstance(given, bool) or not isinstance(given, int | float):
        return None
    return max(-_LARGEST, min(_LARGEST, -math.floor(given)))


def _text(given: object) -> str:
    match given:
        case str():
            return given
        case None:
            return ""
        case list():
            return "\n".join(map(_text, given))
        case _:
            return json.dumps(given, ensure_ascii=False)


def _names(given: object) -> list[str]:
    found = given if isinstance(given, list) else []
    return list(dict.fromkeys(str(one) for one in found if type(one) in (str, int)))


# ------------------------------------------------------------------ writing


@value
class Written:
    """A task on its way into a list."""

    key: str
    ours: Mapping[str, Any]  # its fields, as `fields_of` would read them from the list
    kept: Story  # what a list said of it before


def our_fields(shape: Shape, record: Story, names: Mapping[str, str]) -> dict[str, Any]:
    """A task's fields as `fields_of` would read them from the list."""
    status = status_of(record)
    status = status if status in shape.statuses else Status.PENDING
    text = str(record.get("description") or "")
    # The check that proves a task of ours becomes its criterion, in words, where it has none.
    if record.get("completion") and not without_criteria(text)[1] and "source" not in record:
        rule = completion.parse(record["completion"], record["id"])
        words = completion.words(rule, record["id"])
        text = with_criteria(text, [words] if words else [])
    return {
        "title": text_of(record, "title"),
        "description": text,
        "status": status.value,
        "priority": record.get("priority"),
        "notes": notes_of(record),
        "tags": texts_of(record, "tags"),
        "blockedBy": [names[b] for b in texts_of(record, "blockedBy") if b in names],
        MEMBER: beside(record, shape.held, names, status),
    }


def write_story(
    shape: Shape, task: Written, priority: int, keys: Collection[str]
) -> dict[str, Any]:
    """A task as a story. What nobody changed here is word for word as it was there."""
    usual = _usual(shape, task, priority)
    # In its own order, and without what it did not have.
    order = task.kept.get(KEYS) or [*usual, *(name for name in task.kept if name not in usual)]
    was = {n: task.kept.get(n, usual.get(n)) for n in order if n in task.kept or n in usual}
    if str(was.get("id")) != task.key:
        was["id"] = task.key
    if shape.reviews:
        was |= {n: usual[n] for n in REVIEW if n in was or usual[n] not in (None, 0, "")}
    theirs = fields_of(shape, was, keys)

    def is_other(name: str) -> bool:
        field = shape.field(name)
        return field is not None and theirs[field] != task.ours[field]

    new = {name: usual.get(name, _EMPTY.get(name)) if is_other(name) else was[name] for name in was}
    return new | {name: usual[name] for name in usual if name not in was and is_other(name)}


def _usual(shape: Shape, task: Written, priority: int) -> dict[str, Any]:
    """A task as a story that we would write by ourselves."""
    ours, kept = task.ours, task.kept
    words, criteria = without_criteria(ours["description"])
    status = Status(ours["status"])
    notes = ours["notes"]
    if feedback := feedback_of(shape, kept):
        notes = notes.removesuffix(f"{_FEEDBACK}{feedback}").removesuffix("\n\n")
    whole = {
        "id": task.key,
        "title": ours["title"],
        "description": words,
        "acceptanceCriteria": list(criteria),
        "priority": priority,
        "passes": status is Status.DONE,
        "status": _SPELLED.get(status, "open"),
        "notes": notes,
        "labels": ours["tags"],
        "dependsOn": ours["blockedBy"],
        MEMBER: ours[MEMBER],
        **(_reviewed(shape, kept, status) if shape.reviews else {}),
    }
    names = (*shape.keys, *(name for name in shape.more if whole[name]))
    return {name: whole[name] for name in names}


def _reviewed(shape: Shape, kept: Story, status: Status) -> dict[str, Any]:
    """The words of stories about their reviews. Only a review approves (R): what is done here waits
    for its own."""
    held = {"reviewStatus": None, "reviewCount": 0, "reviewFeedback": "", "passes": False}
    held |= {name: kept[name] for name in held if name in kept}
    if _status(shape, held) is status:
        return held
    waits = NEEDS_REVIEW if status in (Status.DONE, Status.REVIEW) else None
    return {**held, "reviewStatus": waits, "reviewFeedback": "", "passes": False}


# ------------------------------------------------------------------ acceptance criteria

# Lists of their own there, with us the end of the description, because an agent must read them.


def with_criteria(text: str, criteria: Sequence[str]) -> str:
    """A description with its criteria, as `without_criteria` finds them again."""
    if not criteria:
        return text
    lines = [f"- {one}".replace("\n", "\n  ") for one in criteria]
    block = "\n".join([_HEAD, *lines])
    return f"{text}\n\n{block}" if text else block


def without_criteria(text: str) -> tuple[str, tuple[str, ...]]:
    """The description and its criteria, where these are its end."""
    before, found, block = text.rpartition(f"{_HEAD}\n")
    if not found or (before and not before.endswith("\n\n")):
        return text, ()
    criteria: list[str] = []
    for line in block.split("\n"):
        if line.startswith("- "):
            criteria.append(line[2:])
        elif line.startswith("  ") and criteria:
            criteria[-1] += f"\n{line[2:]}"
        else:
            return text, ()
    return before[:-2], tuple(criteria)
