"""Checkpoints of the work by git, for a run without a sandbox that can roll back (B §Rollback).

Nothing of a person's is lost: what a restore removes is kept in `refs/ralph/<run>/`, and what git
cannot keep is left alone or put aside in the run's directory.
"""

import json
import os
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import Any

from ralph.adapters import (
    checkpoint_refs,
    checkpoint_repositories,
    git_look,
    git_state,
    git_work,
)
from ralph.adapters.checkpoint_end import CHECKPOINTS, forget_before, forget_run, sweep
from ralph.adapters.checkpoint_files import Apart, is_same_index
from ralph.adapters.checkpoint_ignored import Copy, keep
from ralph.adapters.checkpoint_refs import Refs
from ralph.adapters.checkpoint_repositories import CopiedRepository
from ralph.adapters.files import unwritable_state, write_atomically
from ralph.adapters.git_look import Seen
from ralph.adapters.git_trees import PINNED, GitTrees
from ralph.adapters.git_work import Repository
from ralph.adapters.process import Starter, start
from ralph.adapters.proven_commit import patient
from ralph.adapters.run_trees import repository_of_run
from ralph.adapters.start_ref import keep_start, saved, start_ref, trees_of
from ralph.adapters.task_commit import TaskCommit, in_one_line
from ralph.core.proof import Stand
from ralph.core.value import replace, value
from ralph.core.verdict import Cut
from ralph.errors import StateError
from ralph.ports import Committed

_RECORD = "apart.json"
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
        fields = {"head": self.head, "branch": self.branch, "tree": self.tree}
        return json.dumps({**fields, "index": self.index})

    @staticmethod
    def of(text: str) -> "Checkpoint | None":
        """What `text` wrote; None for ""."""
        if not text:
            return None
        said = json.loads(text)
        return Checkpoint(said["head"], said["branch"], said["tree"], said["index"])


