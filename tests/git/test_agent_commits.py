"""An agent that commits by itself: a person's files stay out, the branch gets the work (ADR 28)."""

import os
import subprocess
from pathlib import Path

import pytest

from kits.thorough import dealt
from kits.work_tree import git, new_repository, saved, state, work_of
from ralph.errors import StateError
from ralph.git.checkpoint import head
from ralph.git.checkpoint.checkpoint import WorkTree
from ralph.git.checkpoint.work import Checkpoint


@pytest.fixture
def top(tmp_path: Path) -> Path:
    return new_repository(tmp_path / "top")


def dirty(top: Path) -> None:
    """A person's work: changed, staged, staged and changed, new, deleted."""
    (top / "a" / "one").write_text("a person's\n")
    (top / "staged").write_text("staged\n")
    git(top, "add", "staged")
    (top / "both").write_text("one\n")
    git(top, "add", "both")
    (top / "both").write_text("two\n")
    (top / "untracked").write_text("new\n")
    (top / "tool").unlink()


def agent_commits(top: Path, name: str = "new") -> str:
    (top / name).write_text("the agent's\n")
    git(top, "add", "--all")
    git(top, "commit", "--quiet", "--message", f"agent: {name}")
    return git(top, "rev-parse", "HEAD")


def committed(top: Path) -> list[str]:
    words = ("diff-tree", "--root", "-r", "-z", "--name-only", "--no-commit-id", "--no-renames")
    return sorted(git(top, *words, "HEAD").split("\0")[:-1])


def subjects(top: Path, branch: str = "main") -> list[str]:
    return git(top, "log", "--format=%s", branch).splitlines()


def dirt_of(top: Path) -> list[str]:
    return sorted(git(top, "status", "--porcelain", "-z", "--untracked-files=all").split("\0"))


def test_a_persons_files_that_an_agent_committed_are_as_before(top: Path) -> None:
    """ "With `--allow-dirty` a person's uncommitted files are not part of a task's commit"."""
    dirty(top)
    work = work_of(top)
    since, before = work.checkpoint(), state(top)
    dirt = dirt_of(top)
    agent_commits(top, "new")
    last = agent_commits(top, "newer")
    (top / "rest").write_text("not committed\n")
    assert work.commit("T-1: x", "T-1", since).said == ""
    assert subjects(top) == ["T-1: x", "Begin"]
    assert committed(top) == ["new", "newer", "rest"]
    assert dirt_of(top) == dirt
    files = before["files"]
    assert {name: state(top)["files"][name] for name in files} == files
    (note,) = work.notes()
    for word in ("a/one", "untracked", "refs/ralph/run-1/commits-1"):
        assert word in note
    assert git(top, "rev-parse", "refs/ralph/run-1/commits-1") == last
    assert work.left_out == ()


def test_a_persons_file_that_the_agent_changed_too_stays_as_it_is_now(top: Path) -> None:
    dirty(top)
    work = work_of(top)
    since = work.checkpoint()
    (top / "both").write_text("the agent's\n")
    (top / "untracked").unlink()
    agent_commits(top)
    assert work.commit("T-1: x", "T-1", since).said == ""
    assert committed(top) == ["new"]
    assert (top / "both").read_text() == "the agent's\n"
    assert git(top, "show", ":both") == "one"
    assert work.left_out == ("both", "untracked")


def test_commits_without_a_persons_files_stay(top: Path) -> None:
    dirty(top)
    work = work_of(top)
    since, dirt = work.checkpoint(), dirt_of(top)
    (top / "new").write_text("x")
    git(top, "add", "new")
    git(top, "commit", "--quiet", "--message", "agent", "--only", "new")
    (top / "rest").write_text("x")
    assert work.commit("T-1: x", "T-1", since).said == ""
    assert subjects(top) == ["T-1: x", "agent", "Begin"]
    assert dirt_of(top) == dirt
    assert work.notes() == ()


def test_an_amended_commit_of_a_person_is_as_before(top: Path) -> None:
    dirty(top)
    work = work_of(top)
    since = work.checkpoint()
    git(top, "commit", "--quiet", "--all", "--amend", "--message", "amended")
    (top / "new").write_text("x")
    assert work.commit("T-1: x", "T-1", since).said == ""
    assert subjects(top) == ["T-1: x", "Begin"]
    assert committed(top) == ["new"]


def test_the_first_commits_of_a_repository_too(tmp_path: Path) -> None:
    top = tmp_path / "top"
    top.mkdir()
    git(top, "init", "--quiet", "--initial-branch=main")
    git(top, "config", "user.name", "x")
    git(top, "config", "user.email", "x@y")
    (top / "mine").write_text("x")
    work = work_of(top)
    since = work.checkpoint()
    agent_commits(top)
    assert work.commit("T-1: x", "T-1", since).said == ""
    assert subjects(top) == ["T-1: x"]
    assert committed(top) == ["new"]
    assert dirt_of(top) == ["", "?? mine"]


@pytest.mark.parametrize("mine", [False, True])
@pytest.mark.parametrize("how", [("-b", "feature"), ("--detach",), ("--orphan", "feature")])
def test_the_branch_of_before_gets_the_work(top: Path, how: tuple[str, ...], *, mine: bool) -> None:
    """An agent that makes a branch of its own: the task's commit is where the run began."""
    if mine:
        (top / "mine").write_text("a person's\n")
    work = work_of(top)
    since = work.checkpoint()
    git(top, "checkout", "--quiet", *how)
    if "--orphan" not in how:
        agent_commits(top)
    (top / "rest").write_text("x")
    assert work.commit("T-1: x", "T-1", since).said == ""
    assert git(top, "symbolic-ref", "HEAD") == "refs/heads/main"
    assert "rest" in committed(top)
    assert subjects(top)[0] == "T-1: x"
    assert subjects(top)[-1] == "Begin"
    assert "mine" not in saved(top, "HEAD")
    assert len(work.notes()) == 1
    assert dirt_of(top) == (["", "?? mine"] if mine else [""])


