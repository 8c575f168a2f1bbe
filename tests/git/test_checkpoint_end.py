"""What is kept for the way back goes when nobody can go back any more; submodules are told."""

import os
from pathlib import Path

import pytest

from kits.work_tree import git, new_repository, state, work_of
from ralph.git.checkpoint.checkpoint import WorkTree
from ralph.journal.journal import JOURNAL, FileJournal
from ralph.kernel.facts import Fact, Settled
from ralph.kernel.ports import Committed
from ralph.kernel.verdict import Reason, Stop


@pytest.fixture
def top(tmp_path: Path) -> Path:
    return new_repository(tmp_path / "top")


def refs(top: Path) -> list[str]:
    return git(top, "for-each-ref", "--format=%(refname)", "refs/ralph").splitlines()


def journal(work: WorkTree, *facts: Fact) -> None:
    file = FileJournal(os.path.join(work.run_dir, JOURNAL))
    for fact in facts:
        file.record(fact)
    file.close()


@pytest.mark.parametrize(
    ("facts", "over"),
    [
        ((Settled(1.0, Stop(Reason.COMPLETED)),), True),
        ((Settled(1.0, Stop(Reason.LIMIT)),), True),
        ((Settled(1.0, Stop(Reason.INTERRUPTED)),), False),
        ((), False),
    ],
)
def test_a_run_that_was_killed_after_its_end_is_swept_by_the_next(
    top: Path, facts: tuple[Fact, ...], *, over: bool
) -> None:
    (top / "mine").write_text("x")
    old = work_of(top, "run-1")
    old.checkpoint()
    journal(old, *facts)
    kept = refs(top)
    assert kept == ["refs/ralph/run-1/checkpoint-1", "refs/ralph/run-1/start"]
    git(top, "update-ref", "refs/ralph/elsewhere/start", "HEAD")
    work_of(top, "run-2")
    mine = ["refs/ralph/elsewhere/start", "refs/ralph/run-2/start"]
    assert refs(top) == sorted(mine if over else [*mine, *kept])
    assert os.path.exists(os.path.join(old.run_dir, "checkpoints")) is not over


def test_a_task_that_is_over_needs_no_checkpoints(top: Path) -> None:
    """Copies of the index are large, and runs are long."""
    (top / "mine").write_text("x")
    work = work_of(top)
    for _ in range(3):
        work.checkpoint()
    work.settled()
    assert len(os.listdir(os.path.join(work.run_dir, "checkpoints"))) == 3
    point, was = work.checkpoint(), state(top)
    assert os.listdir(os.path.join(work.run_dir, "checkpoints")) == ["4"]
    assert refs(top) == ["refs/ralph/run-1/checkpoint-4", "refs/ralph/run-1/start"]
    work.checkpoint()
    (top / "mine").unlink()
    (top / ".env").unlink()
    work.restore(point, "cut-1")
    assert state(top) == was


def test_a_commit_with_our_words_is_not_taken_for_ours(top: Path) -> None:
    work = work_of(top)
    since = work.checkpoint()
    (top / "one").write_text("x")
    git(top, "add", "one")
    words = ("Done", "Ralph-Run: run-1\nRalph-Task: T-1")
    git(top, "commit", "--quiet", "--message", words[0], "--message", words[1])
    forged = git(top, "rev-parse", "HEAD")
    (top / "rest").write_text("x")
    made = work.commit("T-1: x", "T-1", since)
    commit, refusal = made.commit, made.said
    assert refusal == ""
    assert git(top, "rev-parse", "HEAD~1") == forged
    assert git(top, "status", "--porcelain") == ""
    assert work.commit("T-1: x", "T-1", since) == Committed(commit=commit)


def with_library(top: Path) -> Path:
    library = new_repository(top.parent / "library")
    allowed = ("-c", "protocol.file.allow=always")
    git(top, *allowed, "submodule", "--quiet", "add", str(library), "lib")
    git(top, "commit", "--quiet", "--message", "A library")
    return top / "lib"


def test_what_is_changed_inside_a_submodule_is_dirt(top: Path) -> None:
    library = with_library(top)
    assert work_of(top, begun=False).dirty() == ()
    (library / "b").write_text("a person's\n")
    assert work_of(top, begun=False).dirty() == ("lib",)


@pytest.mark.parametrize("dirty", [False, True])
def test_what_a_task_changed_inside_a_submodule_is_told(top: Path, *, dirty: bool) -> None:
    library = with_library(top)
    if dirty:
        (library / "mine").write_text("a person's\n")
    work = work_of(top)
    point = work.checkpoint()
    os.utime(library / "tool")
    work.restore(point, "cut-1")
    assert work.notes() == ()
    (library / "b").write_text("the agent's\n")
    git(library, "add", "b")
    work.restore(point, "cut-1")
    assert work.notes() == ("Not undone: changes inside the submodule lib",)
    assert work.commit("T-1: x", "T-1", point).ok
    assert work.notes() == ("Not committed: changes inside the submodule lib",)
