"""Checkpoints by git: what a run takes before each turn, and how it goes back (B §Rollback)."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from kits.work_tree import files, git, new_repository, saved, state, work_of
from ralph.errors import ConfigError, StateError
from ralph.git.checkpoint import files as checkpoint_files
from ralph.git.checkpoint.checkpoint import WorkTree
from ralph.git.checkpoint.files import put_index_back
from ralph.git.checkpoint.work import Checkpoint
from ralph.git.under_way import check


@pytest.fixture
def top(tmp_path: Path) -> Path:
    return new_repository(tmp_path / "top")


def test_a_checkpoint_goes_through_the_journal() -> None:
    point = Checkpoint("a", "refs/heads/ä\udcff", "b", "/run/checkpoints/1/index")
    assert Checkpoint.of(point.text()) == point
    assert "\n" not in point.text()
    assert Checkpoint.of("") is None


def test_nothing_changed_is_nothing_to_restore(top: Path) -> None:
    work = work_of(top)
    point = work.checkpoint()
    assert point.tree == work.tree() == git(top, "rev-parse", "HEAD^{tree}")
    os.utime(top / "b")
    git(top, "status")
    (top / "build" / "more").write_text("ignored")
    assert work.delta(point) == {}
    assert work.restore(point, "cut-1") == ""
    assert git(top, "for-each-ref", "refs/ralph") == ""


def test_what_changed_is_told_by_its_path(top: Path) -> None:
    """The issue: "`filesystemDelta` says added/modified/deleted"; a mode is modified."""
    work = work_of(top)
    point = work.checkpoint()
    (top / "new\nline").write_text("x")
    Path(os.fsdecode(bytes(top / "z") + b"\xff")).write_text("x")
    (top / "tool").chmod(0o644)
    (top / "b").unlink()
    (top / ".ralph").mkdir()
    (top / ".ralph" / "tasks.jsonl").write_text("{}")
    assert work.delta(point) == {
        "b": "deleted",
        "new\nline": "added",
        "tool": "modified",
        "z\udcff": "added",
    }


def test_dirty_names_what_is_not_committed(top: Path) -> None:
    """The issue: "refuse a dirty tree with the list"; Ralph's files never make a tree dirty."""
    inner = top / "a"
    (inner / ".ralph").mkdir()
    (inner / ".ralph" / "tasks.jsonl").write_text("{}")
    assert work_of(inner, begun=False).dirty() == ()
    (top / "b").write_text("changed")
    (inner / "new").write_text("x")
    git(top, "rm", "--quiet", "--cached", "tool")
    git(top, "init", "--quiet", "vendor")
    found = work_of(inner, begun=False).dirty()
    assert found == ("new", "../b", "../tool", "../vendor")


def merge(top: Path) -> None:
    git(top, "checkout", "--quiet", "-b", "other")
    (top / "b").write_text("other\n")
    git(top, "commit", "--quiet", "--all", "--message", "other")
    git(top, "checkout", "--quiet", "main")
    (top / "b").write_text("mine\n")
    git(top, "commit", "--quiet", "--all", "--message", "mine")


def begun(*words: str) -> Callable[[Path], None]:
    def begin(top: Path) -> None:
        merge(top)
        subprocess.run(["git", *words], cwd=top, capture_output=True, check=False)

    return begin


def bisect(top: Path) -> None:
    merge(top)
    git(top, "bisect", "start", "HEAD", "HEAD~1")


def apply_mail(top: Path) -> None:
    merge(top)
    git(top, "format-patch", "--quiet", "-1", "-o", ".git/mail", "other")
    mail = next((top / ".git" / "mail").iterdir())
    subprocess.run(["git", "am", str(mail)], cwd=top, capture_output=True, check=False)


MIDDLES = {
    "merge": begun("merge", "other"),
    "rebase": begun("rebase", "other"),
    "rebase by apply": begun("rebase", "--apply", "other"),
    "cherry-pick": begun("cherry-pick", "other"),
    "revert": begun("revert", "--no-edit", "HEAD~1..HEAD", "other"),
    "bisect": bisect,
    "am": apply_mail,
}


@pytest.mark.parametrize("name", MIDDLES)
def test_what_an_agent_left_in_the_middle_is_ended(top: Path, name: str) -> None:
    (top / "mine").write_text("a person's\n")
    work = work_of(top)
    point, was = work.checkpoint(), state(top)
    MIDDLES[name](top)
    with pytest.raises(ConfigError, match="in the middle of"):
        check(work_of(top, "another", begun=False).repository)
    assert work.restore(point, "cut-1") == "refs/ralph/run-1/cut-1"
    assert state(top) == was
    check(work_of(top, "another", begun=False).repository)
    assert git(top, "for-each-ref", "refs/bisect") == ""
    (top / "new").write_text("x")
    assert work.commit("T-1: x", "T-1", point).said == ""


