"""Keeps the agents and gates of a run from changing its records (ADR 10).

They are known by their descent, whatever they clear from their environment, and by `RALPH_RUN`,
which also counts where the system does not tell of descent. A person's hooks are not among them.
"""

import os
import re
from collections.abc import Iterable, Mapping

from ralph.errors import ConfigError
from ralph.files.state_dir import project_dir, state_root
from ralph.journal.lock import NAME as LOCK
from ralph.journal.lock import is_held, read_owner
from ralph.journal.runs import Run, projects
from ralph.processes.ancestry import UNKNOWN, runs_above

_VARIABLES = ("RALPH_RUN", "RALPH_PARENT_RUN", "RALPH_ROOT_RUN")
_NUMBER = re.compile(r"-\d{3,}$")  # of a worker, or of an attempt at a supervised task
_UNSEEN = "a run that is not to be seen from here has started this process"
_ELSEWHERE = "Run it from a terminal of your own, which no run has started."


def refuse_agents(environ: Mapping[str, str], deed: str) -> None:
    """An agent must not do what concerns all runs: the one that judges it is among them."""
    if _named(environ):
        raise _refusal(deed, "RALPH_RUN names its run")
    if runs_above():
        raise _refusal(deed, "a run has started this process")


def refuse_beside_unseen(projects: Iterable[str], deed: str) -> None:
    """Where a run goes on that is not to be seen from here, whoever asks may be its agent."""
    if any(map(_is_unseen, projects)):
        raise _refusal(deed, "a run goes on there that is not to be seen from here")


def refuse_own_run(environ: Mapping[str, str], run: Run, command: str) -> None:
    """An agent must not end, pause or resume the run that judges it. Another run, such as one that
    a supervised agent has started as its job, is not its judge."""
    if run.id in _named(environ):
        raise _refusal(f"{command} its own run", "RALPH_RUN names it")
    above = runs_above()
    if any(_is_same(place, run.project) for place in above):
        raise _refusal(f"{command} its own run", "that run has started this process")
    if UNKNOWN in above and not run.live:
        raise _refusal(f"{command} a run", _UNSEEN)


def refuse_unseen(environ: Mapping[str, str], command: str) -> None:
    """For a run that was not found: in a sandbox the agent's own is hidden."""
    if UNKNOWN in runs_above() or _is_nowhere(environ, _named(environ)):
        raise _refusal(f"{command} its own run", _UNSEEN)


def refuse_own_backlog(environ: Mapping[str, str], workspace: str) -> None:
    """An agent must not change the tasks by which it is judged; it may only add some."""
    deed = "change the tasks of its own run"
    above, named = runs_above(), _named(environ)
    if UNKNOWN in above:
        raise _refusal("change tasks", _UNSEEN)
    if any(_is_worked_on(workspace, place, environ) for place in above):
        raise _refusal(deed, "that run has started this process")
    kept = [
        place for place in projects(state_root(environ)) if any(_has(place, run) for run in named)
    ]
    if any(_is_worked_on(workspace, place, environ) for place in kept):
        raise _refusal(deed, "RALPH_RUN names it")
    if _is_nowhere(environ, named):
        raise _refusal("change tasks", "RALPH_RUN names a run that is not to be seen from here")
    if goes_on_unseen(environ, workspace):
        raise _refusal("change tasks", "a run over them goes on that is not to be seen from here")


def goes_on_unseen(environ: Mapping[str, str], workspace: str) -> bool:
    """True if a run goes on over the tasks of a directory whose process looks dead."""
    return _is_unseen(project_dir(state_root(environ), workspace))


def _is_unseen(project: str) -> bool:
    """True if a run goes on there whose process looks dead. It does so from another PID namespace,
    into which an agent can put whoever shall not be known for its own."""
    lock = os.path.join(project, LOCK)
    owner = read_owner(lock)
    return owner is not None and not owner.is_alive() and is_held(lock)


def _refusal(deed: str, why: str) -> ConfigError:
    return ConfigError(f"an agent may not {deed}: {why}", _ELSEWHERE)


def _is_worked_on(workspace: str, place: str, environ: Mapping[str, str]) -> bool:
    """True if the runs that are kept in a place work in that directory: there, or in a tree of
    their own, which lies with them. Whoever names another state directory means the same tasks."""
    own = project_dir(state_root(environ), workspace)
    within = os.path.realpath(workspace).startswith(os.path.join(os.path.realpath(place), ""))
    return within or os.path.basename(place) == os.path.basename(own) or _is_same(place, own)


def _is_same(place: str, project: str) -> bool:
    try:
        return os.path.samefile(place, project)
    except OSError:
        return False


def _named(environ: Mapping[str, str]) -> tuple[str, ...]:
    """The runs in which an environment says that we are, each also without its worker's number."""
    names = [environ[name] for name in _VARIABLES if environ.get(name)]
    return tuple(dict.fromkeys([*names, *(_NUMBER.sub("", name) for name in names)]))


def _is_nowhere(environ: Mapping[str, str], named: tuple[str, ...]) -> bool:
    """True if there are names, and no run has any of them."""
    everywhere = projects(state_root(environ)) if named else []
    there = any(os.path.lexists(_place(project, run)) for project in everywhere for run in named)
    return bool(named) and not there


def _place(project: str, run: str) -> str:
    return os.path.join(project, "runs", os.path.basename(run))


def _has(project: str, run: str) -> bool:
    """True if a run is kept there; a link leads to one that is kept with its task."""
    path = _place(project, run)
    return os.path.isdir(path) and not os.path.islink(path)
