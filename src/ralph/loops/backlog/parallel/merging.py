"""Brings a worker's task into the project: onto what others have merged meanwhile, in its own work
tree, and from there by a fast-forward. The project's own tree is never in the middle of a merge."""

import json
import os
from collections.abc import Iterable

from ralph.errors import StateError
from ralph.files.state_dir import unwritable_state, write_atomically
from ralph.git import status, under_way
from ralph.git.checkpoint.checkpoint import WorkTree
from ralph.git.checkpoint.files import LINK, content, differing, index_lines, when_unlocked
from ralph.git.checkpoint.work import Checkpoint
from ralph.git.repository import GitResult, Repository, scratch_index, with_records
from ralph.git.submodules import Submodules
from ralph.kernel.value import value

_MEMO = "conflicts.json"  # in a worker's run directory
_MARKERS = "^(<<<<<<<|>>>>>>>) "  # a line of `=` alone may be a heading
_MOVED = "somebody has committed meanwhile"


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
    """A worker's work tree, and the project whose HEAD it will become."""

    work: WorkTree
    project: Repository
    branch: str  # of the work tree
    onto: str = ""  # the project's, which gets the work

    def head(self) -> str:
        """The project's HEAD."""
        return self.project.resolve("HEAD")

    def merge(self, work: SavedWork, lists: tuple[str, ...] = ()) -> Merged:
        """Put work that is kept on top of what the project has now, as files that are not
        committed. Who is killed in it, or before its end is told, calls it again. `lists` are the
        host's to change: where they conflict, the project's are taken."""
        head = self.head()
        under_way.forget(self.work.repository)
        at = os.path.join(self.work.repository.place.git_dir, "HEAD")
        if content(at) != f"ref: {self.branch}\n".encode():
            self._ask("symbolic-ref", "HEAD", self.branch)
        if head == work.begun:
            self._ask("reset", "--mixed", "--quiet", head)  # commits of the agent's own are one
            return Merged()
        tree, conflicts, words = self._joined(head, work)
        if conflicts and {*conflicts} <= {*lists}:
            tree, conflicts, words = self._with_theirs(tree, head, conflicts), (), ()
        self._ask("reset", "--hard", "--quiet", head)
        self._ask("clean", "-f", "-d", "--quiet")
        checkpoint = self.work.checkpoint()
        self._ask("read-tree", "-m", "-u", "HEAD", tree)
        self._ask("read-tree", "HEAD")
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
        if when_unlocked(self.project, lambda: self.project.run(*move)).code == 0:
            return ""
        self.project.run("read-tree", "-m", "-u", commit, head)
        return _MOVED

    def changed_links(self, work: SavedWork) -> tuple[str, ...]:
        """Submodules that the work takes to another commit."""
        if not os.path.lexists(self.work.repository.place.path(".gitmodules")):
            return ()
        changed = differing(self.work.repository, work.begun, work.commit)
        return tuple(entry.path for entry in changed if entry.old_mode == LINK)

    def keep_links(self, name: str) -> tuple[str, ...]:
        """Keep what was done inside of submodules, under a ref of that name; where, in words."""
        ref = f"{self.work.refs}/{name}"
        return Submodules(self.work.repository, self.project, ref, self.work.run_dir).keep()

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

    def in_the_way(self) -> tuple[str, ...]:
        """Those of them that the work changes too."""
        theirs = self.theirs()
        changed = self.work.names(self.work.head(), self.work.tree()) if theirs else []
        return tuple(sorted(theirs.intersection(changed)))

    def keep(self, base: Checkpoint, iteration: int) -> SavedWork:
        """The work of this iteration, before anything is merged; a killed run finds its own."""
        repository, ref = self.work.repository, f"{self.work.refs}/work-{iteration}"
        said = repository.run("rev-parse", "--verify", "--quiet", f"{ref}^")
        if said.code == 0:
            return SavedWork(repository.resolve(ref), said.output.decode().strip())
        tree = with_records(repository, self.work.run_dir, self.work.tree(), base.head)
        commit = self.work.save(tree, [base.head], "the work of a task")
        self._ask("update-ref", ref, commit)
        return SavedWork(commit, base.head)

    # -------------------------------------------------------------- parts

    def _with_theirs(self, tree: str, head: str, paths: tuple[str, ...]) -> str:
        """A tree in which these are as the project has them."""
        repository = self.work.repository
        none = "".join(f"0 {repository.place.zeros}\t{path}\0" for path in paths)
        theirs = os.fsdecode(repository.ask("ls-tree", "-z", head, "--", *paths))
        with scratch_index(self.work.run_dir) as index:
            repository.ask("read-tree", tree, index=index)
            words = ("update-index", "-z", "--index-info")
            repository.ask(*words, stdin=os.fsencode(none + theirs), index=index)
            return repository.identifier("write-tree", index=index)

    def _joined(self, head: str, work: SavedWork) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
        """The tree of both, the paths in which they conflict, and what git says of those."""
        both = [head, work.commit]
        if not self.project.follows(work.begun, head):
            both = self._apart(work.begun, *both)
        done = self._merge_tree(*both)
        if done.code == 1 and both[0] == head:  # by names, which stand beside the conflicts
            self._ask("update-ref", self.branch, work.commit)
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
        """Somebody has rewritten what the task began with: git would take what is gone for the
        task's own work. So commits that have nothing but that beginning in common."""
        repository = self.work.repository
        trees = [repository.identifier("rev-parse", f"{each}^{{tree}}") for each in (begun, *both)]
        first = self.work.save(trees[0], [], "what a task began with")
        return [self.work.save(tree, [first], "what came of it") for tree in trees[1:]]

    def _stage_records(self, head: str, commit: str) -> None:
        """What is committed of `.ralph` is what stands there, or stood there a moment ago: git need
        not write it, and would refuse to, since it seems changed."""
        place, project = self.project.place, self.project
        ours = [each for each in differing(project, head, commit) if place.is_ours(each.path)]
        if ours:
            words = ("update-index", "--replace", "-z", "--index-info")
            when_unlocked(project, lambda: project.run(*words, stdin=index_lines(ours)))

    def _ask(self, *words: str) -> None:
        self.work.repository.ask(*words)


def on_branch(repository: Repository, run_dir: str, saved: str, base: str, message: str) -> str:
    """A commit of what a ref keeps of a task's work, for people to look at and merge."""
    tree = repository.identifier("rev-parse", f"{saved}^{{tree}}")
    whole = with_records(repository, run_dir, tree, base)
    text = message.encode("utf-8", "replace")
    return repository.identifier("commit-tree", whole, "-p", base, stdin=text)


@value
class Conflicts:
    """Conflicts that the agent of a worker's task was told of, and whether they are resolved."""

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
        """The files of an earlier iteration that are as the merge had left them, or still hold
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
