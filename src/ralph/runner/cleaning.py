"""Finds and removes what old runs have left: their directories, the refs that keep their work, and
their sandboxes. What somebody could still need is kept, and named with the reason."""

import os
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any

from ralph.errors import RalphError
from ralph.files.disk_use import forget_size, size_of
from ralph.files.safe_open import read_or_nothing
from ralph.files.state_dir import lstat
from ralph.git.digest import git_output
from ralph.git.repository import Repository, find
from ralph.journal.journal import JOURNAL
from ralph.journal.lock import NAME as LOCK
from ralph.journal.lock import is_held, read_owner
from ralph.journal.outline import Outline, outline_of
from ralph.journal.runs import directories, live_owner, projects, runs_of
from ralph.kernel.value import value
from ralph.kernel.verdict import is_interrupted
from ralph.sandbox import layer_store
from ralph.text.words import listed

RESUMABLE_FOR = 30 * 24 * 3600.0  # seconds that a run which can go on is kept, whatever is asked
SANDBOX = "sandbox"
_SANDBOXES, _HELD = "sandboxes", "held"  # in a project's directory: one directory for each layer
_REMOVED = "removed"  # beside them: what is being removed
_REFS = "refs/ralph/"


@value
class Terms:
    """What may go: whatever was left alone for so many seconds, but for the newest runs."""

    older: float
    keep: int  # runs of each project
    now: float


@value
class Remains:
    """What is left of a run that has ended, or of a sandbox that nobody has."""

    name: str
    project: str
    state: str  # how the run ended; or SANDBOX
    age: float  # seconds since anything was written
    workspace: str = ""
    paths: tuple[str, ...] = ()
    refs: tuple[str, ...] = ()
    size: int = 0  # bytes
    kept: str = ""  # why it stays; "" if it may go

    def as_dict(self) -> dict[str, Any]:
        named = {"name": self.name, "state": self.state, "workspace": self.workspace or None}
        if self.kept:
            return {**named, "kept": self.kept}
        return {**named, "bytes": self.size, "refs": list(self.refs), "paths": list(self.paths)}


def remains(places: Iterable[str], environ: Mapping[str, str], terms: Terms) -> Iterator[Remains]:
    """What is old in these directories of projects, also what is kept all the same."""
    repositories = _Repositories(environ)
    for project in places:
        yield from _of_runs(project, repositories, terms)
        yield from _of_nobody(project, terms)


def _of_runs(project: str, repositories: "_Repositories", terms: Terms) -> Iterator[Remains]:
    owner = read_owner(os.path.join(project, LOCK))  # perhaps one that is not to be seen from here
    busy = owner.run if owner and is_held(os.path.join(project, LOCK)) else ""
    runs = [run for run in runs_of(project) if run.project == project]
    for run in runs[terms.keep :]:
        age = terms.now - _last_written(run.directory)
        if run.live or run.id == busy or age < terms.older:
            continue
        outline = outline_of(run)
        state = outline.stop.reason.value if outline.stop else "crashed"
        workspace = outline.started.workspace if outline.started else ""
        layers = _layers_of(project, run.id)
        kept = _can_go_on(outline, age) or _is_needed(layers, workspace, run.id, repositories)
        if kept:
            yield Remains(run.id, project, state, age, workspace, kept=kept)
            continue
        paths, refs = (run.directory, *layers), repositories.refs_of(workspace, run.id)
        size = sum(map(size_of, paths))
        yield Remains(run.id, project, state, age, workspace, paths, refs, size)


def _can_go_on(outline: Outline, age: float) -> str:
    resumable = outline.stop is None or is_interrupted(outline.stop)
    if not resumable or outline.started is None or age >= RESUMABLE_FOR:
        return ""
    return "it can go on: ralph resume"


def _is_needed(
    layers: Iterable[str], workspace: str, run: str, repositories: "_Repositories"
) -> str:
    if any(map(_is_landing, layers)):
        return "what it changed has not landed yet: ralph resume"
    if repositories.has_saved_work(workspace, run):
        return "a task goes on from the work that it saved"
    return ""


