"""The work tree of a run, as it can be looked at, and the checkpoints that were made of it."""

import json
import os
from collections.abc import Mapping
from dataclasses import asdict
from functools import cached_property
from typing import Any

from ralph.errors import StateError
from ralph.git import status
from ralph.git import under_way as git_state
from ralph.git.checkpoint.files import Apart
from ralph.git.checkpoint.ignored import Copy
from ralph.git.checkpoint.nested import CopiedRepository
from ralph.git.checkpoint.refs import Refs
from ralph.git.checkpoint.run_trees import repository_of_run
from ralph.git.checkpoint.start_ref import saved, start_ref, trees_of
from ralph.git.checkpoint.trees import GitTrees
from ralph.git.repository import Repository
from ralph.git.status import TreeStatus
from ralph.kernel.value import replace, value

RECORD = "apart.json"  # in the directory of a checkpoint
_CHANGES = {"A": "added", "D": "deleted"}  # by git's letter; every other is a modification


@value
class Checkpoint:
    """The work as it stands: where HEAD is, every file, and the index."""

    head: str  # a commit; "" in a repository without commits
    branch: str  # refs/heads/x; "" where HEAD is detached
    tree: str  # untracked files too; ignored ones and `.ralph` not
    index: str  # a file in the run's directory that holds the index; none if there was none

    def text(self) -> str:
        """One line of JSON, for the journal."""
        return json.dumps(asdict(self))

    @staticmethod
    def of(text: str) -> "Checkpoint | None":
        """Read what `text` wrote; None for ""."""
        if not text:
            return None
        said = json.loads(text)
        return Checkpoint(said["head"], said["branch"], said["tree"], said["index"])


