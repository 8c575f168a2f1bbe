"""Runs on disk: finds them, tells whether they live, and reads their journals.

Looking never takes a lock and never writes, so it cannot disturb a run.
"""

import os
import shlex
from collections.abc import Iterator
from contextlib import contextmanager

from ralph.errors import ConfigError, StateError
from ralph.files.safe_open import open_regular, read_or_nothing
from ralph.files.state_dir import project_dir
from ralph.journal.journal import JOURNAL, HashChain
from ralph.journal.life import Account, note_question
from ralph.journal.lock import NAME, Owner, read_owner
from ralph.kernel.facts import (
    Assigned,
    Checking,
    Fact,
    Launching,
    Started,
)
from ralph.kernel.state import RunState, fold
from ralph.kernel.turn import Role
from ralph.kernel.value import replace, value
from ralph.kernel.world import Signals, together
from ralph.processes.signals import SignalFiles

_BLOCK = 1024 * 1024
_LONGEST_PROMPT = 80 << 20  # bytes: those of a file may have 64 MB
_SHOWN = 5  # candidates for an ambiguous name
NONSENSE = (AssertionError, AttributeError, TypeError, ValueError, OverflowError)


@contextmanager
def folding(journal: str) -> Iterator[None]:
    """Raise facts that make no sense as a StateError that names their journal."""
    try:
        yield
    except NONSENSE as error:
        raise StateError(f"{journal}: its facts make no sense ({error!r})") from error


@value
class Run:
    """A run on disk; `owner` is its process, if that lives. A worker's is that of its `lead`, as
    long as it is at work."""

    id: str
    project: str
    owner: Owner | None = None
    lead: "Run | None" = None  # the run that it works for, where several tasks are worked on

    @property
    def directory(self) -> str:
        return os.path.join(self.project, "runs", self.id)

    @property
    def journal(self) -> str:
        return os.path.join(self.directory, JOURNAL)

    @property
    def live(self) -> bool:
        return self.owner is not None

    def asked(self) -> Signals:
        """The signals that other terminals have sent it, now."""
        own = SignalFiles(self.directory).signals()
        return own if self.lead is None else together(own, self.lead.asked())


@value
class CopiedRun(Run):
    """A run that is kept in a directory of its own, wherever that is."""

    place: str = ""

    @property
    def directory(self) -> str:
        return self.place


def runs_of(project: str) -> list[Run]:
    """A workspace's runs, newest first; also one that has taken the lock and nothing else yet."""
    owner = live_owner(project)
    runs = os.path.join(project, "runs")
    names = set(directories(runs))
    if owner is not None:
        names.add(owner.run)
    return [_run_at(os.path.join(runs, name), owner) for name in sorted(names, reverse=True)]


def _run_at(path: str, owner: Owner | None) -> Run:
    """The run of that directory. A link leads to a run that is kept with its task (ADR 10)."""
    name, project = os.path.basename(path), os.path.dirname(os.path.dirname(path))
    if os.path.islink(path):
        project = os.path.dirname(os.path.dirname(os.path.realpath(path)))
        owner = live_owner(project)
    return Run(name, project, owner if owner is not None and owner.run == name else None)


def live_owner(project: str) -> Owner | None:
    """The process that works in a workspace now."""
    owner = read_owner(os.path.join(project, NAME))
    return owner if owner is not None and is_name(owner.run) and owner.is_alive() else None


def is_name(name: str) -> bool:
    """True if it can be the name of a run: of a directory, and fit to be shown."""
    return name.isprintable() and name not in ("", ".", "..") and "/" not in name


def look_again(run: Run) -> Run:
    """The run as it is now: its process may have ended."""
    if run.lead is not None:
        return worker_of(look_again(run.lead), run.id)
    owner = live_owner(run.project)
    return replace(run, owner=owner if owner is not None and owner.run == run.id else None)


def workers_at(run: Run, state: RunState) -> list[tuple[Run, Assigned]]:
    """The workers of a run in that state, or those of when it ended."""
    return [
        (Run(sent.worker, run.directory, run.owner, run), sent)
        for sent in state.crew
        if is_name(sent.worker)
    ]


def worker_of(lead: Run, name: str) -> Run:
    """The run of that worker, as it is now."""
    at_work = workers_at(lead, account_of(lead).state) if lead.live else []
    gone = Run(name, lead.directory, lead=lead)
    return next((run for run, _ in at_work if run.id == name), gone)


def projects(root: str) -> list[str]:
    """The directories that keep the runs of each workspace."""
    return [os.path.join(root, name) for name in sorted(directories(root))]


def all_runs(root: str) -> list[Run]:
    """Every run of every workspace, newest first."""
    found = {(run.project, run.id): run for project in projects(root) for run in runs_of(project)}
    return sorted(found.values(), key=lambda run: run.id, reverse=True)


def find_run(
    root: str, workspace: str, part: str | None, command: str, *, workers: bool = False
) -> Run:
    """The run that is meant: by any part of its id, here first; without one the live run of this
    workspace, else its last. A worker's own is found only where `workers` may be meant. `command`
    is what was typed, for the remedy."""
    here = runs_of(project_dir(root, workspace))
    if part is None:
        if not here:
            remedy = _elsewhere(root, workspace, command)
            raise ConfigError(f"no run was started in {workspace}", remedy)
        return next((run for run in here if run.live), here[0])
    if not part.strip():
        raise ConfigError("the run's name is empty", "Leave it out, or see: ralph status --all")
    for runs in (here, all_runs(root)):
        found = named_among(part, runs) or worker_among(part, runs)
        if found is None:
            continue
        if found.lead is not None and not workers:
            remedy = f"All of them: ralph {command} {found.lead.id}"
            raise ConfigError(f"{found.id} is one worker of the run {found.lead.id}", remedy)
        return found
    raise ConfigError(f"there is no run {part!r}", "All runs there are: ralph status --all")


