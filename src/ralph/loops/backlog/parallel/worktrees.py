"""Work trees of workers: one for each task, on a branch of its own, in Ralph's state directory."""

import hashlib
import json
import os
import re
import shutil
import threading
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from functools import cached_property

from ralph.errors import ConfigError, StateError
from ralph.files.state_dir import unwritable_state, write_atomically
from ralph.git.checkpoint.checkpoint import WorkTree
from ralph.git.checkpoint.commit import in_one_line
from ralph.git.repository import GitResult, call, clean_environ
from ralph.git.status import look, tree_of
from ralph.kernel.tasks.task import Status
from ralph.kernel.value import replace, value
from ralph.loops.backlog.parallel.merging import Joining, on_branch
from ralph.loops.backlog.store.task_file import TaskFile

NOT_MERGED = "Not merged."  # says the commit that shows what could not be
_BRANCHES = "refs/heads/ralph/"
_LONGEST = 60
_MOST_NAMES = 100
_LEAST_GIT = (2, 38)  # `merge-tree --write-tree`
_OPTIONS = ("-c", f"core.hooksPath={os.devnull}", "-c", "advice.detachedHead=false")


@value
class TaskWorktree:
    """The work tree of a worker."""

    task: str
    top: str
    branch: str  # refs/heads/ralph/<task>
    workspace: str  # the project in it: the top, unless that is a directory below

    @property
    def card(self) -> str:
        """The file that says whose it is."""
        return f"{self.top}.json"


def slug(task: str) -> str:
    """A task's id as the name of a directory and of a branch; no two ids have the same."""
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", task)[:_LONGEST].strip(".-")
    plain = re.sub(r"\.{2,}|\.lock$", "-", plain)
    if plain == task:
        return plain
    return f"{plain or 'task'}-{hashlib.sha256(task.encode()).hexdigest()[:8]}"


class Worktrees:
    """The work trees of one project."""

    def __init__(self, workspace: str, environ: Mapping[str, str], above: str) -> None:
        self._workspace = os.path.realpath(workspace)
        self._environ = {**clean_environ(environ), "LC_ALL": "C"}
        self._above = above
        self._lock = threading.Lock()  # git's own are not made for several at once

    def check(self) -> None:
        """ConfigError where there can be none."""
        found = re.search(r"(\d+)\.(\d+)", self._git("version").output.decode())
        if found is None or (int(found[1]), int(found[2])) < _LEAST_GIT:
            least = ".".join(map(str, _LEAST_GIT))
            message = f"several tasks at once need git {least} or newer"
            raise ConfigError(message, "Update git, or: --parallel 1")
        if self._git("rev-parse", "--verify", "--quiet", "HEAD").code != 0:
            message = "several tasks at once need a commit to start from"
            raise ConfigError(message, 'Try: git add -A && git commit -m "Begin"')
        if self._git("config", "--type=bool", "core.sparseCheckout").output.strip() == b"true":
            raise ConfigError(
                "several tasks at once are not for a sparse checkout",
                "One after the other: --parallel 1. Or have all of it: git sparse-checkout disable",
            )
        if self._git("rev-parse", "--verify", "--quiet", "refs/heads/ralph").code == 0:
            message = "a branch called ralph leaves no room for branches ralph/<task>"
            raise ConfigError(message, "Rename it: git branch -m ralph ralph-mine")

    def opened(self, task: str) -> TaskWorktree:
        """The task's work tree: the one that is there, or a new one at HEAD."""
        with self._lock:
            tree = self.of(task)
            if self._is_whole(tree):
                return tree
            self._clear(tree)
            tree = replace(tree, branch=self._free_branch(tree.branch))
            try:  # note whose it is, for whoever finds it after a crash
                os.makedirs(self._above, mode=0o700, exist_ok=True)
                said = {"task": tree.task, "branch": tree.branch}
                write_atomically(tree.card, json.dumps(said), 0o600)
            except OSError as error:
                raise unwritable_state(self._above, error) from error
            branch = tree.branch.removeprefix("refs/heads/")
            done = self._git(
                "worktree", "add", "--force", "--quiet", "-B", branch, tree.top, "HEAD"
            )
            if done.code != 0:
                self._clear(tree)
                os.unlink(tree.card)
                message = f"no work tree for {tree.task}: {done.said}"
                raise StateError(message, "Look: git worktree list. Then go on: ralph resume")
            os.makedirs(tree.workspace, exist_ok=True)
        return tree

    def closed(self, tree: TaskWorktree, *, keep: str = "") -> None:
        """Nobody works there any more. Its branch is at `keep` then, or is gone with it."""
        with self._lock:
            # With that file there, nobody else has its branch checked out.
            ours = os.path.isfile(os.path.join(tree.top, ".git"))
            self._clear(tree)
            if os.path.exists(tree.card) and (ours or not self._branches().get(tree.branch)):
                self._git("update-ref", *((tree.branch, keep) if keep else ("-d", tree.branch)))
            with suppress(FileNotFoundError):
                os.unlink(tree.card)

    def left(self) -> Iterator[TaskWorktree]:
        """Those that runs have left which were killed."""
        try:
            names = sorted(os.listdir(self._above))
        except FileNotFoundError:
            return
        for path in (os.path.join(self._above, name) for name in names):
            with suppress(OSError, ValueError, KeyError, TypeError):
                if path.endswith(".json"):
                    yield self.of(_card(path)["task"])
                elif path.endswith(".tmp"):  # of a run that was killed in the middle of writing
                    os.unlink(path)

    def of(self, task: str) -> TaskWorktree:
        """The task's work tree, whether it is there or not."""
        name = slug(task)
        top = os.path.join(self._above, name)
        workspace = os.path.normpath(os.path.join(top, self._inner))
        branch = f"{_BRANCHES}{name}"
        with suppress(OSError, ValueError, KeyError, TypeError):
            branch = _card(f"{top}.json")["branch"]
        return TaskWorktree(task, top, branch, workspace)

    # -------------------------------------------------------------- parts

    @cached_property
    def _inner(self) -> str:
        """The project's path in its repository."""
        return os.fsdecode(self._git("rev-parse", "--show-prefix").output).strip("\n")

    def _is_whole(self, tree: TaskWorktree) -> bool:
        if not os.path.isfile(os.path.join(tree.top, ".git")):
            return False
        done = call(("rev-parse", "--verify", "--quiet", "HEAD"), tree.top, self._environ)
        said = call(("rev-parse", "--absolute-git-dir"), tree.top, self._environ).output
        index = os.path.join(os.fsdecode(said).strip("\n"), "index")
        return done.code == 0 and os.path.isfile(index)

    def _free_branch(self, wanted: str) -> str:
        """The branch, or where that is somebody's, the next that is nobody's."""
        there = self._branches()
        names = (wanted, *(f"{wanted}-{number}" for number in range(2, _MOST_NAMES)))
        return next((name for name in names if self._is_free(name, there)), wanted)

    def _branches(self) -> dict[str, str]:
        """All of `ralph/`, and where each is checked out."""
        form = "--format=%(refname)%00%(worktreepath)"
        said = os.fsdecode(self._git("for-each-ref", form, _BRANCHES).output).splitlines()
        return dict(line.split("\0", 1) for line in said)

    def _is_free(self, branch: str, there: Mapping[str, str]) -> bool:
        """True if nothing is lost with it: it is not there, or has nothing of its own, or only what
        could not be merged and a ref of its run keeps."""
        if branch not in there:
            return not any(name.startswith(f"{branch}/") for name in there)
        if there[branch]:
            return False
        if self._git("merge-base", "--is-ancestor", branch, "HEAD").code == 0:
            return True
        said = self._git("log", "-1", "--no-show-signature", "--format=%cn %b", branch).output
        return said.decode("utf-8", "replace").split() == ["ralph", *NOT_MERGED.split()]

    def _clear(self, tree: TaskWorktree) -> None:
        if not os.path.lexists(tree.top):
            return
        if self._git("worktree", "remove", "--force", "--force", tree.top).code != 0:
            shutil.rmtree(tree.top, ignore_errors=True)
            self._git("worktree", "prune")

    def _git(self, *words: str) -> GitResult:
        return call((*_OPTIONS, *words), self._workspace, self._environ)


