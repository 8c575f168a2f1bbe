"""The loop in a session that a command is about, where others are about a run."""

import os

from ralph.cli.params import current_directory
from ralph.errors import ConfigError, StateError
from ralph.files.state_dir import project_dir, state_root
from ralph.journal.runs import all_runs, runs_of
from ralph.loops.session.state import SessionLoop
from ralph.loops.session.store import Unreadable, every, load, loop_in

_LOOP = ".loop"
_SHOWN = 5  # candidates for an ambiguous name


def session_meant(part: str | None) -> SessionLoop | None:
    """The loop in that file, or of the session with that id, else of the only one with that part
    of an id if no run has it. Without a name it is this directory's last loop, if no run was
    started here. None if it is a run that is meant."""
    try:
        if part is not None and part.endswith(_LOOP) and os.path.isfile(part):
            return loop_in(part)
        if part and os.sep not in part and (loop := load(part, os.environ)) is not None:
            return loop
    except (Unreadable, OSError) as error:
        raise StateError(f"the loop of session {part} cannot be read: {error}") from error
    if part is None:
        return _last_here()
    return _like(part) if part.strip() and os.sep not in part else None


def _last_here() -> SessionLoop | None:
    here = os.path.realpath(current_directory())
    if runs_of(project_dir(state_root(os.environ), here)):
        return None
    return next((loop for loop in _loops() if os.path.realpath(loop.project) == here), None)


def _like(part: str) -> SessionLoop | None:
    found = [loop for loop in _loops() if part in loop.session]
    if not found or any(part in run.id for run in all_runs(state_root(os.environ))):
        return None
    if len(found) > 1:
        more = ", ..." if len(found) > _SHOWN else ""
        names = ", ".join(loop.session for loop in found[:_SHOWN])
        message = f"{part!r} may be any of these sessions: {names}{more}"
        raise ConfigError(message, "Give more of it.")
    return found[0]


def _loops() -> list[SessionLoop]:
    """All loops that can be read, the latest first."""
    try:
        return [loop for loop in every(os.environ) if isinstance(loop, SessionLoop)]
    except OSError:
        return []
