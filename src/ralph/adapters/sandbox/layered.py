"""What sandboxes have in common whose changes are kept in a place of ours until they land."""

import os

from ralph.adapters.sandbox import history
from ralph.adapters.sandbox.base import Common
from ralph.adapters.sandbox.commit import Commit, closed_in, modes_of
from ralph.adapters.sandbox.compare import is_opaque
from ralph.adapters.sandbox.interface import Capabilities, Change, Kept, Policy
from ralph.adapters.sandbox.landing import finish, set_aside
from ralph.adapters.sandbox.launcher import Attaching
from ralph.adapters.sandbox.obeyed import obeyed_paths
from ralph.adapters.sandbox.place import JOURNAL, SEALED, Place
from ralph.adapters.sandbox.reach import READ, Reach, Root
from ralph.adapters.sandbox.tree import Tree


class Layered(Common):
    """A sandbox that can be committed, sealed for later, or thrown away."""

    def __init__(
        self,
        project: str,
        policy: Policy,
        capabilities: Capabilities,
        *,
        keeper: Attaching,
        tree: Tree,
        directory: str,
        kept: Place,
        moment: int,
    ) -> None:
        super().__init__(
            project, policy, capabilities, keeper=keeper, tree=tree, directory=directory
        )
        self._place = kept
        self._moment = moment  # when it was opened
        self._index = os.path.join(kept.path, "index")
        self._first_index = history.FirstIndex(project, moment)

    def commit(self, *, everything: bool = False) -> Kept:
        """End what runs, then apply the changes."""
        commit = self._prepared(everything=everything)
        commit.write(os.path.join(self._place.path, JOURNAL))
        return finish(commit, self._place.path)

    def seal(self) -> bool:
        """End what runs and close, but keep the layer for `landing.land`."""
        if self._open:
            self._prepared(everything=False).write(os.path.join(self._place.path, SEALED))
            self._open = False
            self._part()
            self._place.leave()
        return True

    def rescue(self) -> str:
        """Close after a commit that failed, but keep what was changed where that is possible; words
        about it, or ""."""
        self._end()
        self._open = False
        if os.path.exists(os.path.join(self._place.path, JOURNAL)):
            self._part()
            self._place.leave()
            return "It is finished by the next: ralph sandbox run"
        try:
            saved = set_aside(self._place.path, *self._layers())
        except OSError:
            saved = ""
        self._leave()
        return f"What was changed is in {saved}" if saved else ""

    def discard(self) -> None:
        """Forget the changes; the sandbox is closed."""
        self.close()

    def _prepared(self, *, everything: bool) -> Commit:
        self._end()
        self._first_index.keep(self._index)
        changes = self.changes()
        written = self._written()
        obeyed = () if everything or not changes else self._obeyed()
        return Commit(
            self.origin,
            self._source(changes),
            self._moment,
            changes,
            self._copies(changes),
            everything,
            os.path.basename(self._place.path),
            anew=_is_made_anew(written, self.origin),
            obeyed=frozenset(obeyed),
            index=self._index,
            modes=modes_of(written, changes),
            closed=closed_in(self.origin, changes),
        )

    def _obeyed(self) -> frozenset[str]:
        return obeyed_paths(self.origin, self.policy.environ)

    def _end(self) -> None:
        """End what runs in it."""
        self._keeper.close()

    def _part(self) -> None:
        """Close what we have open of it."""

    def _leave(self) -> None:
        self._part()
        self._place.remove()

    def _layers(self) -> tuple[str, ...]:
        """What holds all changes in our place."""
        return "upper", "tree"

    def _written(self) -> str | Root:
        """Where what commands wrote is found now."""
        raise NotImplementedError

    def _source(self, changes: tuple[Change, ...]) -> str:
        """Where what the changes lead to is found, even after we are killed."""
        raise NotImplementedError

    def _copies(self, changes: tuple[Change, ...]) -> frozenset[str]:
        """Which of them the project had when the sandbox was opened, and an upper layer hides."""
        raise NotImplementedError


def _is_made_anew(written: str | Root, project: str) -> bool:
    """Whether the project has a `.git`, of which this one has nothing."""
    with Reach(written, needs=READ) as tree:
        return is_opaque(tree, b".git") and os.path.lexists(os.path.join(project, ".git"))