def named_among(part: str, runs: list[Run]) -> Run | None:
    """The only run of that name: whole, else its beginning or end, else any part of it."""
    for fits in (
        [run for run in runs if run.id == part],
        [run for run in runs if run.id.startswith(part) or run.id.endswith(part)],
        [run for run in runs if part in run.id],
    ):
        if len(fits) > 1:
            more = ", ..." if len(fits) > _SHOWN else ""
            names = ", ".join(run.id for run in fits[:_SHOWN])
            message = f"{part!r} may be any of these runs: {names}{more}"
            raise ConfigError(message, "Give more of it.")
        if fits:
            return fits[0]
    return None


def worker_among(part: str, runs: list[Run]) -> Run | None:
    """The only worker of that name, of any of these runs."""
    workers = [
        Run(name, run.directory, lead=run)
        for run in runs
        for name in sorted(directories(os.path.join(run.directory, "runs")))
    ]
    found = named_among(part, workers)
    return found and look_again(found)


def _elsewhere(root: str, workspace: str, command: str) -> str:
    """The command to type when there is no run here."""
    parent = os.path.dirname(workspace)
    while parent != os.path.dirname(parent):
        if runs_of(project_dir(root, parent)):
            there = shlex.quote(parent)
            return f"There are runs of a directory above: ralph {command} -C {there}"
        parent = os.path.dirname(parent)
    if all_runs(root):
        return "Other workspaces have runs: ralph status --all"
    return "Start one: ralph run -p 'what to do'"


def directories(path: str) -> list[str]:
    """The names of the directories in a directory; one that is missing or not ours has none."""
    try:
        with os.scandir(path) as entries:
            return [entry.name for entry in entries if entry.is_dir()]
    except OSError:
        return []


class Growing:
    """A file that may still grow; to be read by blocks or by lines."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._offset = 0
        self.rest = b""  # a line that is not whole yet, or was torn off by a kill

    def blocks(self) -> Iterator[bytes]:
        """The bytes written since the last call, in pieces; nothing while there is no file."""
        try:
            with open_regular(self._path) as file:
                size = file.seek(0, os.SEEK_END)
                # A stream that grew too long is shorter now: what was in between is gone.
                self._offset = file.seek(min(self._offset, size))
                while block := file.read(_BLOCK):
                    self._offset += len(block)
                    yield block
        except FileNotFoundError:
            return
        except OSError as error:
            raise StateError(f"cannot read {self._path}: {error.strerror}") from error

    def lines(self) -> Iterator[bytes]:
        """The lines that became whole since the last call, each with its newline. A torn one is
        read again each time: a run that goes on takes it away."""
        self._offset, self.rest = self._offset - len(self.rest), b""
        for block in self.blocks():
            *whole, self.rest = (self.rest + block).split(b"\n")
            yield from (line + b"\n" for line in whole)


class Facts:
    """The facts of a journal that may still grow, checked against their chain (ADR 9)."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._lines = Growing(path)
        self._chain = HashChain(path)

    def new(self) -> Iterator[Fact]:
        """The facts since the last call. StateError names a line that was changed."""
        for line in self._lines.lines():
            yield self._chain.take(line[:-1].decode("utf-8", "surrogateescape"))


def read_tail(path: str, most: int) -> bytes:
    """The end of a file from the beginning of a line; nothing where it cannot be read."""
    try:
        with open_regular(path) as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - most))
            data = file.read(most)
    except OSError:
        return b""
    return data if size <= most else data[data.find(b"\n") + 1 :]


def prompt_of(launch: Launching) -> str:
    """The prompt that was given to the agent, from the file beside its stream."""
    directory, name = os.path.split(launch.stream)
    if name.endswith(".stream"):
        path = f"{launch.stream.removesuffix('.stream')}.prompt"
    else:  # an attempt at a supervised task has a directory of its own
        path = os.path.join(directory, "prompt.md")
    return read_or_nothing(path, _LONGEST_PROMPT).decode("utf-8", "surrogateescape")


class Following:
    """Reads the journal of a run as it grows."""

    def __init__(self, run: Run) -> None:
        self._facts = Facts(run.journal)
        self._account = Account()
        self._asking: dict[str, str] = {}

    def look(self) -> Account:
        """The account up to now. What is wrong with the journal is part of it, and ends it."""
        if self._account.problem:
            return self._account
        problem, last, found = "", None, self._account
        started, launch, state = found.started, found.launch, found.state
        try:
            with folding(self._facts.path):
                for last in self._facts.new():
                    state = fold(state, last)
                    if isinstance(last, Launching) and last.role is not Role.MESSAGE:
                        launch = last
                    elif isinstance(last, Started):
                        started = last
                    note_question(self._asking, last, state.task)
        except StateError as error:
            problem = error.words
        doing = last if isinstance(last, Launching | Checking) else None
        if last is None:
            doing = found.doing
        self._account = Account(started, state, doing, launch, problem, tuple(self._asking))
        return self._account


def account_of(run: Run) -> Account:
    """Read a run's journal once, to its end."""
    return Following(run).look()
