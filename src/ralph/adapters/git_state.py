"""What git is in the middle of, and whether a run can begin there."""

import os
import shutil
from contextlib import suppress

from ralph.adapters import proc
from ralph.adapters.git_work import Repository, call
from ralph.core.value import value
from ralph.errors import ConfigError


@value
class Operation:
    """Something that git does in several steps, and how one gets out of it."""

    mark: str  # of the git directory
    name: str
    abort: str  # what a person types
    forget: tuple[str, ...] = ()  # what leaves every file as it is


def _operation(mark: str, name: str) -> Operation:
    return Operation(mark, f"a {name}", f"git {name} --abort", (name, "--quit"))


_OPERATIONS = (
    Operation("rebase-apply/applying", "an am", "git am --abort", ("am", "--quit")),
    _operation("rebase-merge", "rebase"),
    _operation("rebase-apply", "rebase"),
    _operation("MERGE_HEAD", "merge"),
    _operation("CHERRY_PICK_HEAD", "cherry-pick"),
    _operation("REVERT_HEAD", "revert"),
    _operation("sequencer", "cherry-pick"),
    Operation("BISECT_LOG", "a bisect", "git bisect reset"),
)
_LEFT_OVER = (
    *("rebase-merge", "rebase-apply", "sequencer", "MERGE_HEAD", "MERGE_MSG", "MERGE_MODE"),
    *("MERGE_RR", "AUTO_MERGE", "CHERRY_PICK_HEAD", "REVERT_HEAD", "REBASE_HEAD"),
)


def under_way(git_dir: str) -> tuple[Operation, ...]:
    """What somebody began and has not ended."""
    return tuple(each for each in _OPERATIONS if os.path.exists(os.path.join(git_dir, each.mark)))


def forget(repository: Repository) -> None:
    """End whatever is under way, with every file, the index and HEAD left as they are. What a
    rebase had put away is in the stash afterwards."""
    git_dir = repository.place.git_dir
    for operation in under_way(git_dir):
        still = os.path.exists(os.path.join(git_dir, operation.mark))
        if still and operation.forget:
            repository.run(*operation.forget)
    if os.path.exists(os.path.join(git_dir, "BISECT_LOG")):
        _forget_bisect(repository)
    for name in _LEFT_OVER:
        _remove(os.path.join(git_dir, name))


def _forget_bisect(repository: Repository) -> None:
    refs = repository.ask("for-each-ref", "--format=delete %(refname)", "refs/bisect")
    repository.run("update-ref", "--stdin", stdin=refs)
    git_dir = repository.place.git_dir
    # The log goes last: it says that the others may be there.
    for name in sorted(os.listdir(git_dir), key=lambda name: name == "BISECT_LOG"):
        if name.startswith("BISECT_"):
            _remove(os.path.join(git_dir, name))


def _remove(path: str) -> None:
    with suppress(FileNotFoundError, NotADirectoryError):
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path)
        else:
            os.unlink(path)


def is_idle(repository: Repository) -> bool:
    """Whether no git of the one who locked the index works there: a killed git left it behind.
    False where nobody can tell."""
    try:
        owner = os.stat(f"{repository.index}.lock").st_uid
    except FileNotFoundError:
        return True
    if not proc.is_there():
        return False
    numbers = (name for name in os.listdir("/proc") if name.isdecimal())
    return not any(_works_in(number, owner, repository) for number in numbers)


def _works_in(number: str, owner: int, repository: Repository) -> bool:
    words = proc.command_line(int(number))
    if not words or not os.path.basename(words[0]).startswith("git"):
        return False
    try:
        if os.stat(f"/proc/{number}").st_uid != owner:
            return False
        where = os.readlink(f"/proc/{number}/cwd")
    except FileNotFoundError:
        return False
    except OSError:
        return True  # it may be anywhere
    places = (repository.place.top, repository.place.git_dir)
    return any(os.path.join(where, "").startswith(os.path.join(place, "")) for place in places)


def check(repository: Repository) -> None:
    """A ConfigError if no run can begin in the repository as it stands."""
    for operation in under_way(repository.place.git_dir):
        raise ConfigError(
            f"{repository.place.top} is in the middle of {operation.name}",
            f"Finish it, or give it up: {operation.abort}",
        )
    where = os.path.dirname(repository.place.records)
    if where and repository.run("check-ignore", "--quiet", "--", where).code == 0:
        message = f"the repository {repository.place.top} ignores {where}: there is no way back"
        raise ConfigError(message, f"Try: git init {repository.place.path(where)}")
    lock = f"{repository.index}.lock"
    if os.path.exists(lock):
        raise ConfigError("another git is at work here", f"If there is none: rm {lock}")
    unmerged = repository.ask("ls-files", "--unmerged", "-z")
    if unmerged:
        path = os.fsdecode(unmerged.split(b"\0")[0].partition(b"\t")[2])
        raise ConfigError(f"{path} has conflicts", "Resolve them, then: git add -A")
    _check_identity(repository)


def _check_identity(repository: Repository) -> None:
    """Commits are the user's: git must know who that is."""
    done = call(("var", "GIT_COMMITTER_IDENT"), repository.place.top, repository.environ)
    if done.code != 0:
        raise ConfigError(
            "git does not know who commits",
            'Try: git config user.name "Your Name" && git config user.email you@example.com',
        )
