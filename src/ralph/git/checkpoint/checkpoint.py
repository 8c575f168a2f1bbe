"""Checkpoints of the work by git, for a run without a sandbox that can roll back (B §Rollback).

Nothing of a person's is lost: what a restore removes is kept in `refs/ralph/<run>/`, and what git
cannot keep is left alone or put aside in the run's directory.
"""

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import astuple

from ralph.files.state_dir import write_atomically, writing_state
from ralph.git import repository, status
from ralph.git.checkpoint import copies, refs
from ralph.git.checkpoint.commit import RECORDS, in_one_line, trailers_of
from ralph.git.checkpoint.files import Apart, is_same_index
from ralph.git.checkpoint.head import AgentCommits
from ralph.git.checkpoint.proven_commit import ProvenCommit, patient
from ralph.git.checkpoint.restore import Restore
from ralph.git.checkpoint.start_ref import CHECKPOINTS, forget_before, forget_run, keep_start, sweep
from ralph.git.checkpoint.work import RECORD, Checkpoint, Work
from ralph.git.repository import PINNED
from ralph.git.status import CleanLook, TreeStatus
from ralph.kernel.ports import Committed
from ralph.kernel.value import replace
from ralph.kernel.verdict import Cut
from ralph.kernel.world import Stand
from ralph.processes.child import Starter, start

_OPTIONS = ("--quiet", "--no-status", "--cleanup=whitespace")


class WorkTree(Work):
    """A work tree with its checkpoints. Without `begin` it can only be looked at."""

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
        self.left_out: tuple[str, ...] = ()  # the changed paths that are not in the last commit
        self._copies: copies.LastFiles = {}  # of the last checkpoint
        self._repositories: copies.LastRepositories = {}
        self._kept_tips: frozenset[str] = frozenset()
        self._settled = False

    def begin(self, clean: CleanLook | None = None, *, anew: bool = False) -> None:
        """Keep what was not committed when the run began; a run that goes on finds it kept, unless
        it had ended, and begins `anew`."""
        is_new = anew or not os.path.exists(os.path.join(self.run_dir, PINNED))
        if is_new and not self.shared:
            sweep(self.repository, self.run_dir)
        self.trees.begin(clean, anew=anew)
        if is_new:
            keep_start(self.trees)
            self.trees.pin()

    def checkpoint(self) -> Checkpoint:
        """The work as it stands now. It can be restored until `end`."""
        seen, place = self.look(), self.repository.place
        above = os.path.join(self.run_dir, CHECKPOINTS)
        with writing_state(self.run_dir):
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
            tree = self.trees.tree
            if seen.changed or not seen.head:  # otherwise a commit keeps it
                self.repository.ask("update-ref", f"{self.refs}/checkpoint-{number}", tree)
            self._copies = copies.keep_files(place, seen.ignored, directory, self._copies)
            before = self._repositories
            self._repositories = copies.keep_repositories(place, seen.apart, directory, before)
            write_atomically(os.path.join(directory, RECORD), self._apart(seen).text(), 0o600)
            if self._settled:
                forget_before(self.repository, self.run_dir, number)
                self._settled = False
        return Checkpoint(seen.head, seen.branch, tree, index)

    def _apart(self, seen: TreeStatus) -> Apart:
        blind = status.unreadable(self.repository) if seen.blind else []
        changed = {*seen.there, *seen.staged}
        found = {} if self.shared else refs.look(self.repository)
        stash = self.repository.stash() if refs.STASH in found else ()
        tips = refs.tips(found, stash, seen.head)
        if not self._kept_tips.issuperset(tips):  # whatever an agent deletes and tidies up
            ref = f"{self.refs}/checkpoint-refs"
            before = self.repository.resolve(ref)
            parents = [before, *tips] if before else tips
            self.repository.save(ref, self.repository.empty, parents, "refs")
            self._kept_tips = self._kept_tips.union(tips)
        return Apart(
            apart=frozenset((*seen.apart, *blind)),
            ignored=frozenset(seen.ignored),
            modes=status.modes_of(self.repository, changed),
            raw=status.raw(self.repository, changed),
            exclude=self.exclude(),
            inner=status.inner_changes(self.repository),
            refs={name: ref.at for name, ref in found.items() if name != refs.STASH},
            stash=stash,
            copies={path: astuple(copy) for path, (copy, _) in self._copies.items()},
            repositories={path: astuple(copy) for path, (copy, _) in self._repositories.items()},
        )

    def restore(self, to: Checkpoint, label: str) -> str:
        """Put everything back as it was; the ref that keeps what stood there, "" if nothing
        differed. Whoever is killed in it calls it again."""
        return Restore(self, to, label)()

    def undone(self, to: Checkpoint, ref: str) -> tuple[str, ...]:
        """The commits that a restore removed, in words, newest first."""
        without = (f"^{to.head}",) if to.head else ()
        words = ("log", "--no-show-signature", "--format=%h %s", f"{ref}^@", *without, "--")
        said = self.repository.ask(*words).decode("utf-8", "replace")
        return tuple(in_one_line(line) for line in said.splitlines())

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
        *,
        more: tuple[str, ...] = (),
    ) -> Committed:
        """Commit everything that was proven, or is there now, and the records, with `lists` that
        the host has ticked, without what the user had changed before the run (ADR 8, ADR 21, ADR
        33). With nothing to commit it is the commit that is there; one that a killed run has made
        is found again. `more` are further trailers."""
        words = in_one_line(subject) or in_one_line(task)
        trailers = trailers_of(os.path.basename(self.run_dir), task)
        commit = ProvenCommit(self.trees, self._starter, self._watch)
        begun, made = commit.begun(trailers, since.head)
        if made and (proven is None or made != self.head()):
            done = Committed(commit=made)  # somebody has gone on from it, or nobody can compare it
        else:
            seen = self.where() if made else AgentCommits(self, since).settle()
            stand = proven or self.trees.look()
            names = [os.path.relpath(path, self.repository.place.top) for path in lists]
            ours = [name for name in names if name not in self.persons_paths]
            ticked = [name for name in ours if self.repository.resolve(f"{stand.tree}:{name}")]
            where = replace(stand, head=begun if made else seen.head)
            records = (*self._records(seen.head), *ticked)
            done = commit(where, (words, "\n".join((trailers, *more))), _OPTIONS, records)
        known, now = self.apart(since), self.trees.seen
        left = {*now.apart} - known.apart
        if self.persons_paths:
            changed = self.repository.differing(self.trees.memo.tree, self.trees.tree)
            left |= self.persons_paths.intersection(changed)
        self.left_out = tuple(sorted(left))
        self.note_inner_changes("Not committed", known.inner)
        return done

    def _records(self, head: str) -> list[str]:
        """Those of the records that git keeps, or would."""
        place = self.repository.place
        names = [f"{place.records}/{name}" for name in RECORDS]
        there = [name for name in names if os.path.lexists(place.path(name))]
        asked = ("check-ignore", "--no-index", "-z", "--stdin")  # none is in the view's
        ignored = self.trees.view.run(*asked, stdin=repository.nul_joined(there)).output
        new = {*there}.difference(repository.nul_split(ignored))
        return [n for n in names if n in new or (head and self.repository.resolve(f"{head}:{n}"))]

    def end(self) -> None:
        """The run is over: only what restores have saved is kept."""
        forget_run(self.repository, self.run_dir)
        if not self.shared:
            self.repository.pack()
