"""Forgets what is kept for the way back when nobody can go back to it any more."""

import os
import shutil
import time
from collections.abc import Iterable

from ralph.git import repository as git_work
from ralph.git.checkpoint.start_ref import is_needed, start_ref
from ralph.git.repository import Repository
from ralph.git.view import DIRECTORY as VIEW

CHECKPOINTS = "checkpoints"  # in a run's directory


def forget_run(repository: Repository, run_dir: str) -> None:
    """Forget a run that is over, but for what restores have saved, and what is gone since it
    began."""
    start = start_ref(run_dir)
    if repository.resolve(start) and not is_needed(repository, start, time.time()):
        forget_refs(repository, (start,))
    refs = os.path.dirname(start)
    forget_refs(repository, (f"{refs}/checkpoint-*", f"{refs}/work-*"))
    for name in os.listdir(run_dir):
        if name in (CHECKPOINTS, VIEW) or name.startswith(git_work.SCRATCH):
            shutil.rmtree(os.path.join(run_dir, name), ignore_errors=True)


def forget_before(repository: Repository, run_dir: str, number: int) -> None:
    """Forget older checkpoints: the copies of a long run would be many."""
    above = os.path.join(run_dir, CHECKPOINTS)
    old = [name for name in os.listdir(above) if name.isdecimal() and int(name) < number]
    run = os.path.basename(run_dir)
    if old:
        forget_refs(repository, (f"refs/ralph/{run}/checkpoint-{name}" for name in old))
    for name in old:
        shutil.rmtree(os.path.join(above, name), ignore_errors=True)


def forget_refs(repository: Repository, patterns: Iterable[str]) -> None:
    """Delete the refs that match."""
    said = repository.ask("for-each-ref", "--format=delete %(refname)", *patterns)
    if said:
        repository.ask("update-ref", "--stdin", stdin=said)


def sweep(repository: Repository, run_dir: str) -> None:
    """Forget the runs of this workspace that were killed after their last word. Of a run that is
    not in this workspace's directory nobody can say here whether it is over."""
    patterns = (f"refs/ralph/*/{name}" for name in ("start", "checkpoint-*", "work-*"))
    said = repository.ask("for-each-ref", "--format=%(refname)", *patterns)
    runs = {name.split("/")[2] for name in os.fsdecode(said).split("\n") if name}
    above, own = os.path.split(run_dir)
    for run in sorted(runs - {own}):
        directory, lead = os.path.join(above, run), run.rpartition("-")[0]
        worker = os.path.join(above, lead, "runs", run) if lead != own else ""
        if os.path.isdir(directory) and _is_over(directory):
            forget_run(repository, directory)
        elif os.path.isdir(worker):  # nobody goes on with it, since we have begun
            forget_run(repository, worker)


def _is_over(run_dir: str) -> bool:
    """One that was asked to stop can go on; so can one whose journal cannot be read, perhaps."""
    from ralph.journal.runs import Run, account_of
    from ralph.kernel.verdict import is_interrupted

    above, name = os.path.split(run_dir)
    account = account_of(Run(name, os.path.dirname(above)))
    stop = account.state.stop
    return not account.problem and stop is not None and not is_interrupted(stop)
