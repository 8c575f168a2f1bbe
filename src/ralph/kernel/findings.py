"""Findings: the objections of gates."""

from ralph.kernel.value import value
from ralph.kernel.verdict import Feedback, Placement

PROOF = "proof"  # the gate of what stands against a proof (ADR 33)
Identity = tuple[str, int | None, str]
Repeats = tuple[tuple[Identity, int], ...]


@value
class Finding:
    """An objection of the host, with the words that go back to the agent."""

    gate: str
    text: str
    placement: Placement = Placement.APPEND
    code: int | None = None  # the exit code, where the gate is a command
    log: str = ""  # where the whole output is
    gist: str = ""  # what stays the same when the same thing is found again

    @property
    def identity(self) -> Identity:
        """Equal for findings that are the same but for log files and iteration numbers."""
        return (self.gate, self.code, self.gist or self.text)

    def feedback(self) -> Feedback:
        return Feedback(self.text, self.placement)


def repeated(before: Repeats, findings: tuple[Finding, ...]) -> Repeats:
    """The times in a row that each of these was found, given those of the turn before."""
    known = dict(before)
    found = dict.fromkeys(finding.identity for finding in findings)
    return tuple((identity, known.get(identity, 0) + 1) for identity in found)


def undone(what: str) -> str:
    """The objection to code of a check that changed a list, which is as it was again."""
    return (
        f"Code run by a check changed {what}; it was restored. Only Ralph and people may change it:"
        " remove that from the code."
    )
