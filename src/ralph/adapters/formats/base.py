"""What every format of a task list has: how it is known, read, written and marked."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import field
from typing import Any, Protocol

from ralph.core.value import value


@value
class Item:
    """One task of somebody's list."""

    key: str  # by which it is found again: its id there, or a stable name made from its text
    # As a line of tasks.jsonl has them: title, description, status, priority, type, tags, blockedBy
    # and parent (keys of the list), completion, notes, estimate, createdAt, completedAt,
    # externalId, externalUrl.
    fields: Mapping[str, Any]
    kept: Mapping[str, Any] = field(default_factory=dict)  # what has no place in ours, as it was


@value
class Reading:
    """A whole list."""

    items: tuple[Item, ...]
    root: Mapping[str, Any] = field(
        default_factory=dict
    )  # what it says of itself, for the way back
    lost: tuple[str, ...] = ()  # what cannot be held, in words for people


@value
class Writing:
    """A list as text."""

    text: str
    lost: tuple[str, ...] = ()  # what this format cannot hold, in words for people


class Format(Protocol):
    """A way to write down tasks."""

    @property
    def name(self) -> str:
        """As after --format."""

    def fits(self, name: str, text: str) -> bool:
        """Whether a file with this name and text is such a list. Quick; never raises."""

    def read(self, text: str, name: str) -> Reading:
        """The list; ValueError, with the line or the item, for what cannot be read."""

    def write(self, tasks: Sequence[Mapping[str, Any]], root: Mapping[str, Any]) -> Writing:
        """Records of tasks.jsonl, in their order, as such a list. What came from a list has
        `source`."""

    def marked(self, text: str, keys: Collection[str], done: bool) -> str:
        """The text with only the boxes or statuses of these items changed; those that are not
        there change nothing."""
