"""The common parts of sandboxes whose changes are kept in a directory of ours until they land."""

import os

from ralph.sandbox.backends.base import Sandbox
from ralph.sandbox.changes import git_state
from ralph.sandbox.changes.by_descriptor import READ, Reach, Root
from ralph.sandbox.changes.commit import Commit, closed_in, modes_of
from ralph.sandbox.changes.compare import is_opaque
from ralph.sandbox.changes.git_config_hooks import obeyed_paths
from ralph.sandbox.changes.landing import finish, set_aside
from ralph.sandbox.changes.tree import FileTree
from ralph.sandbox.interface import Capabilities, Change, CommitResult, SandboxPolicy
from ralph.sandbox.layer_store import JOURNAL, SEALED, LayerDir
from ralph.sandbox.namespace.client import Attaching


class Layered(Sandbox):
    """A sandbox that can be committed, sealed for later, or thrown away."""

    def __init__(
        self,
        project: str,
        policy: SandboxPolicy,
        capabilities: Capabilities,
        *,
        kept: LayerDir,
        opened: int,
        directory: str = "",
        keeper: Attaching | None = None,
        files: FileTree | None = None,
    ) -> None:
        super().__init__(
            project, policy, capabilities, directory=directory, keeper=keeper, files=files
        )
        self._place = kept
        self._opened_at = opened
        self._index = os.path.join(kept.path, "index")
        self._first_index = git_state.FirstIndex(project, opened)

    def commit(self, *, everything: bool = False) -> CommitResult:
        commit = self._prepared(everything=everything)
        commit.write(os.path.join(self._place.path, JOURNAL))
        return finish(commit, self._place.path)

    def seal(self) -> bool:
        if self._open:
            self._prepared(everything=False).write(os.path.join(self._place.path, SEALED))
            self._open = False
            self._part()
            self._place.leave()
        return True

    def rescue(self) -> str:
        self._end()
        self._open = False
        if os.path.exists(os.path.join(self._place.path, JOURNAL)):
            self._part()
            self._place.leave()
            return "It is finished by the next: ralph sandbox run"
        try:
            saved = set_aside(self._place.path, "upper", "tree")
        except OSError:
            saved = ""
        self._leave()
        return f"What was changed is in {saved}" if saved else ""

    def _prepared(self, *, everything: bool) -> Commit:
        self._end()
        self._first_index.keep(self._index)
        changes = self.changes()
        written = self._written()
        obeyed: frozenset[str] = frozenset()
        if changes and not everything:
            obeyed = obeyed_paths(self.origin, self.policy.environ)
        with Reach(written, needs=READ) as tree:
            emptied = is_opaque(tree, b".git")
        return Commit(
            self.origin,
            self._source(changes),
            self._opened_at,
            changes,
            self._copies(changes),
            everything,
            os.path.basename(self._place.path),
            anew=emptied and os.path.lexists(os.path.join(self.origin, ".git")),
            obeyed=obeyed,
            index=self._index,
            modes=modes_of(written, changes),
            closed=closed_in(self.origin, changes),
        )

    def _part(self) -> None:
        """Close our own descriptors and sockets of it."""

    def _leave(self) -> None:
        self._part()
        self._place.remove()

    def _written(self) -> str | Root:
        """The tree that commands wrote, as it is now."""
        return self._results

    def _source(self, changes: tuple[Change, ...]) -> str:
        """The directory with the results of the changes, which outlives a kill."""
        return self._results

    def _copies(self, changes: tuple[Change, ...]) -> frozenset[str]:
        """Paths among these that the project had at the beginning, and an upper layer hides."""
        raise NotImplementedError