@pytest.mark.parametrize(
    ("prepare", "message"),
    [
        (("rm", "-rf", ".git"), "in no git repository"),
        (("git", "config", "core.bare", "true"), "without files"),
        (("touch", ".git/index.lock"), "another git is at work"),
        (("git", "config", "user.useConfigOnly", "true"), "who commits"),
    ],
)
def test_a_place_without_a_way_back_is_refused(
    top: Path, prepare: tuple[str, ...], message: str
) -> None:
    """Messages say what went wrong, and what to type next."""
    git(top, "config", "--unset", "user.email")
    git(top, "config", "user.email", "x@y") if "user.useConfigOnly" not in prepare else None
    subprocess.run(prepare, cwd=top, check=True)
    with pytest.raises(ConfigError, match=message) as caught:
        check(work_of(top, begun=False).repository)
    assert caught.value.remedy


def test_a_workspace_that_the_repository_ignores_is_refused(top: Path) -> None:
    """Such as a project in a home directory that is a repository itself."""
    with pytest.raises(ConfigError, match="ignores build: there is no way back"):
        check(work_of(top / "build", begun=False).repository)


def test_no_git_at_all_is_told(top: Path) -> None:
    work = WorkTree(str(top), {**os.environ, "PATH": "/nowhere"}, str(top.parent))
    with pytest.raises(ConfigError, match="git is needed"):
        check(work.repository)


def test_the_start_of_a_run_is_kept_once(top: Path) -> None:
    """A run that goes on finds what a person had, not what the agent made of it."""
    (top / "b").write_text("a person's\n")
    (top / "staged").write_text("staged\n")
    git(top, "add", "staged")
    (top / "staged").unlink()
    work = work_of(top)
    kept = git(top, "rev-parse", "refs/ralph/run-1/start")
    (top / "b").write_text("the agent's\n")
    again = work_of(top)
    assert git(top, "rev-parse", "refs/ralph/run-1/start") == kept
    assert git(top, "show", f"{kept}:b") == "a person's"
    assert git(top, "show", f"{kept}^2:staged") == "staged"
    assert again.persons_paths == work.persons_paths == {"b", "staged"}
    point = work.checkpoint()
    (top / "c").write_text("c")
    work.restore(point, "cut-1")
    assert os.path.samefile(point.index, work.checkpoint().index)
    Path(work.run_dir, "git-left").mkdir()
    work.end()
    assert sorted(os.listdir(work.run_dir)) == ["git.json", "start-kept", "trees.json"]
    left = git(top, "for-each-ref", "--format=%(refname)").splitlines()
    assert left == ["refs/heads/main", "refs/ralph/run-1/cut-1", "refs/ralph/run-1/start"]


def test_a_clean_start_is_remembered_as_clean(top: Path) -> None:
    work_of(top)
    (top / "b").write_text("the agent's\n")
    assert work_of(top).persons_paths == frozenset()
    assert git(top, "for-each-ref", "refs/ralph") == ""


def test_commits_and_branches_of_a_turn_leave_the_branch_and_stay_reachable(top: Path) -> None:
    """The issue: "leave the branch (kept in `refs/ralph/…`)"."""
    work = work_of(top)
    point, was = work.checkpoint(), state(top)
    (top / "b").write_text("on main\n")
    git(top, "commit", "--quiet", "--all", "--message", "on main")
    on_main = git(top, "rev-parse", "HEAD")
    git(top, "checkout", "--quiet", "-b", "other", "HEAD~1")
    (top / "b").write_text("on other\n")
    git(top, "commit", "--quiet", "--all", "--message", "on other")
    ref = work.restore(point, "cut-1")
    assert state(top) == was
    for commit in (on_main, "other"):
        git(top, "merge-base", "--is-ancestor", commit, ref)
    assert git(top, "log", "-1", "--format=%gs", "--walk-reflogs", "main") == "ralph: restore"


@pytest.mark.parametrize("kind", ["detached", "unborn"])
def test_a_head_without_commits_or_branch_comes_back(tmp_path: Path, kind: str) -> None:
    """The issue: "a repository without commits, a detached HEAD"."""
    if kind == "detached":
        top = new_repository(tmp_path / "top")
        git(top, "checkout", "--quiet", "--detach")
    else:
        top = tmp_path / "top"
        top.mkdir()
        git(top, "init", "--quiet")
        git(top, "config", "user.name", "x")
        git(top, "config", "user.email", "x@y")
    work = work_of(top)
    point, was = work.checkpoint(), state(top)
    (top / "new").write_text("x")
    git(top, "add", "new")
    git(top, "commit", "--quiet", "--message", "x")
    git(top, "checkout", "--quiet", "-b", "other")
    ref = work.restore(point, "cut-1")
    assert state(top) == was
    assert "new" in saved(top, ref)


