"""`prd.json` and its kin: stories in JSON, as snarktank, ralph-tui, spec R and iannuttall do.

A story is kept in the fields of a task; of what these cannot say exactly, the story's own word is
kept beside, and stands as long as nobody changes the field here.
"""

import json
import math
import re
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from typing import Any

from ralph.formats.base import ListedTask, TaskList, Writing, split_at
from ralph.formats.json_lists import dumped, items, member_of, with_members
from ralph.formats.records import (
    MEMBER,
    NOTHING,
    Losses,
    Record,
    beside,
    from_beside,
    kept_of,
    names_for,
    notes_of,
    priority_of,
    source_of,
    status_of,
    text_of,
    texts_of,
    without_cancelled,
)
from ralph.kernel.tasks import completion
from ralph.kernel.tasks.task import Status
from ralph.kernel.value import replace, value
from ralph.review.law import CHANGES_REQUESTED, NEEDS_REVIEW, NotAListError, parsed
from ralph.text.words import listed

Story = Mapping[str, Any]
_KEYS = "$keys"  # among what is kept: the story's keys, where they are not the usual ones
_END = "$end"  # in the root: how the text ended, where that was without a line's end
_REVIEW = ("reviewStatus", "reviewCount", "reviewFeedback")
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
class StoryList:
    """A list of stories in a JSON object."""

    name: str
    stories: str  # the key of the list
    root: tuple[str, ...]  # keys of a new list
    keys: tuple[str, ...]  # that every story has
    more: tuple[str, ...]  # and those with something to say
    kin: tuple[str, ...]  # formats whose stories have the same keys
    refused_at_root: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()

    @property
    def reviews(self) -> bool:
        """True if a story is done only by its review (R)."""
        return "reviewStatus" in self.keys

    @property
    def statuses(self) -> frozenset[Status]:
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

    def fits(self, name: str, text: str) -> bool:
        return f'"{self.stories}"' in text and _kind(text) == self.name

    def read(self, text: str, name: str) -> TaskList:
        listing = _listing(text)
        stories = listing.get(self.stories)
        if not isinstance(stories, list):
            raise ValueError(f"there is no list {self.stories}")
        keys = _places_by_key(stories, self.stories)
        items = tuple(_read_story(self, story, keys) for story in stories)
        root = {key: [] if key == self.stories else held for key, held in listing.items()}
        if not text.endswith("\n"):
            root[_END] = ""
        lost = tuple(  # a blocker that is not there does not block (B)
            f"{story['id']} depends on {listed(missing)}, which is not in the list"
            for story in stories
            if (missing := [it for it in _names(story.get("dependsOn")) if it not in keys])
        )
        return TaskList(items, root, lost)

    def write(self, tasks: Sequence[Record], root: Mapping[str, Any]) -> Writing:
        losses = Losses()
        tasks = without_cancelled(tasks, losses)
        names = names_for(tasks, *self.kin)
        # From where priorities are counted: in a list, 1 is the most urgent. What stands as it was
        # in the list does not count.
        mine = (task for task in tasks if not self._is_as_it_was(task))
        top = max([-1, *map(priority_of, mine)])
        keys = set(names.values())
        stories = []
        for record in tasks:
            ours, kept = _our_fields(self, record, names), self._kept(record, losses)
            usual = _usual(self, names[record["id"]], ours, kept, top + 1 - priority_of(record))
            stories.append(_written(self, usual, ours, kept, keys))
        own = any("root" in source_of(task, self.name) for task in tasks)
        head, lost = self._root(root, own=own)
        end = head.pop(_END, "\n")
        losses.statuses(tasks, self.statuses, "open")
        losses.strangers(tasks, names)
        losses.times(tasks, *self.kin)
        losses.kept(tasks, *self.kin)
        text = dumped({**head, self.stories: stories}) + end
        return Writing(text, (*lost, *losses.words()))

    def _is_as_it_was(self, task: Record) -> bool:
        kept = kept_of(task, *self.kin)
        was_there = "priority" in kept or "priority" not in kept.get(_KEYS, ("priority",))
        return was_there and _our_priority(kept.get("priority")) == task.get("priority")

    def _kept(self, record: Record, losses: Losses) -> dict[str, Any]:
        """The words of its list about a task, without what must not stand in this one."""
        kept = dict(kept_of(record, *self.kin))
        foreign = () if self.reviews or source_of(record, self.name) else _REVIEW
        for key in [key for key in kept if key in self.refused or key in foreign]:
            del kept[key]
            losses.add(key, record["id"])
        return kept

    def _root(self, root: Mapping[str, Any], *, own: bool) -> tuple[dict[str, Any], list[str]]:
        """The words of the list about itself: as they were, or those that such a list must have."""
        refused = [key for key in root if key in self.refused_at_root]
        kept = {key: held for key, held in root.items() if key not in refused}
        if not any(key in root for key in (self.stories, "userStories")):
            project = str(kept.get("project") or kept.get("name") or "project")
            branch = re.sub(r"[^a-z0-9]+", "-", project.lower()).strip("-") or "tasks"
            usual = {"version": 1, "project": project, "name": project}
            usual |= {"branchName": f"ralph/{branch}", "description": "", self.stories: []}
            kept = {key: kept.get(key, usual[key]) for key in self.root}
        elif not own and "project" not in kept and "project" in self.root:
            kept = {"project" if key == "name" else key: held for key, held in kept.items()}
        lost = [f"{listed(refused)} at the root: ralph-tui refuses a list with that"]
        return kept, lost if refused else []

    def marked(self, text: str, keys: Collection[str], done: bool) -> str:
        """Of stories that are reviewed (R), what is done waits for its review to approve it."""
        stories = member_of(text, self.stories)
        if stories is None or not isinstance(stories.content, list):
            return text
        return with_members(
            text,
            (
                (story, self._changes(story.content, done=done))
                for story in items(text, stories.at)
                if isinstance(story.content, dict) and str(story.content.get("id")) in keys
            ),
        )

    def _changes(self, story: Mapping[str, Any], *, done: bool) -> dict[str, Any]:
        """The keys of a story that change, so that it says what is wanted."""
        says = Status(_fields_of(self, story, ())["status"])
        ended = (Status.DONE, Status.REVIEW) if self.reviews else (Status.DONE,)
        if (says in ended) is done:
            return {}
        if "status" in self.keys:
            return {"status": "done" if done else "open"}
        if not self.reviews:
            return {"passes": done}
        changes: dict[str, Any] = {"reviewStatus": "needs_review" if done else None}
        return changes | ({"passes": False} if says is Status.DONE else {})


