"""The runs of this machine, looked at again and again at next to no cost.

A run that nobody works on does not change: of such a one nothing is read twice, and no file of it
is even looked at. What a second look costs is one scan of each workspace's folder and its lock.
"""

import os
import re
import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

from ralph.files.state_dir import lstat
from ralph.journal.life import Account
from ralph.journal.lock import NAME
from ralph.journal.outline import Costs
from ralph.journal.runs import Following, Run, directories, is_name, live_owner, runs_of
from ralph.kernel.value import value
from ralph.ui.status.listing import Entry
from ralph.ui.status.reading import entry_of

_FRESH = 0.5  # seconds for which a look is good enough
_SETTLED = 2.0  # seconds after which a folder's time of change tells all changes
_NUMBER = re.compile(r"-\d{3,}$")  # of a worker
Told = TypeVar("Told")


@value
class _Stamp:
    """The look of a folder and of the lock beside it; equal ones hold the same runs."""

    changed: int
    links: tuple[str, ...] = ()  # runs that are kept elsewhere: their locks are there too
    runs: tuple[Run, ...] = ()


class KnownRuns(Generic[Told]):
    """The runs of a state directory, each as `tell` has it. Any thread may look, one at a time."""

    def __init__(self, root: str, tell: Callable[[Entry], Told]) -> None:
        self.root, self._tell = root, tell
        self._lock = threading.Lock()
        self._looked = 0.0
        self._projects: dict[str, _Stamp] = {}
        self._runs: dict[str, Run] = {}  # by id, newest first
        self._told: dict[str, Told] = {}
        self._following: dict[str, Following] = {}  # journals of live runs and their workers
        self._costs = Costs()

    def newest(self, most: int) -> tuple[list[Told], int]:
        """The newest runs and all that live, and how many there are besides."""
        with self._lock:
            self._look()
            shown = [
                run for number, run in enumerate(self._runs.values()) if number < most or run.live
            ]
            return [self._entry(run) for run in shown], len(self._runs) - len(shown)

    def named(self, name: str) -> Run | None:
        """The run of exactly that id, or the worker's; None if there is none."""
        if not is_name(name):
            return None
        with self._lock:
            self._look()
            if name in self._runs:
                return self._runs[name]
            lead = self._runs.get(_NUMBER.sub("", name))
            if lead is None or not os.path.isdir(os.path.join(lead.directory, "runs", name)):
                return None
            crew = self._account(lead).state.crew if lead.live else ()
            at_work = any(sent.worker == name for sent in crew)
            return Run(name, lead.directory, lead.owner if at_work else None, lead)

    def _look(self) -> None:
        """Find the runs that there are, and whose process lives."""
        if time.monotonic() - self._looked < _FRESH:
            return
        found: dict[str, Run] = {}
        there = [os.path.join(self.root, name) for name in directories(self.root)]
        for project in there:
            for run in self._runs_of(project):
                found[run.id] = run
        before = self._runs
        self._runs = dict(sorted(found.items(), reverse=True))
        for name, old in before.items():
            new = self._runs.get(name)
            if new is None or new.owner != old.owner:
                self._told.pop(name, None)
        live = {run.id for run in self._runs.values() if run.live}
        self._following = {
            name: each
            for name, each in self._following.items()
            if name in live or _NUMBER.sub("", name) in live
        }
        self._looked = time.monotonic()

    def _runs_of(self, project: str) -> tuple[Run, ...]:
        seen = lstat(os.path.join(project, "runs"))
        changed = seen.st_mtime_ns if seen else 0
        known = self._projects.get(project)
        settled = time.time() - changed / 1e9 > _SETTLED
        is_live = lstat(os.path.join(project, NAME)) is not None and live_owner(project) is not None
        if known is None or known.changed != changed or not settled or is_live or known.links:
            runs = tuple(runs_of(project))
            links = tuple(run.id for run in runs if run.project != project)
            self._projects[project] = known = _Stamp(changed, links, runs)
        elif any(run.live for run in known.runs):
            gone = tuple(Run(run.id, run.project) for run in known.runs)
            self._projects[project] = known = _Stamp(changed, known.links, gone)
        return known.runs

    def _entry(self, run: Run) -> Told:
        told = self._told.get(run.id)
        if told is None or run.live:
            told = self._tell(entry_of(run, time.time(), self._costs, self._account))
            self._told[run.id] = told
        return told

    def _account(self, run: Run) -> Account:
        if run.id not in self._following:
            self._following[run.id] = Following(run)
        return self._following[run.id].look()
