"""Checkpoints by git: what a run takes before each turn, and how it goes back (B §Rollback)."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from checkpoint_support import files, git, new_repository, saved, state, work_of

from ralph.adapters import checkpoint_files
from ralph.adapters.checkpoint import Checkpoint, WorkTree
from ralph.adapters.checkpoint_files import put_index_back
from ralph.errors import ConfigError, StateError


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
    assert work.changed(point) == ()
    assert work.restore(point, "cut-1") == ""
    assert git(top, "for-each-ref", "refs/ralph") == ""


def test_what_changed_is_told_by_its_path(top: Path) -> None:
    work = work_of(top)
    point = work.checkpoint()
    (top / "new\nline").write_text("x")
    Path(os.fsdecode(bytes(top / "z") + b"\xff")).write_text("x")
    (top / "tool").chmod(0o644)
    (top / "b").unlink()
    (top / ".ralph").mkdir()
    (top / ".ralph" / "tasks.jsonl").write_text("{}")
    assert work.changed(point) == ("b", "new\nline", "tool", "z\udcff")


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
        work_of(top, "another", begun=False).check()
    assert work.restore(point, "cut-1") == "refs/ralph/run-1/cut-1"
    assert state(top) == was
    work_of(top, "another", begun=False).check()
    assert git(top, "for-each-ref", "refs/bisect") == ""
    (top / "new").write_text("x")
    assert work.commit("T-1: x", "T-1", point)[1] == ""


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
        work_of(top, begun=False).check()
    assert caught.value.remedy


def test_no_git_at_all_is_told(top: Path) -> None:
    work = WorkTree(str(top), {**os.environ, "PATH": "/nowhere"}, str(top.parent))
    with pytest.raises(ConfigError, match="git is needed"):
        work.check()


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
    work.end()
    assert (
        git(top, "for-each-ref", "--format=%(refname)") == "refs/heads/main\nrefs/ralph/run-1/cut-1"
    )


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


def test_what_was_ignored_is_never_touched(top: Path) -> None:
    """A person's `.env` stays, whatever an agent makes of the rules and the index."""
    work = work_of(top)
    point, was = work.checkpoint(), state(top)
    (top / ".gitignore").write_text("junk\nmine.txt\n")
    (top / ".git" / "info" / "exclude").write_text("more junk\n")
    (top / "junk").write_text("x")
    (top / "more junk").write_text("x")
    git(top, "add", "--force", ".env", "build")
    git(top, "commit", "--quiet", "--all", "--message", "everything")
    ref = work.restore(point, "cut-1")
    assert state(top) == was
    assert {"junk", "more junk", ".env", "build/out"} <= set(saved(top, ref))
    assert git(top, "show", f"{ref}:.gitignore") == "junk\nmine.txt"


def test_rules_that_hide_themselves_are_found(top: Path) -> None:
    """They would keep the next task's files out of its commit."""
    work = work_of(top)
    point, was = work.checkpoint(), state(top)
    (top / "a" / ".gitignore").write_text("*\n")
    (top / "a" / "junk").write_text("x")
    cache = top / ".cache"
    cache.mkdir()
    (cache / ".gitignore").write_text("*\n")
    ref = work.restore(point, "cut-1")
    now = state(top)
    assert now["files"].pop(".cache/.gitignore")
    assert now == was
    assert "a/junk" in saved(top, ref)
    assert Path(work.run_dir, "aside/cut-1/a/.gitignore").read_text() == "*\n"


def test_a_hidden_folder_whose_own_rules_were_removed_is_not_touched(top: Path) -> None:
    """As `.venv` hides itself."""
    hidden = top / ".venv"
    hidden.mkdir()
    (hidden / ".gitignore").write_text("*\n")
    (hidden / "python").write_text("x")
    work = work_of(top)
    point = work.checkpoint()
    (hidden / ".gitignore").unlink()
    (top / "b").write_text("x")
    work.restore(point, "cut-1")
    assert (hidden / "python").read_text() == "x"
    assert (top / "b").read_text() == "b\n"


