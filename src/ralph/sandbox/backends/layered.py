"""The common parts of sandboxes whose changes are kept in a directory of ours until they land."""

import os
from contextlib import suppress

from ralph.sandbox.backends.base import OpenSandbox
from ralph.sandbox.changes import git_state
from ralph.sandbox.changes.by_descriptor import READ, Reach
from ralph.sandbox.changes.commit import Commit, closed_in, modes_of
from ralph.sandbox.changes.compare import is_opaque
from ralph.sandbox.changes.git_config_hooks import config_hooks
from ralph.sandbox.changes.landing import carry_out, set_aside
from ralph.sandbox.interface import Capabilities, Change, CommitResult, SandboxPolicy
from ralph.sandbox.layer_store import SEALED, LayerDir


class Layered(OpenSandbox):
    """A sandbox that can be committed, sealed for later, or thrown away."""

    def __init__(
        self,
        project: str,
        policy: SandboxPolicy,
        capabilities: Capabilities,
        kept: LayerDir,
        directory: str = "",
    ) -> None:
        super().__init__(project, policy, capabilities, directory)
        self._place = kept
        self._index = os.path.join(kept.path, "index")
        self._first_index = git_state.FirstIndex(project, kept.opened)

    def commit(self, *, everything: bool = False) -> CommitResult:
        return carry_out(self._prepared(everything=everything), self._place.path)

    def seal(self) -> bool:
        if self._open:
            self._prepared(everything=False).write(os.path.join(self._place.path, SEALED))
            self._open = False
            self._part()
            self._place.leave()
        return True

    def rescue(self) -> str:
        self._end()
        words = ""
        if self._place.is_begun():
            words = "It is finished by the next: ralph sandbox run"
        else:
            with suppress(OSError):
                if saved := set_aside(self._place.path, "upper", "tree"):
                    words = f"What was changed is in {saved}"
        self.close()
        return words

    def _prepared(self, *, everything: bool) -> Commit:
        self._end()
        self._first_index.keep(self._index)
        changes = self.changes()
        obeys = changes and not everything
        with Reach(self._results, needs=READ) as tree:
            emptied = is_opaque(tree, b".git")
        return Commit(
            self.origin,
            self._source(changes),
            self._place.opened,
            changes,
            self._copies(changes),
            everything,
            os.path.basename(self._place.path),
            anew=emptied and os.path.lexists(os.path.join(self.origin, ".git")),
            config_hooks=config_hooks(self.origin, self.policy.environ) if obeys else frozenset(),
            index=self._index,
            modes=modes_of(self._results, changes),
            closed=closed_in(self.origin, changes),
        )

    def _part(self) -> None:
        """Close our own descriptors and sockets of it."""

    def _leave(self) -> None:
        self._part()
        self._place.remove()

    def _source(self, changes: tuple[Change, ...]) -> str:
        """The directory with the results of the changes, which outlives a kill."""
        return self._results

    def _copies(self, changes: tuple[Change, ...]) -> frozenset[str]:
        """Paths among these that the project had at the beginning, and an upper layer hides."""
        raise NotImplementedError
