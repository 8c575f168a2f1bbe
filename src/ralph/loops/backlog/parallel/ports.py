"""The port by which a worker's task gets into a project that others change too."""

from collections.abc import Sequence
from typing import Protocol

from ralph.kernel.facts import Proved
from ralph.kernel.findings import Finding
from ralph.kernel.ports import Committed, Merge
from ralph.kernel.state import RunState
from ralph.kernel.value import value
from ralph.loops.backlog.policy import Settlement


@value
class Coupled:
    """A task's work on top of what is before it in a train: two commits on no branch."""

    commit: str
    below: str
    lists: tuple[str, ...] = ()  # that the tasks so far came from: the host's to change
    theirs: frozenset[str] = frozenset()  # what somebody has not committed in the project


class MergedSettlement(Settlement, Protocol):
    """Settles a task by merging it into a project that others change too."""

    def keep(self, state: RunState) -> None:
        """Save the task's work as it is; nobody has to wait for that."""

    def merge(self, state: RunState) -> Merge:
        """Put the task's work on top of what others have merged. May be asked again."""

    def is_current(self, state: RunState) -> bool:
        """True if nobody has merged or committed anything since."""

    def land(self, state: RunState) -> str:
        """Move the project to the task's commit. Returns why it cannot, or ""."""

    def landed(self, state: RunState) -> Committed | None:
        """The commit of a task that a run that was killed had landed; None if it had not."""

    # In a train:

    def couple(self, state: RunState, before: Coupled | None) -> Coupled | None:
        """Put the task's work on top of the project, or of what is before it in the train; in no
        work tree. None if it has to be merged alone, where it is told why it cannot be."""

    def try_on(self, state: RunState, last: Coupled, head: str) -> None:
        """Let the work tree hold what all of a train have done, on top of the project."""

    def as_proven(self, last: Coupled, proof: Proved) -> Coupled:
        """The last of a train as the gates left it."""

    def follow(self, state: RunState, coupled: Coupled, onto: str) -> Merge:
        """Let the work tree hold the task's work on top of a commit that has not landed."""

    def is_predicted(self, commit: str, coupled: Coupled) -> bool:
        """True if a commit holds what it was to hold, but for what is the host's to change."""

    def arrive(self, commit: str, head: str) -> str:
        """Move the project to the last commit of a train. Returns why it cannot, or ""."""

    def take_logs(self, findings: Sequence[Finding], workspace: str) -> None:
        """Have the logs that findings name in another's work tree."""

    @property
    def workspace(self) -> str: ...