@pytest.mark.parametrize("with_commit", [True, False])
def test_a_repository_that_an_agent_made_is_put_aside(top: Path, *, with_commit: bool) -> None:
    """It must not survive as dirt, nor be lost."""
    git(top, "init", "--quiet", "persons")
    (top / "persons" / "x").write_text("a person's")
    work = work_of(top)
    point, was = work.checkpoint(), state(top)
    git(top, "init", "--quiet", "c/vendor")
    (top / "c" / "vendor" / "x").write_text("x")
    if with_commit:
        git(top, "-C", "c/vendor", "add", "x")
        identity = ("-c", "user.name=x", "-c", "user.email=x@y")
        git(top, "-C", "c/vendor", *identity, "commit", "--quiet", "--message", "x")
        git(top, "add", "c/vendor")
    assert work.restore(point, "cut-1")
    assert state(top) == was
    assert not (top / "c").exists()
    assert Path(work.run_dir, "aside/cut-1/c/vendor/x").read_text() == "x"


def test_a_repository_in_the_workspace_itself_is_put_aside(top: Path) -> None:
    inner = top / "a"
    work = work_of(inner, beside=top)
    point, was = work.checkpoint(), state(top)
    git(inner, "init", "--quiet")
    (inner / "one").write_text("x")
    assert work_of(inner, beside=top).restore(point, "cut-1")
    assert state(top) == was
    assert not (inner / ".git").exists()


def test_a_workspace_in_a_linked_worktree_and_a_folder(top: Path) -> None:
    git(top, "worktree", "add", "--quiet", "-b", "task", "../linked")
    linked = top.parent / "linked"
    inner = linked / "a"
    was_main = state(top)
    work = work_of(inner, beside=linked)
    point, was = work.checkpoint(), state(linked)
    (inner / "two").write_text("x")
    (linked / "b").unlink()
    git(linked, "commit", "--quiet", "--all", "--message", "x")
    assert work.restore(point, "cut-1")
    assert (state(linked), state(top)) == (was, was_main)


def test_state_that_is_kept_in_the_repository_is_no_part_of_the_work(top: Path) -> None:
    inner = top / "a"
    work = work_of(inner)
    assert work.dirty() == ()
    point = work.checkpoint()
    (inner / "one").write_text("x")
    assert work.changed(point) == ("a/one",)
    assert work.restore(point, "cut-1")
    assert work.restore(point, "cut-2") == ""
    assert work.commit("T-1: x", "T-1", point) == (point.head, "")


def test_files_and_folders_change_places(top: Path) -> None:
    """And what git ignores there is put aside, not deleted."""
    work = work_of(top)
    point, was = work.checkpoint(), state(top)
    (top / "b").unlink()
    (top / "b").mkdir()
    (top / "b" / "x.log").write_text("ignored")
    (top / "b" / "x").write_text("x")
    (top / "a" / "one").unlink()
    (top / "a").rmdir()
    (top / "a").symlink_to("b")
    os.mkfifo(top / "pipe")
    (top / "tool").unlink()
    os.mkfifo(top / "tool")
    assert work.restore(point, "cut-1")
    (top / "pipe").unlink()
    assert state(top) == was
    assert Path(work.run_dir, "aside/cut-1/b/x.log").read_text() == "ignored"


def test_ralphs_files_are_never_touched(top: Path) -> None:
    """The issue: "rollback never touches them", also where git knows them."""
    ralph = top / ".ralph"
    ralph.mkdir()
    (ralph / "tasks.jsonl").write_text("1\n")
    git(top, "add", "--force", ".ralph")
    git(top, "commit", "--quiet", "--message", "Records")
    work = work_of(top)
    point = work.checkpoint()
    (ralph / "tasks.jsonl").write_text("2\n")
    (ralph / "progress.jsonl").write_text("2\n")
    assert work.restore(point, "cut-1") == ""
    git(top, "add", "--all")
    git(top, "commit", "--quiet", "--message", "The agent's")
    assert work.changed(point) == ()
    assert work.tree() == point.tree
    assert work.restore(point, "cut-1")
    assert {path.name: path.read_text() for path in ralph.iterdir()} == {
        "tasks.jsonl": "2\n",
        "progress.jsonl": "2\n",
    }


def test_a_mode_that_git_does_not_keep_comes_back(top: Path) -> None:
    """The issue: `--allow-dirty`, "which restores it exactly"."""
    (top / "secret").write_text("x")
    (top / "secret").chmod(0o600)
    work = work_of(top)
    point, was = work.checkpoint(), state(top)
    (top / "secret").unlink()
    work.restore(point, "cut-1")
    assert state(top) == was


