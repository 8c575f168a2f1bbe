"""Steering a run that lives: what terminals, the page and programs do alike (ADR 38).

Each function checks, leaves a request that names its origin, and returns words for people. It
raises ConfigError or StateError with a remedy. The caller has refused agents.
"""

import time
from contextlib import AbstractContextManager, suppress

from ralph.errors import ConfigError, StateError, failing
from ralph.journal.life import Life, life_of
from ralph.journal.runs import Run, account_of, look_again
from ralph.kernel.world import NOTE, RESUME, Origin
from ralph.processes.signals import LONGEST_NOTE, MOST_WAITING, SignalFiles
from ralph.runner.arguments import proper

_LOOK_EVERY = 0.1
_PATIENCE = 3.0  # seconds for a run that has only just taken its lock


def stop(run: Run, origin: Origin, *, now: bool = False) -> str:
    """Ask a run to end after its current operation, or now."""
    before, life = run.asked(), life_now(run)
    leave(run, SignalFiles.NOW if now else SignalFiles.STOP, origin)
    with suppress(ConfigError):  # one that waits may have ended by now, because we asked
        life = life_now(run)
    if now or before.cancels > 1:
        return f"Run {run.id} ends at once, with everything it started."
    if life in (Life.PAUSED, Life.WAITING):
        return f"Run {run.id} is {life.value} and ends at once."
    already = " (it was asked before)" if before.cancels else ""
    return f"Run {run.id} stops after its current operation{already}."


def pause(run: Run, origin: Origin) -> str:
    """Ask a run to pause before its next turn."""
    before, life = run.asked(), life_now(run)
    leave(run, SignalFiles.PAUSE, origin)
    if life is Life.PAUSED:
        return f"Run {run.id} is paused already."
    if before.cancels:
        return f"Run {run.id} was asked to stop before: it ends instead of pausing."
    return f"Run {run.id} pauses before its next turn."


def resume(run: Run, origin: Origin) -> str:
    """Let a paused run go on."""
    life = life_now(run)
    if not run.asked().paused:
        raise ConfigError(f"run {run.id} is going on and is not paused", "See: ralph status")
    leave(run, RESUME, origin)
    with _writing(run):
        SignalFiles(run.directory).take_back(SignalFiles.PAUSE)
    if life is Life.PAUSED:
        return f"Run {run.id} goes on."
    return f"Run {run.id} had not paused yet; it goes on without a pause."


def note(run: Run, text: str, origin: Origin, task: str = "") -> str:
    """Leave words for the next prompt, or for that of a task."""
    words = proper(text, "the note").strip()
    if not words:
        raise ConfigError("the note is blank", 'Say something: ralph note "..."')
    if len(words) > LONGEST_NOTE:
        most = f"{LONGEST_NOTE >> 10} KB"
        raise ConfigError(f"the note is longer than {most}", "Name a file for the agent to read.")
    waiting = [each for each in run.asked().requests if each.request == NOTE]
    if len(waiting) >= MOST_WAITING:
        message = f"{len(waiting)} notes wait for a turn of run {run.id} already"
        raise StateError(message, "See: ralph status")
    leave(run, NOTE, origin, text=words, task=task)
    return "Told with the next prompt."


def answer(run: Run, task: str, text: str, origin: Origin) -> str:
    """Answer what a task of a run asked; the task is pending again."""
    raise NotImplementedError


def life_now(run: Run) -> Life:
    """The state of a run that lives. ConfigError for one that has said its last word."""
    run, account = look_again(run), account_of(run)
    if not run.live or account.state.stop is not None:
        raise ConfigError(f"run {run.id} does not run", f"Go on: ralph resume {run.id}")
    return life_of(account, run.asked(), time.time(), live=True)


def leave(run: Run, request: str, origin: Origin, *, text: str = "", task: str = "") -> None:
    """Leave a request; a run that has only just taken its lock is waited for."""
    give_up = time.monotonic() + _PATIENCE
    with _writing(run):
        while True:
            try:
                return SignalFiles(run.directory).ask(request, origin, text=text, task=task)
            except FileNotFoundError:
                if time.monotonic() > give_up or not look_again(run).live:
                    raise
                time.sleep(_LOOK_EVERY)


def _writing(run: Run) -> AbstractContextManager[None]:
    """Say what else can be done where requests cannot be left."""
    pid = run.owner.pid if run.owner else 0
    remedy = f"Signals work too, once or twice: kill -INT {pid}"
    return failing(f"cannot write into {run.directory}/signals", remedy, StateError)