def test_a_branch_that_went_another_way_is_left_alone(top: Path) -> None:
    """Going back would take something from one of them."""
    work = work_of(top)
    since = work.checkpoint()
    agent_commits(top, "on-main")
    git(top, "checkout", "--quiet", "-b", "feature", "HEAD~1")
    agent_commits(top, "on-feature")
    (top / "rest").write_text("x")
    assert work.commit("T-1: x", "T-1", since).said == ""
    assert subjects(top, "feature") == ["T-1: x", "agent: on-feature", "Begin"]
    assert subjects(top, "main") == ["agent: on-main", "Begin"]
    assert work.notes() == (
        "The task is committed where the agent went: on feature and not on main.",
    )


def test_who_began_on_no_branch_is_left_on_the_agents(top: Path) -> None:
    git(top, "checkout", "--quiet", "--detach")
    work = work_of(top)
    since = work.checkpoint()
    git(top, "checkout", "--quiet", "-b", "feature")
    (top / "new").write_text("x")
    assert work.commit("T-1: x", "T-1", since).said == ""
    assert subjects(top, "feature") == ["T-1: x", "Begin"]
    assert "on feature" in work.notes()[0]


@pytest.mark.parametrize("number", dealt(range(1, 14), 5))
def test_a_killed_commit_is_called_again(top: Path, number: int) -> None:
    """Whatever call of git was the last: one commit, and a person's files as before."""
    dirty(top)
    work = work_of(top)
    since, dirt = work.checkpoint(), dirt_of(top)
    agent_commits(top)
    environ = {**os.environ, "PATH": f"{_dying(top.parent, number)}:{os.environ['PATH']}"}
    killed = WorkTree(str(top), environ, work.run_dir)
    try:
        killed.commit("T-1: x", "T-1", since)
    except (AssertionError, StateError):
        pass
    assert WorkTree(str(top), os.environ, work.run_dir).commit("T-1: x", "T-1", since).said == ""
    assert subjects(top) == ["T-1: x", "Begin"]
    assert committed(top) == ["new"]
    assert dirt_of(top) == dirt
    assert git(top, "show", "refs/ralph/run-1/commits-1:new") == "the agent's"


def _dying(place: Path, number: int) -> Path:
    """A git that fails from that call on."""
    tools = place / "bin"
    tools.mkdir()
    real = subprocess.run(["which", "git"], capture_output=True, check=True, text=True).stdout
    (tools / "git").write_text(
        f'#!/bin/sh\necho >> "{place}/calls"\n'
        f'[ $(wc -l < "{place}/calls") -ge {number} ] && exit 3\nexec {real.strip()} "$@"\n'
    )
    (tools / "git").chmod(0o755)
    return tools


def test_a_branch_that_moved_meanwhile_is_saved_first(
    top: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A commit between the look and the way back is not lost."""
    work = work_of(top)
    point = work.checkpoint()
    agent_commits(top, "one")
    moved: list[str] = []
    really = head.move

    def later(repository: object, ref: str, new: str, old: str) -> bool:
        if not moved:
            moved.append(agent_commits(top, "two"))
        return really(work.repository, ref, new, old)

    monkeypatch.setattr(head, "move", later)
    ref = work.restore(point, "cut-1")
    git(top, "merge-base", "--is-ancestor", moved[0], ref)
    assert isinstance(point, Checkpoint)
    assert git(top, "rev-parse", "HEAD") == point.head


def test_a_branch_that_the_agent_deleted_is_committed_on(top: Path) -> None:
    """The task's commit is never the first of a branch that had others."""
    work = work_of(top)
    since = work.checkpoint()
    git(top, "update-ref", "-d", "refs/heads/main")
    (top / "new").write_text("x")
    assert work.commit("T-1: x", "T-1", since).said == ""
    assert subjects(top) == ["T-1: x", "Begin"]
    assert committed(top) == ["new"]
    assert work.notes() == ("The agent deleted main: it was brought back.",)


def test_commits_that_the_agent_rewrote_are_kept(top: Path) -> None:
    """That may be the task: it stays so, and what was there can be found."""
    work = work_of(top)
    since = work.checkpoint()
    git(top, "commit", "--quiet", "--amend", "--message", "Another beginning")
    (top / "new").write_text("x")
    assert work.commit("T-1: x", "T-1", since).said == ""
    assert subjects(top) == ["T-1: x", "Another beginning"]
    assert git(top, "rev-parse", "refs/ralph/run-1/commits-1") == since.head
    (note,) = work.notes()
    assert "rewrote the commits of main" in note


def test_ralphs_files_that_an_agent_committed_are_as_before(top: Path) -> None:
    (top / "mine").write_text("a person's\n")
    (top / ".ralph").mkdir()
    for name in ("tasks.jsonl", "settings.json"):
        (top / ".ralph" / name).write_text("{}\n")
    work = work_of(top)
    since = work.checkpoint()
    agent_commits(top)
    assert work.commit("T-1: x", "T-1", since).said == ""
    assert committed(top) == [".ralph/tasks.jsonl", "new"]
    assert dirt_of(top) == ["", "?? .ralph/settings.json", "?? mine"]
