"""Findings: what a gate objects to."""

from dataclasses import dataclass

from ralph.core.verdict import Feedback, Placement


@dataclass(frozen=True, slots=True)
class Finding:
    """An objection of the host, with the words that go back to the agent."""

    gate: str
    text: str
    placement: Placement = Placement.APPEND
    code: int | None = None  # the exit code, where the gate is a command
    log: str = ""  # where the whole output is

    def feedback(self) -> Feedback:
        """The finding as part of the next prompt."""
        return Feedback(self.text, self.placement)