def _listing(text: str) -> dict[str, Any]:
    try:
        listing = parsed(text.encode())
    except NotAListError as error:
        raise ValueError(str(error)) from None
    if not isinstance(listing, dict):
        raise ValueError("it holds no JSON object")
    return listing


@lru_cache(maxsize=1)  # each of these formats is asked for the same text
def _kind(text: str) -> str:
    """The format of a list, "" for nobody's."""
    try:
        listing = _listing(text)
    except ValueError:
        return ""
    if not isinstance(listing.get("userStories"), list):
        return "iannuttall" if isinstance(listing.get("stories"), list) else ""
    keys: set[str] = set()
    for story in listing["userStories"]:
        keys |= story.keys() if isinstance(story, dict) else set()
    if "reviewStatus" in keys:
        return "stories"
    own = (
        keys & {"labels", "dependsOn", "completionNotes"}
        or "metadata" in listing
        or ("name" in listing and "project" not in listing)
    )
    return "ralph-tui" if own else "prd"


def _places_by_key(stories: Sequence[object], where: str) -> dict[str, int]:
    """The places of all stories by their names; ValueError where these cannot be told apart."""
    keys: dict[str, int] = {}
    for place, story in enumerate(stories):
        if not isinstance(story, dict):
            raise ValueError(f"{where}[{place}] is not an object")
        key = story.get("id")
        if type(key) not in (str, int) or not str(key).strip():
            raise ValueError(f"{where}[{place}] has no id")
        first = keys.setdefault(str(key), place)
        if first != place:
            raise ValueError(f"the id {str(key)[:80]} is there twice: {where}[{first}] and later")
    return keys


