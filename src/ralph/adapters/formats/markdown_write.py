"""Tasks as markdown: the text they came from with what has changed, and sections for all others."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ralph.adapters.formats.base import Writing
from ralph.adapters.formats.leading_id import is_id
from ralph.adapters.formats.markdown import described, ticks
from ralph.adapters.formats.markdown_entries import (
    MARKS,
    NUMBER,
    OPTIONAL_TAG,
    Entries,
    Entry,
    blockers,
    entries_of,
    implied,
    is_optional,
    listed,
    part_of,
    priority,
    split_labels,
)
from ralph.adapters.formats.markdown_outline import Box, left_open, outline
from ralph.adapters.formats.records import (
    Losses,
    Record,
    kept_of,
    key_of,
    priority_of,
    status_of,
    text_of,
    texts_of,
)
from ralph.adapters.formats.urgency import NAMES, OPTIONAL

_BOXES = {"pending": " ", "in_progress": "/", "done": "x", "cancelled": "-"}
_LINE_END = re.compile(r"\r\n|\n|\r")
_DEEPEST = 40  # boxes below each other
_LOST = ("notes", "estimate", "completion", "limits", "externalUrl")
Edit = tuple[int, int, str]  # from, to, and what comes there


def written(tasks: Sequence[Record], root: Mapping[str, Any]) -> Writing:
    """All tasks as one text."""
    writing = _written(tasks, root)
    return Writing(writing.text.replace("\0", "\ufffd"), writing.lost)


def _written(tasks: Sequence[Record], root: Mapping[str, Any]) -> Writing:
    losses = Losses()
    text = root.get("text")
    found = entries_of(text) if isinstance(text, str) else None
    at_home = _at_home(tasks, root, found) if found else {}
    others = [record for record in tasks if record["id"] not in at_home]
    if not found or not at_home:
        names = {str(record["id"]): str(record["id"]) for record in tasks}
        return Writing(_sections(others, names, losses, "# Tasks"), losses.words())
    assert isinstance(text, str)
    names = {str(r["id"]): at_home[r["id"]].key if r["id"] in at_home else r["id"] for r in tasks}
    new = _Edits(text, found, names, losses).made([(r, at_home.get(r["id"])) for r in tasks])
    if others:
        newline = _newline(text)
        more = _sections(others, names, losses, "").replace("\n", newline)
        new = new.rstrip("\r\n") + newline * 2 + more
    return Writing(new, losses.words())


def _at_home(tasks: Sequence[Record], root: Mapping[str, Any], found: Entries) -> dict[str, Entry]:
    """The tasks that came from the text, by id, with their entries."""
    entries = {entry.key: entry for entry in found.all}
    ours = [record for record in tasks if kept_of(record, "markdown") is not None]
    first = next((r for r in ours if r["source"].get("root") == root), ours[0] if ours else None)
    home: dict[str, Entry] = {}
    for record in ours:
        key = key_of(record, "markdown") or ""
        assert first is not None
        if record["source"].get("path") == first["source"].get("path") and key in entries:
            home[record["id"]] = entries.pop(key)
    return home


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


# ------------------------------------------------------------------ one item


class _Item:
    """How a task is written below a box."""

    def __init__(self, record: Record, names: Mapping[str, str], losses: Losses) -> None:
        self.record = record
        self.id = str(record["id"])
        self.names = names  # of the other tasks in this text, by id
        self.losses = losses

    def title(self) -> str:
        title = " ".join(_LINE_END.split(text_of(self.record, "title"))).strip()
        return title or self.id

    def body(self, path: Sequence[str], *, named: bool, closed: bool) -> list[str]:
        """What stands below the title: the description, and labels for what else there is. With
        `closed` no fence or comment goes on in what follows."""
        text = "\n".join(_LINE_END.split(text_of(self.record, "description"))).strip("\n")
        if closed and (end := left_open("\n".join(_below(f"- [ ] {self.title()}", text)))):
            text = f"{text}\n{end}"
        labels = self._labels(path, named=named)
        if not labels and split_labels(text)[1]:
            labels = [f"Priority: {priority_of(self.record)} {NUMBER}"]  # so that text stays text
        parts = [part for part in (text, "\n".join(labels)) if part]
        return "\n\n".join(parts).split("\n") if parts else []

    def _labels(self, path: Sequence[str], *, named: bool) -> list[str]:
        record, tags = self.record, list(texts_of(self.record, "tags"))
        if any(map(is_optional, path)):
            tags = self._without_optional(tags)
        waits = [self.names.get(one, "/") for one in texts_of(record, "blockedBy")]
        labels = [f"Id: {self.id}"] if named else []
        labels += self._list("After", "blockedBy", waits)
        labels += self._list("Tags", "tags", tags)
        kind = " ".join(text_of(record, "type").split())
        labels += [f"Type: {kind}"] if kind else []
        number = priority_of(record)
        return labels + ([f"Priority: {number} {NUMBER}"] if number != (implied(path) or 0) else [])

    def _without_optional(self, tags: list[str]) -> list[str]:
        """The heading says that it is optional."""
        if OPTIONAL_TAG not in tags:
            self.losses.add(f"that it is not {OPTIONAL_TAG}", self.id)
        return [tag for tag in tags if tag != OPTIONAL_TAG]

    def _list(self, label: str, what: str, values: Sequence[str]) -> list[str]:
        good = [one for one in values if _can_be_listed(one)]
        for _ in range(len(values) - len(good)):
            self.losses.add(what, self.id)
        return [f"{label}: {', '.join(good)}"] if good else []


def _can_be_listed(word: str) -> bool:
    """Whether it is read again behind a label. What begins with / has no name in the text."""
    clear = "," not in word and word == word.strip() and word.isprintable()
    return clear and bool(word) and word[0] != "/"


def _mark(record: Record, losses: Losses) -> str:
    status = status_of(record)
    if status not in _BOXES:
        losses.add(f"status {status} (written as open)", str(record["id"]))
    return _BOXES.get(status, " ")


def _below(head: str, text: str) -> list[str]:
    """A line of a list, and a text that belongs to it."""
    return [head, *(f"  {line}" if line else "" for line in text.split("\n"))]


def _escaped(lines: list[str]) -> list[str]:
    """An item's lines, with a backslash before what would be read as a box of its own."""
    inner = outline("\n".join(lines)).boxes[1:]
    for box in inner:
        line = lines[box.line]
        at = line.index(f"[{box.mark}]")
        lines[box.line] = f"{line[:at]}\\{line[at:]}"
    return lines


