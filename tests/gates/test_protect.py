"""Tamper-evident paths (ADR 12): a change is a finding, is undone, and is kept."""

import errno
import os
import shutil
import socket
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from kits.adapters import closing
from ralph.errors import StateError
from ralph.gates import protect
from ralph.gates.protect import ProtectGate, Protector
from ralph.kernel.findings import Finding
from ralph.kernel.world import Snapshot

PATTERNS = ("one.txt", "folder", "*.json", "deep/**/*.cfg")
Change = Callable[[], object]


class Watched:
    """A workspace with protected paths, and a gate that looks after a change."""

    def __init__(self, workspace: Path, *patterns: str) -> None:
        self.workspace = workspace
        self.run_dir = workspace.parent / "run"
        self.protector = Protector(
            str(workspace), patterns or PATTERNS, str(self.run_dir / "protected")
        )
        self.gate = ProtectGate(self.protector, str(workspace), str(self.run_dir))

    def digests(self) -> dict[str, str]:
        return dict(self.protector.digests())

    def after(self, change: Change) -> list[Finding]:
        before = Snapshot("", self.protector.digests())
        change()
        after = Snapshot("", self.protector.digests())
        return list(self.gate.check(closing(3, before, after)))

    def kept(self, path: str) -> Path:
        return self.workspace / ".ralph" / "reverted" / "3" / path


@pytest.fixture
def watched(workspace: Path) -> Watched:
    for path in ("one.txt", "folder/a", "folder/sub/b", "x.json", "deep/er/y.cfg", "free.txt"):
        (workspace / path).parent.mkdir(parents=True, exist_ok=True)
        (workspace / path).write_text(f"the content of {path}")
    return Watched(workspace)


def test_a_path_a_directory_and_a_glob_are_protected(watched: Watched) -> None:
    """ "Paths in `protect` (a path, a directory, a glob)"."""
    protected = {"one.txt", "folder/a", "folder/sub/b", "x.json", "deep/er/y.cfg"}
    assert set(watched.digests()) == protected


def test_what_is_not_protected_may_change(watched: Watched) -> None:
    assert watched.after(lambda: Path("free.txt").write_text("other")) == []


def test_a_changed_file_is_put_back_and_the_change_kept(watched: Watched) -> None:
    """ "a change is a finding and is reverted, the reverted content kept"."""
    (finding,) = watched.after(lambda: Path("one.txt").write_text("weaker"))
    assert finding.text == (
        "Protected path one.txt was changed. The change was undone; "
        "it is kept in .ralph/reverted/3. Leave it alone."
    )
    assert Path("one.txt").read_text() == "the content of one.txt"
    assert watched.kept("one.txt").read_text() == "weaker"


def test_what_was_reverted_is_not_committed(repo: Path) -> None:
    """ADR 9: the first write into `.ralph/` also writes its .gitignore."""
    Path("one.txt").write_text("x")
    subprocess.run(["git", "add", "--all"], check=True)
    subprocess.run(["git", "commit", "--quiet", "--message", "x"], check=True)
    assert Watched(repo).after(lambda: Path("one.txt").write_text("weaker"))
    status = subprocess.run(["git", "status", "--porcelain"], check=True, capture_output=True)
    assert status.stdout == b""


def test_a_deleted_file_comes_back(watched: Watched) -> None:
    assert len(watched.after(lambda: Path("folder/sub/b").unlink())) == 1
    assert Path("folder/sub/b").read_text() == "the content of folder/sub/b"


@pytest.mark.parametrize("path", ["folder/new", "new.json", "deep/new.cfg"])
def test_an_added_file_is_taken_away(watched: Watched, path: str) -> None:
    assert len(watched.after(lambda: Path(path).write_text("mine"))) == 1
    assert not Path(path).exists()
    assert watched.kept(path).read_text() == "mine"


def test_a_changed_mode_is_put_back(watched: Watched) -> None:
    Path("one.txt").chmod(0o640)
    assert len(watched.after(lambda: Path("one.txt").chmod(0o777))) == 1
    assert stat.S_IMODE(Path("one.txt").stat().st_mode) == 0o640


def test_a_change_that_hides_its_time_is_seen(watched: Watched) -> None:
    def sly() -> None:
        before = Path("one.txt").stat()
        Path("one.txt").write_text("the content of ONE.txt")
        os.utime("one.txt", ns=(before.st_atime_ns, before.st_mtime_ns))

    assert len(watched.after(sly)) == 1
    assert Path("one.txt").read_text() == "the content of one.txt"


def test_a_file_that_became_a_link_is_a_file_again(watched: Watched) -> None:
    def link() -> None:
        Path("one.txt").unlink()
        Path("one.txt").symlink_to("free.txt")

    assert len(watched.after(link)) == 1
    assert not Path("one.txt").is_symlink()
    assert Path("free.txt").read_text() == "the content of free.txt"


