"""The backend `direct`: the project itself. It contains nothing and undoes nothing, and says so."""

import os

from ralph.adapters.sandbox.base import Common, missing_keeper, real_project
from ralph.adapters.sandbox.interface import Capabilities, Change, Kept, Policy, ordered, unusable
from ralph.adapters.sandbox.manifest import Manifest
from ralph.errors import ConfigError

NAME = "direct"
_WHY = "works in place, with your rights"
_NO_ROLLBACK = ("what was done in place cannot be undone", "Use another: ralph sandbox probe")


def probe(project: str, policy: Policy) -> Capabilities:
    why = missing_keeper()
    return unusable(why) if why else Capabilities(False, False, False, _WHY)


def open(project: str, policy: Policy) -> "Direct":  # noqa: A001  the interface has it so
    return Direct(real_project(project), policy)


class Direct(Common):
    """Commands in the project itself; changes are known by the stamps of files."""

    def __init__(self, project: str, policy: Policy) -> None:
        super().__init__(project, policy, Capabilities(False, False, False, _WHY))
        self._manifest = Manifest(project, git=True)

    def changes(self) -> tuple[Change, ...]:
        return ordered(self._manifest.changes())

    def commit(self, *, everything: bool = False) -> Kept:
        return Kept(tuple(change.path for change in self.changes()))

    def discard(self) -> None:
        raise ConfigError(*_NO_ROLLBACK)

    def _before(self, change: Change) -> str:
        return ""  # nobody has it any more

    def _after(self, change: Change) -> str:
        return os.path.join(self.origin, change.path)
