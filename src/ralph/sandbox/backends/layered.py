"""The common parts of sandboxes whose changes are kept in a directory of ours until they land."""

import os
from collections.abc import Sequence
from contextlib import suppress

from ralph.files.safe_open import remove_file
from ralph.sandbox.backends.base import OpenSandbox
from ralph.sandbox.changes import git_state
from ralph.sandbox.changes.by_descriptor import READ, Reach
from ralph.sandbox.changes.commit import (
    Commit,
    closed_in,
    modes_of,
    rest_of,
    selected,
    there_before,
)
from ralph.sandbox.changes.compare import is_opaque
from ralph.sandbox.changes.git_config_hooks import config_hooks
from ralph.sandbox.changes.landing import carry_out, carry_out_here, set_aside
from ralph.sandbox.interface import Capabilities, Change, CommitResult, SandboxPolicy
from ralph.sandbox.layer_store import SEALED, LayerDir, moment


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

    @property
    def places(self) -> tuple[str, ...]:
        return (self._place.path,)

    def commit(self, *, everything: bool = False) -> CommitResult:
        return carry_out(self._prepared(everything=everything), self._place.path)

    def keep(self, *, everything: bool = False, paths: Sequence[str] | None = None) -> CommitResult:
        whole = self._prepared(everything=everything)
        part = whole if paths is None else selected(whole, paths)
        done = carry_out_here(part, self._place.path, save=not self.policy.kept)
        self._go_on(rest_of(whole, done, moment()), done)
        return done

    def seal(self) -> bool:
        if self._open:
            sealed = self._prepared(everything=False)
            sealed.write(os.path.join(self._place.path, SEALED))
            self._open = False
            self._part()
            self._place.leave()
        return True

    def rescue(self) -> str:
        self._end()
        words = ""
        if self._place.is_begun():
            words = "It is finished by the next: ralph sandbox run"
        elif not self.policy.kept:  # which stays anyway
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
            self._copies(changes) | self._place.had,
            everything,
            os.path.basename(self._place.path),
            anew=emptied and os.path.lexists(os.path.join(self.origin, ".git")),
            config_hooks=config_hooks(self.origin, self.policy.environ) if obeys else frozenset(),
            index=self._index,
            modes=modes_of(self._results, changes),
            closed=closed_in(self.origin, changes),
            since=self._place.since,
        )

    def _go_on(self, rest: Commit, done: CommitResult) -> None:
        """Have what a commit has left, and nothing running."""
        raise NotImplementedError

    def _resume(self, rest: Commit) -> None:
        """Take up the moments of what is left, and git's index of today unless some is git's."""
        self._place.since = dict(rest.since)
        self._place.had = frozenset(there_before(rest))
        if not any(git_state.is_state(change.path) for change in rest.changes):
            remove_file(self._index)
            self._first_index = git_state.FirstIndex(self.origin, self._place.opened)

    def _note(self) -> None:
        """Where somebody comes back to it, keep what that takes; from here on a kill loses nothing
        that is on disk."""
        if self.policy.kept:
            self._first_index.keep(self._index)
            network = str(self.policy.network)
            self._place.note(backend=self.kind, project=self.origin, network=network)

    def _part(self) -> None:
        """Close our own descriptors and sockets of it."""

    def _leave(self) -> None:
        self._part()
        if self.policy.kept:
            self._place.leave()
        else:
            self._place.remove()

    def _source(self, changes: tuple[Change, ...]) -> str:
        """The directory with the results of the changes, which outlives a kill."""
        return self._results

    def _copies(self, changes: tuple[Change, ...]) -> frozenset[str]:
        """Paths among these that the project had at the beginning, and an upper layer hides."""
        raise NotImplementedError
