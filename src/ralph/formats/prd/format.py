"""`prd.json` and its kin: stories in JSON, as snarktank, ralph-tui, spec R and iannuttall do."""

import re
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from typing import Any

from ralph.formats.base import TaskList, Writing
from ralph.formats.json_lists import dumped, items, member_of, with_members
from ralph.formats.losses import Losses, without_cancelled
from ralph.formats.prd.stories import (
    KEYS,
    REVIEW,
    Shape,
    Written,
    fields_of,
    keys_of,
    our_fields,
    our_priority,
    read_story,
    strangers_of,
    write_story,
)
from ralph.formats.records import (
    MEMBER,
    Record,
    kept_of,
    names_for,
    priority_of,
    source_of,
)
from ralph.kernel.tasks.task import Status
from ralph.kernel.value import value
from ralph.review.text import NotAListError, parsed
from ralph.text.words import listed

_STORY = ("id", "title", "description", "acceptanceCriteria", "priority", "passes")
_ONLY_TUI = frozenset({"labels", "dependsOn", "completionNotes"})
_REFUSED = ("subtasks", "estimated_hours", "files", "status")
_END = "$end"  # in the root: how the text ended, where that was without a line's end


@value
class StoryList:
    """A list of stories in a JSON object."""

    shape: Shape
    kin: tuple[str, ...]  # formats whose stories have the same keys

    @property
    def name(self) -> str:
        return self.shape.name

    def fits(self, name: str, text: str) -> bool:
        return f'"{self.shape.stories}"' in text and _kind(text) == self.name

    def read(self, text: str, name: str) -> TaskList:
        listing = _listing(text)
        stories = listing.get(self.shape.stories)
        if not isinstance(stories, list):
            raise ValueError(f"there is no list {self.shape.stories}")
        keys = dict.fromkeys(keys_of(stories, self.shape.stories))
        items = tuple(read_story(self.shape, story, keys) for story in stories)
        root = {key: [] if key == self.shape.stories else held for key, held in listing.items()}
        if not text.endswith("\n"):
            root[_END] = ""
        lost = tuple(  # a blocker that is not there does not block (B)
            f"{story['id']} depends on {listed(missing)}, which is not in the list"
            for story in stories
            if (missing := strangers_of(story, keys))
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
            ours = our_fields(self.shape, record, names)
            story = Written(names[record["id"]], ours, self._kept(record, losses))
            stories.append(write_story(self.shape, story, top + 1 - priority_of(record), keys))
        own = any("root" in source_of(task, self.name) for task in tasks)
        head, lost = self._root(root, own=own)
        end = head.pop(_END, "\n")
        losses.statuses(tasks, self.shape.statuses, "open")
        losses.strangers(tasks, names)
        losses.times(tasks, *self.kin)
        losses.kept(tasks, *self.kin)
        text = dumped({**head, self.shape.stories: stories}) + end
        return Writing(text, (*lost, *losses.words()))

    def _is_as_it_was(self, task: Record) -> bool:
        kept = kept_of(task, *self.kin)
        was_there = "priority" in kept or "priority" not in kept.get(KEYS, ("priority",))
        return was_there and our_priority(kept.get("priority")) == task.get("priority")

    def _kept(self, record: Record, losses: Losses) -> dict[str, Any]:
        """The words of its list about a task, without what must not stand in this one."""
        kept = dict(kept_of(record, *self.kin))
        foreign = () if self.shape.reviews or source_of(record, self.name) else REVIEW
        for key in [key for key in kept if key in self.shape.refused or key in foreign]:
            del kept[key]
            losses.add(key, record["id"])
        return kept

    def _root(self, root: Mapping[str, Any], *, own: bool) -> tuple[dict[str, Any], list[str]]:
        """The words of the list about itself: as they were, or those that such a list must have."""
        refused = [key for key in root if key in self.shape.refused_at_root]
        kept = {key: held for key, held in root.items() if key not in refused}
        if not any(key in root for key in (self.shape.stories, "userStories")):
            project = str(kept.get("project") or kept.get("name") or "project")
            branch = re.sub(r"[^a-z0-9]+", "-", project.lower()).strip("-") or "tasks"
            usual = {"version": 1, "project": project, "name": project}
            usual |= {"branchName": f"ralph/{branch}", "description": "", self.shape.stories: []}
            kept = {key: kept.get(key, usual[key]) for key in self.shape.root}
        elif not own and "project" not in kept and "project" in self.shape.root:
            kept = {"project" if key == "name" else key: held for key, held in kept.items()}
        lost = [f"{listed(refused)} at the root: ralph-tui refuses a list with that"]
        return kept, lost if refused else []

    def marked(self, text: str, keys: Collection[str], done: bool) -> str:
        """Of stories that are reviewed (R), what is done waits for its review: only that
        approves."""
        stories = member_of(text, self.shape.stories)
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
        says = Status(fields_of(self.shape, story, ())["status"])
        ended = (Status.DONE, Status.REVIEW) if self.shape.reviews else (Status.DONE,)
        if (says in ended) is done:
            return {}
        if "status" in self.shape.keys:
            return {"status": "done" if done else "open"}
        if not self.shape.reviews:
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
        keys & _ONLY_TUI
        or "metadata" in listing
        or ("name" in listing and "project" not in listing)
    )
    return "ralph-tui" if own else "prd"


_KIN = ("prd", "ralph-tui", "stories")
_ROOT = ("project", "branchName", "description", "userStories")
_MORE = ("labels", "dependsOn", MEMBER)
PRD = StoryList(Shape("prd", "userStories", _ROOT, (*_STORY, "notes"), _MORE), _KIN)
RALPH_TUI = StoryList(
    Shape(
        "ralph-tui",
        "userStories",
        ("name", "branchName", "description", "userStories"),
        (*_STORY, "notes"),
        _MORE,
        ("prd", "tasks"),
        _REFUSED,
    ),
    _KIN,
)
STORIES = StoryList(
    Shape("stories", "userStories", _ROOT, (*_STORY, *REVIEW, "notes"), _MORE), _KIN
)
IANNUTTALL = StoryList(
    Shape(
        "iannuttall",
        "stories",
        ("version", "project", "stories"),
        ("id", "title", "status", "dependsOn", "description", "acceptanceCriteria"),
        (MEMBER,),
    ),
    ("iannuttall",),
)
