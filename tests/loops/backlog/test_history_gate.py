"""The history of a task's turn: commits of others stay on the branch, and git is in the middle of
nothing (ADR 28)."""

from pathlib import Path

import pytest

from kits.work_tree import git, new_repository, work_of
from ralph.kernel.case import Case
from ralph.kernel.state import RunState
from ralph.kernel.verdict import Boundary
from ralph.loops.backlog.gates.history import HistoryGate


class Judged:
    """A repository, and what the gate says of a task that began now."""

    def __init__(self, top: Path) -> None:
        self.top, self.work = top, work_of(top)
        self.state = RunState(task_checkpoint=self.work.checkpoint().text())

    def found(self) -> list[str]:
        self.work.look()  # as the gates' proof does
        case = Case(Boundary.CLOSING, self.state, 0.0)
        return [finding.text for finding in HistoryGate(self.work).check(case)]


@pytest.fixture
def judged(tmp_path: Path) -> Judged:
    return Judged(new_repository(tmp_path / "top"))


def test_commits_on_top_are_the_tasks_own(judged: Judged) -> None:
    (judged.top / "new").write_text("x")
    git(judged.top, "add", "new")
    git(judged.top, "commit", "--quiet", "--message", "The agent's")
    assert judged.found() == []


@pytest.mark.parametrize(
    "words",
    [("commit", "--quiet", "--amend", "--message", "Other"), ("switch", "--orphan", "other")],
    ids=["amended", "another history"],
)
def test_commits_of_before_may_not_leave_the_branch(judged: Judged, words: tuple[str, ...]) -> None:
    """The words say how to go back, and nothing of the work is lost by it."""
    head = git(judged.top, "rev-parse", "HEAD")
    git(judged.top, *words)
    (found,) = judged.found()
    assert found.endswith(f"gone from the branch. Go back: git reset --soft {head}")


def test_a_merge_must_be_ended(judged: Judged) -> None:
    git(judged.top, "switch", "--quiet", "-c", "other")
    (judged.top / "new").write_text("x")
    git(judged.top, "add", "new")
    git(judged.top, "commit", "--quiet", "--message", "Other")
    git(judged.top, "switch", "--quiet", "main")
    git(judged.top, "merge", "--quiet", "--no-ff", "--no-commit", "other")
    assert judged.found() == ["Git is in the middle of a merge. End it, or abort it."]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (">>>>>>> ralph/T-2\n", ["conflicts are left in code: resolve them."]),
        (f">>>>>>> {'0a' * 20}\n", ["conflicts are left in code: resolve them."]),
        (">>>>>>> main\n", []),
        ("Quote\n=======\n", []),
    ],
)
def test_conflicts_that_ralph_has_written_must_be_resolved(
    judged: Judged, text: str, found: list[str]
) -> None:
    """They may come back from a run that was killed; others' markers may be a document's own."""
    (judged.top / "code").write_text(f"one\n{text}")
    assert judged.found() == found


def test_outside_a_task_there_is_nothing_to_compare(judged: Judged) -> None:
    judged.state = RunState()
    git(judged.top, "switch", "--quiet", "--orphan", "other")
    assert judged.found() == []
