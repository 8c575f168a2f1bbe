"""How a worker's task comes into the project: onto what others have merged meanwhile, in its own
work tree, and from there by a fast-forward. The project's own tree is never in the middle of a
merge."""

import os
import shutil
from contextlib import suppress

from ralph.adapters import git_look, git_state
from ralph.adapters.checkpoint import Checkpoint, WorkTree
from ralph.adapters.checkpoint_files import when_unlocked
from ralph.adapters.git_work import Done, Repository, call, with_records
from ralph.core.value import value
from ralph.errors import StateError

_LINK = "160000"  # the mode of a submodule in a tree


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
        """What the project has by now."""
        return self.project.resolve("HEAD")

    def merge(self, work: str) -> Merged:
        """Put work that is kept on top of what the project has now, as files that are not
        committed. Who is killed in it, or before its end is told, calls it again."""
        head = self.head()
        git_state.forget(self.work.repository)
        self._ask("symbolic-ref", "HEAD", self.branch)
        if head == self.work.repository.resolve(f"{work}^"):
            self._ask("reset", "--mixed", "--quiet", head)  # commits of the agent's own are one
            return Merged()
        tree, conflicts, words = self._joined(head, work)
        self._ask("reset", "--hard", "--quiet", head)
        self._ask("clean", "-f", "-d", "--quiet")
        checkpoint = self.work.checkpoint()
        self._ask("read-tree", "-m", "-u", "HEAD", tree)
        self._ask("read-tree", "HEAD")
        return Merged(checkpoint.text(), tree, conflicts, words)

    def land(self, commit: str) -> str:
        """Let the project go on to this commit; why it cannot, "" if it has."""
        head = self.head()
        above = self.work.repository.resolve(f"{commit}^")
        if head != above and self._follows(commit, head):
            return ""  # it has already
        self._stage_records(head, commit)
        # By git itself: it looks first whether somebody's changes are in the way.
        words = ("merge", "--ff-only", "--quiet", "--no-verify-signatures", "--no-overwrite-ignore")
        done = when_unlocked(self.project, lambda: self.project.run(*words, commit))
        if done.code == 0:
            return ""
        self.project.run("reset", "--quiet", "--", f":(top,literal){self.project.place.records}")
        return done.said or f"git merge exited with code {done.code}"

    def changed_links(self, commit: str) -> tuple[str, ...]:
        """Submodules that the work takes to another commit."""
        if not os.path.lexists(self.work.repository.place.path(".gitmodules")):
            return ()
        said = self.work.repository.ask("diff-tree", "-r", "-z", "--raw", f"{commit}^", commit)
        parts = os.fsdecode(said).split("\0")[:-1]
        pairs = zip(parts[::2], parts[1::2], strict=True)
        return tuple(path for fields, path in pairs if fields.split()[1] == _LINK)

    def keep_links(self, paths: tuple[str, ...]) -> None:
        """What was committed inside of submodules goes with the work tree: the project's own have
        it too, under a ref of this run. Of one that is not there a copy is kept beside the run."""
        for path in paths:
            inner, own = (r.place.path(path) for r in (self.work.repository, self.project))
            words = ("fetch", "--quiet", "--no-tags", inner, f"+HEAD:{self.work.refs}")
            there = os.path.lexists(os.path.join(own, ".git"))
            if not there or call(words, own, self.project.environ).code != 0:
                with suppress(OSError):
                    shutil.copytree(inner, os.path.join(self.work.run_dir, "links", path))

    def elsewhere(self) -> str:
        """Why the project cannot take any work now; "" if it can."""
        doing = git_state.under_way(self.project.place.git_dir)
        if doing:
            return f"git is in the middle of {doing[0].name} in the project"
        here = self.project.symbolic("HEAD")
        if here == self.onto:
            return ""
        now, then = (name.removeprefix("refs/heads/") or "no branch" for name in (here, self.onto))
        return f"the project is on {now} now, and was on {then} when the run began"

    def in_the_way(self) -> tuple[str, ...]:
        """What somebody has changed in the project, and the work changes too."""
        theirs = git_look.look(self.project).changed
        if not theirs:
            return ()
        changed = self.work.names(self.work.head(), self.work.tree())
        return tuple(sorted({*changed} & {*theirs}))

    # -------------------------------------------------------------- parts

    def keep(self, base: Checkpoint, iteration: int) -> str:
        """The work of this iteration, as a commit on what the task began with."""
        ref = f"{self.work.refs}/work-{iteration}"
        found = self.work.repository.resolve(ref)
        if found:
            return found
        tree = with_records(self.work.repository, self.work.run_dir, self.work.tree(), base.head)
        commit = self.work.save(tree, [base.head], "the work of a task")
        self._ask("update-ref", ref, commit)
        return commit

    def _joined(self, head: str, work: str) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
        """The tree of both, the paths in which they conflict, and what git says of those."""
        begun = self.work.repository.resolve(f"{work}^")
        if not self._follows(begun, head):
            head, work = self._apart(begun, head, work)
        done = self._merge_tree(head, work)
        if (
            done.code == 1 and self.project.resolve(head) == self.head()
        ):  # again by names, which stand beside the conflicts for the agent to read
            self._ask("update-ref", self.branch, work)
            done = self._merge_tree(self._name_of(head), self.branch.removeprefix("refs/heads/"))
        if done.code not in (0, 1):
            raise StateError(f"git merge-tree: {done.said}", "Try: git fsck")
        tree, *rest = os.fsdecode(done.output).split("\0")
        if done.code == 0:
            return tree, (), ()
        paths = rest[: rest.index("")]
        said = [each.strip() for each in rest[len(paths) :] if _is_conflict(each)]
        return tree, tuple(dict.fromkeys(paths)), tuple(said)

    def _merge_tree(self, *both: str) -> Done:
        words = ("merge-tree", "--write-tree", "-z", "--name-only", "--messages")
        return self.work.repository.run(*words, *both)

    def _apart(self, begun: str, *both: str) -> list[str]:
        """Somebody has rewritten what the task began with: git would take what is gone for the
        task's own work. So commits that have nothing but that beginning in common."""
        repository = self.work.repository
        trees = [repository.identifier("rev-parse", f"{each}^{{tree}}") for each in (begun, *both)]
        first = self.work.save(trees[0], [], "what a task began with")
        return [self.work.save(tree, [first], "what came of it") for tree in trees[1:]]

    def _name_of(self, head: str) -> str:
        """The project's branch, if it is there."""
        said = self.project.run("symbolic-ref", "--short", "--quiet", "HEAD").output
        name = os.fsdecode(said).strip()
        return name if name and self.project.resolve(f"refs/heads/{name}") == head else head

    def _stage_records(self, head: str, commit: str) -> None:
        """What is committed of `.ralph` is what stands there, or stood there a moment ago: git need
        not write it, and would refuse to, since it seems changed."""
        place, project = self.project.place, self.project
        said = project.ask("diff-tree", "-r", "-z", "--no-renames", "--raw", head, commit)
        parts = os.fsdecode(said).split("\0")[:-1]
        lines = [
            f"{fields.split()[1]} {fields.split()[3]}\t{path}\0"
            for fields, path in zip(parts[::2], parts[1::2], strict=True)
            if place.is_ours(path)
        ]
        if lines:
            text = os.fsencode("".join(lines))
            words = ("update-index", "--replace", "-z", "--index-info")
            when_unlocked(project, lambda: project.run(*words, stdin=text))

    def _follows(self, old: str, new: str) -> bool:
        return self.project.run("merge-base", "--is-ancestor", old, new).code == 0

    def _ask(self, *words: str) -> None:
        self.work.repository.ask(*words)


def _is_conflict(said: str) -> bool:
    return said.startswith("CONFLICT (") and ": " in said


def on_branch(repository: Repository, run_dir: str, saved: str, base: str, message: str) -> str:
    """What a ref keeps of a task's work, as a commit that people can look at and merge."""
    tree = repository.identifier("rev-parse", f"{saved}^{{tree}}")
    whole = with_records(repository, run_dir, tree, base)
    text = message.encode("utf-8", "replace")
    return repository.identifier("commit-tree", whole, "-p", base, stdin=text)
