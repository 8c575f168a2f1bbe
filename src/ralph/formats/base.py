"""The interface of formats of task lists, and what they share: splices, ids in titles, urgency."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import field
from typing import Any, Protocol

from ralph.kernel.value import value

MARKDOWN = (".md", ".markdown", ".mdown", ".mdx", ".txt")  # how its names end
LARGEST_ROOT = 1 << 19  # characters; the way back must fit into a line of tasks.jsonl


@value
class ListedTask:
    """One task of somebody's list."""

    key: str  # by which it is found again: its id there, or a stable name made from its text
    # As a line of tasks.jsonl has them: title, description, status, priority, type, tags, blockedBy
    # and parent (keys of the list), completion, notes, estimate, createdAt, completedAt,
    # externalId, externalUrl.
    fields: Mapping[str, Any]
    kept: Mapping[str, Any] = field(default_factory=dict)  # what has no place in ours, as it was


@value
class TaskList:
    items: tuple[ListedTask, ...]
    # What it says of itself, for the way back.
    root: Mapping[str, Any] = field(default_factory=dict)
    lost: tuple[str, ...] = ()  # what cannot be held, in words for people
    nested: bool = False  # an item is done after those below it
    nothing: str = ""  # why there are no items, in words for people


@value
class Writing:
    text: str
    lost: tuple[str, ...] = ()  # what this format cannot hold, in words for people


class Format(Protocol):
    """A way to write down tasks."""

    @property
    def name(self) -> str:
        """The word after --format."""

    def fits(self, name: str, text: str) -> bool:
        """True if a file with this name and text is such a list. Quick; never raises."""

    def read(self, text: str, name: str) -> TaskList:
        """Read a list; ValueError, with the line or the item, for what cannot be read."""

    def write(self, tasks: Sequence[Mapping[str, Any]], root: Mapping[str, Any]) -> Writing:
        """Write records of tasks.jsonl, in their order. What came from a list has `source`."""

    def marked(self, text: str, keys: Collection[str], done: bool) -> str:
        """The text with only the boxes or statuses of these items changed, where they are there."""


# ------------------------------------------------------------------ places in a text

Splice = tuple[int, int, str]  # from, to, and what comes there


def spliced(text: str, splices: Iterable[Splice]) -> str:
    """Make these changes in a text; their places are those of the text as it is now."""
    parts: list[str] = []
    at = 0
    for start, end, new in sorted(splices):
        parts += [text[at:start], new]
        at = max(at, end)
    return "".join([*parts, text[at:]])


def split_at(text: str, head: str) -> tuple[str, str]:
    """A text, and the rest of it behind this line at the beginning of a paragraph."""
    before, found, rest = text.rpartition(head)
    if not found or (before and not before.endswith("\n\n")):
        return text, ""
    return before.removesuffix("\n\n"), rest


# ------------------------------------------------------------------ ids in front of titles

# `T-001: title`, `**T-001** title`, `US-3 - title`
_NAME = r"[A-Za-z][A-Za-z0-9]{0,30}(?:[-_.][A-Za-z0-9]{1,30}){0,6}"
_WHOLE = re.compile(_NAME)
_DASH = r"(?::(?=[ \t])|[ \t]{1,9}[-–—](?=[ \t]))"
_LEAD = re.compile(
    rf"(?:(?:\*\*|__)({_NAME}):?(?:\*\*|__){_DASH}?|\[({_NAME})\]:?|({_NAME}){_DASH})[ \t]+(?=\S)"
)


def is_id(name: str) -> bool:
    """True for an id in front of a title: there is a dash in it, and a number."""
    fits = _WHOLE.fullmatch(name) is not None
    return fits and "-" in name and any("0" <= character <= "9" for character in name)


def leading_id(text: str) -> tuple[str, int]:
    """The id, and where the title begins; "" and 0 if there is none."""
    found = _LEAD.match(text)
    name = (found[1] or found[2] or found[3]) if found else ""
    return (name, found.end()) if found and is_id(name) else ("", 0)


# ------------------------------------------------------------------ urgency in words

# In headings and labels. Ours are numbers, and higher comes first; without any word it is 0.
OPTIONAL = -2
PRIORITIES = {3: "Critical", 2: "High", 1: "Medium", -1: "Low"}
_WORDS = {"critical": 3, "urgent": 3, "highest": 3, "high": 2, "medium": 1, "low": -1}
_WORDS |= {"lowest": OPTIONAL}
_WORD = "|".join(sorted(_WORDS, key=len, reverse=True))
_SAID = re.compile(
    rf"\bprio(?:rity)?\b[ :/=_-]{{0,3}}({_WORD})\b"
    rf"|\b({_WORD})[ _-]{{1,3}}prio(?:rity)?\b|^({_WORD})$"
)
_LEVEL = re.compile(r"^(?:prio(?:rity)?[ :/=_-]{0,3})?p([0-4])\b")
_LONGEST = 80  # characters; what is longer is a sentence


def urgency(words: str) -> int | None:
    """The priority by these words; None where they do not speak of that."""
    if len(words) > _LONGEST:
        return None
    text = words.casefold().strip(" \t*_:#")
    if found := _SAID.search(text):
        return _WORDS[found[1] or found[2] or found[3]]
    if found := _LEVEL.search(text):
        return (3, 2, 1, -1, OPTIONAL)[int(found[1])]
    return None
