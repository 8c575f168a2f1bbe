"""Checkpoints of the work by git, for a run without a sandbox that can roll back (B §Rollback).

Nothing of a person's is lost: what a restore removes is kept in `refs/ralph/<run>/`, and what git
cannot keep is left alone or put aside in the run's directory.
"""

import json
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import astuple

from ralph.files.state_dir import unwritable_state, write_atomically
from ralph.git import repository, status, under_way
from ralph.git.checkpoint import nested
from ralph.git.checkpoint import refs as checkpoint_refs
from ralph.git.checkpoint.commit import TaskCommit, in_one_line
from ralph.git.checkpoint.expiry import CHECKPOINTS, forget_before, forget_run, sweep
from ralph.git.checkpoint.files import is_same_index
from ralph.git.checkpoint.ignored import Copy, keep
from ralph.git.checkpoint.nested import CopiedRepository
from ralph.git.checkpoint.proven_commit import patient
from ralph.git.checkpoint.refs import Refs
from ralph.git.checkpoint.restore import Restore
from ralph.git.checkpoint.start_ref import keep_start
from ralph.git.checkpoint.trees import PINNED
from ralph.git.checkpoint.work import RECORD, Checkpoint, Work
from ralph.git.status import TreeStatus
from ralph.kernel.ports import Committed
from ralph.kernel.proof import Stand
from ralph.kernel.verdict import Cut
from ralph.processes.child import Starter, start


class WorkTree(Work):
    """A work tree to keep checkpoints of and to go back to them. Without `begin` it can only be
    looked at."""

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
        """`starter` and `watch` are for the user's own commit, whose hooks may take long."""
        super().__init__(workspace, environ, run_dir, shared=shared)
        self._starter, self._watch = starter, watch
        self._left_out: tuple[str, ...] = ()
        self._copies: dict[str, tuple[Copy, str]] = {}  # of ignored files, at the last checkpoint
        self._repositories: dict[str, tuple[CopiedRepository, str]] = {}  # of others, likewise
        self._kept_tips: frozenset[str] = frozenset()
        self._settled = False

    def check(self) -> None:
        """A ConfigError, with what to type, if no run can begin here."""
        under_way.check(self.repository)

    def begin(self) -> None:
        """Keep what was not committed when the run began; a run that goes on finds it kept."""
        is_new = not os.path.exists(os.path.join(self.run_dir, PINNED))
        if is_new and not self.shared:
            sweep(self.repository, self.run_dir)
        self.trees.begin()
        if is_new:
            keep_start(self.trees)
            self.trees.pin()

    def checkpoint(self) -> Checkpoint:
        """The work as it stands now. It can be restored until `end`."""
        seen, place = self.look(), self.repository.place
        above = os.path.join(self.run_dir, CHECKPOINTS)
        try:
            os.makedirs(above, mode=0o700, exist_ok=True)
            number = 1 + max(
                (int(name) for name in os.listdir(above) if name.isdecimal()), default=0
            )
            directory = os.path.join(above, str(number))
            os.mkdir(directory, mode=0o700)
            index = os.path.join(directory, "index")
            last = os.path.join(above, str(number - 1), "index")
            if number > 1 and is_same_index(last, self.repository.index):
                os.link(last, index)  # most turns leave the index as it is: one copy serves several
            else:
                repository.copy_index(self.repository.index, index)
            tree = self.tree_of(seen)
            if seen.changed or not seen.head:  # otherwise a commit keeps it
                self.repository.ask("update-ref", f"{self.refs}/checkpoint-{number}", tree)
            copies = keep(place, seen.ignored, directory, self._copies)
            self._copies = {path: (copy, directory) for path, copy in copies.items()}
            inner = nested.keep(place, seen.apart, directory, self._repositories)
            self._repositories = {path: (copy, directory) for path, copy in inner.items()}
            write_atomically(os.path.join(directory, RECORD), self._record(seen), 0o600)
            if self._settled:
                forget_before(self.repository, self.run_dir, number)
                self._settled = False
        except OSError as error:
            raise unwritable_state(self.run_dir, error) from error
        return Checkpoint(seen.head, seen.branch, tree, index)

    def _record(self, seen: TreeStatus) -> str:
        blind = status.unreadable(self.repository) if seen.blind else []
        changed, refs = {*seen.there, *seen.staged}, self._keep_refs(seen)
        return json.dumps(
            {
                "apart": [*seen.apart, *blind],
                "ignored": seen.ignored,
                "modes": status.modes_of(self.repository, changed),
                "raw": status.raw(self.repository, changed),
                "exclude": self.exclude(),
                "inner": status.inner_changes(self.repository),
                "refs": refs.places,
                "stash": refs.stash,
                "copies": {path: astuple(copy) for path, (copy, _) in self._copies.items()},
                "repositories": {
                    path: astuple(one) for path, (one, _) in self._repositories.items()
                },
            }
        )

    def _keep_refs(self, seen: TreeStatus) -> Refs:
        """Refs of now. What they point to stays reachable, whatever an agent deletes and tidies
        up."""
        if self.shared:
            return Refs({}, ())
        found, refs = checkpoint_refs.look(self.repository)
        tips = checkpoint_refs.tips(found, refs, seen.head)
        if not self._kept_tips.issuperset(tips):
            ref = f"{self.refs}/checkpoint-refs"
            before = self.repository.resolve(ref)
            parents = [*((before,) if before else ()), *tips]
            self.repository.ask(
                "update-ref", ref, self.save(self.repository.empty, parents, "refs")
            )
            self._kept_tips = self._kept_tips.union(tips)
        return refs

    def restore(self, to: Checkpoint, label: str) -> str:
        """Put everything back as it was; the ref that keeps what stood there, "" if nothing
        differed. Whoever is killed in it calls it again."""
        return Restore(self, to, label)()

    def undone(self, to: Checkpoint, ref: str) -> tuple[int, tuple[str, ...]]:
        """The number of files that a restore took away and its ref keeps, and the commits, each in
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

    def end(self) -> None:
        """The run is over: only what restores have saved is kept."""
        forget_run(self.repository, self.run_dir)
