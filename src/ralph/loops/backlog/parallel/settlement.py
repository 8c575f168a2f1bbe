"""Settles a worker's task: its turns are in a work tree of its own, its records are the project's,
and its commit becomes the project's HEAD.

It is brought onto what others have merged meanwhile in its own work tree, and from there into the
project by a fast-forward. The project's own tree is never in the middle of a merge.
"""

import json
import os
import shutil
from collections.abc import Iterable, Sequence
from contextlib import suppress

from ralph.errors import StateError
from ralph.files.state_dir import write_atomically, writing_state
from ralph.git import status, under_way
from ralph.git.checkpoint.checkpoint import WorkTree
from ralph.git.checkpoint.commit import trailers_of
from ralph.git.checkpoint.files import ENTER, content, index_lines, when_unlocked
from ralph.git.checkpoint.work import Checkpoint
from ralph.git.repository import LINK, GitResult, Repository, with_records
from ralph.git.submodules import Submodules
from ralph.kernel.facts import Proved
from ralph.kernel.findings import Finding
from ralph.kernel.ports import Committed, Merge
from ralph.kernel.state import RunState
from ralph.kernel.value import replace, value
from ralph.kernel.verdict import Verdict
from ralph.loops.backlog.parallel.ports import Coupled
from ralph.loops.backlog.parallel.worktrees import OWN_WORK
from ralph.loops.backlog.settlement import TaskSettlement, base_of
from ralph.loops.backlog.store.task_file import NAME
from ralph.loops.backlog.store.watch import TaskWatch
from ralph.text.words import listed

_MEMO = "conflicts.json"  # in a worker's run directory
_MARKERS = "^(<<<<<<<|>>>>>>>) "  # a line of `=` alone may be a heading
_MOVED = "somebody has committed meanwhile"
# The first line of a refusal is for people, who read no more of it.
_CONFLICT = (
    "conflicts in {0}\n"
    "Other tasks were merged while you worked, and your changes conflict with theirs in {0}. Your"
    " work stands on top of theirs now. Where a file can hold both versions it does, between"
    " conflict markers (<<<<<<<, =======, >>>>>>>); your own of any is in: git show {1}:PATH."
    " Resolve all of them so that both tasks hold, and complete the task again. A file that is left"
    " as it is now counts as not resolved."
)
_UNRESOLVED = "conflicts are left in {}"
_LINKS = "it changes the submodule {}, which only works with --parallel 1"
_IN_THE_WAY = "uncommitted changes in the project are in the way: {}"


@value
class SavedWork:
    """A task's work, as a commit on what it began with."""

    commit: str
    begun: str


@value
class Merged:
    """The task's work on top of what others have merged."""

    checkpoint: str = ""  # to which it can be undone now; "" where nobody merged anything
    tree: str = ""
    conflicts: tuple[str, ...] = ()  # paths that hold both versions
    words: tuple[str, ...] = ()  # what git says about them


