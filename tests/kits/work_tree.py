"""What the tests of checkpoints need: a repository, everything that can be seen of it, a run."""

import os
import stat
import subprocess
from pathlib import Path
from typing import TypedDict

from ralph.git.checkpoint.checkpoint import WorkTree

Files = dict[str, tuple[str, bytes]]
IGNORED = ".env\nbuild/\n*.log\n"


class State(TypedDict):
    """All that a restore has to put back."""

    files: Files
    head: bytes
    branch: str
    status: str
    index: str


def git(where: Path | str, *words: str) -> str:
    """What git prints, without the blank at the end; a failure fails the test."""
    done = subprocess.run(["git", "-C", str(where), *words], capture_output=True, check=False)
    assert done.returncode == 0, (words, done.stderr)
    return os.fsdecode(done.stdout).rstrip()


def new_repository(place: Path) -> Path:
    """A repository with a commit, rules of what is ignored, and ignored files."""
    place.mkdir(parents=True, exist_ok=True)
    git(place, "init", "--quiet", "--initial-branch=main")
    git(place, "config", "user.name", "Ralph tests")
    git(place, "config", "user.email", "tests@ralph.invalid")
    (place / ".gitignore").write_text(IGNORED)
    (place / "a").mkdir()
    (place / "a" / "one").write_text("one\n")
    (place / "b").write_text("b\n")
    (place / "tool").write_text("#!/bin/sh\n")
    (place / "tool").chmod(0o755)
    (place / "link").symlink_to("b")
    git(place, "add", "--all")
    git(place, "commit", "--quiet", "--message", "Begin")
    (place / ".env").write_text("SECRET=1\n")
    (place / "build").mkdir()
    (place / "build" / "out").write_text("built\n")
    return place


def work_of(
    workspace: Path, run: str = "run-1", *, begun: bool = True, beside: Path | None = None
) -> WorkTree:
    """A run's work tree; its directory is beside the workspace, or something else."""
    run_dir = (beside or workspace).parent / "runs" / run
    run_dir.mkdir(parents=True, exist_ok=True)
    work = WorkTree(str(workspace), os.environ, str(run_dir))
    if begun:
        work.begin()
    return work


def files(top: Path) -> Files:
    """Every file but git's and Ralph's, with its kind and content."""
    found: Files = {}
    for folder, folders, names in os.walk(os.fsencode(top)):
        folders[:] = [name for name in folders if name not in (b".git", b".ralph")]
        links = [name for name in folders if os.path.islink(os.path.join(folder, name))]
        for name in (*names, *links):
            path = os.path.join(folder, name)
            found[os.fsdecode(os.path.relpath(path, os.fsencode(top)))] = _file(path)
    return found


def _file(path: bytes) -> tuple[str, bytes]:
    info = os.lstat(path)
    if stat.S_ISLNK(info.st_mode):
        return "link", os.readlink(path)
    if not stat.S_ISREG(info.st_mode):
        return "special", b""
    with open(path, "rb") as file:
        return f"{stat.S_IMODE(info.st_mode):o}", file.read()


def state(top: Path) -> State:
    """All of it, as it is now."""
    status = ("status", "--porcelain=v2", "-z", "--untracked-files=all", "--no-renames")
    words = ["git", "-C", str(top), "rev-parse", "--verify", "--quiet", "HEAD"]
    head = subprocess.run(words, capture_output=True, check=False)
    return {
        "files": files(top),
        "head": head.stdout,
        "branch": Path(git(top, "rev-parse", "--absolute-git-dir"), "HEAD").read_text(),
        "status": git(top, *status),
        "index": git(top, "ls-files", "--stage", "-v", "-z"),
    }


def saved(top: Path, ref: str) -> dict[str, str]:
    """The blobs that a ref keeps, by path."""
    lines = git(top, "ls-tree", "-r", "-z", ref).split("\0")
    pairs = (line.split("\t", 1) for line in lines if line)
    return {path: meta.split(" ")[2] for meta, path in pairs}