def test_the_ends_of_lines_come_back(top: Path) -> None:
    """Git would store other bytes than a person wrote."""
    (top / ".gitattributes").write_text("* text=auto\n")
    (top / 'dos\n"name').write_bytes(b"one\r\ntwo\r\n")
    (top / "b").write_bytes(b"b\r\nc\r\n")
    work = work_of(top)
    point, was = work.checkpoint(), state(top)
    (top / 'dos\n"name').unlink()
    (top / "b").write_bytes(b"other")
    git(top, "add", "--all")
    work.restore(point, "cut-1")
    assert state(top) == was


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_what_an_agent_made_unreadable_comes_back(top: Path) -> None:
    """And what a person made unreadable stays so."""
    (top / "locked").mkdir()
    (top / "locked" / "x").write_text("x")
    (top / "secret").write_text("x")
    (top / "locked").chmod(0)
    (top / "secret").chmod(0)
    work = work_of(top)
    point = work.checkpoint()
    (top / "new").mkdir()
    (top / "new" / "x").write_text("x")
    (top / "new").chmod(0)
    (top / "a").chmod(0)
    (top / "b").write_text("changed")
    (top / "b").chmod(0)
    ref = work.restore(point, "cut-1")
    assert git(top, "show", f"{ref}:b") == "changed"
    assert (top / "a" / "one").read_text() == (git(top, "show", "HEAD:a/one") + "\n")
    assert (top / "b").read_text() == "b\n"
    assert not (top / "new").exists()
    for name in ("locked", "secret"):
        assert (top / name).stat().st_mode & 0o777 == 0
        (top / name).chmod(0o700)
    assert (top / "locked" / "x").read_text() == "x"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_an_agent_made_unwritable_is_written(top: Path) -> None:
    work = work_of(top)
    point, was = work.checkpoint(), state(top)
    (top / "a" / "one").write_text("x")
    (top / "a" / "two").write_text("x")
    (top / "a").chmod(0o500)
    assert work.restore(point, "cut-1")
    assert state(top) == was


def test_settings_that_an_agent_changed_change_nothing(top: Path) -> None:
    work = work_of(top)
    point, was = work.checkpoint(), state(top)
    ignore = top.parent / "ignore"
    ignore.write_text("*\n")
    for name, text in (
        ("core.excludesFile", str(ignore)),
        ("core.fsmonitor", "touch called"),
        ("core.hooksPath", str(top.parent)),
        ("core.bare", "true"),
        ("status.showUntrackedFiles", "no"),
    ):
        git(top, "config", name, text)
    (top / "junk").write_text("x")
    assert work.changed(point) == ("junk",)
    assert work.restore(point, "cut-1")
    for name in ("core.excludesFile", "core.fsmonitor", "core.hooksPath", "core.bare"):
        git(top, "config", "--unset", name)
    git(top, "config", "--unset", "status.showUntrackedFiles")
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
    with pytest.raises(StateError, match=r"index\.lock; what stood there is kept in refs/ralph"):
        work.restore(point, "cut-1")
    (top / ".git" / "index.lock").unlink()
    assert work.restore(point, "cut-1") == "refs/ralph/run-1/cut-1"
    assert state(top) == was
    assert not list((top / ".git").glob("index.*"))


def test_a_lock_that_we_left_when_killed_is_ours(tmp_path: Path) -> None:
    index, kept = tmp_path / "index", tmp_path / "kept"
    index.write_bytes(b"new")
    kept.write_bytes(b"old")
    (tmp_path / "index.ralph").write_bytes(b"old")
    os.link(tmp_path / "index.ralph", tmp_path / "index.lock")
    put_index_back(str(kept), str(index))
    assert index.read_bytes() == b"old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["index", "kept"]


def test_a_checkpoint_that_is_gone_is_told(top: Path) -> None:
    work = work_of(top)
    point = work.checkpoint()
    work.end()
    (top / "b").write_text("x")
    with pytest.raises(StateError, match="checkpoint cannot be read"):
        work.restore(point, "cut-1")
    assert files(top)["b"][1] == b"x"
