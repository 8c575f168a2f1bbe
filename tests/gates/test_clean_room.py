"""A fresh worktree in which gates run on the proven tree and nothing else (`proof: "clean"`)."""

from collections.abc import Callable
from pathlib import Path

import pytest

from kits.work_tree import git, new_repository, work_of
from ralph.gates.clean_room import CleanRoom, InCleanRoom
from ralph.kernel.case import Case
from ralph.kernel.findings import PROOF
from ralph.kernel.state import NEW
from ralph.kernel.value import replace
from ralph.kernel.verdict import Boundary
from ralph.kernel.world import Snapshot
from ralph.testing.fakes import FakeGate


class Stage:
    """A repository with a run in it, its room, and a setup that installs one file."""

    def __init__(self, tmp_path: Path) -> None:
        self.top = new_repository(tmp_path / "top")
        self.trees = work_of(self.top).trees
        self.setups, self.problem = 0, ""
        self.room = CleanRoom(self.trees, self.setup)
        self.there = Path(self.room.workspace)

    def setup(self, workspace: str) -> str:
        self.setups += 1
        Path(workspace, "build").mkdir(exist_ok=True)
        Path(workspace, "build", "installed").write_text("installed\n")
        return self.problem

    def prepared(self, iteration: int = 1) -> str:
        return self.room.prepare(iteration, self.trees.look())

    def files(self) -> set[str]:
        found = (path.relative_to(self.there) for path in self.there.rglob("*"))
        return {
            str(path) for path in found if (self.there / path).is_file() and path.name != ".git"
        }


TREE = {".gitignore", "a/one", "b", "tool", "link"}


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


def test_the_room_holds_the_proven_tree_and_what_was_installed(stage: Stage) -> None:
    """New files are there though nobody has committed them; ignored ones are not."""
    (stage.top / "new").write_text("of the turn\n")
    assert stage.prepared() == ""
    assert stage.files() == TREE | {"new", "build/installed"}
    assert git(stage.there, "status", "--porcelain") == ""
    stage.room.close()
    assert not stage.there.exists()
    assert len(git(stage.top, "worktree", "list").splitlines()) == 1


def write_over(there: Path) -> None:
    (there / "b").write_text("by a gate\n")


def add(there: Path) -> None:
    (there / "report").write_text("by a gate\n")


def hide(there: Path) -> None:
    (there / "hidden.log").write_text("by a gate\n")


def stage_it(there: Path) -> None:
    git(there, "rm", "--quiet", "--cached", "b")


def commit(there: Path) -> None:
    (there / "b").write_text("by a gate\n")
    git(there, "commit", "--quiet", "--all", "--message", "by a gate")


def unhook(there: Path) -> None:
    (there / ".git").unlink()


@pytest.mark.parametrize("do", [write_over, add, hide, stage_it, commit, unhook])
def test_what_a_gate_writes_is_not_there_for_the_next(
    stage: Stage, do: Callable[[Path], None]
) -> None:
    """And nothing is installed anew for that."""
    assert stage.prepared() == ""
    before = stage.files()
    do(stage.there)
    assert stage.prepared() == ""
    assert (stage.files(), (stage.there / "b").read_text()) == (before, "b\n")
    assert git(stage.there, "status", "--porcelain") == ""
    assert stage.setups == 1


def test_what_was_installed_is_installed_anew_if_a_gate_has_changed_it(stage: Stage) -> None:
    stage.prepared()
    (stage.there / "build" / "installed").write_text("by a gate\n")
    assert stage.prepared() == ""
    assert (stage.there / "build" / "installed").read_text() == "installed\n"
    assert stage.setups == 2


@pytest.mark.parametrize("other", ["iteration", "tree"])
def test_each_iteration_and_each_tree_has_a_fresh_one(stage: Stage, other: str) -> None:
    stage.prepared()
    if other == "tree":
        (stage.top / "b").write_text("of the turn\n")
    assert stage.prepared(2 if other == "iteration" else 1) == ""
    assert stage.setups == 2
    assert (stage.there / "b").read_text() == (stage.top / "b").read_text()


def test_a_setup_that_fails_is_an_objection_and_tried_again(stage: Stage) -> None:
    stage.problem = "the setup failed"
    ran: list[str] = []
    gate = InCleanRoom(FakeGate(during=lambda _: ran.append("ran")), stage.room)
    case = Case(Boundary.CLOSING, NEW, 0.0, snapshot=Snapshot(stand=stage.trees.look()))
    (found,) = gate.check(replace(case, state=replace(NEW, iteration=1)))
    assert (found.gate, found.text, ran) == (PROOF, "the setup failed", [])
    stage.problem = ""
    assert list(gate.check(case)) == []
    assert (ran, stage.setups) == (["ran"], 2)