def _of_nobody(project: str, terms: Terms) -> Iterator[Remains]:
    """Sandboxes, and what they held, that belong to no run and that no process has; and what a
    `clean` that was killed had begun to remove."""
    runs = directories(os.path.join(project, "runs"))
    for kind in (_SANDBOXES, _HELD):
        for name in directories(os.path.join(project, kind)):
            path = os.path.join(project, kind, name)
            age = terms.now - _last_written(path)
            owned = any(name.startswith(f"{run}-") for run in runs)
            owned = owned or _is_landing(path) or is_held(os.path.join(path, layer_store.LOCK))
            if owned or age < terms.older:
                continue
            workspace = layer_store.record_of(path).get("project", "")
            if workspace and os.path.isdir(workspace):
                name = name.removeprefix(layer_store.NAMED)  # noqa: PLW2901  as people call it
                words = f"you named it: ralph sandbox discard {name} -C {workspace}"
                yield Remains(name, project, SANDBOX, age, workspace, kept=words)
                continue
            yield Remains(name, project, SANDBOX, age, "", (path,), (), size_of(path))
    for name in directories(os.path.join(project, _REMOVED)):
        path = os.path.join(project, _REMOVED, name)
        yield Remains(name, project, _REMOVED, 0.0, "", (path,), (), size_of(path))


def _layers_of(project: str, run: str) -> tuple[str, ...]:
    """The directories of a run's sandboxes, and of what they held for a person's review."""
    return tuple(
        os.path.join(project, kind, name)
        for kind in (_SANDBOXES, _HELD)
        for name in sorted(directories(os.path.join(project, kind)))
        if name.startswith(f"{run}-")
    )


def _is_landing(path: str) -> bool:
    """True if changes are being applied from there, or were when somebody was killed."""
    return os.path.exists(os.path.join(path, layer_store.JOURNAL))


def _last_written(directory: str) -> float:
    names = (directory, os.path.join(directory, JOURNAL))
    return max((found.st_mtime for name in names if (found := lstat(name))), default=0.0)


class _Repositories:
    """What runs have left in the repositories of their workspaces; each is asked once."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self._refs: dict[str, list[str]] = {}  # by workspace
        self._tasks: dict[str, str] = {}

    def refs_of(self, workspace: str, run: str) -> tuple[str, ...]:
        """The refs of a run and its workers."""
        if workspace not in self._refs:
            words = ("for-each-ref", "--format=%(refname)", _REFS)
            said = git_output(workspace, self._environ, *words) if workspace else None
            self._refs[workspace] = os.fsdecode(said or b"").split("\n")[:-1]
        return tuple(ref for ref in self._refs[workspace] if ref.startswith(_names(run)))

    def has_saved_work(self, workspace: str, run: str) -> bool:
        """True if a task names work that the run has saved."""
        if workspace not in self._tasks:
            path = os.path.join(workspace, ".ralph", "tasks.jsonl")
            self._tasks[workspace] = os.fsdecode(read_or_nothing(path)) if workspace else ""
        return any(name in self._tasks[workspace] for name in _names(run))


def _names(run: str) -> tuple[str, str]:
    """How the refs of a run begin, and of its workers."""
    return f"{_REFS}{run}/", f"{_REFS}{run}-"


def remove(found: Iterable[Remains], root: str, environ: Mapping[str, str]) -> list[str]:
    """Remove them; what could not be, in words. A run is gone at once or not at all: what a kill
    leaves of it the next call finds."""
    problems = []
    for left in found:
        owner = live_owner(left.project)
        if owner is not None and owner.run == left.name:
            problems.append(f"{left.name}: it goes on again")
        elif problem := _forget_refs(left, environ):  # the run knows them, so it stays as well
            problems.append(f"{left.name}: {problem}")
        else:
            stuck = [path for path in left.paths if not _removed(path, left.project)]
            problems += [f"{left.name}: {path} cannot be removed" for path in stuck]
    for project in projects(root):
        _drop_links(os.path.join(project, "runs"))
    forget_size(root)
    return problems


def _forget_refs(left: Remains, environ: Mapping[str, str]) -> str:
    if not left.refs:
        return ""
    lines = "".join(f"delete {ref}\n" for ref in left.refs)
    try:
        repository = Repository(find(left.workspace, environ, left.paths[0]), environ)
        repository.ask("update-ref", "--stdin", stdin=os.fsencode(lines))
    except RalphError as error:
        return f"{listed(left.refs, 2)}: {error.message}"
    return ""


def _removed(path: str, project: str) -> bool:
    above = os.path.join(project, _REMOVED)
    away = os.path.join(above, f"{os.path.basename(path)}-{time.time_ns():x}")
    if os.path.dirname(path) == above:
        away = path
    else:
        try:
            os.makedirs(above, mode=0o700, exist_ok=True)
            os.rename(path, away)
        except OSError:
            return False
    layer_store.remove(away)
    with suppress(OSError):
        os.rmdir(above)
    return not os.path.lexists(away)


def _drop_links(runs: str) -> None:
    """Remove links to runs that are gone; those of a supervised task are with the task (ADR 10)."""
    with suppress(OSError), os.scandir(runs) as entries:
        for entry in entries:
            if entry.is_symlink() and not os.path.exists(entry.path):
                os.unlink(entry.path)
