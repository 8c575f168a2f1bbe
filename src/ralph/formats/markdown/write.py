"""Tasks as markdown: the text they came from with what has changed, and sections for all others."""

from collections.abc import Mapping, Sequence
from typing import Any

from ralph.formats.base import OPTIONAL, PRIORITIES, Writing, is_id
from ralph.formats.losses import Losses
from ralph.formats.markdown.edits import edited
from ralph.formats.markdown.entries import (
    NAME,
    OPTIONAL_TAG,
    TaskEntry,
    entries_of,
    implied,
)
from ralph.formats.markdown.item import MarkdownItem
from ralph.formats.records import (
    Record,
    kept_of,
    priority_of,
    source_of,
    text_of,
    texts_of,
)

_DEEPEST = 40  # boxes below each other


def written(tasks: Sequence[Record], root: Mapping[str, Any]) -> Writing:
    """All tasks as one text."""
    losses = Losses()
    text = root.get("text")
    new = _in_their_text(tasks, root, text, losses) if isinstance(text, str) else None
    if new is None:
        losses = Losses()
        if text:
            losses.add("what stands between the tasks", "all of it")
        new = _Sections(tasks, {str(r["id"]): str(r["id"]) for r in tasks}, losses).text("# Tasks")
    losses.fields(tasks, ("question", "answers", "reason"))
    losses.times(tasks, NAME)
    losses.kept(tasks, NAME)
    return Writing(new.replace("\0", "\ufffd"), losses.words())


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
    new = edited(text, found, pairs, names, losses) if pairs else None
    if new is None or not others:
        return new
    newline = "\r\n" if "\r\n" in text else "\n"
    more = _Sections(others, names, losses).text("").replace("\n", newline)
    return new.rstrip("\r\n") + newline * 2 + more


class _Sections:
    """The tasks under headings by priority, or those they had; children below their parents."""

    def __init__(self, tasks: Sequence[Record], names: Mapping[str, str], losses: Losses) -> None:
        self._names, self._losses = names, losses
        self._children, self._tops = _family(tasks, losses)

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
        item = MarkdownItem(_apart(record), self._names, self._losses)
        lead = f"{item.id}: " if is_id(item.id) else ""
        pad = "  " * len(above)
        heads = [*above, f"{pad}- [{item.box}] {lead}{item.headline()}"]
        children = self._children.get(item.id, ())
        lines = item.below(heads, f"{pad}  ", path, named=not lead, alone=not children)
        for child in children:
            lines += self._tree(child, path, heads)
        return [heads[-1], *lines]


def _family(
    tasks: Sequence[Record], losses: Losses
) -> tuple[dict[str, list[Record]], list[Record]]:
    """Children by their parent's id, and those that have none here. A parent that is far too deep,
    or a circle of them, is no parent."""
    parents = {str(record["id"]): text_of(record, "parent") for record in tasks}
    children: dict[str, list[Record]] = {}
    tops: list[Record] = []
    for record in tasks:
        parent = parents[str(record["id"])]
        if parent and 0 < _depth(str(record["id"]), parents) <= _DEEPEST:
            children.setdefault(parent, []).append(record)
        else:
            tops.append(record)
            if parent:
                losses.add("parent", str(record["id"]))
    return children, tops


def _depth(task: str, parents: Mapping[str, str]) -> int:
    """The number of tasks above it here; more than the most that are allowed is a circle, or
    nearly."""
    depth = 0
    while (task := parents.get(task, "")) in parents and depth <= _DEEPEST:
        depth += 1
    return depth


def _apart(record: Record) -> Record:
    """A task from another text of markdown without what the headings there said of it."""
    text = text_of(record, "description")
    body, _, last = text.rpartition("\n\n")
    if not source_of(record, NAME) or not last.startswith("Part of: ") or "\n" in last:
        return record
    return {**record, "description": body}
