"""Conflicts that an agent was told of: which they were, and whether it has resolved them."""

import json
import os
from collections.abc import Iterable

from ralph.adapters.checkpoint import WorkTree
from ralph.adapters.files import unwritable_state, write_atomically
from ralph.core.value import value

_MEMO = "conflicts.json"  # in a worker's run directory
_MARKERS = "^(<<<<<<<|>>>>>>>) "  # a line of `=` alone may be a heading


@value
class Conflicts:
    """Of one worker's task."""

    work: WorkTree

    def remember(self, iteration: int, tree: str, paths: Iterable[str]) -> None:
        """These hold both versions, or one of them, in a tree that is no one's resolution."""
        left = self._entries(tree, paths)
        memo = {"iteration": iteration, "left": {path: left.get(path, "") for path in paths}}
        try:
            write_atomically(self._memo, json.dumps(memo), 0o600)
        except OSError as error:
            raise unwritable_state(self._memo, error) from error

    def unresolved(self, iteration: int, commit: str) -> tuple[str, ...]:
        """Which of those of an earlier iteration are as the merge had left them, or still hold
        markers."""
        try:
            with open(self._memo, encoding="utf-8") as file:
                memo = json.load(file)
        except FileNotFoundError:
            return ()
        if memo["iteration"] >= iteration:  # of this very merge, which is done again
            return ()
        left: dict[str, str] = memo["left"]
        now = self._entries(commit, left)
        same = {path for path, entry in left.items() if entry and now.get(path, "") == entry}
        return tuple(sorted(same | self._with_markers(commit, left)))

    @property
    def _memo(self) -> str:
        return os.path.join(self.work.run_dir, _MEMO)

    def _entries(self, tree: str, paths: Iterable[str]) -> dict[str, str]:
        """Mode and content of each path that is in a tree."""
        said = os.fsdecode(self.work.repository.ask("ls-tree", "-r", "-z", tree, "--", *paths))
        pairs = (entry.partition("\t") for entry in said.split("\0") if entry)
        return {path: entry for entry, _, path in pairs}

    def _with_markers(self, commit: str, paths: Iterable[str]) -> set[str]:
        words = ("grep", "-l", "-z", "--no-color", "-E", "-e", _MARKERS, commit, "--")
        named = (f":(top,literal){path}" for path in paths)
        said = os.fsdecode(self.work.repository.run(*words, *named).output)
        return {name.removeprefix(f"{commit}:") for name in said.split("\0") if name}
