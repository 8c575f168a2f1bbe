"""Whatever an agent does with git, a task's commit leaves a person's work alone (ADR 28)."""

import tempfile
from pathlib import Path

from hypothesis import HealthCheck, example, given, settings
from test_checkpoint_random import STEPS, Step, take

from kits.thorough import examples
from kits.work_tree import files, git, new_repository, work_of
from ralph.git.checkpoint.checkpoint import WorkTree
from ralph.git.checkpoint.work import Checkpoint


def entries(top: Path, work: WorkTree) -> list[str]:
    """What is staged of a person's paths."""
    said = git(top, "ls-files", "--stage", "-z").split("\0")
    return [entry for entry in said if entry.partition("\t")[2] in work.persons_paths]


def brought(work: WorkTree, since: Checkpoint) -> set[str]:
    """The paths of every commit that the task added to its branch."""
    branch = work.repository.resolve(since.branch or "HEAD")
    words = ("log", "--format=", "--name-only", "-z", "--no-renames", "--diff-merges=first-parent")
    without = (f"^{since.head}",) if since.head else ()
    return {*git(work.workspace, *words, branch, *without, "--").split("\0")} if branch else set()


@given(STEPS, STEPS)
@example([("unstage", "a", "a")], [("write", "a/one", "a")])
@example([("write", "c", "a")], [("add", "c", "a"), ("commit", "a", "a")])
@example([("write", "c", "a")], [("branch", "a", "a"), ("add", "c", "a"), ("commit", "a", "a")])
@settings(max_examples=examples(40), suppress_health_check=list(HealthCheck))
def test_a_persons_work_is_in_no_commit(before: list[Step], after: list[Step]) -> None:
    """The issue: "a person's uncommitted files are not part of a task's commit"."""
    with tempfile.TemporaryDirectory() as place:
        top = new_repository(Path(place, "top"))
        for number, step in enumerate(before):
            take(top, number, *step)
        work = work_of(top)
        since, staged = work.checkpoint(), entries(top, work)
        if git(top, "ls-files", "--unmerged"):
            return  # no run begins here
        for number, step in enumerate(after, 100):
            take(top, number, *step)
        if git(top, "ls-files", "--unmerged"):
            return
        left = files(top)
        refusal = work.commit("T-1: x", "T-1", since).said
        assert refusal == ""
        assert files(top) == left
        assert not work.persons_paths & brought(work, since)
        if any("committed what you had not" in note for note in work.notes()):
            assert entries(top, work) == staged
