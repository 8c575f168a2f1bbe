"""The user's index is told of a commit, and of nothing that others do meanwhile."""

from pathlib import Path

import pytest

from kits.work_tree import git, new_repository, work_of
from ralph.git.repository import GitResult, Repository


@pytest.fixture
def top(tmp_path: Path) -> Path:
    return new_repository(tmp_path / "project")


def test_a_mode_that_is_changed_after_the_proof_is_not_staged(top: Path) -> None:
    work = work_of(top)
    since = work.checkpoint()
    (top / "new").write_text("proven\n")
    stand = work.trees.look()
    (top / "new").chmod(0o755)
    assert work.commit("T-1: x", "T-1", since, stand).ok
    assert git(top, "status", "--porcelain") == " M new"


@pytest.mark.parametrize("when", ["before", "meanwhile", "afterwards"])
@pytest.mark.parametrize("change", ["text", "mode", "link", "gone"])
def test_what_is_changed_while_the_index_is_told_is_not_staged(
    top: Path, when: str, change: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if it is as it was by then: git has read something else."""
    work, new = work_of(top), top / "new"
    since = work.checkpoint()
    really = Repository.run

    def put_back() -> None:
        new.unlink(missing_ok=True)
        new.write_text("proven\n")

    def meddle() -> None:
        if change == "mode":
            new.chmod(0o755)
        elif change == "text":
            new.write_text("others\n")
        else:
            new.unlink(missing_ok=True)
        if change == "link":
            new.symlink_to("b")

    def run(self: Repository, *words: str, stdin: bytes = b"", index: str = "") -> GitResult:
        told = words[0] == "update-index" and not index
        if told and when != "afterwards":
            meddle()
        done = really(self, *words, stdin=stdin, index=index)
        if told and when == "meanwhile":
            put_back()
        if told and when == "afterwards":
            meddle()
        return done

    put_back()
    monkeypatch.setattr(Repository, "run", run)
    assert work.commit("T-1: x", "T-1", since).ok
    monkeypatch.undo()
    put_back()
    assert git(top, "diff", "--cached", "--name-status") == ""
    assert git(top, "status", "--porcelain") == ""