def _read_story(form: StoryList, story: Story, keys: Collection[str]) -> ListedTask:
    """A story with an id, as a task. ValueError for what makes it none."""
    key, title = str(story["id"]), story.get("title")
    if not isinstance(title, str) or not title.strip():
        raise ValueError(f"story {key[:80]} has no title")
    fields = _fields_of(form, story, keys)
    of_review = (*_REVIEW, "passes") if form.reviews else ()
    review = {name: story[name] for name in of_review if name in story}
    usual = _usual(form, key, fields, review, max(1, -(fields["priority"] or 0)))
    kept = {  # compared in JSON, since to Python 1 is 1.0 and true
        name: held
        for name, held in story.items()
        if name not in usual or json.dumps(held) != json.dumps(usual[name])
    }
    kept |= review
    if list(story) != [*usual, *(name for name in kept if name not in usual)]:
        kept[_KEYS] = list(story)
    fields |= fields.pop(MEMBER)
    return ListedTask(
        key, {name: held for name, held in fields.items() if held not in NOTHING}, kept
    )


def _fields_of(form: StoryList, story: Story, keys: Collection[str]) -> dict[str, Any]:
    """The words of a story, in all of our fields. It waits only for stories in the list."""
    said = {name: held for name, held in story.items() if form.field(name)}
    criteria = said.get("acceptanceCriteria")
    if not isinstance(criteria, list):
        criteria = [criteria] if criteria else []
    notes, feedback = _text(said.get("notes")), _feedback_of(form, story)
    if feedback:
        notes = f"{notes}\n\n{_FEEDBACK}{feedback}" if notes else f"{_FEEDBACK}{feedback}"
    status = _status(form, story).value
    return {
        "title": said.get("title"),
        "description": _with_criteria(_text(said.get("description")), list(map(_text, criteria))),
        "status": status,
        "priority": _our_priority(said.get("priority")),
        "notes": notes,
        "tags": texts_of(said, "labels"),
        "blockedBy": [name for name in _names(said.get("dependsOn")) if name in keys],
        MEMBER: from_beside(said.get(MEMBER), form.held, str(story.get("id")), status),
    }


def _feedback_of(form: StoryList, story: Story) -> str:
    """The changes that a review asks for: the agent must read them."""
    asks = form.reviews and story.get("reviewStatus") == CHANGES_REQUESTED
    return _text(story.get("reviewFeedback")) if asks else ""


def _status(form: StoryList, story: Story) -> Status:
    if "status" in form.keys:
        return _WORDS.get(str(story.get("status", "open")), Status.PENDING)
    passes = story.get("passes", False)
    if not isinstance(passes, bool):
        shown = json.dumps(passes)[:40]
        raise ValueError(f"story {story.get('id')}: passes must be true or false, not {shown}")
    if passes:
        return Status.DONE
    waits = form.reviews and story.get("reviewStatus") == NEEDS_REVIEW
    return Status.REVIEW if waits else Status.PENDING


def _our_priority(given: object) -> int | None:
    """1 is the most urgent there, the highest with us."""
    if isinstance(given, bool) or not isinstance(given, int | float):
        return None
    return max(-_LARGEST, min(_LARGEST, -math.floor(given)))


def _text(given: object) -> str:
    if given is None or isinstance(given, str):
        return given or ""
    if isinstance(given, list):
        return "\n".join(map(_text, given))
    return json.dumps(given, ensure_ascii=False)


def _names(given: object) -> list[str]:
    found = given if isinstance(given, list) else []
    return list(dict.fromkeys(str(one) for one in found if type(one) in (str, int)))


def _our_fields(form: StoryList, record: Story, names: Mapping[str, str]) -> dict[str, Any]:
    """A task's fields as `_fields_of` would read them from the list."""
    status = status_of(record)
    status = status if status in form.statuses else Status.PENDING
    text = str(record.get("description") or "")
    # The check that proves a task of ours becomes its criterion, in words, where it has none.
    if record.get("completion") and not _without_criteria(text)[1] and "source" not in record:
        rule = completion.parse(record["completion"], record["id"])
        words = completion.words(rule, record["id"])
        text = _with_criteria(text, [words] if words else [])
    return {
        "title": text_of(record, "title"),
        "description": text,
        "status": status.value,
        "priority": record.get("priority"),
        "notes": notes_of(record),
        "tags": texts_of(record, "tags"),
        "blockedBy": [names[b] for b in texts_of(record, "blockedBy") if b in names],
        MEMBER: beside(record, form.held, names, status),
    }


