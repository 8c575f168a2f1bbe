"""The backend `direct`: the project itself. It contains nothing and undoes nothing, and says so."""

import os

from ralph.adapters import keeper_process
from ralph.adapters.sandbox.base import Common, real_project
from ralph.adapters.sandbox.interface import Capabilities, Change, Kept, Policy
from ralph.adapters.sandbox.launcher import Attaching
from ralph.adapters.sandbox.manifest import Manifest
from ralph.adapters.sandbox.tree import Tree
from ralph.errors import ConfigError

NAME = "direct"
_WHY = "works in place, with your rights"
_NO_ROLLBACK = ("what was done in place cannot be undone", "Use another: ralph sandbox probe")


def probe(project: str, policy: Policy) -> Capabilities:
    """There is nothing to try but the keeper, which ends what is left behind."""
    if not keeper_process.is_possible():
        return Capabilities(False, False, False, "needs Linux 5.3 or newer", usable=False)
    return Capabilities(False, False, False, _WHY)


def open(project: str, policy: Policy) -> "Direct":  # noqa: A001  the interface has it so
    """The project as it is."""
    return Direct(real_project(project), policy)


class Direct(Common):
    """Commands in the project itself; changes are known by the stamps of files."""

    def __init__(self, project: str, policy: Policy) -> None:
        able = Capabilities(False, False, False, _WHY)
        tree = Tree(project)
        super().__init__(project, policy, able, keeper=Attaching(), tree=tree, directory=project)
        self._manifest = Manifest(project, git=True)

    def changes(self) -> tuple[Change, ...]:
        """What has another stamp than at the beginning, whoever changed it."""
        return tuple(sorted(self._manifest.changes(), key=lambda change: change.path))

    def commit(self, *, everything: bool = False) -> Kept:
        """All is there already."""
        return Kept(tuple(change.path for change in self.changes()))

    def discard(self) -> None:
        """Never: ConfigError."""
        raise ConfigError(*_NO_ROLLBACK)

    def _before(self, change: Change) -> str:
        return ""  # nobody has it any more

    def _after(self, change: Change) -> str:
        return os.path.join(self.origin, change.path)
