"""The runs that a server is for: those of the directories below its root."""

import os
from collections.abc import Iterator, Mapping

from ralph.errors import ConfigError
from ralph.files.state_dir import project_dir, state_root
from ralph.journal.outline import outline_of
from ralph.journal.runs import Run, named_among, projects, runs_of, worker_among
from ralph.kernel.value import value
from ralph.web.tail import Tail

_TRIED = 5  # runs of a place, to learn which directory it is for


@value
class KeptPlace:
    """A directory that was worked in, and where its runs are kept."""

    workspace: str
    project: str


class Scope:
    """The root of a server, without links, and what is kept of the runs below it."""

    def __init__(self, root: str, environ: Mapping[str, str]) -> None:
        self.root = os.path.realpath(root)
        self.environ = environ
        self.state = state_root(environ)
        self.tails: dict[str, Tail] = {}  # the log that was read last, by its run
        self._workspaces: dict[str, str] = {}  # by project: one is never another's

    def close(self) -> None:
        """Let go of what was kept for the next who asks."""
        for tail in self.tails.values():
            tail.close()

    def within(self, directory: str | None) -> str:
        """A directory below the root, links followed. ConfigError for any other, and for one whose
        tasks and settings are elsewhere."""
        path = os.path.realpath(os.path.join(self.root, directory or "."))
        if outside := self.outside(path):
            raise ConfigError(f"{outside} is outside {self.root}", "Name a directory below that.")
        if not os.path.isdir(path):
            raise ConfigError(f"there is no directory {path}", "Make it first, or name another.")
        return path

    def outside(self, directory: str) -> str:
        """What is outside the root: the directory itself, or where its `.ralph` leads to."""
        found = (directory, os.path.realpath(os.path.join(directory, ".ralph")))
        return next((path for path in found if not self.holds(path)), "")

    def holds(self, path: str) -> bool:
        """True for the root and what lies below it."""
        return path == self.root or path.startswith(os.path.join(self.root, ""))

    def place(self, workspace: str) -> KeptPlace:
        return KeptPlace(workspace, project_dir(self.state, workspace))

    def places(self) -> Iterator[KeptPlace]:
        """The directories below the root in which there were runs, and the root itself."""
        own = self.place(self.root)
        yield own
        for project in projects(self.state):
            workspace = self._workspace(project)
            if project != own.project and workspace and self.holds(workspace):
                yield KeptPlace(workspace, project)

    def runs(self) -> list[Run]:
        """The runs below the root, newest first."""
        found = {run.id: run for place in self.places() for run in runs_of(place.project)}
        return sorted(found.values(), key=lambda run: run.id, reverse=True)

    def run(self, part: str | None) -> Run:
        """The run that is meant: by any part of its id; without one the newest that goes on, else
        the last. ConfigError where there is none, or it is not clear which."""
        runs = self.runs()
        if not part:
            if not runs:
                remedy = "Start one: call `start` with a prompt."
                raise ConfigError(f"no run was started in {self.root} or below", remedy)
            return next((run for run in runs if run.live), runs[0])
        found = named_among(part, runs) or worker_among(part, runs)
        if found is None:
            remedy = "Call `status` for those that there are."
            raise ConfigError(f"there is no run {part!r} in {self.root} or below", remedy)
        return found

    def _workspace(self, project: str) -> str:
        """The directory that a project's runs work in; "" where no run tells."""
        if project not in self._workspaces:
            found = (outline_of(run).started for run in runs_of(project)[:_TRIED])
            told = next((started.workspace for started in found if started), "")
            if not told:
                return ""  # it may tell later
            self._workspaces[project] = os.path.realpath(told)
        return self._workspaces[project]
