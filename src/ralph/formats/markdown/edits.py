"""A markdown text brought up to date with its tasks: only what is not as they say is changed."""

from collections.abc import Iterable, Mapping

from ralph.formats.base import Splice, spliced
from ralph.formats.losses import Losses
from ralph.formats.markdown.entries import (
    MARKS,
    Entries,
    TaskEntry,
    entries_of,
    part_of,
    task_fields,
    ticks,
)
from ralph.formats.markdown.item import MarkdownItem
from ralph.formats.markdown.labels import UNBOXED
from ralph.formats.markdown.lines import bullet_of
from ralph.formats.markdown.outline import Box, checks_of
from ralph.formats.records import (
    Record,
    notes_of,
    priority_of,
    status_of,
    text_of,
    texts_of,
)

_SAME = ("type", "estimate", "completion", "limits", "externalId", "externalUrl")


def edited(
    text: str,
    found: Entries,
    pairs: Iterable[tuple[Record, TaskEntry]],
    names: Mapping[str, str],
    losses: Losses,
) -> str | None:
    """The text with these tasks as they are now, and without the entries of others; None where
    that would say something else, as with a comment that somebody did not close."""
    edits = _Edits(text, found, names, losses)
    for record, entry in pairs:
        edits.item(record, entry)
    edits.remove()
    new = spliced(text, edits.edits)
    wanted = [edits.stays[entry.key] for entry in found.all if entry.key in edits.stays]
    after = entries_of(new).all
    right = len(after) == len(wanted) and all(
        (entry.title, entry.body if body is not None else None) == (title, body)
        for entry, (title, body) in zip(after, wanted, strict=True)
    )
    return new if right else None


class _Edits:
    def __init__(self, text: str, found: Entries, names: Mapping[str, str], losses: Losses) -> None:
        self.text, self.found, self.names, self.losses = text, found, names, losses
        self.lines = found.outline.lines
        self.checks = checks_of(found.outline)
        self.edits: list[Splice] = []
        # By the keys of the entries that stay, their titles, and their text if it stays too.
        self.stays: dict[str, tuple[str, str | None]] = {}

    def item(self, record: Record, entry: TaskEntry) -> None:
        item = MarkdownItem(record, self.names, self.losses)
        self.stays[entry.key] = item.title, entry.body
        self._box(item, entry)
        if item.title != entry.title:
            self.edits.append((entry.start, self._text_end(entry.place.line), item.headline()))
        # A label must say another status.
        now, then = (one if one in UNBOXED else "" for one in (status_of(record), entry.status))
        moved = now != then and isinstance(entry.place, Box)
        if moved or self._differs(record, entry):
            self._body(record, entry)
        if self.names.get(text_of(record, "parent"), "") != (entry.parent or ""):
            self.losses.add("parent", item.id)

    def _box(self, item: MarkdownItem, entry: TaskEntry) -> None:
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
        """Write new lines below the title in place of its own; boxes below it stay where they
        are."""
        box = entry.place
        if not isinstance(box, Box):
            self.losses.add("what was changed in the text of a plan's task", str(record["id"]))
            return
        self.stays[entry.key] = self.stays[entry.key][0], None
        text = text_of(record, "description").removesuffix(part_of(entry)).rstrip("\n")
        item = MarkdownItem({**record, "description": text}, self.names, self.losses)
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
        at = self._text_end(box.line)
        self.edits.append((at, at, "".join(f"{newline}{line}" for line in lines)))
        for number in old:
            self.edits.append((self._text_end(number - 1), self._text_end(number), ""))

    def _text_end(self, number: int) -> int:
        return self.lines[number].start + len(self.lines[number].text)

    def remove(self) -> None:
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
