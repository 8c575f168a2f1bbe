"""The tasks of a markdown text: boxes and sections of a plan, each with the key by which it is
found again when others come, go, move or are ticked."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from typing import Any

from ralph.formats.base import OPTIONAL, leading_id, urgency
from ralph.formats.markdown.labels import (
    ID,
    fields_of,
    paragraphs,
    split_labels,
    without_notes,
)
from ralph.formats.markdown.lines import (
    dedented,
    without_comments,
)
from ralph.formats.markdown.outline import Box, Outline, PlanTask, outline
from ralph.formats.records import Names
from ralph.kernel.value import replace, value

NAME = "markdown"
MARKS = {" ": "pending", "x": "done", "X": "done", "/": "in_progress", "~": "in_progress"}
MARKS |= {"-": "cancelled"}
OPTIONAL_TAG = "optional"
_NUMBERED_TASK = re.compile(
    r"(?:Task|Iteration)[ \t]+[0-9]+(?:\.[0-9]+)*[a-z]?[ \t]*[:.)–—-][ \t]*(?=\S)"
)
ESCAPED = re.compile(r"([ \t]*(?:[-*+]|[0-9]{1,9}[.)])[ \t]+)\\(\\*\[[ xX/~-]\][ \t]+\S)")
_COMMENT = re.compile(r"<\\(\\*!--)")
_LATER = re.compile(
    r"(?:optional|future|nice[ -]to[ -]haves?|someday|later|stretch)"
    r"(?: (?:enhancements|work|ideas|goals|improvements|tasks|items|features))?"
)
_STATE = re.compile(  # headings between which tasks move
    r"(?:completed|done|finished|tasks|to[ -]?do|open|pending|remaining|backlog|in progress|current"
    r"|next|validation commands|implementation)(?: (?:tasks|items|work|steps|plan))?"
)
_LONGEST_PART, _DEEPEST = 60, 6


@value
class TaskEntry:
    """A task of the text: a box, or a plan's section with boxes."""

    key: str
    title: str
    status: str
    start: int  # where its title begins in the text
    body: str  # what is written below it, without the notes and labels at its end
    place: Box | PlanTask
    context: tuple[str, ...]  # the headings and items above it that say what it is about
    parent: str | None = None
    named: bool = False  # by a label
    said: Mapping[str, Any] = field(default_factory=dict)  # by labels, in our fields


@value
class Entries:
    """All of them, in the order of the text, and the plan's sections that have no box."""

    outline: Outline
    all: list[TaskEntry]
    bare: list[PlanTask]


@value
class _Draft:
    """An entry before its key is known."""

    place: Box | PlanTask
    text: str
    start: int
    lead: int  # characters of the id in front of its title
    id: str
    whole: str  # what is written below it
    body: str  # the same without its labels
    labels: Mapping[str, str]


def entries_of(text: str) -> Entries:
    """The tasks of a text, each with a key of its own."""
    found = outline(text)
    places: list[Box | PlanTask] = [box for box in found.boxes if box.plan is None]
    places += [plan for plan in found.plans if plan.boxes]
    drafts = [_draft(found, place) for place in sorted(places, key=lambda place: place.line)]
    keys = _Keys(drafts)
    entries = [keys.entry(found, draft) for draft in drafts]
    known = {entry.key for entry in entries}
    checked = [_labelled(e, draft, known) for e, draft in zip(entries, drafts, strict=True)]
    return Entries(found, checked, [plan for plan in found.plans if not plan.boxes])


# ------------------------------------------------------------------ the text of one


def _draft(found: Outline, place: Box | PlanTask) -> _Draft:
    text, start = place.text, place.start
    if isinstance(place, PlanTask):
        lines = {n: dedented(found.lines[n], 0) for n in place.lines}
        # Without its boxes, so that ticking one changes no word of it.
        for box in (found.boxes[n] for n in place.boxes):
            line = found.lines[box.line]
            lines[box.line] = line.text[: box.at - 1 - line.start] + box.text
        if number := _NUMBERED_TASK.match(text):
            text, start = text[number.end() :], start + number.end()
    else:
        lines = {n: dedented(found.lines[n], place.content) for n in place.lines}
    clean = (line if n in found.code else unescaped(line) for n, line in lines.items())
    whole = "\n".join(clean).strip("\n")
    body, labels = split_labels(whole)
    name, lead = (labels[ID], 0) if ID in labels else leading_id(text)
    return _Draft(place, text, start, lead, name, whole, body, labels)


def unescaped(line: str) -> str:
    """The line with a backslash less before what looks like a box, and like comments."""
    box = ESCAPED.match(line) if "\\[" in line else None
    return _uncovered(f"{box[1]}{line[box.start(2) :]}" if box else line)


def _uncovered(text: str) -> str:
    return _COMMENT.sub(r"<\1", text) if "<\\" in text else text


# ------------------------------------------------------------------ which one it is