def _written(
    form: StoryList, usual: dict[str, Any], ours: Record, kept: Story, keys: Collection[str]
) -> dict[str, Any]:
    """A task as the story that we would write; what nobody changed here stays word for word."""
    # In its own order, and without what it did not have.
    order = kept.get(_KEYS) or [*usual, *(name for name in kept if name not in usual)]
    was = {n: kept.get(n, usual.get(n)) for n in order if n in kept or n in usual}
    if str(was.get("id")) != usual["id"]:
        was["id"] = usual["id"]
    if form.reviews:
        was |= {n: usual[n] for n in _REVIEW if n in was or usual[n] not in (None, 0, "")}
    theirs = _fields_of(form, was, keys)

    def is_other(name: str) -> bool:
        field = form.field(name)
        return field is not None and theirs[field] != ours[field]

    new = {name: usual.get(name, _EMPTY.get(name)) if is_other(name) else was[name] for name in was}
    return new | {name: usual[name] for name in usual if name not in was and is_other(name)}


def _usual(form: StoryList, key: str, ours: Record, kept: Story, priority: int) -> dict[str, Any]:
    """A task as a story that we would write by ourselves, from its fields as `_fields_of` would
    read them from the list, and what a list said of it before."""
    words, criteria = _without_criteria(ours["description"])
    status = Status(ours["status"])
    notes = ours["notes"]
    if feedback := _feedback_of(form, kept):
        notes = notes.removesuffix(f"{_FEEDBACK}{feedback}").removesuffix("\n\n")
    whole = {
        "id": key,
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
        **(_reviewed(form, kept, status) if form.reviews else {}),
    }
    names = (*form.keys, *(name for name in form.more if whole[name]))
    return {name: whole[name] for name in names}


def _reviewed(form: StoryList, kept: Story, status: Status) -> dict[str, Any]:
    """The words of stories about their reviews. Only a review approves (R): what is done waits."""
    held = {"reviewStatus": None, "reviewCount": 0, "reviewFeedback": "", "passes": False}
    held |= {name: kept[name] for name in held if name in kept}
    if _status(form, held) is status:
        return held
    waits = NEEDS_REVIEW if status in (Status.DONE, Status.REVIEW) else None
    return {**held, "reviewStatus": waits, "reviewFeedback": "", "passes": False}


# ------------------------------------------------------------------ acceptance criteria

# Lists of their own there, with us the end of the description, because an agent must read them.


def _with_criteria(text: str, criteria: Sequence[str]) -> str:
    """A description with its criteria, as `_without_criteria` finds them again."""
    if not criteria:
        return text
    lines = [f"- {one}".replace("\n", "\n  ") for one in criteria]
    block = "\n".join([_HEAD, *lines])
    return f"{text}\n\n{block}" if text else block


def _without_criteria(text: str) -> tuple[str, tuple[str, ...]]:
    """The description and its criteria, where these are its end."""
    before, block = split_at(text, f"{_HEAD}\n")
    criteria: list[str] = []
    for line in block.split("\n"):
        if line.startswith("- "):
            criteria.append(line[2:])
        elif line.startswith("  ") and criteria:
            criteria[-1] += f"\n{line[2:]}"
        else:
            return text, ()
    return before, tuple(criteria)


_STORY = ("id", "title", "description", "acceptanceCriteria", "priority", "passes")
PRD = StoryList(
    "prd",
    "userStories",
    ("project", "branchName", "description", "userStories"),
    (*_STORY, "notes"),
    ("labels", "dependsOn", MEMBER),
    ("prd", "ralph-tui", "stories"),
)
RALPH_TUI = replace(
    PRD,
    name="ralph-tui",
    root=("name", *PRD.root[1:]),
    refused_at_root=("prd", "tasks"),
    refused=("subtasks", "estimated_hours", "files", "status"),
)
STORIES = replace(PRD, name="stories", keys=(*_STORY, *_REVIEW, "notes"))
IANNUTTALL = StoryList(
    "iannuttall",
    "stories",
    ("version", "project", "stories"),
    ("id", "title", "status", "dependsOn", "description", "acceptanceCriteria"),
    (MEMBER,),
    ("iannuttall",),
)
