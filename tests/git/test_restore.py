"""The way back to a checkpoint: what is kept of what stood there, and a person's files that come
back when a task is done (B §Rollback). What comes back is in test_checkpoint*.py."""

from collections.abc import Callable
from pathlib import Path

import pytest

from kits.work_tree import git, new_repository, saved, state, work_of
from ralph.errors import StateError
from ralph.git.checkpoint import restore
from ralph.git.checkpoint.checkpoint import WorkTree
from ralph.git.checkpoint.files import FileRestore
from ralph.git.checkpoint.head import put_head_back
from ralph.git.checkpoint.restore import Restore, give_back
from ralph.git.checkpoint.work import Checkpoint
from ralph.git.repository import Repository
from ralph.git.status import TreeStatus

CUT = "refs/ralph/run-1/cut-1"


@pytest.fixture
def top(tmp_path: Path) -> Path:
    return new_repository(tmp_path / "top")


# ------------------------------------------------------------------ others at the same time


def committing(top: Path, times: int) -> Callable[..., bool]:
    """Somebody commits right before HEAD is put back, so many times."""
    left = iter(range(times))

    def put_back(repository: Repository, to: Checkpoint, seen: TreeStatus, tip: str) -> bool:
        if (number := next(left, None)) is not None:
            git(top, "commit", "--quiet", "--allow-empty", "--message", f"Mine {number}")
        return put_head_back(repository, to, seen, tip)

    return put_back


