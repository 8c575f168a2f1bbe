"""The work tree of a run, as it can be looked at, and the checkpoints that were made of it."""

import json
import os
import time
from collections.abc import Mapping
from dataclasses import asdict
from functools import cached_property

from ralph.errors import StateError
from ralph.files.safe_open import open_regular
from ralph.git import status
from ralph.git.checkpoint.files import Apart, FileRestore
from ralph.git.checkpoint.trees import MEMO, GitTrees
from ralph.git.repository import Repository, repository_of_run
from ralph.git.status import CleanLook, TreeStatus
from ralph.git.view import signature
from ralph.kernel.value import replace, value

RECORD = "apart.json"  # in the directory of a checkpoint


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
        return Checkpoint(**json.loads(text)) if text else None


class Work:
    """The work tree of a run."""

    def __init__(
        self, workspace: str, environ: Mapping[str, str], run_dir: str, *, shared: bool = False
    ) -> None:
        """Branches of a repository `shared` with other workers are not ours to put back."""
        self.workspace = os.path.realpath(workspace)
        self.environ = environ
        self.run_dir = os.path.abspath(run_dir)
        self.shared = shared
        self.refs = f"refs/ralph/{os.path.basename(self.run_dir)}"
        self._notes: list[str] = []
        self.clean: CleanLook | None = None  # of the last question whether it is dirty

    @cached_property
    def repository(self) -> Repository:
        """The repository as it was when the run began, also for a run that goes on."""
        return repository_of_run(self.workspace, self.environ, self.run_dir)

    @cached_property
    def trees(self) -> GitTrees:
        """The trees that would be committed; known once the run has begun."""
        where = (self.repository, self.workspace, self.run_dir)
        trees = GitTrees(*where, shared=self.shared, mixes=False)
        if os.path.exists(os.path.join(self.run_dir, MEMO)):  # perhaps in another process
            trees.begin()
        return trees

    def dirty(self) -> tuple[str, ...]:
        """Uncommitted paths, relative to the workspace; `.ralph` is left out."""
        changed = {*status.inner_changes(self.repository)}
        index, when = signature(self.repository.index), time.monotonic()
        seen = status.look(self.repository)
        changed.update(seen.changed)
        self.clean = None if changed else CleanLook(seen, index, when)
        path_of = self.repository.place.path
        return tuple(os.path.relpath(path_of(path), self.workspace) for path in sorted(changed))

    @cached_property
    def persons_paths(self) -> frozenset[str]:
        """Paths that a person had changed when the run began, in the work tree or in the index."""
        return frozenset(self.trees.yours())

    def head(self) -> str:
        """The commit that HEAD is at; "" if there is none."""
        return self.repository.resolve("HEAD")

    def tree(self) -> str:
        """The work tree now, as a tree in git."""
        return self.trees.look().tree

    def look(self) -> TreeStatus:
        """The work tree now, by the rules of when the run began."""
        head = self.trees.look().head
        return replace(self.trees.seen, head=head, branch=self.repository.symbolic("HEAD"))

    def where(self) -> TreeStatus:
        """HEAD and its branch, and nothing else."""
        return TreeStatus(self.head(), self.repository.symbolic("HEAD"))

    def delta(self, since: Checkpoint, to: str = "") -> dict[str, str]:
        """Added, modified or deleted, by each path that differs now, or in another tree. Paths are
        relative to the top of the repository."""
        changes = self.trees.view.changes(to or self.tree(), since.tree)  # it was asked, as a rule
        return {each.path: each.kind for each in changes}

    def exclude(self) -> str | None:
        """The repository's own list of ignored files, as it is now."""
        try:
            with open_regular(self.repository.place.exclude) as file:
                return os.fsdecode(file.read())
        except OSError:
            return None

    def apart(self, checkpoint: Checkpoint) -> Apart:
        """The part of a checkpoint that git does not keep."""
        path = os.path.join(os.path.dirname(checkpoint.index), RECORD)
        try:
            with open_regular(path) as file:
                return Apart.of(file.read().decode())
        except (OSError, ValueError) as error:
            message = f"the checkpoint cannot be read: {path}: {error}"
            raise StateError(message, f"Git still has it: git log {self.refs}/start") from error

    def files(self, checkpoint: Checkpoint, label: str) -> FileRestore:
        """Puts files back as at the checkpoint; what is in the way is put aside by that label."""
        aside, known = os.path.join(self.run_dir, "aside", label), self.apart(checkpoint)
        return FileRestore(self.repository, self.workspace, self.run_dir, aside, known)

    def note(self, text: str) -> None:
        """Note something that a person has to know."""
        self._notes.append(text)

    def note_inner_changes(self, what: str, before: Mapping[str, str]) -> None:
        """Submodules are repositories of their own: only their commits are looked after."""
        for path, digest in status.inner_changes(self.repository).items():
            if digest != before.get(path):
                self.note(f"{what}: changes inside the submodule {path}")

    def notes(self) -> tuple[str, ...]:
        """Notes for a person about the last commit or restore; each sentence once."""
        notes, self._notes = dict.fromkeys(self._notes), []
        return tuple(notes)
