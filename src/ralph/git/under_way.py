"""Merges, rebases and the like that git is in the middle of, and whether a run can begin there."""

import os
from contextlib import suppress

from ralph.errors import ConfigError
from ralph.git.repository import Repository, call
from ralph.kernel.value import value
from ralph.processes import procfs


@value
class Operation:
    """Something that git does in several steps."""

    mark: str  # its file in the git directory
    command: str

    @property
    def name(self) -> str:
        return f"an {self.command}" if self.command == "am" else f"a {self.command}"

    @property
    def abort(self) -> str:
        """The command that gives it up."""
        return "git bisect reset" if self.command == "bisect" else f"git {self.command} --abort"


_OPERATIONS = (
    ("rebase-apply/applying", "am"),
    ("rebase-merge", "rebase"),
    ("rebase-apply", "rebase"),
    ("MERGE_HEAD", "merge"),
    ("CHERRY_PICK_HEAD", "cherry-pick"),
    ("REVERT_HEAD", "revert"),
    ("sequencer", "cherry-pick"),
    ("BISECT_LOG", "bisect"),
)
_LEFT_OVER = (
    *("rebase-merge", "rebase-apply", "sequencer", "MERGE_HEAD", "MERGE_MSG", "MERGE_MODE"),
    *("MERGE_RR", "AUTO_MERGE", "CHERRY_PICK_HEAD", "REVERT_HEAD", "REBASE_HEAD"),
)


def under_way(git_dir: str) -> tuple[Operation, ...]:
    """The operations that somebody began and has not ended."""
    there = (pair for pair in _OPERATIONS if os.path.exists(os.path.join(git_dir, pair[0])))
    return tuple(Operation(*pair) for pair in there)


def forget(repository: Repository) -> None:
    """End whatever is under way, with every file, the index and HEAD left as they are. What a
    rebase had put away is in the stash afterwards."""
    git_dir = repository.place.git_dir
    for operation in under_way(git_dir):
        still = os.path.exists(os.path.join(git_dir, operation.mark))
        if still and operation.command != "bisect":
            repository.run(operation.command, "--quit")
    if os.path.exists(os.path.join(git_dir, "BISECT_LOG")):
        refs = repository.ask("for-each-ref", "--format=delete %(refname)", "refs/bisect")
        repository.run("update-ref", "--stdin", stdin=refs)
        # The log goes last: it says that the others may be there.
        for name in sorted(os.listdir(git_dir), key=lambda name: name == "BISECT_LOG"):
            if name.startswith("BISECT_"):
                _remove(os.path.join(git_dir, name))
    for name in _LEFT_OVER:
        _remove(os.path.join(git_dir, name))


def _remove(path: str) -> None:
    import shutil

    with suppress(FileNotFoundError, NotADirectoryError):
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path)
        else:
            os.unlink(path)


def is_idle(repository: Repository) -> bool:
    """True if no git of the user who locked the index works there: a killed git left the lock
    behind. False where nobody can tell."""
    try:
        owner = os.stat(f"{repository.index}.lock").st_uid
    except FileNotFoundError:
        return True
    pids = procfs.pids()
    return bool(pids) and not any(_works_in(pid, owner, repository) for pid in pids)


def _works_in(pid: int, owner: int, repository: Repository) -> bool:
    words = procfs.command_line(pid)
    if not words or not os.path.basename(words[0]).startswith("git"):
        return False
    try:
        if os.stat(f"/proc/{pid}").st_uid != owner:
            return False
        where = os.readlink(f"/proc/{pid}/cwd")
    except FileNotFoundError:
        return False
    except OSError:
        return True  # it may be anywhere
    places = (repository.place.top, repository.place.git_dir)
    return any(os.path.join(where, "").startswith(os.path.join(place, "")) for place in places)


def check(repository: Repository) -> None:
    """A ConfigError if no run can begin in the repository as it stands."""
    place = repository.place
    for operation in under_way(place.git_dir):
        raise ConfigError(
            f"{place.top} is in the middle of {operation.name}",
            f"Finish it, or give it up: {operation.abort}",
        )
    where = os.path.dirname(place.records)
    if where and repository.run("check-ignore", "--quiet", "--", where).code == 0:
        message = f"the repository {place.top} ignores {where}: there is no way back"
        raise ConfigError(message, f"Try: git init {place.path(where)}")
    lock = f"{repository.index}.lock"
    if os.path.exists(lock):
        raise ConfigError("another git is at work here", f"If there is none: rm {lock}")
    # Commits are the user's: git must know who that is.
    if call(("var", "GIT_COMMITTER_IDENT"), place.top, repository.environ).code != 0:
        raise ConfigError(
            "git does not know who commits",
            'Try: git config user.name "Your Name" && git config user.email you@example.com',
        )


def refuse_conflicts(repository: Repository) -> None:
    """A ConfigError if a file has conflicts; a repository without changes has none."""
    unmerged = repository.ask("ls-files", "--unmerged", "-z")
    if unmerged:
        path = os.fsdecode(unmerged.split(b"\0")[0].partition(b"\t")[2])
        raise ConfigError(f"{path} has conflicts", "Resolve them, then: git add -A")