@value
class Joining:
    """A worker's work tree, and the project whose HEAD it will become.

    While files of other tasks are in the work tree that have not landed, a ref of its own keeps
    the task's work.
    """

    work: WorkTree
    project: Repository
    branch: str  # of the work tree
    onto: str  # the project's, which gets the work

    def head(self) -> str:
        """The project's HEAD."""
        return self.project.resolve("HEAD")

    def merge(self, work: SavedWork, lists: tuple[str, ...] = ()) -> Merged:
        """Put work that is kept on top of what the project has now, as files that are not
        committed. Who is killed in it, or before its end is told, calls it again. `lists` are the
        host's to change: where they conflict, the project's are taken."""
        mixed = bool(self.work.repository.resolve(OWN_WORK))
        merged = self._put(work, self.head(), lists, named=True, anew=mixed)
        if mixed:
            self.work.repository.ask("update-ref", "-d", OWN_WORK)
        return merged

    def mix(self, own: SavedWork, work: SavedWork, head: str, lists: tuple[str, ...]) -> Merged:
        """Put work in which that of other tasks may be on top of a commit in the same way."""
        self.work.repository.ask("update-ref", OWN_WORK, own.commit)
        return self._put(work, head, lists, anew=True)

    def couple(self, work: SavedWork, onto: str, lists: tuple[str, ...]) -> str:
        """A commit of the work on top of another, on no branch; "" if they conflict."""
        tree, conflicts, _ = self._joined(onto, work)
        if not {*conflicts} <= {*lists}:
            return ""
        tree = self._with_theirs(tree, onto, conflicts) if conflicts else tree
        return self.work.repository.commit(tree, [onto], "a task in a train")

    def _put(
        self,
        work: SavedWork,
        head: str,
        lists: tuple[str, ...],
        *,
        named: bool = False,
        anew: bool = False,
    ) -> Merged:
        ask = self.work.repository.ask
        under_way.forget(self.work.repository)
        at = os.path.join(self.work.repository.place.git_dir, "HEAD")
        if content(at) != f"ref: {self.branch}\n".encode():
            ask("symbolic-ref", "HEAD", self.branch)
        if head == work.begun and not anew:
            ask("reset", "--mixed", "--quiet", head)  # commits of the agent's own are one
            return Merged()
        tree, conflicts, words = self._joined(head, work, named=named)
        if conflicts and {*conflicts} <= {*lists}:
            tree, conflicts, words = self._with_theirs(tree, head, conflicts), (), ()
        ask("reset", "--hard", "--quiet", head)
        ask("clean", "-f", "-d", "--quiet")
        checkpoint = self.work.checkpoint()
        ask("read-tree", "-m", "-u", "HEAD", tree)
        ask("read-tree", "HEAD")
        return Merged(checkpoint.text(), tree, conflicts, words)

    def land(self, commit: str, head: str) -> str:
        """Let the project go on to this commit from the one below; why it cannot, "" if it has.
        Somebody may have committed meanwhile: then it says so, and nothing is changed."""
        if self.head() != head:
            return "" if self.project.follows(commit) else _MOVED
        self._stage_records(head, commit)
        # By its parts: `git merge` obeys settings that would squash, stash or ask for a signature.
        # Git looks first whether somebody's changes are in the way.
        files = ("read-tree", "-m", "-u", head, commit)
        done = when_unlocked(self.project, lambda: self.project.run(*files))
        if done.code != 0:
            place = f":(top,literal){self.project.place.records}"
            self.project.run("reset", "--quiet", "--", place)
            return done.said or f"git read-tree exited with code {done.code}"
        move = ("update-ref", "-m", "ralph: merge a task", "HEAD", commit, head)
        done = when_unlocked(self.project, lambda: self.project.run(*move))
        if done.code == 0 or self.head() == commit:  # the last git of a killed run was faster
            return ""
        self.project.run("read-tree", "-m", "-u", commit, head)
        if self.head() != head:
            return _MOVED
        return done.said or f"git update-ref exited with code {done.code}"

    def subject(self, commit: str, task: str) -> str:
        """The subject of a commit that this run has made for a task; "" if it is another's."""
        said = self.work.repository.ask("log", "-1", "--no-show-signature", "--format=%B", commit)
        lines = said.decode("utf-8", "replace").splitlines()
        trailers = trailers_of(os.path.basename(self.work.run_dir), task).split("\n")
        return lines[0] if {*trailers} <= {*lines} else ""

    def changed_links(self, work: SavedWork) -> list[str]:
        """Submodules that the work takes to another commit."""
        if not os.path.lexists(self.work.repository.place.path(".gitmodules")):
            return []
        changed = self.work.repository.changes(work.begun, work.commit)
        return [entry.path for entry in changed if entry.old_mode == LINK]

    def elsewhere(self) -> str:
        """The reason why the project cannot take any work now; "" if it can."""
        doing = under_way.under_way(self.project.place.git_dir)
        if doing:
            return f"git is in the middle of {doing[0].name} in the project"
        here = self.project.symbolic("HEAD")
        if here == self.onto:
            return ""
        now, then = (name.removeprefix("refs/heads/") or "no branch" for name in (here, self.onto))
        return f"the project is on {now} now, and was on {then} when the run began"

    def theirs(self) -> frozenset[str]:
        """Uncommitted changes of somebody in the project."""
        return frozenset(status.look(self.project).changed)

    def keep(self, base: Checkpoint, iteration: int) -> SavedWork:
        """The work of this iteration, before anything is merged; a killed run finds its own."""
        repository, ref = self.work.repository, f"{self.work.refs}/work-{iteration}"
        said = repository.run("rev-parse", "--verify", "--quiet", f"{ref}^")
        if said.code == 0:
            return SavedWork(repository.resolve(ref), said.output.decode().strip())
        tree = with_records(repository, self.work.tree(), base.head)
        commit = self.work.repository.commit(tree, [base.head], "the work of a task")
        self.work.repository.ask("update-ref", ref, commit)
        return SavedWork(commit, base.head)

    def _with_theirs(self, tree: str, head: str, paths: tuple[str, ...]) -> str:
        """A tree in which these are as the project has them."""
        repository = self.work.repository
        theirs = {each.path: each.before for each in repository.changes(tree, head)}
        return repository.edited(tree, {p: theirs[p] for p in paths if p in theirs})

    def _joined(
        self, head: str, work: SavedWork, *, named: bool = False
    ) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
        """The tree of both, the paths in which they conflict, and what git says of those."""
        both = [head, work.commit]
        if not self.project.follows(work.begun, head):
            both = self._apart(work.begun, *both)
        done = self._merge_tree(*both)
        if done.code == 1 and named and both[0] == head:
            # Once more by names, which stand beside the conflicts.
            self.work.repository.ask("update-ref", self.branch, work.commit)
            there = self.onto and self.project.resolve(self.onto) == head
            name = self.onto.removeprefix("refs/heads/") if there else head
            done = self._merge_tree(name, self.branch.removeprefix("refs/heads/"))
        if done.code not in (0, 1):
            raise StateError(f"git merge-tree: {done.said}", "Try: git fsck")
        tree, *rest = os.fsdecode(done.output).split("\0")
        if done.code == 0:
            return tree, (), ()
        paths = rest[: rest.index("")]
        said = (
            each for each in rest[len(paths) :] if each.startswith("CONFLICT (") and ": " in each
        )
        return tree, tuple(dict.fromkeys(paths)), tuple(each.strip() for each in said)

    def _merge_tree(self, *both: str) -> GitResult:
        words = ("merge-tree", "--write-tree", "-z", "--name-only", "--messages")
        return self.work.repository.run(*words, *both)

    def _apart(self, begun: str, *both: str) -> list[str]:
        """Commits that have nothing but the task's beginning in common: somebody has rewritten it
        in the project, and git would take what is gone for the task's own work."""
        repository = self.work.repository
        trees = [repository.identifier("rev-parse", f"{each}^{{tree}}") for each in (begun, *both)]
        first = self.work.repository.commit(trees[0], [], "what a task began with")
        return [self.work.repository.commit(tree, [first], "what came of it") for tree in trees[1:]]

    def _stage_records(self, head: str, commit: str) -> None:
        """Stage the records in `.ralph`, which stand there already: git would refuse to write
        them, since they seem changed."""
        place, project = self.project.place, self.project
        ours = [each for each in project.changes(head, commit) if place.is_ours(each.path)]
        if ours:
            when_unlocked(project, lambda: project.run(*ENTER, stdin=index_lines(ours)))

    def remember(self, iteration: int, tree: str, paths: Iterable[str]) -> None:
        """Remember conflicts that the agent is told of; the tree is no one's resolution."""
        left = self._entries(tree, paths)
        memo = {"iteration": iteration, "left": {path: left.get(path, "") for path in paths}}
        path = os.path.join(self.work.run_dir, _MEMO)
        with writing_state(path):
            write_atomically(path, json.dumps(memo), 0o600)

    def unresolved(self, iteration: int, commit: str) -> tuple[str, ...]:
        """Files that are as an earlier merge left them, or still hold markers."""
        kept = content(os.path.join(self.work.run_dir, _MEMO))
        memo = json.loads(kept) if kept is not None else None
        if memo is None or memo["iteration"] >= iteration:  # of this very merge, done again
            return ()
        left: dict[str, str] = memo["left"]
        now = self._entries(commit, left)
        same = {path for path, entry in left.items() if entry and now.get(path, "") == entry}
        words = ("grep", "-l", "-z", "--no-color", "-E", "-e", _MARKERS, commit, "--")
        named = (f":(top,literal){path}" for path in left)
        said = os.fsdecode(self.work.repository.run(*words, *named).output)
        marked = {name.removeprefix(f"{commit}:") for name in said.split("\0") if name}
        return tuple(sorted(same | marked))

    def _entries(self, tree: str, paths: Iterable[str]) -> dict[str, str]:
        """Mode and content of each path that is in a tree."""
        said = os.fsdecode(self.work.repository.ask("ls-tree", "-r", "-z", tree, "--", *paths))
        pairs = (entry.partition("\t") for entry in said.split("\0") if entry)
        return {path: entry for entry, _, path in pairs}


