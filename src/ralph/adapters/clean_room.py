"""A fresh worktree in which gates run on the proven tree and nothing else (`proof: "clean"`).

What they write there is thrown away: before each of them the room is put back to the tree. Files
that git ignores come from the setup command alone.
"""

import os
import shutil
from collections.abc import Callable, Iterator, Mapping

from ralph.adapters.git_trees import GitTrees
from ralph.adapters.process import Command, Starter
from ralph.core.case import Case
from ralph.core.gates import Finding
from ralph.core.proof import GATE, Stand
from ralph.core.value import value
from ralph.core.verdict import Cut
from ralph.errors import StateError
from ralph.ports import Gate

DIRECTORY = "clean"  # in a run's directory


class CleanRoom:
    """The room of a run. `setup` prepares it, and may say what is missing."""

    def __init__(self, trees: GitTrees, setup: Callable[[str], str]) -> None:
        self._trees, self._setup = trees, setup
        self.top = os.path.join(trees.run_dir, DIRECTORY)
        inner = os.path.relpath(trees.workspace, trees.repository.place.top)
        self.workspace = os.path.normpath(os.path.join(self.top, inner))
        self._for: tuple[int, str] | None = None  # the iteration and the tree that it was made for

    def prepare(self, iteration: int, stand: Stand) -> str:
        """Let the room hold the stand's tree; what is wrong with it, "" if nothing."""
        tree = self._trees.commit_tree(stand)
        if self._for == (iteration, tree):
            self._put_back(tree)
            return ""
        self.close()
        self._make(tree, stand.head)
        problem = self._setup(self.workspace)
        if not problem:
            self._put_back(tree)
            self._for = iteration, tree
        return problem

    def close(self) -> None:
        """Leave nothing behind."""
        self._for = None
        shutil.rmtree(f"{self.top}-layers", ignore_errors=True)
        if os.path.lexists(self.top):
            self._trees.repository.run("worktree", "remove", "--force", "--force", self.top)
            shutil.rmtree(self.top, ignore_errors=True)
            self._trees.repository.run("worktree", "prune")

    def _make(self, tree: str, head: str) -> None:
        git = self._trees.repository
        parent = ("-p", head) if head else ()
        commit = git.identifier("commit-tree", tree, *parent, stdin=b"ralph: what is proven\n")
        words = ("worktree", "add", "--quiet", "--detach", "--no-checkout", "--force")
        git.ask(*words, self.top, commit)
        self._put_back(tree)
        os.makedirs(self.workspace, exist_ok=True)

    def _put_back(self, tree: str) -> None:
        view, index = self._trees.view, os.path.join(self._git_dir(), "index")
        for words in (("read-tree", "--reset", "-u", tree), ("clean", "-ffdq")):
            done = view.within(self.top, *words, index=index)
            if done.code != 0:
                raise StateError(f"the clean worktree: git {words[0]}: {done.said}", "Try again.")

    def _git_dir(self) -> str:
        with open(os.path.join(self.top, ".git"), encoding="utf-8") as file:
            return file.read().removeprefix("gitdir: ").strip()


@value
class InCleanRoom:
    """A gate that runs there."""

    gate: Gate
    room: CleanRoom
    always = False

    @property
    def name(self) -> str:
        """That of the gate."""
        return self.gate.name

    def executes(self, case: Case) -> bool:
        """As the gate itself."""
        said: Callable[[Case], bool] | None = getattr(self.gate, "executes", None)
        return said is None or said(case)

    def check(self, case: Case) -> Iterator[Finding]:
        """What the gate finds, or what keeps the room from being made."""
        problem = self.room.prepare(case.state.iteration, case.snapshot.stand)
        if problem:
            yield Finding(GATE, problem)
        else:
            yield from self.gate.check(case)


@value
class Setup:
    """Runs `loop.setup` in a new worktree."""

    line: str | None
    environ: Mapping[str, str]
    run_dir: str
    start: Starter
    watch: Callable[[], Cut | None]

    def __call__(self, workspace: str) -> str:
        """What is missing afterwards; "" if nothing."""
        if self.line is None:
            return ""
        log = os.path.join(self.run_dir, "clean-setup.log")
        with open(log, "w+b") as file:
            command = Command(("sh", "-c", self.line), workspace, self.environ)
            ended = self.start(command, log=file).wait(self.watch)
            file.seek(max(0, file.seek(0, os.SEEK_END) - 2000))
            said = file.read().decode("utf-8", "replace").strip()
        if ended.code == 0 and ended.cut is None:
            return ""
        how = ended.cut.why if ended.cut else f"exit code {ended.code}"
        return f"loop.setup failed in a clean worktree ({how}):\n{said}"
