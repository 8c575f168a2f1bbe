"""One task as markdown: its box, its title, and what stands below that."""

import re
from collections.abc import Mapping, Sequence

from ralph.formats.losses import Losses
from ralph.formats.markdown.entries import (
    ESCAPED,
    OPTIONAL_TAG,
    implied,
    is_optional,
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
from ralph.formats.markdown.outline import open_fence, outline, unclosed_comment
from ralph.formats.records import (
    Record,
    notes_of,
    priority_of,
    status_of,
    text_of,
    texts_of,
)

BOXES = {"pending": " ", "in_progress": "/", "done": "x", "cancelled": "-"}
BOXES |= dict.fromkeys(UNBOXED, " ")  # a label says it
_LABELS = ("Type", "Estimate", "Completion", "Limits", "External id", "Url")
_COMMENT = re.compile(r"<(\\*!--)")
_HIDDEN = re.compile(r"<(\\+!--)")
_COVERED = r"<\\\1"


class MarkdownItem:
    """The text of a task. `names` are those of all tasks in the text, by id."""

    def __init__(self, record: Record, names: Mapping[str, str], losses: Losses) -> None:
        self.record = record
        self.id = str(record["id"])
        self._names = names
        self._losses = losses

    @property
    def box(self) -> str:
        return BOXES[status_of(self.record)]

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
        """The lines below its title: text, notes and labels. `head` are the lines of those it
        stands below, and its own; `path` the headings. Unless it is `alone`, more items follow
        below it."""
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
