"""The words of a task's commit, by which it can be found again, and the commit of records alone."""

import os
from collections.abc import Callable, Iterable, Mapping

from ralph.files.state_dir import lstat
from ralph.git.repository import call, clean_environ
from ralph.git.uncommitted import Corrections
from ralph.text.redact import redact

RECORDS = ("tasks.jsonl", "progress.jsonl", "learning.jsonl")
_LONGEST = 200
_LONG = 256 << 10  # bytes


def in_one_line(text: str) -> str:
    """A text as the subject of a commit."""
    plain = "".join(letter if letter.isprintable() else " " for letter in redact(text))
    return " ".join(plain.split())[:_LONGEST].rstrip()


def trailers_of(run: str, task: str) -> str:
    """The trailers of a task's commit, by which it can be found again."""
    return f"Ralph-Run: {run}\nRalph-Task: {in_one_line(task)}"


def train_trailers(tree: str, tasks: Iterable[str]) -> tuple[str, ...]:
    """The trailers of a commit that was proven with those of other tasks, by their last tree."""
    return (f"Ralph-Train: {in_one_line(' '.join(tasks))}", f"Ralph-Tree: {tree}")


def are_small(paths: Iterable[str]) -> bool:
    """True for records that git may read into the index after every task."""
    return sum(found.st_size for path in paths if (found := lstat(path))) < _LONG


def commit_records(
    workspace: str, environ: Mapping[str, str], run_dir: str, tell: Callable[[str], None]
) -> None:
    """Commit the records of tasks without a commit: blocked, or left in the middle."""
    paths, run = [f".ralph/{name}" for name in RECORDS], os.path.basename(run_dir)
    subject = "Record what became of the tasks"
    corrections = Corrections(workspace, environ)
    small = are_small(os.path.join(workspace, path) for path in paths)
    if (small and corrections.are_at_head(paths)) or corrections.are_committed(paths):
        return
    problem = corrections.commit(paths, subject, run, new=True)
    if problem:
        tell(f"The records are not committed: {problem}")


def commit_of(workspace: str, environ: Mapping[str, str], run: str, task: str) -> str:
    """The commit that a task's work is in, by its trailers; "" if git knows none."""
    words = ("log", "-1", "--format=%H", "--fixed-strings", "--all-match")
    lines = trailers_of(run, task).split("\n")[0 if run else 1 :]
    told = (f"--grep={line}" for line in lines)
    return call((*words, *told), workspace, clean_environ(environ)).output.decode().strip()


def patch_of(workspace: str, environ: Mapping[str, str], commit: str) -> str:
    """A commit and what it changed beside Ralph's records; "" if there is no such thing."""
    name = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{commit}^{{commit}}")
    clean = clean_environ(environ)
    found = call(name, workspace, clean).output.decode().strip()
    if not found:
        return ""
    words = ("show", "--no-color", "--no-ext-diff", "--no-textconv", "--no-show-signature")
    form = ("--diff-merges=first-parent", "--stat", "--patch", "--format=medium")
    work = (":(top)", ":(top,exclude,glob)**/.ralph/**")
    return call((*words, *form, found, "--", *work), workspace, clean).output.decode(
        "utf-8", "replace"
    )