# ------------------------------------------------------------------ a new text


def _sections(tasks: Sequence[Record], names: Mapping[str, str], losses: Losses, title: str) -> str:
    """The tasks under headings by priority, or those they had; children below their parents."""
    children, tops = _family(tasks, losses)
    sections: dict[tuple[str, ...], list[Record]] = {}
    places = [(_section(record, str(record["id"]) in children), record) for record in tops]
    for path, record in sorted(places, key=lambda place: _order(place[0])):
        sections.setdefault(path, []).append(record)
    lines = [title, ""] if title else []
    plain = list(sections) == [("Tasks",)]
    for path, members in sections.items():
        lines += [] if plain and title else [f"## {' / '.join(path)}", ""]
        for record in members:
            lines += _tree(record, children, path, names, losses)
        lines.append("")
    for record in tasks:
        losses.fields(record, _LOST)
        if record.get("createdAt") or record.get("completedAt"):
            losses.add("times (createdAt, completedAt)", str(record["id"]))
    return "\n".join(lines[:-1] if lines[-1:] == [""] else lines) + "\n"


def _section(record: Record, is_parent: bool) -> tuple[str, ...]:
    kept = kept_of(record, "markdown") or {}
    section = kept.get("section")
    if isinstance(section, list) and section and all(isinstance(one, str) for one in section):
        return (" / ".join(section),)
    number = min(max(priority_of(record), -1), 3)
    optional = priority_of(record) <= OPTIONAL and OPTIONAL_TAG in texts_of(record, "tags")
    if optional and not is_parent:  # those below it may not be
        return ("Optional",)
    return (f"{NAMES[number]} Priority",) if number in NAMES else ("Tasks",)


def _order(path: tuple[str, ...]) -> int:
    """The urgent first; sections with names of their own where no priority is."""
    return -(implied(path) or 0)


def _family(
    tasks: Sequence[Record], losses: Losses
) -> tuple[dict[str, list[Record]], list[Record]]:
    """Children by their parent's id, and those that have none here. A parent that is far too deep,
    or a circle of them, is no parent."""
    parents = {str(record["id"]): text_of(record, "parent") for record in tasks}
    children: dict[str, list[Record]] = {}
    tops: list[Record] = []
    for record in tasks:
        above = _depth(str(record["id"]), parents)
        parent = parents[str(record["id"])]
        if parent and not 0 < above <= _DEEPEST:
            losses.add("parent", str(record["id"]))
        if parent and 0 < above <= _DEEPEST:
            children.setdefault(parent, []).append(record)
        else:
            tops.append(record)
    return children, tops


def _depth(task: str, parents: Mapping[str, str]) -> int:
    """How many stand above it here; more than the most that are allowed is a circle, or nearly."""
    depth = 0
    while (task := parents.get(task, "")) in parents and depth <= _DEEPEST:
        depth += 1
    return depth


def _tree(
    record: Record,
    children: Mapping[str, list[Record]],
    path: Sequence[str],
    names: Mapping[str, str],
    losses: Losses,
) -> list[str]:
    """A task and all below it. They are at most a few dozen deep."""
    item = _Item(_apart(record), names, losses)
    lead = f"{item.id}: " if is_id(item.id) else ""
    head = f"- [{_mark(record, losses)}] {lead}{item.title()}"
    below_it = children.get(item.id, ())
    body = item.body(path, named=not lead, closed=bool(below_it))
    lines = _escaped(_below(head, "\n".join(body)) if body else [head])
    for child in below_it:
        below = _tree(child, children, path, names, losses)
        lines += [f"  {line}" if line else "" for line in below]
    return lines


