"""A fresh worktree in which gates run on the proven tree and nothing else (`proof: "clean"`).

What they write there is thrown away: before each of them the room holds the tree, and of other
files exactly what the setup command has installed.
"""

import os
import shutil
from collections.abc import Callable, Iterator

from ralph.errors import StateError
from ralph.files.safe_open import remove_file
from ralph.files.state_dir import write_atomically
from ralph.git.checkpoint.trees import GitTrees
from ralph.git.repository import copy_index, nul_split
from ralph.git.view import signature
from ralph.kernel.case import Case
from ralph.kernel.findings import PROOF, Finding
from ralph.kernel.ports import Gate, executes, passed_as
from ralph.kernel.value import value
from ralph.kernel.world import Stand

DIRECTORY = "clean"  # in a run's directory
_Files = dict[str, tuple[int, ...]]  # how each of them can be known again


class CleanRoom:
    """The room of a run. `setup` prepares it, and may say what is missing."""

    def __init__(self, trees: GitTrees, setup: Callable[[str], str]) -> None:
        self._trees, self._setup = trees, setup
        self.top = os.path.join(trees.run_dir, DIRECTORY)
        self._index = f"{self.top}-index"  # that of the worktree is within the gates' reach
        self._mine: tuple[int, ...] = ()  # the index as we left it
        inner = os.path.relpath(trees.workspace, trees.repository.place.top)
        self.workspace = os.path.normpath(os.path.join(self.top, inner))
        self._for: tuple[int, str] | None = None  # the iteration and the tree that it was made for
        self._git_dir = self._commit = ""  # of the worktree, as they were made
        self._installed: _Files = {}

    def prepare(self, iteration: int, stand: Stand) -> str:
        """Let the room hold the stand's tree; what is wrong with it, "" if nothing."""
        tree = self._trees.commit_tree(stand)
        if self._for == (iteration, tree) and os.path.isdir(self._git_dir):
            self._put_back(tree)
            if self._sweep():
                return ""
        self.close()
        self._make(tree, stand.head)
        problem = self._setup(self.workspace)
        if not problem:
            self._put_back(tree)
            self._installed = self._others()
            self._for = iteration, tree
        return problem

    def close(self) -> None:
        """Leave nothing behind."""
        self._for = None
        shutil.rmtree(f"{self.top}-layers", ignore_errors=True)
        _remove(self._index)
        if os.path.lexists(self.top):
            self._trees.repository.run("worktree", "remove", "--force", "--force", self.top)
            _remove(self.top)
            self._trees.repository.run("worktree", "prune")

    def _make(self, tree: str, head: str) -> None:
        git = self._trees.repository
        parent = ("-p", head) if head else ()
        commit = git.identifier("commit-tree", tree, *parent, stdin=b"ralph: what is proven\n")
        words = ("worktree", "add", "--quiet", "--detach", "--no-checkout", "--force")
        git.ask(*words, self.top, commit)
        with open(os.path.join(self.top, ".git"), encoding="utf-8") as file:
            self._git_dir = file.read().removeprefix("gitdir: ").strip()
        self._commit = commit
        self._put_back(tree)
        os.makedirs(self.workspace, exist_ok=True)

    def _put_back(self, tree: str) -> None:
        """Let tracked files and git's own be as they were made: a gate may write to all of them."""
        head, text = os.path.join(self._git_dir, "HEAD"), f"{self._commit}\n"
        for path, said in ((f"{self.top}/.git", f"gitdir: {self._git_dir}\n"), (head, text)):
            _remove(path)
            write_atomically(path, said)
        if self._mine != signature(self._index):
            _remove(self._index)
        self._ask("read-tree", "--reset", "-u", tree)
        self._mine = signature(self._index)
        own = os.path.join(self._git_dir, "index")
        _remove(own)
        copy_index(self._index, own)

    def _sweep(self) -> bool:
        """Remove what gates have left; true if what was installed is as it was."""
        now = self._others()
        for path in now.keys() - self._installed.keys():
            os.unlink(path)
        return all(now.get(path) == known for path, known in self._installed.items())

    def _others(self) -> _Files:
        """All files that are not the tree's."""
        names = nul_split(self._ask("ls-files", "--others", "-z"))
        paths = [os.path.join(self.top, name) for name in names]
        files = [path for path in paths if not path.endswith("/")]
        for inner in (path for path in paths if path.endswith("/")):  # other repositories
            files += [os.path.join(at, name) for at, _, ns in os.walk(inner) for name in ns]
        return {path: signature(path) for path in files}

    def _ask(self, *words: str) -> bytes:
        done = self._trees.view.begun(*words, index=self._index, within=self.top)()
        if done.code != 0:
            raise StateError(f"the clean worktree: git {words[0]}: {done.said}", "Try again.")
        return done.output


def _remove(path: str) -> None:
    if os.path.islink(path) or not os.path.isdir(path):
        remove_file(path)
    else:
        shutil.rmtree(path, ignore_errors=True)


@value
class InCleanRoom:
    """A gate that runs in the clean room."""

    gate: Gate
    room: CleanRoom
    always = False

    @property
    def name(self) -> str:
        return self.gate.name

    def executes(self, case: Case) -> bool:
        return executes(self.gate, case)

    def passed_as(self, case: Case) -> str:
        return passed_as(self.gate, case)

    def check(self, case: Case) -> Iterator[Finding]:
        problem = self.room.prepare(case.state.iteration, case.snapshot.stand)
        if problem:
            yield Finding(PROOF, problem)
        else:
            yield from self.gate.check(case)
