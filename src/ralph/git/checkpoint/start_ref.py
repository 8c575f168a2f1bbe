"""Keeps what a person had not committed when a run began, in `refs/ralph/<run>/start`.

It is made as a stash is: the work tree, on top of HEAD, of the index where that differs, and of the
stashes that there were. Whatever an agent throws away after that can be had again: `git diff
refs/ralph/<run>/start`, `git restore --source=refs/ralph/<run>/start FILE`.
"""

import os
from collections.abc import Iterable

from ralph.files.state_dir import write_atomically
from ralph.git.checkpoint.files import LINK, NOTHING, differing
from ralph.git.checkpoint.refs import stash_of
from ralph.git.checkpoint.trees import GitTrees
from ralph.git.repository import Repository

_MOST_STASHES = 100
_KEPT_FOR = 30 * 24 * 3600.0
_INDEX = 2  # parents of ours before those that are stashes
KEPT = "start-kept"  # in the run's directory, once all is kept


def start_ref(run_dir: str) -> str:
    """The ref of a run."""
    return f"refs/ralph/{os.path.basename(run_dir)}/start"


def keep_start(trees: GitTrees) -> None:
    """Keep what is not committed, and stashes, if there are any; who is killed calls it again."""
    repository, ref = trees.repository, start_ref(trees.run_dir)
    seen, stashes = trees.seen, _stashes(repository)
    if (seen.changed or stashes) and not repository.resolve(ref):
        base = seen.head or saved(repository, trees.view.empty, [], "nothing")
        tree = trees.view.tree(seen)
        index = repository.run("write-tree").output.decode().strip() or tree  # none in a conflict
        parents = [base]
        if stashes or index != repository.resolve(f"{base}^{{tree}}"):
            parents.append(saved(repository, index, parents, "index"))
        words = "what was not committed when the run began"
        commit = saved(repository, tree, [*parents, *stashes], words)
        repository.ask("update-ref", ref, commit)
    write_atomically(os.path.join(trees.run_dir, KEPT), ref, 0o600)


def is_kept(run_dir: str) -> bool:
    """True if a run has kept all that there was, perhaps nothing."""
    return os.path.exists(os.path.join(run_dir, KEPT))


def saved(repository: Repository, tree: str, parents: list[str], what: str) -> str:
    """A commit of a tree, on no branch."""
    words = [word for parent in parents for word in ("-p", parent)]
    message = f"ralph: {what}\n".encode("utf-8", "replace")
    return repository.identifier("commit-tree", tree, *words, stdin=message)


def trees_of(repository: Repository, ref: str) -> tuple[str, ...]:
    """HEAD of then, the work tree, and the index where it differed; nothing without the ref."""
    parents = _parents(repository, ref)[:_INDEX]
    return (parents[0], ref, *parents[1:]) if parents else ()


def is_needed(repository: Repository, ref: str, now: float) -> bool:
    """True if something that it keeps is gone from the project, and not long ago."""
    made = repository.run("log", "-1", "--no-show-signature", "--format=%ct", ref).output
    if not made.strip().isdigit() or now - int(made) > _KEPT_FOR:
        return False
    if not {*_stashes(repository)}.issuperset(_parents(repository, ref)[_INDEX:]):
        return True
    base, tree, *index = trees_of(repository, ref)
    kept = _changed(repository, base, tree)
    if _digests(repository, kept) != kept:
        return True
    staged = _changed(repository, base, index[0]) if index else {}
    known = _digests(repository, staged)
    for entry in repository.names("ls-files", "-s", "-z", "--", *staged) if staged else ():
        fields, _, path = entry.partition("\t")
        known[path] = fields.split()[1]
    return any(known.get(path) != blob for path, blob in staged.items())


def _changed(repository: Repository, base: str, tree: str) -> dict[str, str]:
    """Blobs by path that a tree has and the other has not, "" where there is nothing any more."""
    entries = [e for e in differing(repository, base, tree) if LINK not in (e.mode, e.old_mode)]
    return {e.path: "" if e.old_mode == NOTHING else e.old_identifier for e in entries}


def _digests(repository: Repository, paths: Iterable[str]) -> dict[str, str]:
    """Blobs by path for what stands in the work tree; "" for nothing."""
    found, plain = {}, []
    for path in paths:
        place, found[path] = repository.place.path(path), ""
        if os.path.islink(place):
            target = os.fsencode(os.readlink(place))
            found[path] = repository.identifier("hash-object", "--stdin", stdin=target)
        elif os.path.isfile(place) and "\n" in path:
            found[path] = repository.identifier("hash-object", "--", place)
        elif os.path.isfile(place):
            plain.append(path)
    sent = os.fsencode("".join(f"{path}\n" for path in plain))
    said = repository.ask("hash-object", "--stdin-paths", stdin=sent) if plain else b""
    return {**found, **dict(zip(plain, said.decode().split(), strict=True))}


def _parents(repository: Repository, ref: str) -> list[str]:
    said = repository.run("rev-parse", "--verify", "--quiet", f"{ref}^@")
    return said.output.decode().split()


def _stashes(repository: Repository) -> list[str]:
    """Newest first."""
    return list(dict.fromkeys(commit for commit, _ in stash_of(repository)))[:_MOST_STASHES]