class WorkTree:
    """The work tree of a run. Without `begin` it can be looked at only."""

    def __init__(
        self,
        workspace: str,
        environ: Mapping[str, str],
        run_dir: str,
        *,
        starter: Starter = start,
        watch: Callable[[float], Cut | None] = patient,
        shared: bool = False,
    ) -> None:
        """`starter` and `watch` are for the user's own commit, whose hooks may take long. Where the
        repository is `shared` with other workers, its branches are not ours to put back."""
        self.workspace = os.path.realpath(workspace)
        self.environ = environ
        self.run_dir = os.path.abspath(run_dir)
        self._starter, self._watch, self._shared = starter, watch, shared
        self._left_out: tuple[str, ...] = ()
        self._notes: list[str] = []
        self._copies: dict[str, tuple[Copy, str]] = {}  # of ignored files, at the last checkpoint
        self._repositories: dict[str, tuple[CopiedRepository, str]] = {}  # of others, likewise
        self._kept_tips: frozenset[str] = frozenset()
        self._settled = False
        self.refs = f"refs/ralph/{os.path.basename(self.run_dir)}"

    @cached_property
    def repository(self) -> Repository:
        """The repository as it was when the run began, also for a run that goes on."""
        return repository_of_run(self.workspace, self.environ, self.run_dir)

    @cached_property
    def trees(self) -> GitTrees:
        """What would be committed; known once the run has begun."""
        where = (self.repository, self.workspace, self.run_dir)
        trees = GitTrees(*where, shared=self._shared, mixes=False)
        if trees.has_begun:
            trees.begin()
        return trees

    @property
    def start_ref(self) -> str:
        """What keeps a person's work of before the run; not there if there was none."""
        return start_ref(self.run_dir)

    def check(self) -> None:
        """A ConfigError, with what to type, if no run can begin here."""
        git_state.check(self.repository)

    def dirty(self) -> tuple[str, ...]:
        """What a person has not committed, relative to the workspace; `.ralph` is left out."""
        place = self.repository.place
        inner = git_look.inner_changes(self.repository)
        inside = {path for path, digest in inner.items() if digest}
        changed = sorted(inside.union(git_look.look(self.repository).changed))
        return tuple(os.path.relpath(place.path(path), self.workspace) for path in changed)

    def begin(self) -> None:
        """Keep what was not committed when the run began; a run that goes on finds it kept."""
        is_new = not os.path.exists(os.path.join(self.run_dir, PINNED))
        if is_new and not self._shared:
            sweep(self.repository, self.run_dir)
        self.trees.begin()
        if is_new:
            keep_start(self.trees)
            self.trees.pin()

    def save(self, tree: str, parents: list[str], what: str) -> str:
        """A commit of a tree, on no branch."""
        return saved(self.repository, tree, parents, what)

    @cached_property
    def persons_paths(self) -> frozenset[str]:
        """What a person had changed when the run began, in the work tree or in the index."""
        base, *trees = trees_of(self.repository, self.start_ref) or ("",)
        paths = (path for tree in trees for path in self.names(base, tree))
        return frozenset(path for path in paths if not self.repository.place.is_ours(path))

    def empty_tree(self) -> str:
        """The tree of nothing."""
        return self.repository.identifier("hash-object", "-t", "tree", "-w", "--stdin", stdin=b"")

    def names(self, one: str, other: str) -> list[str]:
        """The paths in which two trees differ."""
        words = ("diff-tree", "-r", "-z", "--name-only", "--no-renames", one, other)
        return os.fsdecode(self.repository.ask(*words)).split("\0")[:-1]

    def head(self) -> str:
        """The commit that HEAD is at; "" if there is none."""
        return self.repository.resolve("HEAD") or ""

    def under_way(self) -> str:
        """What git is in the middle of, such as a merge with conflicts; "" if nothing."""
        found = git_state.under_way(self.repository.place.git_dir)
        return ", ".join(operation.name for operation in found)

    def holds(self, commit: str) -> bool:
        """Whether a commit is part of what HEAD is at."""
        return self.repository.follows(commit)

    def tree(self) -> str:
        """The work tree now, as a tree in git."""
        return self.tree_of(self.look())

    def look(self) -> Seen:
        """What there is now, by the rules of when the run began."""
        head = self.trees.look().head
        return replace(self.trees.seen, head=head, branch=self.repository.symbolic("HEAD"))

    def where(self) -> Seen:
        """Where HEAD is, and nothing else."""
        return Seen(self.head(), self.repository.symbolic("HEAD"))

    def tree_of(self, seen: Seen) -> str:
        """What was seen, as a tree in git."""
        return self.trees.view.tree(seen)

    def delta(self, since: Checkpoint, to: str = "") -> dict[str, str]:
        """What became of each path that differs now, or in what a ref keeps: added, modified or
        deleted. Paths are relative to the top of the repository."""
        tree = self.repository.resolve(f"{to}^{{tree}}") if to else self.tree()
        if tree == since.tree:
            return {}
        words = ("diff-tree", "-r", "-z", "--name-status", "--no-renames", since.tree, tree)
        said = os.fsdecode(self.repository.ask(*words)).split("\0")
        pairs = zip(said[::2], said[1::2], strict=False)  # it ends with a NUL
        return {path: _CHANGES.get(how, "modified") for how, path in pairs}

    def checkpoint(self) -> Checkpoint:
        """The work as it stands now. It can be restored until `end`."""
        seen = self.look()
        try:
            number, directory = self._next()
            index = os.path.join(directory, "index")
            self._keep_index(number, index)
            tree = self.tree_of(seen)
            if seen.changed or not seen.head:  # otherwise a commit keeps it
                self.repository.ask("update-ref", f"{self.refs}/checkpoint-{number}", tree)
            self._keep_ignored(seen, directory)
            self._keep_repositories(seen, directory)
            write_atomically(os.path.join(directory, _RECORD), self._record(seen), 0o600)
            if self._settled:
                forget_before(self.repository, self.run_dir, number)
                self._settled = False
        except OSError as error:
            raise unwritable_state(self.run_dir, error) from error
        return Checkpoint(seen.head, seen.branch, tree, index)

    def _next(self) -> tuple[int, str]:
        above = os.path.join(self.run_dir, CHECKPOINTS)
        os.makedirs(above, mode=0o700, exist_ok=True)
        number = 1 + max((int(name) for name in os.listdir(above) if name.isdecimal()), default=0)
        directory = os.path.join(above, str(number))
        os.mkdir(directory, mode=0o700)
        return number, directory

    def _keep_index(self, number: int, index: str) -> None:
        """Most turns leave the index as it is: then one copy serves several checkpoints."""
        last = os.path.join(self.run_dir, CHECKPOINTS, str(number - 1), "index")
        if number > 1 and is_same_index(last, self.repository.index):
            os.link(last, index)
        else:
            git_work.copy_index(self.repository.index, index)

    def _keep_ignored(self, seen: Seen, directory: str) -> None:
        copies = keep(self.repository.place, seen.ignored, directory, self._copies)
        self._copies = {path: (copy, directory) for path, copy in copies.items()}

    def _keep_repositories(self, seen: Seen, directory: str) -> None:
        place, last = self.repository.place, self._repositories
        copies = checkpoint_repositories.keep(place, seen.apart, directory, last)
        self._repositories = {path: (copy, directory) for path, copy in copies.items()}

    def _record(self, seen: Seen) -> str:
        blind = git_look.unreadable(self.repository) if seen.blind else []
        refs = self._keep_refs(seen)
        return json.dumps(
            {
                "apart": [*seen.apart, *blind],
                "ignored": seen.ignored,
                "modes": git_look.modes_of(self.repository, {*seen.there, *seen.staged}),
                "raw": git_look.raw(self.repository, {*seen.there, *seen.staged}),
                "exclude": self.exclude(),
                "inner": git_look.inner_changes(self.repository),
                "refs": refs.places,
                "stash": refs.stash,
                "copies": {
                    path: (copy.name, copy.size, copy.mode, copy.changed)
                    for path, (copy, _) in self._copies.items()
                },
                "repositories": {
                    path: (copy.name, copy.digest) for path, (copy, _) in self._repositories.items()
                },
            }
        )

    def _keep_refs(self, seen: Seen) -> Refs:
        """What they point to stays reachable, whatever an agent deletes and tidies up."""
        if self._shared:
            return Refs({}, ())
        found, refs = checkpoint_refs.look(self.repository)
        tips = checkpoint_refs.tips(found, refs, seen.head)
        if not self._kept_tips.issuperset(tips):
            ref = f"{self.refs}/checkpoint-refs"
            before = self.repository.resolve(ref)
            parents = [*((before,) if before else ()), *tips]
            self.repository.ask("update-ref", ref, self.save(self.empty_tree(), parents, "refs"))
            self._kept_tips = self._kept_tips.union(tips)
        return refs

    def exclude(self) -> str | None:
        """The repository's own list of ignored files, as it is now."""
        try:
            with open(self.repository.place.exclude, "rb") as file:
                return os.fsdecode(file.read())
        except OSError:
            return None

    def apart(self, checkpoint: Checkpoint) -> Apart:
        """What a checkpoint knows and git does not keep."""
        said = self._said(checkpoint)
        kept = frozenset(said["apart"]), frozenset(said["ignored"])
        return Apart(*kept, said["modes"], said["raw"], said["exclude"], said["inner"])

    def refs_at(self, checkpoint: Checkpoint) -> Refs:
        """Where branches, tags and the stash were at a checkpoint."""
        said = self._said(checkpoint)
        return Refs(said["refs"], tuple((commit, words) for commit, words in said["stash"]))

    def copies_at(self, checkpoint: Checkpoint) -> dict[str, Copy]:
        """The copies of ignored files that a checkpoint has."""
        said = self._said(checkpoint)["copies"].items()
        return {
            path: Copy(name, size, mode, tuple(changed))
            for path, (name, size, mode, changed) in said
        }

    def repositories_at(self, checkpoint: Checkpoint) -> dict[str, CopiedRepository]:
        """The copies of other repositories that a checkpoint has."""
        said = self._said(checkpoint).get("repositories", {})  # an older Ralph made no such copies
        return {path: CopiedRepository(*fields) for path, fields in said.items()}

    def _said(self, checkpoint: Checkpoint) -> dict[str, Any]:
        path = os.path.join(os.path.dirname(checkpoint.index), _RECORD)
        try:
            with open(path, encoding="utf-8") as file:
                said: dict[str, Any] = json.load(file)
        except (OSError, ValueError) as error:
            message = f"the checkpoint cannot be read: {path}: {error}"
            raise StateError(message, f"Git still has it: git log {self.refs}/start") from error
        return said

    def restore(self, to: Checkpoint, label: str) -> str:
        """Put everything back as it was; the ref that keeps what stood there, "" if nothing
        differed. Whoever is killed in it calls it again."""
        from ralph.adapters.checkpoint_restore import Restore

        return Restore(self, to, label)()

    def undone(self, to: Checkpoint, ref: str) -> tuple[int, tuple[str, ...]]:
        """What a restore took away and its ref keeps: how many files, and which commits, each in
        one line, newest first."""
        files = len(self.names(to.tree, f"{ref}^{{tree}}"))
        without = (f"^{to.head}",) if to.head else ()
        words = ("log", "--no-show-signature", "--format=%h %s", f"{ref}^@", *without, "--")
        said = self.repository.ask(*words).decode("utf-8", "replace")
        return files, tuple(in_one_line(line) for line in said.splitlines())

    def settled(self) -> None:
        """A task is over: with the next checkpoint another begins, and older ones go."""
        self._settled = True

    def commit(
        self,
        subject: str,
        task: str,
        since: Checkpoint,
        proven: Stand | None = None,
        lists: Iterable[str] = (),
    ) -> Committed:
        """Commit the task as it was proven, or as it is now, with `lists` that the host has ticked.
        With nothing to commit it is the commit that is there."""
        commit = TaskCommit(self, self._starter, self._watch)
        made = commit(subject, task, since, proven, lists)
        self._left_out = commit.left_out(since)
        self.note_inner_changes("Not committed", self.apart(since).inner)
        return made

    def left_out(self) -> tuple[str, ...]:
        """A person's files that the agent changed, and repositories that it made: the last commit
        left them out, relative to the top of the repository."""
        return self._left_out

    def note(self, text: str) -> None:
        """Something that a person has to know."""
        self._notes.append(text)

    def note_inner_changes(self, what: str, before: Mapping[str, str]) -> None:
        """Submodules are repositories of their own: only their commits are looked after."""
        now = git_look.inner_changes(self.repository)
        for path, digest in now.items():
            if digest not in ("", before.get(path, "")):
                self.note(f"{what}: changes inside the submodule {path}")

    def notes(self) -> tuple[str, ...]:
        """What a person has to know of the last commit or restore; each sentence once."""
        notes, self._notes = dict.fromkeys(self._notes), []
        return tuple(notes)

    def end(self) -> None:
        """The run is over: only what restores have saved is kept."""
        forget_run(self.repository, self.run_dir)