def test_a_protected_link_is_protected_itself(watched: Watched) -> None:
    Path("link.json").symlink_to("free.txt")

    def bend() -> None:
        Path("link.json").unlink()
        Path("link.json").symlink_to("/etc/passwd")

    assert len(watched.after(bend)) == 1
    assert Path("link.json").readlink() == Path("free.txt")


def test_a_dangling_link_is_no_obstacle(watched: Watched) -> None:
    Path("folder/dangling").symlink_to("/no/where")
    assert watched.after(lambda: None) == []
    assert len(watched.after(lambda: Path("folder/dangling").unlink())) == 1
    assert Path("folder/dangling").is_symlink()


def test_a_link_to_a_directory_added_to_a_protected_one_is_seen(watched: Watched) -> None:
    assert len(watched.after(lambda: Path("folder/link").symlink_to("/tmp"))) == 1
    assert not Path("folder/link").is_symlink()


def test_a_directory_that_became_a_link_is_a_directory_again(watched: Watched) -> None:
    def swap() -> None:
        Path("folder").rename("elsewhere")
        Path("folder").symlink_to("elsewhere")

    assert watched.after(swap)
    assert not Path("folder").is_symlink()
    assert Path("folder/a").read_text() == "the content of folder/a"


def test_a_file_that_became_a_directory_is_a_file_again(watched: Watched) -> None:
    def swap() -> None:
        Path("one.txt").unlink()
        Path("one.txt").mkdir()
        Path("one.txt/inside").write_text("x")

    assert watched.after(swap)
    assert Path("one.txt").read_text() == "the content of one.txt"


def test_a_socket_in_a_protected_directory_is_named_and_not_read(watched: Watched) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("folder/socket")
        assert "folder/socket" in watched.digests()


@pytest.mark.parametrize("pattern", ["../outside.txt", "ABSOLUTE"])
def test_a_path_outside_the_workspace_is_put_back_too(workspace: Path, pattern: str) -> None:
    outside = workspace.parent / "outside.txt"
    outside.write_text("before")
    watched = Watched(workspace, pattern.replace("ABSOLUTE", str(outside)))
    assert len(watched.after(lambda: outside.write_text("after"))) == 1
    assert outside.read_text() == "before"
    kept = (workspace / ".ralph" / "reverted").rglob("outside.txt")
    assert [path.read_text() for path in kept] == ["after"]


def test_it_works_where_git_is_a_file(workspace: Path) -> None:
    """A worktree or a submodule: the default pattern `.git/hooks` matches nothing."""
    (workspace / ".git").write_text("gitdir: ../elsewhere\n")
    watched = Watched(workspace, ".git/hooks", ".ralph/settings*.json")
    assert watched.after(lambda: None) == []


def test_settings_that_were_not_there_may_not_be_added(workspace: Path) -> None:
    (workspace / ".ralph").mkdir()
    watched = Watched(workspace, ".ralph/settings*.json")
    assert watched.after(lambda: Path(".ralph/settings.local.json").write_text("{}"))
    assert not Path(".ralph/settings.local.json").exists()


def test_a_ralph_directory_that_cannot_be_written_keeps_the_change_beside_the_journal(
    workspace: Path,
) -> None:
    (workspace / ".ralph").write_text("a file in the way")
    (workspace / "one.txt").write_text("before")
    watched = Watched(workspace, "one.txt")
    (finding,) = watched.after(lambda: Path("one.txt").write_text("after"))
    assert Path("one.txt").read_text() == "before"
    assert (watched.run_dir / "reverted" / "3" / "one.txt").read_text() == "after"
    assert f"kept in {watched.run_dir}/reverted/3" in finding.text


def test_a_change_that_could_not_be_put_back_does_not_become_right_by_lasting(
    watched: Watched,
) -> None:
    """Its copy was lost: each turn hears of it until it can be put back; then it is forgotten."""
    store, away = watched.run_dir / "protected", watched.run_dir / "away"

    def lose() -> None:
        Path("one.txt").write_text("after")
        store.rename(away)

    (found,) = watched.after(lose)
    assert "It could not be put back: no copy of it could be made." in found.text
    assert Path("one.txt").read_text() == "after", "nothing is moved"
    (found,) = watched.after(lambda: None)
    assert "It could not be put back" in found.text
    shutil.copytree(away, store, dirs_exist_ok=True)
    (found,) = watched.after(lambda: None)
    assert "The change was undone" in found.text
    assert Path("one.txt").read_text() == "the content of one.txt"
    Path("one.txt").write_text("a person's, between two turns")
    assert watched.after(lambda: None) == []
    assert Path("one.txt").read_text() == "a person's, between two turns"


def test_what_is_kept_of_two_reverts_stands_side_by_side(watched: Watched) -> None:
    """An iteration is judged twice where it is resumed, and each run counts from one."""
    for text in ("first", "second"):
        watched.after(lambda text=text: Path("one.txt").write_text(text))  # type: ignore[misc]
    kept = watched.kept("one.txt")
    assert [kept.read_text(), kept.with_name("one.txt.1").read_text()] == ["first", "second"]