class _Keys:
    """Gives each entry its key: its id, or its place and text. An id that two have is nobody's."""

    def __init__(self, drafts: Iterable[_Draft]) -> None:
        ids = Counter(draft.id for draft in drafts if draft.id)
        self.ids = {name for name, count in ids.items() if count == 1}
        self.names = Names(self.ids)
        self.by_line: dict[int | None, tuple[str, str]] = {}  # key and title

    def entry(self, found: Outline, draft: _Draft) -> TaskEntry:
        lead = draft.lead if draft.id in self.ids else 0
        title, place = draft.text[lead:], draft.place
        title = _uncovered(without_comments(title) or title)
        context, names = self._context(place)
        key = draft.id if draft.id in self.ids else self.names.free("/".join(("", *names, title)))
        self.by_line[place.line] = key, title
        parent = self.by_line.get(place.parent) if isinstance(place, Box) else None
        above = parent[0] if parent else None
        status, start = _status(found, place), draft.start + lead
        return TaskEntry(key, title, status, start, draft.body, place, context, above)

    def _context(self, place: Box | PlanTask) -> tuple[tuple[str, ...], list[str]]:
        """The things that it is a part of, for people; and the same for its key, where an id stands
        for the title that may change."""
        headings = [heading for heading in place.path if not _is_state(heading)]
        shown, names = list(headings), list(headings)
        for line, text in place.below if isinstance(place, Box) else ():
            key, title = self.by_line.get(line) or ("/", without_comments(text))
            shown.append(title)
            names.append(title if key.startswith("/") else key)
        return tuple(one[:_LONGEST_PART] for one in shown), [one[:_LONGEST_PART] for one in names]


def _status(found: Outline, place: Box | PlanTask) -> str:
    if isinstance(place, Box):
        return MARKS[place.mark]
    marks = {MARKS[found.boxes[n].mark] for n in place.boxes}
    if marks <= {"done", "cancelled"}:
        return "done"
    return "pending" if marks == {"pending"} else "in_progress"


def _labelled(entry: TaskEntry, draft: _Draft, known: set[str]) -> TaskEntry:
    """An entry with what its labels and notes say; labels are text where not all of it means
    something."""
    body, said = draft.whole, {}
    try:
        found = fields_of(draft.labels)
        mine = draft.labels.get(ID, entry.key) == entry.key
        if mine and known.issuperset(found.get("blockedBy", ())):
            body, said = draft.body, found
    except ValueError:
        pass
    body, notes = without_notes(body)
    if notes:
        said["notes"] = notes
    status = said.pop("status", entry.status)
    if entry.status == "pending":
        entry = replace(entry, status=status)
    return replace(entry, body=body, named=ID in draft.labels, said=said)


# ------------------------------------------------------------------ what is said about it


def task_fields(entry: TaskEntry, checks: Mapping[str, str] | None) -> dict[str, Any]:
    """An entry in our fields; `checks` is the proof of a plan's tasks."""
    path = entry.place.path
    optional = any(map(is_optional, path))
    tags = [tag for tag in entry.said.get("tags", ()) if not optional or tag != OPTIONAL_TAG]
    fields = {
        "title": entry.title,
        "description": paragraphs((entry.body, part_of(entry))),
        "status": entry.status,
        "priority": implied(path),
        "parent": entry.parent,
        "completion": checks if isinstance(entry.place, PlanTask) else None,
        **entry.said,
        "tags": [OPTIONAL_TAG, *tags] if optional else tags,
    }
    return {name: held for name, held in fields.items() if held not in (None, "", [])}


def implied(path: Sequence[str]) -> int | None:
    """The priority that the nearest heading gives; the lowest for what is optional."""
    for heading in reversed(path):
        if is_optional(heading):
            return OPTIONAL
        if (found := urgency(heading)) is not None:
            return found
    return None


def is_optional(heading: str) -> bool:
    """True if what stands under this heading need not be done."""
    return _LATER.fullmatch(_bare(heading)) is not None


def _is_state(heading: str) -> bool:
    """True if a heading says when something is done, and not what."""
    if is_optional(heading) or _STATE.fullmatch(_bare(heading)):
        return True
    return urgency(heading) is not None


def _bare(heading: str) -> str:
    """A short heading without pictures and punctuation around it."""
    if len(heading) > _LONGEST_PART:
        return ""
    return re.sub(r"^[\W_]+|[\W_]+$", "", heading.casefold())


def part_of(entry: TaskEntry) -> str:
    """The headings that it belongs to, in one line, for somebody who sees nothing but this task."""
    return f"Part of: {' / '.join(entry.context[-_DEEPEST:])}" if entry.context else ""


def ticks(found: Entries, entry: TaskEntry, done: bool) -> list[int]:
    """Places of the characters in boxes that must be changed."""
    place, boxes = entry.place, found.outline.boxes
    if isinstance(place, Box):
        return [place.at] if (MARKS[place.mark] == "done") is not done else []
    wrong = ("pending", "in_progress") if done else ("done",)  # a step that was dropped stays so
    return [boxes[n].at for n in place.boxes if MARKS[boxes[n].mark] in wrong]
