"""The tasks of a markdown text: boxes and sections of a plan, each with the key by which it is
found again when others come, go, move or are ticked."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import field
from typing import Any

from ralph.formats.base import OPTIONAL, leading_id, urgency
from ralph.formats.markdown.labels import ID, fields_of, paragraphs, split_labels, without_notes
from ralph.formats.markdown.outline import (
    Box,
    Outline,
    PlanTask,
    dedented,
    outline,
    without_comments,
)
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
    entries = _keyed(found, drafts)
    known = {entry.key for entry in entries}
    checked = [_labelled(e, draft, known) for e, draft in zip(entries, drafts, strict=True)]
    return Entries(found, checked, [plan for plan in found.plans if not plan.boxes])


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


def _keyed(found: Outline, drafts: Sequence[_Draft]) -> list[TaskEntry]:
    """The entries, each with its key: its id if no other has it, else its place and text."""
    counts = Counter(draft.id for draft in drafts if draft.id)
    ids = {name for name, count in counts.items() if count == 1}
    names = Names(ids)
    by_line: dict[int | None, tuple[str, str]] = {}  # key and title
    entries: list[TaskEntry] = []
    for draft in drafts:
        place, lead = draft.place, draft.lead if draft.id in ids else 0
        title = draft.text[lead:]
        title = _uncovered(without_comments(title) or title)
        # The things that it is a part of; in its key an id stands for the title that may change.
        shown = [heading for heading in place.path if not _is_state(heading)]
        parts = list(shown)
        for line, text in place.below if isinstance(place, Box) else ():
            key, name = by_line.get(line) or ("/", without_comments(text))
            shown.append(name)
            parts.append(name if key.startswith("/") else key)
        path = "/".join(("", *(part[:_LONGEST_PART] for part in parts), title))
        key = draft.id if draft.id in ids else names.free(path)
        by_line[place.line] = key, title
        above = by_line.get(place.parent) if isinstance(place, Box) else None
        parent = above[0] if above else None
        status, context = _status(found, place), tuple(part[:_LONGEST_PART] for part in shown)
        start = draft.start + lead
        entries.append(TaskEntry(key, title, status, start, draft.body, place, context, parent))
    return entries


def _status(found: Outline, place: Box | PlanTask) -> str:
    if isinstance(place, Box):
        return MARKS[place.mark]
    marks = {MARKS[found.boxes[n].mark] for n in place.boxes}
    if marks <= {"done", "cancelled"}:
        return "done"
    return "pending" if marks == {"pending"} else "in_progress"


def _labelled(entry: TaskEntry, draft: _Draft, known: set[str]) -> TaskEntry:
    """An entry with what its labels and notes say; labels that make no sense are text."""
    body, said = draft.whole, {}
    with suppress(ValueError):
        found = fields_of(draft.labels)
        mine = draft.labels.get(ID, entry.key) == entry.key
        if mine and known.issuperset(found.get("blockedBy", ())):
            body, said = draft.body, found
    body, notes = without_notes(body)
    if notes:
        said["notes"] = notes
    status = said.pop("status", entry.status)
    if entry.status == "pending":
        entry = replace(entry, status=status)
    return replace(entry, body=body, named=ID in draft.labels, said=said)


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
