"""What a person had not committed when a run began: kept in `refs/ralph/<run>/start`.

It is made as a stash is: the work tree, on top of HEAD, of the index where that differs, and of
the stashes that there were. Whatever an agent throws away after that can be had again:
`git diff refs/ralph/<run>/start`, `git restore --source=refs/ralph/<run>/start FILE`.
"""

import os

from ralph.adapters.git_trees import GitTrees
from ralph.adapters.git_work import Repository

_MOST_STASHES = 100
_KEPT_FOR = 30 * 24 * 3600.0
_INDEX = 2  # parents of ours before those that are stashes


def start_ref(run_dir: str) -> str:
    """The ref of a run."""
    return f"refs/ralph/{os.path.basename(run_dir)}/start"


def keep_start(trees: GitTrees) -> None:
    """Keep what is not committed, and stashes, if there are any; who is killed calls it again."""
    repository, ref = trees.repository, start_ref(trees.run_dir)
    seen, stashes = trees.seen, _stashes(repository)
    if not (seen.changed or stashes) or repository.resolve(ref):
        return
    base = seen.head or saved(repository, trees.empty, [], "nothing")
    index = repository.identifier("write-tree")
    parents = [base]
    if stashes or index != repository.resolve(f"{base}^{{tree}}"):
        parents.append(saved(repository, index, parents, "index"))
    words = "what was not committed when the run began"
    commit = saved(repository, trees.view.tree(seen), [*parents, *stashes], words)
    repository.ask("update-ref", ref, commit)


def saved(repository: Repository, tree: str, parents: list[str], what: str) -> str:
    """A commit of a tree, on no branch."""
    words = [word for parent in parents for word in ("-p", parent)]
    message = f"ralph: {what}\n".encode("utf-8", "replace")
    return repository.identifier("commit-tree", tree, *words, stdin=message)


def trees_of(repository: Repository, ref: str) -> tuple[str, ...]:
    """What HEAD was, the work tree, and the index where it differed; nothing without the ref."""
    parents = _parents(repository, ref)[:_INDEX]
    return (parents[0], ref, *parents[1:]) if parents else ()


def is_needed(repository: Repository, ref: str, now: float) -> bool:
    """Whether something that it keeps is gone from the project, and not long ago."""
    made = repository.run("log", "-1", "--no-show-signature", "--format=%ct", ref).output
    if not made.strip().isdigit() or now - int(made) > _KEPT_FOR:
        return False
    parents = _parents(repository, ref)
    if not {*_stashes(repository)}.issuperset(parents[_INDEX:]):
        return True
    words = ("diff-tree", "-r", "-z", "--no-renames", parents[0], ref)
    said = os.fsdecode(repository.ask(*words)).split("\0")
    kept = {path: entry.split()[3] for entry, path in zip(said[:-1:2], said[1::2], strict=True)}
    return any(_digest(repository, path) != blob for path, blob in kept.items())


def _digest(repository: Repository, path: str) -> str:
    """What stands there now, as git would keep it; zeros for nothing."""
    place = repository.place.path(path)
    if os.path.islink(place):
        target = os.fsencode(os.readlink(place))
        return repository.identifier("hash-object", "--stdin", stdin=target)
    if not os.path.isfile(place):
        return "0" * len(repository.resolve("HEAD") or 40 * "0")
    words = ("hash-object", f"--path={path}", "--", place)
    return repository.run(*words).output.decode().strip()


def _parents(repository: Repository, ref: str) -> list[str]:
    said = repository.run("rev-parse", "--verify", "--quiet", f"{ref}^@")
    return said.output.decode().split()


def _stashes(repository: Repository) -> list[str]:
    """Newest first."""
    if not repository.resolve("refs/stash"):
        return []
    words = ("log", "--walk-reflogs", "--no-show-signature", "--format=%H", "refs/stash", "--")
    found = repository.run(*words).output.decode().split()
    return list(dict.fromkeys(found))[:_MOST_STASHES]