def _card(path: str) -> dict[str, str]:
    with open(path, encoding="utf-8") as file:
        said = json.load(file)
    return {name: str(said[name]) for name in ("task", "branch")}


def unmerged(task: str, title: str) -> str:
    """The message of a commit that only shows what was done."""
    return f"{in_one_line(f'{task}: {title}')}\n\n{NOT_MERGED}\n"


@value
class Leftovers:
    """Puts away work trees that a killed run has left and nobody goes on with, for a new run."""

    trees: Worktrees
    file: TaskFile
    environ: Mapping[str, str]
    run_dir: str  # the new run's

    def put_away(self, but: Collection[str] = ()) -> Iterator[str]:
        """Keep and remove all but those of tasks that go on; what was done, in words."""
        for tree in [tree for tree in self.trees.left() if tree.task not in but]:
            words = self._put_away(tree) if os.path.isdir(tree.workspace) else ""
            if words:
                yield words
            else:
                self.trees.closed(tree)

    def _put_away(self, tree: TaskWorktree) -> str:
        """ "" if there is nothing of its own in it."""
        work = WorkTree(tree.workspace, self.environ, self.run_dir, shared=True)
        project = WorkTree(self.file.workspace, self.environ, self.run_dir).repository
        head, inner = work.head(), Joining(work, project, tree.branch).keep_links("inner")
        if not work.dirty() and project.follows(head) and not inner:
            return ""
        ref = f"{work.refs}/left-{os.path.basename(tree.top)}"
        found = tree_of(work.repository, look(work.repository), self.run_dir)
        saved = work.save(found, [head], f"what was done for {tree.task}")
        project.ask("update-ref", ref, saved)
        title = self._hand_over(tree.task, ref)
        message = unmerged(tree.task, title)
        self.trees.closed(tree, keep=on_branch(project, self.run_dir, ref, head, message))
        branch = tree.branch.removeprefix("refs/heads/")
        left = f"{tree.task} was left in the middle by an earlier run; its work is on {branch}"
        return ". ".join((left, *inner))

    def _hand_over(self, task: str, ref: str) -> str:
        """Whoever takes the task up again goes on with what was done. One that was proven, and was
        not merged, is not done. Its title."""
        record = self.file.record(task) or {}
        proven = record.get("status") == Status.DONE and record.get("evidence")
        if proven or record.get("status") == Status.IN_PROGRESS:
            again = {"status": Status.IN_PROGRESS.value, "evidence": None, "completedAt": None}
            self.file.update(task, lambda _: {**again, "saved": ref})
        return str(record.get("title") or "")
