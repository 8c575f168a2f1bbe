"""Work trees of workers: one for each task, on a branch of its own, in Ralph's state directory."""

import json
import os
import re
import shutil
import threading
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from functools import cached_property
from typing import Any

from ralph.errors import ConfigError, StateError
from ralph.files.safe_open import remove_file
from ralph.files.state_dir import write_atomically, writing_state
from ralph.git.branch import slug
from ralph.git.checkpoint.checkpoint import WorkTree
from ralph.git.checkpoint.commit import in_one_line
from ralph.git.checkpoint.work import Checkpoint
from ralph.git.repository import GitResult, Repository, call, clean_environ, with_records
from ralph.git.status import look
from ralph.git.submodules import Submodules
from ralph.kernel.state import RunState
from ralph.kernel.tasks.task import Status
from ralph.kernel.value import replace, value
from ralph.loops.backlog.store.task_file import TaskFile

OWN_WORK = "refs/worktree/ralph-work"  # of a task in whose files others are; gone with them
_NOT_MERGED = "Not merged."  # says the commit that shows what could not be
_BRANCHES = "refs/heads/ralph/"
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


class Worktrees:
    """The work trees of one project."""

    def __init__(self, workspace: str, environ: Mapping[str, str], above: str) -> None:
        self._workspace, self._given = os.path.realpath(workspace), environ
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

    def opened(self, task: str, start: str = "") -> TaskWorktree:
        """The task's work tree: the one that is there, or a new one at HEAD. One whose branch is
        published begins at the `start`, which is known to be all there is of it."""
        with self._lock:
            tree = self.of(task)
            if self._is_whole(tree):
                return tree
            self._clear(tree)
            there = self._branches()  # take the first that is nobody's
            names = (tree.branch, *(f"{tree.branch}-{n}" for n in range(2, _MOST_NAMES)))
            free = (name for name in names if self._is_free(name, there, start or "HEAD"))
            tree = replace(tree, branch=next(free, tree.branch))
            with writing_state(self._above):  # note whose it is, for whoever finds it after a crash
                os.makedirs(self._above, mode=0o700, exist_ok=True)
                said = {"task": tree.task, "branch": tree.branch}
                write_atomically(tree.card, json.dumps(said), 0o600)
            words = ("add", "--force", "--quiet", "-B", tree.branch.removeprefix("refs/heads/"))
            done = self._git("worktree", *words, tree.top, start or "HEAD")
            if done.code != 0:
                self._clear(tree)
                os.unlink(tree.card)
                message = f"no work tree for {tree.task}: {done.said}"
                raise StateError(message, "Look: git worktree list. Then go on: ralph resume")
            os.makedirs(tree.workspace, exist_ok=True)
        return tree

    def closed(self, tree: TaskWorktree, *, keep: str = "") -> None:
        """Remove a work tree; its branch then stands at `keep`, or is gone with it."""
        with self._lock:
            # With that file there, nobody else has its branch checked out.
            ours = os.path.isfile(os.path.join(tree.top, ".git"))
            self._clear(tree)
            if os.path.exists(tree.card) and (ours or not self._branches().get(tree.branch)):
                self._git("update-ref", *((tree.branch, keep) if keep else ("-d", tree.branch)))
            remove_file(tree.card)

    def _left(self) -> Iterator[TaskWorktree]:
        names = sorted(os.listdir(self._above)) if os.path.isdir(self._above) else []
        for path in (os.path.join(self._above, name) for name in names):
            with suppress(OSError, ValueError, KeyError, TypeError):
                if path.endswith(".json"):
                    yield self.of(_card(path)["task"])
                elif path.endswith(".tmp"):  # of a run that was killed in the middle of writing
                    os.unlink(path)

    def put_away(self, file: TaskFile, run_dir: str, but: Collection[str] = ()) -> Iterator[str]:
        """Remove the work trees that a killed run has left, but for those of some tasks, and keep
        their changes. Yields a note on each."""
        project = WorkTree(file.workspace, self._given, run_dir).repository
        for tree in [tree for tree in self._left() if tree.task not in but]:
            if not os.path.isdir(tree.workspace):
                self.closed(tree)
                continue
            work = WorkTree(tree.workspace, self._given, run_dir, shared=True)
            head, ref = work.head(), f"{work.refs}/inner"
            inner = Submodules(work.repository, project, ref, run_dir).keep()
            if not work.dirty() and project.follows(head) and not inner:
                self.closed(tree)
                continue
            ref = f"{work.refs}/left-{os.path.basename(tree.top)}"
            saved = work.repository.resolve(OWN_WORK)
            if saved:  # what is in the files is not its own
                head = work.repository.resolve(f"{saved}^")
            else:
                seen = look(work.repository)
                changed = work.repository.entries({*seen.there, *seen.gone, *seen.staged}, run_dir)
                found = work.repository.edited(f"{head}^{{tree}}", changed)
                saved = work.repository.commit(found, [head], f"what was done for {tree.task}")
            project.ask("update-ref", ref, saved)
            title = _hand_over(file, tree.task, ref)
            self.closed(tree, keep=_on_branch(project, ref, head, f"{tree.task}: {title}"))
            branch = tree.branch.removeprefix("refs/heads/")
            left = f"{tree.task} was left in the middle by an earlier run; its work is on {branch}"
            yield ". ".join((left, *inner))

    def of(self, task: str) -> TaskWorktree:
        """The task's work tree, whether it is there or not."""
        name = slug(task)
        top = os.path.join(self._above, name)
        workspace = os.path.normpath(os.path.join(top, self._inner))
        branch = f"{_BRANCHES}{name}"
        with suppress(OSError, ValueError, KeyError, TypeError):
            branch = _card(f"{top}.json")["branch"]
        return TaskWorktree(task, top, branch, workspace)

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

    def _branches(self) -> dict[str, str]:
        """All of `ralph/`, and where each is checked out."""
        form = "--format=%(refname)%00%(worktreepath)"
        said = os.fsdecode(self._git("for-each-ref", form, _BRANCHES).output).splitlines()
        return dict(line.split("\0", 1) for line in said)

    def _is_free(self, branch: str, there: Mapping[str, str], start: str) -> bool:
        """True if nothing is lost with it: it is not there, or has no commit that the start has
        not, but one that a ref of its run keeps too."""
        if branch not in there:
            return not any(name.startswith(f"{branch}/") for name in there)
        if there[branch]:
            return False
        if self._git("merge-base", "--is-ancestor", branch, start).code == 0:
            return True
        said = self._git("log", "-1", "--no-show-signature", "--format=%cn %b", branch).output
        return said.decode("utf-8", "replace").split() == ["ralph", *_NOT_MERGED.split()]

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