@value
class WorkerSettlement:
    """Settles the one task of a worker."""

    inner: TaskSettlement  # its file is the project's, its watch is over the list in the work tree
    joining: Joining
    project_list: TaskWatch
    contained: bool  # an agent cannot reach the project

    def take_up(self, state: RunState) -> str:
        self._relink()
        saved = self.inner.take_up(state)
        self.project_list.remember(state.iteration)
        return saved

    def undo_edits(self, state: RunState) -> str:
        """Put back illegal changes to the worker's copy of the list and to the project's. Tasks
        added to the copy are the project's too."""
        self._relink()
        undone = self.inner.undo_edits(state)
        if not self.contained:
            theirs = self.project_list.undo(state.task, state.iteration)
            undone = "; ".join(filter(None, (undone, theirs)))
        copy = os.path.join(self.joining.work.workspace, NAME)
        self.project_list.take_in(copy, self.inner.watch.begun_with(state.iteration))
        self.project_list.let_stand()
        return undone

    def _relink(self) -> None:
        """Restore the link to the repository, which an agent may have removed."""
        place = self.joining.work.repository.place
        link, text = place.path(".git"), f"gitdir: {place.git_dir}\n"
        with suppress(OSError):
            if content(link) != text.encode():
                os.makedirs(self.joining.work.workspace, exist_ok=True)
                write_atomically(link, text)

    def record(self, state: RunState, verdict: Verdict, saved: str = "") -> None:
        self.inner.record(state, verdict, saved)

    def keep(self, state: RunState) -> None:
        self.joining.keep(base_of(state), state.iteration)

    def merge(self, state: RunState) -> Merge:
        elsewhere = self.joining.elsewhere()
        if elsewhere:
            return Merge(refusal=elsewhere, hopeless=True)
        number = state.iteration
        work = self.joining.keep(base_of(state), number)
        left = self.joining.unresolved(number, work.commit)
        if left:
            return Merge(refusal=_UNRESOLVED.format(_shown(left)))
        links = self.joining.changed_links(work)
        if links:
            return Merge(refusal=_LINKS.format(_shown(links)), hopeless=True)
        merged = self.joining.merge(work, self._lists(state))
        self.inner.watch.let_stand()
        if merged.conflicts:
            self.joining.remember(number, merged.tree, merged.conflicts)
            own = f"{self.joining.work.refs}/work-{number}"
            words = _CONFLICT.format(_shown(merged.conflicts), own)
            return Merge(merged.checkpoint, "\n".join((words, *merged.words)), fresh=True)
        if theirs := self.joining.theirs():
            tree = self.joining.work
            both = sorted(theirs.intersection(tree.repository.differing(tree.head(), tree.tree())))
            if both:
                return Merge(merged.checkpoint, _IN_THE_WAY.format(_shown(both)), hopeless=True)
        return Merge(merged.checkpoint)

    def is_current(self, state: RunState) -> bool:
        return self.joining.head() == base_of(state).head

    def commit(self, state: RunState) -> Committed:
        """Commit in the work tree. A list that somebody is changing in the project is told when the
        task has landed."""
        ticks = not self.joining.theirs().intersection(self._lists(state))
        return self.inner.commit(state, ticks=ticks)

    def _lists(self, state: RunState) -> tuple[str, ...]:
        """The list that the task came from, if it is in the project."""
        path = self.inner.telling.list_in(self.joining.work.workspace, state.task)
        top = self.joining.work.repository.place.top
        return (os.path.relpath(path, top),) if path else ()

    def land(self, state: RunState) -> str:
        return self.joining.land(self.joining.work.head(), base_of(state).head)

    def landed(self, state: RunState) -> Committed | None:
        made = self.joining.work.head()
        if made == base_of(state).head or not self.joining.project.follows(made):
            return None
        subject = self.joining.subject(made, state.task)
        return Committed(said=subject, commit=made) if subject else None

    # ---------------------------------------------------------------- in a train

    def couple(self, state: RunState, before: Coupled | None) -> Coupled | None:
        joining, onto = self.joining, before.commit if before else self.joining.head()
        work = joining.keep(base_of(state), state.iteration)
        alone = joining.unresolved(state.iteration, work.commit) or joining.changed_links(work)
        if alone or (before is None and joining.elsewhere()):
            return None
        theirs, lists = before.theirs if before else joining.theirs(), self._lists(state)
        commit = joining.couple(work, onto, lists)
        if not commit or theirs.intersection(joining.work.repository.differing(commit, onto)):
            return None
        known = before.lists if before else ()
        return Coupled(commit, onto, (*known, *lists), theirs)

    def try_on(self, state: RunState, last: Coupled, head: str) -> None:
        self._mix(state, SavedWork(last.commit, head), head, last.lists)

    def as_proven(self, last: Coupled, proof: Proved) -> Coupled:
        git = self.joining.work.repository
        if git.tree_of(last.commit) == proof.tree:
            return last
        commit = git.commit(proof.tree, [last.below], "a train, and what its gates changed")
        return replace(last, commit=commit)

    def follow(self, state: RunState, coupled: Coupled, onto: str) -> Merge:
        merged = self._mix(state, SavedWork(coupled.commit, coupled.below), onto, coupled.lists)
        return Merge(merged.checkpoint, refusal=_shown(merged.conflicts))

    def _mix(self, state: RunState, work: SavedWork, head: str, lists: tuple[str, ...]) -> Merged:
        own = self.joining.keep(base_of(state), state.iteration)
        merged = self.joining.mix(own, work, head, lists)
        self.inner.watch.let_stand()
        return merged

    def is_predicted(self, commit: str, coupled: Coupled) -> bool:
        git = self.joining.work.repository
        differing = git.differing(git.tree_of(commit), git.tree_of(coupled.commit))
        return all(git.place.is_ours(path) or path in coupled.lists for path in differing)

    def arrive(self, commit: str, head: str) -> str:
        return self.joining.land(commit, head)

    def take_logs(self, findings: Sequence[Finding], workspace: str) -> None:
        for log in filter(None, (finding.log for finding in findings)):
            if not os.path.isabs(log):
                with suppress(OSError):
                    shutil.copyfile(os.path.join(workspace, log), os.path.join(self.workspace, log))

    @property
    def workspace(self) -> str:
        return self.joining.work.workspace

    def sync(self, state: RunState) -> tuple[bool, str]:
        return self.inner.sync(state)

    def restore(self, state: RunState, *, whole_task: bool) -> str:
        work, ref = self.joining.work, f"{self.joining.work.refs}/inner-{state.iteration}"
        for words in Submodules(work.repository, self.joining.project, ref, work.run_dir).keep():
            self.inner.tell(words)
        return self.inner.restore(state, whole_task=whole_task)

    def reopen(self, tasks: tuple[str, ...]) -> None:
        """Do nothing: the foreman reopens tasks."""

    def end(self) -> None:
        self.inner.end()


def _shown(paths: Sequence[str]) -> str:
    return listed([path if path.isprintable() else repr(path) for path in paths])
