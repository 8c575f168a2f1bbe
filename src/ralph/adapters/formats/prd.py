"""`prd.json` and its kin: stories in JSON, as snarktank, ralph-tui, spec R and iannuttall do."""

import json
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from ralph.adapters.formats.base import Reading, Writing
from ralph.adapters.formats.stories import (
    KEYS,
    Shape,
    fields_of,
    keys_of,
    our_fields,
    priority_of,
    read_story,
    strangers_of,
    write_story,
)
from ralph.adapters.formats.writing import (
    Record,
    kept_of,
    lost_blockers,
    lost_fields,
    lost_kept,
    lost_statuses,
    names_for,
    source_of,
    without_cancelled,
)
from ralph.core.json_text import JsonText
from ralph.core.review_text import NotAListError, parsed
from ralph.core.task import Status
from ralph.core.value import value
from ralph.core.words import listed

_STORY = ("id", "title", "description", "acceptanceCriteria", "priority", "passes")
_REVIEW = ("reviewStatus", "reviewCount", "reviewFeedback")
_ONLY_TUI = frozenset({"labels", "dependsOn", "completionNotes"})
_REFUSED = ("subtasks", "estimated_hours", "files", "status")
_END = "$end"  # in the root: how the text ended, where that was without a line's end
_OURS_ALONE = (
    *("type", "completion", "limits", "parent", "estimate", "question", "answers"),
    *("externalId", "externalUrl"),
)


