"""The gate that lets no secret be committed by accident: it looks at what is new (ADR 13)."""

import os
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING

from ralph.files.safe_open import read_or_nothing
from ralph.gates.secret_files import (
    GATE,
    Suspect,
    is_allowed,
    objections,
    why_by_content,
    why_by_name,
)
from ralph.git.repository import NOTHING, TreeChange
from ralph.kernel.case import Case
from ralph.kernel.findings import Finding

if TYPE_CHECKING:
    from ralph.git.checkpoint.trees import GitTrees

_LARGEST = 1 << 20  # bytes of a file that are looked at
_LONGEST_KEY = 1024  # bytes, or of it what makes it one
_MOST_COMMITS = 500
_FILES = ("100644", "100755")


class SecretsGate:
    """Objects to new files that look like secrets and would be committed, or are. One that git kept
    before the run is told of once. What git ignores is nobody's business."""

    name = GATE
    always = True

    def __init__(
        self,
        trees: "GitTrees",
        allow: tuple[str, ...],
        tell: Callable[[str], None],
        *,
        history: bool,
    ) -> None:
        """Commits of the run are looked at where they stay in the `history`."""
        self._trees, self._allow, self._tell, self._history = trees, allow, tell, history
        self._known: dict[tuple[str, str], str] = {}  # why, by path and content
        self._work: tuple[str, dict[str, TreeChange]] = ("", {})  # a tree, and the run's changes
        self._suspects: dict[str, Suspect] = {}  # among these
        self._harmless: dict[str, bytes] = {}  # records, which only grow, as they were looked at
        self._told: set[str] = set()
        self._last: tuple[tuple[str, str], list[Suspect]] = (("", ""), [])
        self._commits: dict[str, list[Suspect]] = {}

    def check(self, case: Case) -> Iterator[Finding]:
        stand = case.snapshot.stand
        if not stand.tree:
            return
        if self._last[0] != (stand.tree, stand.head):
            found = self._in_work(self._trees.commit_tree(stand))
            if self._history:
                named = {suspect.path for suspect in found}
                found += [s for s in self._in_commits(stand.head) if s.path not in named]
            self._last = ((stand.tree, stand.head), found)
        yield from objections(self._last[1])

    def _in_work(self, tree: str) -> list[Suspect]:
        """The suspects among what the run has changed; of that only what is new is looked at."""
        trees, (seen, work) = self._trees, self._work
        base = trees.memo.head or trees.view.empty
        for entry in trees.view.changes(tree, seen or base):
            first = work[entry.path].before if entry.path in work else entry.before
            change = TreeChange(entry.path, entry.mode, entry.identifier, *first)
            self._suspects.pop(entry.path, None)
            work[entry.path] = change
            if (change.mode, change.identifier) == first:  # as it was before the run
                del work[entry.path]
                continue
            path = trees.repository.place.path(entry.path)
            why = self._why(change, partial(read_or_nothing, path, _LARGEST))
            if why and change.old_mode == NOTHING:
                self._suspects[entry.path] = Suspect(entry.path, why)
            elif why and entry.path not in self._told:
                self._told.add(entry.path)
                words = f"{entry.path} was in git before this run and looks like a secret ({why})"
                self._tell(f"{words}. This run has changed it. Is it meant to be in git?")
        self._work = tree, work
        return [self._suspects[path] for path in sorted(self._suspects)]

    def _in_commits(self, head: str) -> Iterator[Suspect]:
        """Secrets that the run's commits have added, also if a later one has removed them."""
        base, view = self._trees.memo.head, self._trees.view
        if head == base:
            return
        since = (f"^{base}", head) if base else (head,)
        for commit in view.ask("rev-list", f"-{_MOST_COMMITS}", *since).decode().split():
            if commit not in self._commits:
                self._commits[commit] = list(self._added_by(commit))
            yield from self._commits[commit]

    def _added_by(self, commit: str) -> Iterator[Suspect]:
        words = ("diff-tree", "-r", "-z", "-m", "--root", "--no-commit-id", "--no-renames", "--raw")
        said = self._trees.view.names(*words, "--diff-filter=A", commit)
        for fields, path in zip(said[::2], said[1::2], strict=True):
            _, mode, _, identifier, _ = fields.split(" ")
            entry = TreeChange(path, mode, identifier, NOTHING, "")
            if why := self._why(entry, partial(self._beginning, identifier)):
                yield Suspect(path, why, commit)

    def _why(self, entry: TreeChange, beginning: Callable[[], bytes]) -> str:
        """The reason why a file looks like a secret by its name or content; "" for none."""
        if entry.mode not in _FILES:
            return ""
        key = (entry.path, entry.identifier)
        if key not in self._known:
            full = self._trees.repository.place.path(entry.path)
            path = os.path.relpath(full, self._trees.workspace)
            allowed = is_allowed(path, self._allow)
            why = "" if allowed else why_by_name(path) or self._in_content(entry.path, beginning())
            self._known[key] = why
        return self._known[key]

    def _in_content(self, path: str, data: bytes) -> str:
        """The reason in the content. Of records, which each task adds to, the rest is known."""
        known = self._harmless.get(path, b"")
        begin = max(0, len(known) - _LONGEST_KEY) if data.startswith(known) else 0
        why = why_by_content(data, begin)
        if not why and self._trees.repository.place.is_ours(path):
            self._harmless[path] = data
        return why

    def _beginning(self, blob: str) -> bytes:
        view = self._trees.view
        size = int(view.ask("cat-file", "-s", blob))
        return view.ask("cat-file", "blob", blob) if size <= _LARGEST else b""
