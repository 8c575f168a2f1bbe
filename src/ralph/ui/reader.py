"""Readers of a run: they are told facts and events, and show them. They never act on the run."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:  # what prints a help text must not wait for them
    from ralph.kernel.events import AgentEvent
    from ralph.kernel.facts import Fact


class Reader(Protocol):
    """Someone who is told what happens, as it happens. Neither call may raise."""

    def on_fact(self, fact: "Fact") -> None:
        """A fact was recorded."""

    def on_events(self, events: Sequence["AgentEvent"]) -> None:
        """The agent's stream said this, all of it at once."""
