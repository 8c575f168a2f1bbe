"""Source control as H uses it: git, or any command that takes tasks (H §SCM Tasks)."""

import os
import shlex
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from ralph.errors import ConfigError
from ralph.files.state_dir import writable_dir
from ralph.kernel.facts import Proved
from ralph.kernel.ports import Committed
from ralph.kernel.state import RunState
from ralph.kernel.value import replace, value
from ralph.kernel.verdict import Cut
from ralph.kernel.world import Signals, hurried
from ralph.processes.child import Command, Starter, run_and_hear, start
from ralph.text.redact import redact

if TYPE_CHECKING:
    from ralph.git.checkpoint.trees import GitTrees

# Git tidies up after some commits; in the background it would be ended with the commit.
_IN_THE_FOREGROUND = {
    "GIT_CONFIG_COUNT": "2",
    "GIT_CONFIG_VALUE_0": "false",
    "GIT_CONFIG_VALUE_1": "false",
    "GIT_CONFIG_KEY_0": "gc.autoDetach",
    "GIT_CONFIG_KEY_1": "maintenance.autoDetach",
}
_MOST_SAID = 64 << 20  # bytes of what a command printed
_CHANGED = ("1 ", "2 ", "u ", "? ")  # ordinary, renamed, unmerged, untracked
_MOST_SHOWN = 20_000  # characters of what is to be committed


@value
class ScmCommand:
    """`scm.command` with `scm.tasks`. Argument vectors only, never a shell."""

    command: str
    task_list: tuple[str, ...]
    workspace: str
    env: Mapping[str, str]
    signals: Callable[[], Signals]
    stop_grace: float | None = None
    max_time: float | None = None  # no task takes longer than the whole run may
    start: Starter = start
    trees: "GitTrees | None" = None  # of the repository, where one is proven

    def has_changes(self, proof: Proved | None) -> tuple[bool, str]:
        """True if there is something to commit; and the problem if that cannot be told."""
        if not self._is_git:
            return True, ""
        if os.path.isdir(os.path.join(self.workspace, ".ralph")):
            writable_dir(self.workspace, "")  # with the .gitignore that hides what is not for git
        if proof is not None:
            empty = self.trees is not None and proof.tree == self.trees.view.empty
            return not (proof.commit or (empty and not proof.stand.head)), ""
        ok, said = self._call("status", "--porcelain=v2", "-z", "--untracked-files=normal")
        # Warnings are in there too; an entry begins with its kind.
        return ok and any(each[:2] in _CHANGED for each in said.split("\0")), "" if ok else said

    def changes(self, proof: Proved | None) -> str:
        """The changes to be committed, as git shows them: a turn without tools cannot look."""
        if self.trees is None or proof is None:
            return ""
        trees = (proof.stand.head or self.trees.view.empty, proof.tree)
        words = ("diff", "--no-color", "--no-ext-diff", "--no-textconv", "--stat=100", "--patch")
        said = self.trees.view.run(*words, *trees).output.decode("utf-8", "replace")
        shown = redact(said.replace("\0", "\ufffd"))
        more = "\n[truncated]" if len(shown) > _MOST_SHOWN else ""
        return f"\n\nThe changes:\n\n{shown[:_MOST_SHOWN]}{more}"

    def tasks(self) -> tuple[str, ...]:
        return self.task_list

    def commit(self, task: str, message: str, proof: Proved | None) -> Committed:
        """Commit the tree that was proven; in a repository that was made meanwhile, everything."""
        words = task_words(task)
        if self._is_git and self.trees is not None:
            if proof is None:
                return Committed(ok=False, said="nothing was proven, so nothing is committed")
            from ralph.git.checkpoint.proven_commit import ProvenCommit  # most turns commit nothing

            commit = ProvenCommit(self.trees, self.start, self._watch)
            made = commit(proof.stand, (message,), tuple(words[1:]))
            return made if made.altered or not made.ok else replace(made, said=message)
        if self._is_git:  # `-am` alone silently leaves new files out (ADR 8)
            ok, said = self._call("add", "-A")
            if not (ok and self.has_changes(None)[0]):  # or a killed run had committed already
                return Committed(ok, message if ok else said)
        ok, said = self._call(*words, "-am", message)
        return Committed(ok, message if ok else said)

    def run(self, task: str, state: RunState) -> Committed | None:
        """Run another task, split like shell words. What is pushed was proven, and is new."""
        words = task_words(task)
        if words[0] != "push" or self.trees is None or not self._is_git:
            return Committed(*self._call(*words))
        repository = self.trees.repository
        head, proof = repository.resolve("HEAD"), state.proof
        # What the other side has of our branch, as far as git knows; a push that says more than
        # `push` is for git to judge.
        there = repository.resolve("@{push}") if words == ["push"] else ""
        if head in (dict(state.pushed).get(task), there):
            return None
        if proof is None or repository.resolve("HEAD^{tree}") != proof.tree:
            return Committed(ok=False, said="HEAD holds another tree than was proven")
        return Committed(*self._call(*words), head)

    @property
    def _is_git(self) -> bool:
        return is_git(self.command)

    def _call(self, *arguments: str) -> tuple[bool, str]:
        env = {**self.env, "GIT_TERMINAL_PROMPT": "0", **_IN_THE_FOREGROUND}
        command = Command((self.command, *arguments), self.workspace, env)
        try:
            ended, said = run_and_hear(self.start, command, self._watch, _MOST_SAID)
        except (OSError, ValueError) as error:
            return False, f"{self.command}: {getattr(error, 'strerror', error)}"
        if ended.code == 0:
            return True, said
        return False, said or f"{self.command} exited with code {ended.code}"

    def _watch(self, seconds: float) -> Cut | None:
        if self.max_time is not None and seconds >= self.max_time:
            return Cut("the run's time is used up", grace=1.0)
        return hurried(self.signals(), time.time(), self.stop_grace)


def is_git(command: str) -> bool:
    return os.path.basename(command) == "git"


def task_words(task: str) -> list[str]:
    """A task as words; a ConfigError where it cannot be split."""
    try:
        return shlex.split(task)
    except ValueError as error:
        raise ConfigError(f"scm.tasks: {task}: {error}", "Close the quote.") from error
