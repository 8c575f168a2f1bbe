"""Files on their way back: what git ignores, does not keep or cannot read (B §Rollback)."""

import os
from pathlib import Path

import pytest

from kits.work_tree import git, new_repository, saved, state, work_of
from ralph.errors import StateError
from ralph.kernel.ports import Committed


@pytest.fixture
def top(tmp_path: Path) -> Path:
    return new_repository(tmp_path / "top")


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


def test_a_tracked_file_that_is_ignored_too_is_not_lost(top: Path) -> None:
    """An agent may take it out of the index, which is not ours: the run sees it all the same."""
    (top / "kept.log").write_text("kept\n")
    git(top, "add", "--force", "kept.log")
    git(top, "commit", "--quiet", "--message", "A log")
    work = work_of(top)
    point, was = work.checkpoint(), state(top)
    git(top, "rm", "--quiet", "--cached", "kept.log")
    (top / "kept.log").write_text("changed\n")
    assert work.restore(point, "cut-1")
    assert state(top) == was
    assert git(top, "show", "refs/ralph/run-1/cut-1:kept.log") == "changed"


def test_what_cannot_be_put_back_is_named_and_can_be_later(top: Path) -> None:
    """A full disk looks the same: git says what it could not write."""
    (top / ".gitattributes").write_text("b filter=other\n")
    for name, text in (("clean", "cat"), ("smudge", "cat"), ("required", "true")):
        git(top, "config", f"filter.other.{name}", text)
    git(top, "add", "--all")
    git(top, "commit", "--quiet", "--message", "A filter")
    work = work_of(top)
    point, was = work.checkpoint(), state(top)
    (top / "b").unlink()
    (top / "new").write_text("x")
    git(top, "config", "filter.other.smudge", "false")
    with pytest.raises(StateError, match=r"(?s)\bb: smudge filter.*refs/ralph/run-1/cut-1"):
        work.restore(point, "cut-1")
    git(top, "config", "filter.other.smudge", "cat")
    assert work.restore(point, "cut-1") == "refs/ralph/run-1/cut-1"
    assert state(top) == was


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
    assert tuple(work.delta(point)) == ("a/one",)
    assert work.restore(point, "cut-1")
    assert work.restore(point, "cut-2") == ""
    assert work.commit("T-1: x", "T-1", point) == Committed(commit=point.head)


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
    assert tuple(work.delta(point)) == ()
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
    assert tuple(work.delta(point)) == ("junk",)
    assert work.restore(point, "cut-1")
    for name in ("core.excludesFile", "core.fsmonitor", "core.hooksPath", "core.bare"):
        git(top, "config", "--unset", name)
    git(top, "config", "--unset", "status.showUntrackedFiles")
    assert state(top) == was