def keep_unmerged(
    repository: Repository, run_dir: str, record: Mapping[str, Any], state: RunState
) -> str:
    """The commit in which people find what was not merged; "" if there is nothing."""
    saved, base = str(record.get("saved") or ""), Checkpoint.of(state.task_checkpoint)
    if base is None or not saved.startswith(f"refs/ralph/{os.path.basename(run_dir)}/"):
        return ""
    subject = f"{record.get('id')}: {record.get('title') or ''}"
    return _on_branch(repository, saved, base.head, subject)


def _on_branch(repository: Repository, saved: str, base: str, subject: str) -> str:
    """A commit of what a ref keeps of a task's work, for people to look at and merge."""
    tree = repository.identifier("rev-parse", f"{saved}^{{tree}}")
    whole = with_records(repository, tree, base)
    text = f"{in_one_line(subject)}\n\n{_NOT_MERGED}\n".encode("utf-8", "replace")
    return repository.identifier("commit-tree", whole, "-p", base, stdin=text)


def _hand_over(file: TaskFile, task: str, ref: str) -> str:
    """Let the next run go on with a task, even one proven and not merged. Returns its title."""
    record = file.record(task) or {}
    proven = record.get("status") == Status.DONE and record.get("evidence")
    if proven or record.get("status") == Status.IN_PROGRESS:
        again = {"status": Status.IN_PROGRESS.value, "evidence": None, "completedAt": None}
        file.update(task, lambda _: {**again, "saved": ref})
    return str(record.get("title") or "")