@value
class StoryList:
    """A list of stories in a JSON object."""

    shape: Shape
    kin: tuple[str, ...]  # formats whose stories have the same keys

    @property
    def name(self) -> str:
        """As after --format."""
        return self.shape.name

    def fits(self, name: str, text: str) -> bool:
        """Whether the text is such a list, by what its stories say."""
        del name  # they may have any
        return f'"{self.shape.stories}"' in text and _kind(text) == self.name

    def read(self, text: str, name: str) -> Reading:
        """The stories as tasks."""
        listing = _listing(text)
        stories = listing.get(self.shape.stories)
        if not isinstance(stories, list):
            raise ValueError(f"there is no list {self.shape.stories}")
        keys = dict.fromkeys(keys_of(stories, self.shape.stories))
        items = tuple(read_story(self.shape, story, keys) for story in stories)
        root = {key: [] if key == self.shape.stories else held for key, held in listing.items()}
        if not text.endswith("\n"):
            root[_END] = ""
        return Reading(items, root, _strangers(stories, keys))

    # -------------------------------------------------------------- writing

    def write(self, tasks: Sequence[Record], root: Mapping[str, Any]) -> Writing:
        """The tasks as stories; what came from such a list as it was there."""
        tasks, left_out = without_cancelled(tasks)
        names = names_for(tasks, self.kin)
        top = self._top(tasks)
        keys = set(names.values())
        refused: dict[str, list[str]] = {}
        stories = []
        for record in tasks:
            kept, gone = self._kept(record)
            for key in gone:
                refused.setdefault(key, []).append(record["id"])
            ours = our_fields(self.shape, record, names)
            priority = top + 1 - (record.get("priority") or 0)
            key = names[record["id"]]
            stories.append(write_story(self.shape, key, ours, kept, priority=priority, keys=keys))
        lost = [f"{key}: {listed(ids)}" for key, ids in refused.items()]
        lost += [*left_out, *self._lost(tasks), *lost_blockers(tasks, names)]
        own = any("root" in source_of(task, (self.name,)) for task in tasks)
        head, lost_root = self._root(root, own=own)
        end = head.pop(_END, "\n")
        text = json.dumps({**head, self.shape.stories: stories}, indent=2, ensure_ascii=False)
        return Writing(text + end, (*lost_root, *lost))

    def _top(self, tasks: Sequence[Record]) -> int:
        """From where priorities are counted: in a list, 1 is the most urgent. What stands as it was
        in the list does not count."""
        mine = (task for task in tasks if not self._is_as_it_was(task))
        return max([-1, *(task.get("priority") or 0 for task in mine)])

    def _is_as_it_was(self, task: Record) -> bool:
        kept = kept_of(task, self.kin)
        was_there = "priority" in kept or "priority" not in kept.get(KEYS, ("priority",))
        return was_there and priority_of(kept.get("priority")) == task.get("priority")

    def _kept(self, record: Record) -> tuple[dict[str, Any], list[str]]:
        """What its list said of a task, and what of that must not stand in this one."""
        kept = dict(kept_of(record, self.kin))
        same = kept_of(record, (self.name,)) == kept
        foreign = () if self.shape.reviews or same else _REVIEW
        gone = [key for key in kept if key in self.shape.refused or key in foreign]
        return {key: held for key, held in kept.items() if key not in gone}, gone

    def _lost(self, tasks: Sequence[Record]) -> list[str]:
        known = {Status.PENDING, Status.DONE}
        known |= {Status.REVIEW} if self.shape.reviews else set()
        known |= {Status.IN_PROGRESS} if "status" in self.shape.keys else set()
        fields = [*_OURS_ALONE, *(() if "notes" in self.shape.keys else ("notes", "tags"))]
        lost = lost_fields(tasks, fields) + lost_statuses(tasks, set(Status) - known)
        return lost + lost_kept(tasks, self.kin)

    def _root(self, root: Mapping[str, Any], *, own: bool) -> tuple[dict[str, Any], list[str]]:
        """What the list says of itself: as it was, or what such a list must say."""
        refused = [key for key in root if key in self.shape.refused_at_root]
        kept = {key: held for key, held in root.items() if key not in refused}
        if not any(key in root for key in (self.shape.stories, "userStories")):
            kept = self._new_root(kept)
        elif not own and "project" not in kept and "project" in self.shape.root:
            kept = {"project" if key == "name" else key: held for key, held in kept.items()}
        lost = [f"{listed(refused)} at the root: ralph-tui refuses a list with that"]
        return kept, lost if refused else []

    def _new_root(self, root: Mapping[str, Any]) -> dict[str, Any]:
        project = str(root.get("project") or root.get("name") or "project")
        branch = re.sub(r"[^a-z0-9]+", "-", project.lower()).strip("-") or "tasks"
        usual = {"version": 1, "project": project, "name": project, "branchName": f"ralph/{branch}"}
        usual |= {"description": "", self.shape.stories: []}
        return {key: root.get(key, usual[key]) for key in self.shape.root}

    # -------------------------------------------------------------- marking

    def marked(self, text: str, key: str, done: bool) -> str | None:
        """The text with another `passes` or `status` of that story. Of stories that are reviewed
        (R), what is done waits for its review: only that approves."""
        json_text = JsonText.of(text)
        stories = json_text.member(json_text.top, self.shape.stories)
        if stories is None or not isinstance(stories.content, list):
            return None
        for story in json_text.items(stories.at):
            if isinstance(story.content, dict) and str(story.content.get("id")) == key:
                return self._changed(json_text, story.at, story.content, done=done)
        return None

    def _changed(self, text: JsonText, at: int, story: Mapping[str, Any], *, done: bool) -> str:
        says = fields_of(self.shape, story, ())["status"]
        for name, content in self._changes(Status(says), done=done).items():
            found = text.member(at, name)
            if found is None:
                text = text.appended(at, 2, content, name)
            else:
                raw = f"{text.raw[: found.at]}{json.dumps(content)}{text.raw[found.end :]}"
                text = JsonText.of(raw)
        return text.raw

    def _changes(self, says: Status, *, done: bool) -> dict[str, Any]:
        """Which keys of a story change, so that it says what is wanted."""
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


def _strangers(stories: Sequence[Mapping[str, Any]], keys: Mapping[str, None]) -> tuple[str, ...]:
    """What stories wait for in vain: a blocker that is not there does not block (B)."""
    return tuple(
        f"{story['id']} depends on {listed(missing)}, which is not in the list"
        for story in stories
        if (missing := strangers_of(story, keys))
    )


@lru_cache(maxsize=1)  # each of these formats is asked for the same text
def _kind(text: str) -> str:
    """Whose list it is, "" for nobody's."""
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
PRD = StoryList(
    Shape("prd", "userStories", _ROOT, (*_STORY, "notes"), ("labels", "dependsOn")), _KIN
)
RALPH_TUI = StoryList(
    Shape(
        "ralph-tui",
        "userStories",
        ("name", "branchName", "description", "userStories"),
        (*_STORY, "notes"),
        ("labels", "dependsOn"),
        ("prd", "tasks"),
        _REFUSED,
    ),
    _KIN,
)
STORIES = StoryList(
    Shape("stories", "userStories", _ROOT, (*_STORY, *_REVIEW, "notes"), ("dependsOn", "labels")),
    _KIN,
)
IANNUTTALL = StoryList(
    Shape(
        "iannuttall",
        "stories",
        ("version", "project", "stories"),
        ("id", "title", "status", "dependsOn", "description", "acceptanceCriteria"),
    ),
    ("iannuttall",),
)