def test_a_place_for_what_was_reverted_that_fails_is_not_the_only_one(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The project's disk is full: it goes beside the journal."""
    really = shutil.move

    def move(source: str, target: str) -> object:
        if target.startswith(str(watched.workspace)):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return really(source, target)

    monkeypatch.setattr(shutil, "move", move)
    (found,) = watched.after(lambda: Path("one.txt").write_text("after"))
    assert Path("one.txt").read_text() == "the content of one.txt"
    assert (watched.run_dir / "reverted" / "3" / "one.txt").read_text() == "after"
    assert "The change was undone" in found.text


def test_a_file_that_cannot_be_read_is_watched_and_no_obstacle(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> bytes:
        raise PermissionError

    monkeypatch.setattr(protect, "_content", refuse)
    assert watched.after(lambda: None) == []
    assert len(watched.after(lambda: Path("one.txt").write_text("shorter"))) == 1


def test_a_store_that_cannot_be_written_ends_the_run_with_the_reason(watched: Watched) -> None:
    watched.run_dir.write_text("a file in the way")
    with pytest.raises(StateError, match="cannot keep a copy of the protected file") as caught:
        watched.digests()
    assert "RALPH_STATE_DIR" in caught.value.remedy


# ------------------------------------------------------------------ hooks of git


def hooks(workspace: Path) -> Watched:
    found = Watched(workspace, ".git/hooks")
    found.gate = ProtectGate(
        found.protector, str(workspace), str(found.run_dir), (".git/hooks", "elsewhere/hooks")
    )
    return found


def add(path: str, mode: int = 0o644) -> None:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text("#!/bin/sh\n")
    Path(path).chmod(mode)


@pytest.mark.parametrize(
    ("path", "mode", "objects"),
    [
        (".git/hooks/pre-commit.sample", 0o755, False),
        (".git/hooks/pre-commit", 0o644, False),
        (".git/hooks/pre-commit", 0o755, True),
        (".git/hooks/pre-commit", 0o645, True),
        (".git/hooks/sub/pre-commit.sample", 0o755, True),
    ],
)
def test_in_a_new_repository_only_what_git_would_run_is_a_finding(
    workspace: Path, path: str, mode: int, *, objects: bool
) -> None:
    """Issue 22: "an agent that runs `git init` outside git is refused for ever"."""
    watched = hooks(workspace)
    assert bool(watched.after(lambda: add(path, mode))) is objects
    assert Path(path).exists() is not objects


@pytest.mark.parametrize(
    ("change", "objects"),
    [
        (lambda: add(".git/hooks/update.sample", 0o755), False),
        (lambda: add(".git/hooks/helper.sh"), True),  # a hook that is there may read it
        (lambda: Path(".git/hooks/pre-push.sample").write_text("exec evil\n"), True),
        (lambda: os.remove(".git/hooks/pre-push.sample"), True),
        (lambda: Path(".git/hooks/pre-commit").write_text("exec evil\n"), True),
        (lambda: os.symlink("/bin/true", ".git/hooks/pre-rebase"), True),
    ],
)
def test_beside_hooks_that_were_there_only_a_new_sample_is_none(
    workspace: Path, change: Change, *, objects: bool
) -> None:
    add(".git/hooks/pre-commit", 0o755)
    add(".git/hooks/pre-push.sample", 0o755)
    assert bool(hooks(workspace).after(change)) is objects


def test_a_link_among_new_hooks_is_no_file_that_nothing_runs(workspace: Path) -> None:
    def change() -> None:
        os.makedirs(".git/hooks")
        os.symlink("/bin/true", ".git/hooks/pre-commit")

    [finding] = hooks(workspace).after(change)
    assert "Protected path .git/hooks/pre-commit was changed" in finding.text


def test_a_new_hook_may_not_become_executable_later(workspace: Path) -> None:
    watched = hooks(workspace)
    assert watched.after(lambda: add(".git/hooks/pre-commit")) == []
    assert watched.after(lambda: Path(".git/hooks/pre-commit").chmod(0o755))
    assert not os.access(".git/hooks/pre-commit", os.X_OK)


def test_samples_in_any_other_directory_are_protected(workspace: Path) -> None:
    watched = Watched(workspace, "ci/hooks")
    assert watched.after(lambda: add("ci/hooks/pre-commit.sample"))


def test_what_is_put_back_has_its_mode_times_and_attributes(watched: Watched) -> None:
    one = Path("one.txt")
    one.chmod(0o640)
    os.utime(one, ns=(1_000_000_001, 2_000_000_003))
    os.setxattr(one, "user.said", b"by a person")
    before = one.stat()
    (found,) = watched.after(one.unlink)
    after = one.stat()
    assert "The change was undone" in found.text
    assert (after.st_mode, after.st_mtime_ns) == (before.st_mode, before.st_mtime_ns)
    assert os.getxattr(one, "user.said") == b"by a person"