def _apart(record: Record) -> Record:
    """A task from another text of markdown without what the headings there said of it."""
    text = text_of(record, "description")
    body, _, last = text.rpartition("\n\n")
    if kept_of(record, "markdown") is None or not last.startswith("Part of: ") or "\n" in last:
        return record
    return {**record, "description": body}


# ------------------------------------------------------------------ the text they came from


class _Edits:
    """Changes only what is not as the tasks say."""

    def __init__(self, text: str, found: Entries, names: Mapping[str, str], losses: Losses) -> None:
        self.text, self.found, self.names, self.losses = text, found, names, losses
        self.lines = found.outline.lines
        self.edits: list[Edit] = []

    def made(self, pairs: Iterable[tuple[Record, Entry | None]]) -> str:
        stays: set[str] = set()
        for record, entry in pairs:
            if entry is not None:
                stays.add(entry.key)
                self._item(record, entry)
        self._remove([entry for entry in self.found.all if entry.key not in stays], stays)
        parts: list[str] = []
        at = 0
        for start, end, new in sorted(self.edits):
            parts += [self.text[at:start], new]
            at = max(at, end)
        return "".join([*parts, self.text[at:]])

    def _item(self, record: Record, entry: Entry) -> None:
        self._box(record, entry)
        item = _Item(record, self.names, self.losses)
        if item.title() != entry.title:
            line = self.lines[entry.place.line]
            self.edits.append((entry.start, line.start + len(line.text), item.title()))
        if self._differs(record, entry):
            self._body(record, entry)
        if self.names.get(text_of(record, "parent"), "") != (entry.parent or ""):
            self.losses.add("parent", item.id)
        self.losses.fields(record, [name for name in _LOST if name != "completion"])

    def _box(self, record: Record, entry: Entry) -> None:
        status = status_of(record)
        if status == entry.status:
            return
        if isinstance(entry.place, Box):
            mark = _mark(record, self.losses)
            if MARKS[mark] != entry.status:
                self.edits.append((entry.place.at, entry.place.at + 1, mark))
        elif (status == "done") is not (entry.status == "done"):
            places = ticks(self.found, entry, status == "done")
            self.edits += [(at, at + 1, "x" if status == "done" else " ") for at in places]

    def _differs(self, record: Record, entry: Entry) -> bool:
        waits = [self.names.get(one, one) for one in texts_of(record, "blockedBy")]
        tags = listed(entry.labels.get("Tags", ""))
        implied_tags = {OPTIONAL_TAG} if any(map(is_optional, entry.place.path)) else set()
        return (
            text_of(record, "description") != described(entry)
            or waits != blockers(entry)
            or priority_of(record) != (priority(entry) or 0)
            or text_of(record, "type") != entry.labels.get("Type", "")
            or [tag for tag in texts_of(record, "tags") if tag not in implied_tags]
            != [tag for tag in tags if tag not in implied_tags]
        )

    def _body(self, record: Record, entry: Entry) -> None:
        """New lines below the title in place of its own; boxes below it stay where they are."""
        box = entry.place
        if not isinstance(box, Box):
            self.losses.add("what was changed in the text of a plan's task", str(record["id"]))
            return
        text = text_of(record, "description").removesuffix(part_of(entry)).rstrip("\n")
        item = _Item({**record, "description": text}, self.names, self.losses)
        body = item.body(box.path, named="Id" in entry.labels, closed=True)
        lines = _escaped(_below("- [ ] x", "\n".join(body)))[1:] if body else []
        pad = " " * (box.content - 2)
        newline = _newline(self.text)
        new = "".join(newline + (pad + line if line else "") for line in lines)
        at = self._text_end(box.line)
        self.edits.append((at, at, new))
        full = [n for n, number in enumerate(box.lines) if self.lines[number].text.strip(" \t")]
        for number in box.lines[: full[-1] + 1 if full else 0]:
            self.edits.append((self._text_end(number - 1), self._text_end(number), ""))

    def _text_end(self, number: int) -> int:
        return self.lines[number].start + len(self.lines[number].text)

    def _remove(self, gone: Sequence[Entry], stays: set[str]) -> None:
        """Take out what is not among the tasks, unless something that is stands below it."""
        parents = {entry.key: entry.parent for entry in self.found.all}
        held: set[str | None] = set()
        for key in stays:
            above = parents[key]
            while above is not None and above not in held:
                held.add(above)
                above = parents[above]
        for entry in gone:
            if entry.key not in held:
                for number in (entry.place.line, *entry.place.lines):
                    self.edits.append((self.lines[number].start, self.lines[number].next, ""))