def test_a_commit_that_comes_in_between_is_kept_too(
    top: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ "before any restore, what stood there is saved": nobody's commit is lost to a race."""
    work = work_of(top)
    to, before = work.checkpoint(), state(top)
    (top / "b").write_text("changed\n")
    git(top, "commit", "--quiet", "--all", "--message", "The agent's")
    monkeypatch.setattr(restore, "put_head_back", committing(top, 1))
    assert work.restore(to, "cut-1") == f"{CUT}.1"
    assert state(top) == before
    assert git(top, "log", "-1", "--format=%s", f"{CUT}.1^1") == "Mine 0"
    assert (git(top, "show", f"{CUT}:b"), git(top, "show", f"{CUT}.1:b")) == ("changed", "changed")


def test_a_persons_first_commit_in_between_is_kept_too(
    top: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """HEAD had not moved before it."""
    work = work_of(top)
    to, before = work.checkpoint(), state(top)
    (top / "b").write_text("changed\n")
    monkeypatch.setattr(restore, "put_head_back", committing(top, 1))
    assert work.restore(to, "cut-1") == f"{CUT}.1"
    assert state(top) == before
    assert git(top, "log", "-1", "--format=%s", f"{CUT}.1^1") == "Mine 0"


def test_who_never_stops_committing_is_not_fought(
    top: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error names what is kept, and how to go back by hand; no commit is undone."""
    work = work_of(top)
    to = work.checkpoint()
    (top / "b").write_text("changed\n")
    git(top, "commit", "--quiet", "--all", "--message", "The agent's")
    monkeypatch.setattr(restore, "put_head_back", committing(top, 99))
    with pytest.raises(StateError, match="others commit here at the same time") as error:
        work.restore(to, "cut-1")
    assert error.value.message.endswith(f"what stood there is kept in {CUT}.2")
    assert f"--source={to.tree}" in error.value.remedy
    assert git(top, "rev-list", "--count", f"{to.head}..HEAD") == "4"
    monkeypatch.undo()
    assert work.restore(to, "cut-1") == f"{CUT}.3"
    assert (top / "b").read_text() == "b\n"


# ------------------------------------------------------------------ what is kept


def test_the_same_state_is_kept_once(top: Path) -> None:
    """A restore that is called again finds its own."""
    work = work_of(top)
    to = work.checkpoint()
    for text in ("one\n", "one\n", "two\n"):
        (top / "b").write_text(text)
        work.restore(to, "cut-1")
    refs = git(top, "for-each-ref", "--format=%(refname)", f"{CUT}*").splitlines()
    assert refs == [CUT, f"{CUT}.1"]
    assert [git(top, "show", f"{ref}:b") for ref in refs] == ["one", "two"]
    assert work.restore(to, "cut-1") == f"{CUT}.1", "nothing was left to do"


def test_what_the_agents_own_rules_hid_is_kept_and_removed(top: Path) -> None:
    """It comes to light when the rules of before are back, and is added to what was saved."""
    work = work_of(top)
    to, before = work.checkpoint(), state(top)
    (top / ".gitignore").write_text((top / ".gitignore").read_text() + "hidden\n")
    (top / "hidden").write_text("of the turn\n")
    own = top / ".git" / "info" / "exclude"
    rules = own.read_text()
    own.write_text("deeper\n")
    (top / "deeper").write_text("of the turn too\n")
    assert work.restore(to, "cut-1") == CUT
    assert (state(top), own.read_text()) == (before, rules)
    assert not any((top / name).exists() for name in ("hidden", "deeper"))
    assert {"hidden", "deeper"} <= saved(top, CUT).keys()
    assert (top / ".env").exists(), "what was ignored at the checkpoint is not touched"


def test_who_is_killed_when_that_comes_to_light_adds_it(
    top: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One restore is one ref: people look into that."""
    work = work_of(top)
    to, before = work.checkpoint(), state(top)
    (top / ".gitignore").write_text((top / ".gitignore").read_text() + "hidden\n")
    (top / "hidden").write_text("of the turn\n")

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Restore, "_save_also", killed)
        with pytest.raises(KeyboardInterrupt):
            work.restore(to, "cut-1")
    assert "hidden" not in saved(top, CUT)
    assert work.restore(to, "cut-1") == CUT
    assert "hidden" in saved(top, CUT)
    assert state(top) == before


def test_what_the_agent_has_staged_is_not_staged_any_more(top: Path) -> None:
    """Though every file is as it was."""
    work = work_of(top)
    to, before = work.checkpoint(), state(top)
    git(top, "rm", "--quiet", "--cached", "b")
    assert work.restore(to, "cut-1")
    assert state(top) == before


def test_a_link_that_git_ignores_is_not_followed(top: Path) -> None:
    """What stands behind it may be anybody's."""
    (top / ".gitignore").write_text("kept\n")
    (top / "kept").mkdir()
    (top / "kept" / "one").write_text("one\n")
    git(top, "add", "--force", "--all")
    git(top, "commit", "--quiet", "--message", "Kept, though ignored")
    work = work_of(top)
    to, before = work.checkpoint(), state(top)
    elsewhere = top.parent / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "one").write_text("somebody's\n")
    (top / "kept" / "one").unlink()
    (top / "kept").rmdir()
    (top / "kept").symlink_to(elsewhere)
    work.restore(to, "cut-1")
    assert (elsewhere / "one").read_text() == "somebody's\n"
    assert state(top) == before


def test_an_error_says_what_is_kept_and_where(top: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that is full in the middle costs nothing: the next one goes on."""
    work = work_of(top)
    to, before = work.checkpoint(), state(top)
    (top / "b").write_text("changed\n")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device", str(top / "b"))

    with monkeypatch.context() as patched:
        patched.setattr(restore, "put_index_back", full)
        with pytest.raises(StateError, match="No space left on device") as error:
            work.restore(to, "cut-1")
    assert error.value.message.endswith(f"; what stood there is kept in {CUT}")
    assert work.restore(to, "cut-1") == CUT
    assert state(top) == before


# ------------------------------------------------------------------ a person's files


class Desk:
    """A run that began with a person's uncommitted changes, and a task of it that is done."""

    def __init__(self, top: Path) -> None:
        self.top = top
        (top / "b").write_text("a person's\n")
        (top / "mine").write_text("a person's too\n")
        self.work: WorkTree = work_of(top)
        self.since = self.work.checkpoint()

    def read(self, *names: str) -> list[str]:
        return [(self.top / name).read_text() for name in names]


@pytest.fixture
def desk(top: Path) -> Desk:
    return Desk(top)


def test_a_persons_files_are_as_before_the_task(desk: Desk) -> None:
    """What the task made of them is kept; its own files stay."""
    (desk.top / "b").write_text("by the task\n")
    (desk.top / "mine").unlink()
    (desk.top / "new").write_text("by the task\n")
    ref, paths = give_back(desk.work, desk.since, "left-1")
    assert (ref, paths) == ("refs/ralph/run-1/left-1", ("b", "mine"))
    assert desk.read("b", "mine", "new") == ["a person's\n", "a person's too\n", "by the task\n"]
    assert git(desk.top, "show", f"{ref}:b") == "by the task"


def test_files_that_were_left_alone_are_none(desk: Desk) -> None:
    (desk.top / "new").write_text("by the task\n")
    assert give_back(desk.work, desk.since, "left-1") == ("", ())
    assert git(desk.top, "for-each-ref", "refs/ralph/run-1/left-1") == ""


def test_who_is_killed_in_it_keeps_what_stood_there_first(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    (desk.top / "b").write_text("by the task\n")
    (desk.top / "mine").write_text("by the task\n")

    def killed(*_: object) -> None:
        (desk.top / "b").write_text("a person's\n")
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(FileRestore, "put_back", killed)
        with pytest.raises(KeyboardInterrupt):
            give_back(desk.work, desk.since, "left-1")
    ref, paths = give_back(desk.work, desk.since, "left-1")
    assert (paths, desk.read("b", "mine")) == (("mine",), ["a person's\n", "a person's too\n"])
    assert git(desk.top, "show", f"{ref}:b") == "by the task"
