"""Keeps what a person had not committed when a run began, in `refs/ralph/<run>/start`.

It is made as a stash is: the work tree, on top of HEAD, of the index where that differs, and of the
stashes that there were. Whatever an agent throws away after that can be had again: `git diff
refs/ralph/<run>/start`, `git restore --source=refs/ralph/<run>/start FILE`.
"""

import os
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

from ralph.errors import ConfigError
from ralph.files.safe_open import create
from ralph.git.repository import (
    LINK,
    NOTHING,
    SCRATCH,
    Repository,
    hidden_in,
    repository_of_run,
)
from ralph.git.status import hashed, look

if TYPE_CHECKING:
    from ralph.git.checkpoint.trees import GitTrees

_MOST_STASHES = 100
_KEPT_FOR = 30 * 24 * 3600.0
_INDEX = 2  # parents of ours before those that are stashes
CHECKPOINTS = "checkpoints"  # in a run's directory
KEPT = "start-kept"  # in the run's directory, once all is kept


def start_ref(run_dir: str) -> str:
    return f"refs/ralph/{os.path.basename(run_dir)}/start"


def keep_project(
    workspace: str, environ: Mapping[str, str], run_dir: str, trees: "GitTrees | None"
) -> bool:
    """Keep what there is before the run's `trees` begin, which a clean project may never need; true
    if this run has kept something, now or before."""
    try:
        repository = trees.repository if trees else repository_of_run(workspace, environ, run_dir)
    except ConfigError:
        return False  # it is none to work in
    swept = sweeping(repository)  # git lists the runs while the files are looked at
    some = not _is_clean(repository)
    if some:
        from ralph.git.checkpoint.trees import GitTrees

        trees = trees or GitTrees(repository, workspace, run_dir)
        trees.begin()
        some = keep_start(trees)
    else:
        _have_kept(run_dir)
    return swept(run_dir) or some


def _is_clean(repository: Repository) -> bool:
    listing = repository.begun("ls-files", "-v", "-z")  # while the files are looked at
    changed = look(repository).changed
    return not (hidden_in(listing().output) or changed or _stashes(repository))


def keep_start(trees: "GitTrees") -> bool:
    """Keep what is not committed, and stashes, if there are any; who is killed calls it again."""
    repository, ref = trees.repository, start_ref(trees.run_dir)
    seen, stashes = trees.seen, _stashes(repository)
    some = bool(seen.changed or stashes)
    if some and not repository.resolve(ref):
        base = seen.head or repository.commit(trees.view.empty, [], "nothing")
        tree = trees.tree
        index = repository.run("write-tree").output.decode().strip() or tree  # none in a conflict
        parents = [base]
        if stashes or index != repository.resolve(f"{base}^{{tree}}"):
            parents.append(repository.commit(index, parents, "index"))
        what = "what was not committed when the run began"
        repository.save(ref, tree, [*parents, *stashes], what)
    _have_kept(trees.run_dir)
    return some


def _have_kept(run_dir: str) -> None:
    """Note that all is kept that there was."""
    os.close(create(os.path.join(run_dir, KEPT)))


def is_kept(run_dir: str) -> bool:
    """True if a run has kept all that there was, perhaps nothing."""
    return os.path.exists(os.path.join(run_dir, KEPT))


def is_needed(repository: Repository, ref: str, now: float) -> bool:
    """True if something that it keeps is gone from the project, and not long ago."""
    made = repository.run("log", "-1", "--no-show-signature", "--format=%ct", ref).output
    if not made.strip().isdigit() or now - int(made) > _KEPT_FOR:
        return False
    parents = repository.run("rev-parse", "--verify", "--quiet", f"{ref}^@").output.decode().split()
    if not {*_stashes(repository)}.issuperset(parents[_INDEX:]):
        return True
    base, *index = parents[:_INDEX]
    kept = _changed(repository, base, ref)
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
    entries = [e for e in repository.changes(base, tree) if LINK not in (e.mode, e.old_mode)]
    return {e.path: "" if e.old_mode == NOTHING else e.old_identifier for e in entries}


