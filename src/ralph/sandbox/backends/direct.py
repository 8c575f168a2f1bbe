"""The backend `direct`: the project itself. It contains nothing and undoes nothing, and says so."""

from collections.abc import Sequence

from ralph.sandbox.backends.base import OpenSandbox, missing_keeper, real_project
from ralph.sandbox.changes.manifest import Manifest
from ralph.sandbox.interface import (
    Capabilities,
    Change,
    CommitResult,
    SandboxPolicy,
    ordered,
    unusable,
)

_WHY = "works in place, with your rights"


def probe(project: str, policy: SandboxPolicy) -> Capabilities:
    why = missing_keeper()
    return unusable(why) if why else Capabilities(False, False, False, _WHY)


def open(project: str, policy: SandboxPolicy) -> "Direct":  # noqa: A001  the interface has it so
    return Direct(real_project(project), policy)


class Direct(OpenSandbox):
    """Commands in the project itself; changes are known by the stamps of files."""

    kind = "direct"
    no_rollback = "what was done in place cannot be undone"

    def __init__(self, project: str, policy: SandboxPolicy) -> None:
        super().__init__(project, policy, Capabilities(False, False, False, _WHY))
        self._manifest = Manifest(project, git=True)

    def keep(self, *, everything: bool = False, paths: Sequence[str] | None = None) -> CommitResult:
        done = super().keep(everything=everything, paths=paths)
        self._manifest = Manifest(self.project, git=True)
        return done

    def changes(self) -> tuple[Change, ...]:
        return ordered(self._manifest.changes())