def test_a_head_that_an_agent_deleted_comes_back(top: Path) -> None:
    git(top, "checkout", "--quiet", "--detach")
    work = work_of(top)
    point, was = work.checkpoint(), state(top)
    (top / "b").write_text("x")
    git(top, "update-ref", "-d", "HEAD")
    assert work.restore(point, "cut-1")
    assert state(top) == was


def test_each_label_keeps_what_stood_there(top: Path) -> None:
    """A ref with another tree is not overwritten."""
    work = work_of(top)
    point = work.checkpoint()
    refs = []
    for text in ("one", "two", "two", "three"):
        (top / "new").write_text(text)
        refs.append(work.restore(point, "cut-3"))
    name = "refs/ralph/run-1/cut-3"
    assert refs == [name, f"{name}.1", f"{name}.1", f"{name}.2"]
    assert [git(top, "show", f"{ref}:new") for ref in refs] == ["one", "two", "two", "three"]


def test_a_locked_index_is_waited_for_then_told(top: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoint_files, "_LOCKED_FOR", 0.0)
    work = work_of(top)
    point, was = work.checkpoint(), state(top)
    (top / "b").write_text("x")
    git(top, "add", "b")
    (top / ".git" / "index.lock").touch()
    with subprocess.Popen(["git", "cat-file", "--batch"], cwd=top, stdin=subprocess.PIPE) as other:
        with pytest.raises(
            StateError, match=r"index\.lock; what stood there is kept in refs/ralph"
        ):
            work.restore(point, "cut-1")
        assert (top / ".git" / "index.lock").exists()
        other.communicate()
    (top / ".git" / "index.lock").unlink()
    assert work.restore(point, "cut-1") == "refs/ralph/run-1/cut-1"
    assert state(top) == was
    assert not list((top / ".git").glob("index.*"))


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="nobody can tell who is at work")
def test_a_lock_of_a_git_that_was_killed_is_removed(
    top: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An agent is cut at any moment, also in the middle of its commit."""
    monkeypatch.setattr(checkpoint_files, "_LOCKED_FOR", 0.0)
    work = work_of(top)
    point, was = work.checkpoint(), state(top)
    (top / "b").write_text("x")
    git(top, "add", "b")
    (top / ".git" / "index.lock").touch()
    assert work.restore(point, "cut-1")
    assert state(top) == was


def test_a_lock_that_we_left_when_killed_is_ours(tmp_path: Path) -> None:
    index, kept = tmp_path / "index", tmp_path / "kept"
    index.write_bytes(b"new")
    kept.write_bytes(b"old")
    (tmp_path / "index.ralph").write_bytes(b"old")
    os.link(tmp_path / "index.ralph", tmp_path / "index.lock")
    put_index_back(str(kept), str(index), lambda: False)
    assert index.read_bytes() == b"old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["index", "kept"]


def test_a_submodule_goes_back_to_its_commit(top: Path) -> None:
    library = new_repository(top.parent / "library")
    git(library, "commit", "--quiet", "--allow-empty", "--message", "second")
    allowed = ("-c", "protocol.file.allow=always")
    git(top, *allowed, "submodule", "--quiet", "add", str(library), "library")
    git(top, "commit", "--quiet", "--message", "A library")
    work = work_of(top)
    point, was = work.checkpoint(), state(top)
    git(top, "-C", "library", "reset", "--quiet", "--hard", "HEAD~1")
    git(top, *allowed, "submodule", "--quiet", "add", str(library), "more")
    git(top, "commit", "--quiet", "--all", "--message", "The agent's")
    assert tuple(work.delta(point)) == (".gitmodules", "library", "more")
    work.restore(point, "cut-1")
    assert state(top) == was
    assert Path(work.run_dir, "aside/cut-1/more/b").exists()


@pytest.mark.parametrize("before", [True, False], ids=["a person's", "the turn's before"])
def test_a_checkpoint_survives_a_tidy_agent(top: Path, *, before: bool) -> None:
    """Who removes all that nothing refers to."""
    work = work_of(top, begun=not before)
    (top / "mine").write_text("not committed\n")
    work.begin()
    point, was = work.checkpoint(), state(top)
    (top / "mine").unlink()
    git(top, "-c", "gc.reflogExpire=now", "gc", "--quiet", "--prune=now")
    work.restore(point, "cut-1")
    assert state(top) == was


def test_a_checkpoint_that_is_gone_is_told(top: Path) -> None:
    work = work_of(top)
    point = work.checkpoint()
    work.end()
    (top / "b").write_text("x")
    with pytest.raises(StateError, match="checkpoint cannot be read"):
        work.restore(point, "cut-1")
    assert files(top)["b"][1] == b"x"