class Work:
    """The work tree of a run."""

    def __init__(
        self, workspace: str, environ: Mapping[str, str], run_dir: str, *, shared: bool = False
    ) -> None:
        """Where the repository is `shared` with other workers, its branches are not ours to put
        back."""
        self.workspace = os.path.realpath(workspace)
        self.environ = environ
        self.run_dir = os.path.abspath(run_dir)
        self.shared = shared
        self.refs = f"refs/ralph/{os.path.basename(self.run_dir)}"
        self._notes: list[str] = []

    @cached_property
    def repository(self) -> Repository:
        """The repository as it was when the run began, also for a run that goes on."""
        return repository_of_run(self.workspace, self.environ, self.run_dir)

    @cached_property
    def trees(self) -> GitTrees:
        """The trees that would be committed; known once the run has begun."""
        where = (self.repository, self.workspace, self.run_dir)
        trees = GitTrees(*where, shared=self.shared, mixes=False)
        if trees.has_begun:
            trees.begin()
        return trees

    @property
    def start_ref(self) -> str:
        """The ref that keeps a person's work of before the run; not there if there was none."""
        return start_ref(self.run_dir)

    def dirty(self) -> tuple[str, ...]:
        """Uncommitted paths, relative to the workspace; `.ralph` is left out."""
        inner = status.inner_changes(self.repository)
        changed = {path for path, digest in inner.items() if digest}
        changed.update(status.look(self.repository).changed)
        path_of = self.repository.place.path
        return tuple(os.path.relpath(path_of(path), self.workspace) for path in sorted(changed))

    def save(self, tree: str, parents: list[str], what: str) -> str:
        """A commit of a tree, on no branch."""
        return saved(self.repository, tree, parents, what)

    @cached_property
    def persons_paths(self) -> frozenset[str]:
        """Paths that a person had changed when the run began, in the work tree or in the index."""
        base, *trees = trees_of(self.repository, self.start_ref) or ("",)
        paths = (path for tree in trees for path in self.names(base, tree))
        return frozenset(path for path in paths if not self.repository.place.is_ours(path))

    def names(self, one: str, other: str) -> list[str]:
        """The paths in which two trees differ."""
        words = ("diff-tree", "-r", "-z", "--name-only", "--no-renames", one, other)
        return self.repository.names(*words)

    def head(self) -> str:
        """The commit that HEAD is at; "" if there is none."""
        return self.repository.resolve("HEAD") or ""

    def under_way(self) -> str:
        """The operation that git is in the middle of, such as a merge with conflicts; "" if
        none."""
        found = git_state.under_way(self.repository.place.git_dir)
        return ", ".join(operation.name for operation in found)

    def tree(self) -> str:
        """The work tree now, as a tree in git."""
        return self.tree_of(self.look())

    def look(self) -> TreeStatus:
        """The work tree now, by the rules of when the run began."""
        head = self.trees.look().head
        return replace(self.trees.seen, head=head, branch=self.repository.symbolic("HEAD"))

    def where(self) -> TreeStatus:
        """HEAD and its branch, and nothing else."""
        return TreeStatus(self.head(), self.repository.symbolic("HEAD"))

    def tree_of(self, seen: TreeStatus) -> str:
        """A status as a tree in git."""
        return self.trees.view.tree(seen)

    def delta(self, since: Checkpoint, to: str = "") -> dict[str, str]:
        """Added, modified or deleted, by each path that differs now, or in what a ref keeps. Paths
        are relative to the top of the repository."""
        tree = self.repository.resolve(f"{to}^{{tree}}") if to else self.tree()
        if tree == since.tree:
            return {}
        words = ("diff-tree", "-r", "-z", "--name-status", "--no-renames", since.tree, tree)
        said = self.repository.names(*words)
        pairs = zip(said[::2], said[1::2], strict=True)
        return {path: _CHANGES.get(how, "modified") for how, path in pairs}

    def exclude(self) -> str | None:
        """The repository's own list of ignored files, as it is now."""
        try:
            with open(self.repository.place.exclude, "rb") as file:
                return os.fsdecode(file.read())
        except OSError:
            return None

    def apart(self, checkpoint: Checkpoint) -> Apart:
        """The part of a checkpoint that git does not keep."""
        said = self._said(checkpoint)
        kept = frozenset(said["apart"]), frozenset(said["ignored"])
        return Apart(*kept, said["modes"], said["raw"], said["exclude"], said["inner"])

    def refs_at(self, checkpoint: Checkpoint) -> Refs:
        """Branches, tags and the stash, as they were at a checkpoint."""
        said = self._said(checkpoint)
        return Refs(said["refs"], tuple((commit, words) for commit, words in said["stash"]))

    def copies_at(self, checkpoint: Checkpoint) -> dict[str, Copy]:
        """The copies of ignored files that a checkpoint has."""
        said = self._said(checkpoint)["copies"]
        return {
            p: Copy(name, size, mode, (*changed,))
            for p, (name, size, mode, changed) in said.items()
        }

    def repositories_at(self, checkpoint: Checkpoint) -> dict[str, CopiedRepository]:
        """The copies of other repositories that a checkpoint has."""
        said = self._said(checkpoint)["repositories"]
        return {path: CopiedRepository(*fields) for path, fields in said.items()}

    def _said(self, checkpoint: Checkpoint) -> dict[str, Any]:
        path = os.path.join(os.path.dirname(checkpoint.index), RECORD)
        try:
            with open(path, encoding="utf-8") as file:
                said: dict[str, Any] = json.load(file)
        except (OSError, ValueError) as error:
            message = f"the checkpoint cannot be read: {path}: {error}"
            raise StateError(message, f"Git still has it: git log {self.refs}/start") from error
        return said

    def note(self, text: str) -> None:
        """Note something that a person has to know."""
        self._notes.append(text)

    def note_inner_changes(self, what: str, before: Mapping[str, str]) -> None:
        """Submodules are repositories of their own: only their commits are looked after."""
        for path, digest in status.inner_changes(self.repository).items():
            if digest not in ("", before.get(path, "")):
                self.note(f"{what}: changes inside the submodule {path}")

    def notes(self) -> tuple[str, ...]:
        """Notes for a person about the last commit or restore; each sentence once."""
        notes, self._notes = dict.fromkeys(self._notes), []
        return tuple(notes)
