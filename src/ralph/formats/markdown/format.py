"""Markdown checklists: fix_plan.md, IMPLEMENTATION_PLAN.md, plans with `### Task 1: ...`, and lists
with boxes below boxes.

A box is a task, a box below a box a task with a `parent` that waits for it; a section `### Task 1`
is one task, and its boxes are its steps. Headings such as High Priority, Optional and Completed say
how urgent it is, others what it is about. Of a text that tasks came from only what has changed is
written anew.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from ralph.formats.base import (
    LARGEST_ROOT,
    MARKDOWN,
    OPTIONAL,
    PRIORITIES,
    ListedTask,
    Splice,
    TaskList,
    Writing,
    is_id,
    spliced,
)
from ralph.formats.markdown.entries import (
    ESCAPED,
    MARKS,
    NAME,
    OPTIONAL_TAG,
    Entries,
    TaskEntry,
    entries_of,
    implied,
    is_optional,
    part_of,
    task_fields,
    ticks,
)
from ralph.formats.markdown.labels import (
    AFTER,
    ID,
    UNBOXED,
    can_be_listed,
    field_of,
    label,
    split_labels,
    with_notes,
)
from ralph.formats.markdown.outline import (
    Box,
    bullet_of,
    checks_of,
    open_fence,
    outline,
    unclosed_comment,
)
from ralph.formats.records import (
    Losses,
    Record,
    kept_of,
    notes_of,
    priority_of,
    source_of,
    status_of,
    text_of,
    texts_of,
)

_OTHERS = (".json", ".jsonl", ".jsonc", ".yaml", ".yml", ".toml", ".csv")
_SOME_BOX = re.compile(r"^[ \t]*(?:[-*+]|[0-9]{1,9}[.)])[ \t]+\[[ xX/~-]\][ \t]+\S", re.MULTILINE)
_DEEPEST = 40  # boxes below each other
_BOXES = {"pending": " ", "in_progress": "/", "done": "x", "cancelled": "-"}
_BOXES |= dict.fromkeys(UNBOXED, " ")  # a label says it
_LABELS = ("Type", "Estimate", "Completion", "Limits", "External id", "Url")
_SAME = tuple(map(field_of, _LABELS))
_COMMENT = re.compile(r"<(\\*!--)")
_HIDDEN = re.compile(r"<(\\+!--)")
_COVERED = r"<\\\1"


class Markdown:
    name = NAME
    nests = True  # it says what is a part of what

    def fits(self, name: str, text: str) -> bool:
        lower = name.casefold()
        if lower.endswith(_OTHERS) or "\0" in text:
            return False
        data = text.lstrip("\ufeff \t\r\n")[:1] in ("{", "[") and not lower.endswith(MARKDOWN)
        return not data and _SOME_BOX.search(text) is not None

    def read(self, text: str, name: str) -> TaskList:
        if "\0" in text:
            raise ValueError("it is not text: there is a NUL in it")
        found = entries_of(text)
        checks = checks_of(found.outline)
        items = []
        for entry in found.all:
            kept = {"section": list(entry.place.path)} if entry.place.path else {}
            items.append(ListedTask(entry.key, task_fields(entry, checks), kept))
        lost = [
            f"{name}: line {plan.line + 1}: {plan.text[:60]!r} has no box, so it is no task"
            for plan in found.bare
        ]
        if len(text) > LARGEST_ROOT:
            words = "what stands between the tasks is not kept for an export: the list is too long"
            return TaskList(tuple(items), {}, (*lost, words), nested=True)
        nothing = "" if items else "no line of it has a checkbox, such as: - [ ] What to do"
        root = {"text": text} if items else {}
        return TaskList(tuple(items), root, tuple(lost), nested=True, nothing=nothing)

    def write(self, tasks: Sequence[Record], root: Mapping[str, Any]) -> Writing:
        """The text they came from with what has changed, and sections for all others."""
        losses, text, new = Losses(), root.get("text"), None
        if isinstance(text, str):
            new = _in_their_text(tasks, root, text, losses)
        if new is None:
            losses = Losses()
            if text:
                losses.add("what stands between the tasks", "all of it")
            names = {str(r["id"]): str(r["id"]) for r in tasks}
            new = _Sections(tasks, names, losses).text("# Tasks")
        losses.fields(tasks, ("question", "answers", "reason"))
        losses.times(tasks, NAME)
        losses.kept(tasks, NAME)
        return Writing(new.replace("\0", "\ufffd"), losses.words())

    def marked(self, text: str, keys: Collection[str], done: bool) -> str:
        found = entries_of(text)
        entries = [entry for entry in found.all if entry.key in keys]
        places = [at for entry in entries for at in ticks(found, entry, done)]
        return spliced(text, [(at, at + 1, "x" if done else " ") for at in places])


class _Item:
    """The text of a task. `names` are those of all tasks in the text, by id."""

    def __init__(self, record: Record, names: Mapping[str, str], losses: Losses) -> None:
        self.record = record
        self.id = str(record["id"])
        self._names = names
        self._losses = losses

    @property
    def box(self) -> str:
        return _BOXES[status_of(self.record)]

    @property
    def title(self) -> str:
        """Its title on one line; its id where it has none."""
        return _with_our_ends(text_of(self.record, "title")).replace("\n", " ").strip() or self.id

    def headline(self) -> str:
        """The same, as it is read again."""
        return _COMMENT.sub(_COVERED, self.title)

    def below(
        self, head: Sequence[str], pad: str, path: Sequence[str], *, named: bool, alone: bool
    ) -> list[str]:
        """The lines below its title: text, notes and labels. `head` are the lines above these, the
        last its own; `path` the headings. Unless it is `alone`, more items follow below it."""
        described, notes = text_of(self.record, "description"), notes_of(self.record)
        text = with_notes(*(_with_our_ends(one).strip("\n") for one in (described, notes)))
        labels = self._labels(path, named=named)
        if not labels and split_labels(text)[1]:
            labels = [f"{label('Priority', priority_of(self.record))}"]  # so that text stays text
        indented = [f"{pad}{line}" if line else "" for line in text.split("\n")] if text else []
        lines = _escaped(head, indented)
        if labels or not alone:
            fence = open_fence("\n".join([*head, *lines]), len(pad))
            lines += [f"{pad}{fence}"] if fence else []
        more = [f"{pad}{_COMMENT.sub(_COVERED, line)}" for line in labels]
        return [*lines, *([""] if lines and more else []), *more]

    def _labels(self, path: Sequence[str], *, named: bool) -> list[str]:
        record, tags = self.record, list(texts_of(self.record, "tags"))
        if any(map(is_optional, path)):  # the heading says so
            if OPTIONAL_TAG not in tags:
                self._losses.add(f"that it is not {OPTIONAL_TAG}", self.id)
            tags = [tag for tag in tags if tag != OPTIONAL_TAG]
        waits = [self._names.get(one, "/") for one in texts_of(record, "blockedBy")]
        lines = [f"{ID}: {self.id}"] if named else []
        for name, what, values in ((AFTER, "blockedBy", waits), ("Tags", "tags", tags)):
            good = [one for one in values if can_be_listed(one)]
            if len(good) < len(values):
                self._losses.add(what, self.id)
            lines += [f"{name}: {', '.join(good)}"] if good else []
        if priority_of(record) != (implied(path) or 0):
            lines.append(f"{label('Priority', priority_of(record))}")
        if status_of(record) in UNBOXED:
            lines.append(f"Status: {status_of(record)}")
        for name in _LABELS:
            content = record.get(field_of(name))
            if content not in (None, "", {}):
                if (line := label(name, content)) is None:
                    self._losses.add(field_of(name), self.id)
                lines += [line] if line else []
        return lines


def _with_our_ends(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _escaped(head: Sequence[str], lines: list[str]) -> list[str]:
    """Lines below these, with a backslash before what would be read as a box of its own, as the
    beginning of a comment that does not end, or as what had such a backslash."""
    first = unclosed_comment("\n".join([*head, *lines]))
    covered = [
        (_HIDDEN if first is None or number < first else _COMMENT).sub(_COVERED, line)
        for number, line in enumerate(lines, len(head))
    ]
    found = outline("\n".join([*head, *covered]))
    boxes = {box.line for box in found.boxes}
    new = []
    for number, (line, safe) in enumerate(zip(lines, covered, strict=True), len(head)):
        if number in found.code:
            new.append(line)
        elif number in boxes or ESCAPED.match(line):
            at = safe.index("[" if number in boxes else "\\[")
            new.append(f"{safe[:at]}\\{safe[at:]}")
        else:
            new.append(safe)
    return new


def _in_their_text(
    tasks: Sequence[Record], root: Mapping[str, Any], text: str, losses: Losses
) -> str | None:
    """The text that tasks came from as they are now, with the others behind; None if none did."""
    found = entries_of(text)
    entries = {entry.key: entry for entry in found.all}
    ours = [record for record in tasks if source_of(record, NAME)]
    first = next((r for r in ours if r["source"].get("root") == root), ours[0] if ours else {})
    home: dict[str, TaskEntry] = {}  # the entries of tasks that came from this text, by id
    for record in ours:
        key = str(record["source"].get("key"))
        if record["source"].get("path") == first["source"].get("path") and key in entries:
            home[record["id"]] = entries.pop(key)
    names = {str(r["id"]): home[r["id"]].key if r["id"] in home else str(r["id"]) for r in tasks}
    pairs = [(record, home[record["id"]]) for record in tasks if record["id"] in home]
    others = [record for record in tasks if record["id"] not in home]
    edits = _Edits(text, found, names, losses)
    for record, entry in pairs:
        edits.item(record, entry)
    new = edits.text_now() if pairs else None
    if new is None or not others:
        return new
    newline = "\r\n" if "\r\n" in text else "\n"
    more = _Sections(others, names, losses).text("").replace("\n", newline)
    return new.rstrip("\r\n") + newline * 2 + more


class _Edits:
    """Brings a text up to date with its tasks: only what is not as they say is changed."""

    def __init__(self, text: str, found: Entries, names: Mapping[str, str], losses: Losses) -> None:
        self.text, self.found, self.names, self.losses = text, found, names, losses
        self.lines = found.outline.lines
        self.checks = checks_of(found.outline)
        self.edits: list[Splice] = []
        # By the keys of the entries that stay, their titles, and their text if it stays too.
        self.stays: dict[str, tuple[str, str | None]] = {}

    def item(self, record: Record, entry: TaskEntry) -> None:
        item = _Item(record, self.names, self.losses)
        self.stays[entry.key] = item.title, entry.body
        self._box(item, entry)
        if item.title != entry.title:
            self.edits.append((entry.start, self._end(entry.place.line), item.headline()))
        # A label must say another status.
        now, then = (one if one in UNBOXED else "" for one in (status_of(record), entry.status))
        moved = now != then and isinstance(entry.place, Box)
        if moved or self._differs(record, entry):
            self._body(record, entry)
        if self.names.get(text_of(record, "parent"), "") != (entry.parent or ""):
            self.losses.add("parent", item.id)

    def _box(self, item: _Item, entry: TaskEntry) -> None:
        if status_of(item.record) == entry.status:
            return
        if isinstance(entry.place, Box):
            if MARKS[item.box] != MARKS[entry.place.mark]:
                self.edits.append((entry.place.at, entry.place.at + 1, item.box))
            return
        if status_of(item.record) in (*UNBOXED, "cancelled"):
            self.losses.add(f"status {status_of(item.record)} of a plan's task", item.id)
        done = item.box == "x"
        if done is not (entry.status == "done"):
            places = ticks(self.found, entry, done)
            self.edits += [(at, at + 1, item.box if done else " ") for at in places]

    def _differs(self, record: Record, entry: TaskEntry) -> bool:
        """True if the lines below its title say something else than the task."""
        there = task_fields(entry, self.checks)
        waits = [self.names.get(one, one) for one in texts_of(record, "blockedBy")]
        return (
            text_of(record, "description") != there.get("description", "")
            or notes_of(record) != there.get("notes", "")
            or waits != there.get("blockedBy", [])
            or priority_of(record) != there.get("priority", 0)
            or set(texts_of(record, "tags")) != set(there.get("tags", ()))
            or any((record.get(name) or None) != there.get(name) for name in _SAME)
        )

    def _body(self, record: Record, entry: TaskEntry) -> None:
        """Write new lines below the title in place of its own; boxes below it stay in place."""
        box = entry.place
        if not isinstance(box, Box):
            self.losses.add("what was changed in the text of a plan's task", str(record["id"]))
            return
        self.stays[entry.key] = self.stays[entry.key][0], None
        text = text_of(record, "description").removesuffix(part_of(entry)).rstrip("\n")
        item = _Item({**record, "description": text}, self.names, self.losses)
        above = [self.lines[n].text for n in (*(line for line, _ in box.below), box.line)]
        heads = ["text", *above]  # behind which a box may stand as deep as it likes
        lines = item.below(heads, " " * box.content, box.path, named=entry.named, alone=False)
        full = [n for n, number in enumerate(box.lines) if self.lines[number].text.strip(" \t")]
        old = box.lines[: full[-1] + 1 if full else 0]
        # The line behind must not be taken for more of a paragraph before it.
        last = old[-1] if old else box.line
        following = self.lines[last + 1 : last + 2]
        lines += [""] if any(one.rest and not bullet_of(one) for one in following) else []
        newline = "\r\n" if "\r\n" in self.text else "\n"
        at = self._end(box.line)
        self.edits.append((at, at, "".join(f"{newline}{line}" for line in lines)))
        for number in old:
            self.edits.append((self._end(number - 1), self._end(number), ""))

    def _end(self, number: int) -> int:
        return self.lines[number].start + len(self.lines[number].text)

    def text_now(self) -> str | None:
        """The text with the tasks as they are now, and without the entries of others; None where
        that would say something else, as with a comment that somebody did not close."""
        self._remove()
        new = spliced(self.text, self.edits)
        wanted = [self.stays[entry.key] for entry in self.found.all if entry.key in self.stays]
        after = entries_of(new).all
        right = len(after) == len(wanted) and all(
            (entry.title, entry.body if body is not None else None) == (title, body)
            for entry, (title, body) in zip(after, wanted, strict=True)
        )
        return new if right else None

    def _remove(self) -> None:
        """Take out what is not among the tasks, unless something that is stands below it."""
        above = {entry.key: entry.parent for entry in self.found.all}
        held: set[str] = set()
        for key in self.stays:
            parent = above[key]
            while parent is not None and parent not in held:
                held.add(parent)
                parent = above[parent]
        for entry in self.found.all:
            if entry.key in held:
                self.stays.setdefault(entry.key, (entry.title, entry.body))
            elif entry.key not in self.stays:
                for number in (entry.place.line, *entry.place.lines):
                    self.edits.append((self.lines[number].start, self.lines[number].next, ""))


class _Sections:
    """The tasks under headings by priority, or those they had; children below their parents."""

    def __init__(self, tasks: Sequence[Record], names: Mapping[str, str], losses: Losses) -> None:
        self._names, self._losses = names, losses
        self._children: dict[str, list[Record]] = {}  # by their parent's id
        self._tops: list[Record] = []
        parents = {str(record["id"]): text_of(record, "parent") for record in tasks}
        for record in tasks:
            task = str(record["id"])
            above, depth = parents[task], 0
            while above in parents and depth <= _DEEPEST:
                above, depth = parents[above], depth + 1
            # A parent that is far too deep, or a circle of them, is no parent.
            if 0 < depth <= _DEEPEST:
                self._children.setdefault(parents[task], []).append(record)
            else:
                self._tops.append(record)
                if parents[task]:
                    losses.add("parent", task)

    def text(self, title: str) -> str:
        sections: dict[str, list[Record]] = {}
        places = [(self._heading(record), record) for record in self._tops]
        # The urgent first; sections with names of their own where no priority is.
        for heading, record in sorted(places, key=lambda place: -(implied((place[0],)) or 0)):
            sections.setdefault(heading, []).append(record)
        lines = [title, ""] if title else []
        plain = list(sections) == ["Tasks"]
        for heading, members in sections.items():
            lines += [] if plain and title else [f"## {heading}", ""]
            for record in members:
                lines += self._tree(record, (heading,), [])
            lines.append("")
        return "\n".join(lines[:-1] if lines[-1:] == [""] else lines) + "\n"

    def _heading(self, record: Record) -> str:
        section = kept_of(record, NAME).get("section")
        if isinstance(section, list) and section and all(isinstance(one, str) for one in section):
            return " / ".join(section)
        number = priority_of(record)
        optional = number <= OPTIONAL and OPTIONAL_TAG in texts_of(record, "tags")
        if optional and str(record["id"]) not in self._children:  # those below it may not be
            return "Optional"
        number = min(max(number, -1), 3)
        return f"{PRIORITIES[number]} Priority" if number in PRIORITIES else "Tasks"

    def _tree(self, record: Record, path: Sequence[str], above: list[str]) -> list[str]:
        """A task and all below it, below these. They are at most a few dozen deep."""
        item = _Item(_apart(record), self._names, self._losses)
        lead = f"{item.id}: " if is_id(item.id) else ""
        pad = "  " * len(above)
        heads = [*above, f"{pad}- [{item.box}] {lead}{item.headline()}"]
        children = self._children.get(item.id, ())
        lines = item.below(heads, f"{pad}  ", path, named=not lead, alone=not children)
        for child in children:
            lines += self._tree(child, path, heads)
        return [heads[-1], *lines]


def _apart(record: Record) -> Record:
    """A task from another text of markdown without what the headings there said of it."""
    body, _, last = text_of(record, "description").rpartition("\n\n")
    if not source_of(record, NAME) or not last.startswith("Part of: ") or "\n" in last:
        return record
    return {**record, "description": body}


FORMAT = Markdown()