def _digests(repository: Repository, paths: Iterable[str]) -> dict[str, str]:
    """Blobs by path for what stands in the work tree; "" for nothing."""
    found, plain = {}, []
    for path in paths:
        place, found[path] = repository.place.path(path), ""
        if os.path.islink(place):
            target = os.fsencode(os.readlink(place))
            found[path] = repository.identifier("hash-object", "--stdin", stdin=target)
        elif os.path.isfile(place):
            plain.append(path)
    return found | hashed(repository, plain)


def _stashes(repository: Repository) -> list[str]:
    """Newest first."""
    return list(dict.fromkeys(commit for commit, _ in repository.stash()))[:_MOST_STASHES]


def forget_run(repository: Repository, run_dir: str) -> None:
    """Forget a run that is over, except saved restores and work that is gone since it began."""
    from shutil import rmtree

    start = start_ref(run_dir)
    if repository.resolve(start) and not is_needed(repository, start, time.time()):
        forget_refs(repository, (start,))
    if not repository.resolve(start):  # if the run goes on one day, it keeps what there is then
        with suppress(FileNotFoundError):
            os.unlink(os.path.join(run_dir, KEPT))
    refs = os.path.dirname(start)
    forget_refs(repository, (f"{refs}/checkpoint-*", f"{refs}/work-*"))
    for name in os.listdir(run_dir):
        if name in (CHECKPOINTS, "view") or name.startswith(SCRATCH):
            rmtree(os.path.join(run_dir, name), ignore_errors=True)


def forget_before(repository: Repository, run_dir: str, number: int) -> None:
    """Forget older checkpoints: the copies of a long run would be many."""
    from shutil import rmtree

    above = os.path.join(run_dir, CHECKPOINTS)
    old = [name for name in os.listdir(above) if name.isdecimal() and int(name) < number]
    run = os.path.basename(run_dir)
    if old:
        forget_refs(repository, (f"refs/ralph/{run}/checkpoint-{name}" for name in old))
    for name in old:
        rmtree(os.path.join(above, name), ignore_errors=True)


def forget_refs(repository: Repository, patterns: Iterable[str]) -> None:
    said = repository.ask("for-each-ref", "--format=delete %(refname)", *patterns)
    if said:
        repository.ask("update-ref", "--stdin", stdin=said)


def sweep(repository: Repository, run_dir: str) -> bool:
    """Forget the runs of this workspace that were killed after their last word. Of a run that is
    not in this workspace's directory nobody can say here whether it is over. True if this run has
    kept something itself."""
    return sweeping(repository)(run_dir)


def sweeping(repository: Repository) -> Callable[[str], bool]:
    """The same, once git has listed what runs have kept, which it begins to do."""
    patterns = (f"refs/ralph/*/{name}" for name in ("start", "checkpoint-*", "work-*"))
    listing = repository.asking("for-each-ref", "--format=%(refname)", *patterns)
    return lambda run_dir: _forget_dead(repository, run_dir, listing())


def _forget_dead(repository: Repository, run_dir: str, listed: bytes) -> bool:
    refs = os.fsdecode(listed).split()
    runs = {ref.split("/")[2] for ref in refs}
    above, own = os.path.split(run_dir)
    for run in sorted(runs - {own}):
        directory, lead = os.path.join(above, run), run.rpartition("-")[0]
        worker = os.path.join(above, lead, "runs", run) if lead != own else ""
        if os.path.isdir(directory) and _is_over(directory):
            forget_run(repository, directory)
        elif os.path.isdir(worker):  # nobody goes on with it, since we have begun
            forget_run(repository, worker)
    return start_ref(run_dir) in refs


def _is_over(run_dir: str) -> bool:
    """One that was asked to stop can go on; so can one whose journal cannot be read, perhaps. One
    that has ended goes on with what it finds then."""
    from ralph.journal.runs import Run, account_of

    above, name = os.path.split(run_dir)
    account = account_of(Run(name, os.path.dirname(above)))
    return not account.problem and account.state.has_ended
