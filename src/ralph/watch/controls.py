"""The requests that a watcher leaves for a run, as `ralph stop` and the others do (ADR 38)."""

import os
from collections.abc import Callable

from ralph.errors import RalphError
from ralph.journal.runs import Run
from ralph.journal.write_access import refuse_own_run
from ralph.kernel.value import value
from ralph.kernel.world import Origin
from ralph.runner import steering


@value
class Reply:
    """The words for a person; `ok` if the run was asked."""

    words: str
    ok: bool = True


def stop(run: Run, *, now: bool) -> Reply:
    return _asked(run, "stop", lambda: steering.stop(run, Origin.WATCH, now=now))


def pause(run: Run) -> Reply:
    """Pause it, or let it go on if that was asked for."""
    if run.asked().paused:
        return _asked(run, "resume", lambda: steering.resume(run, Origin.WATCH))
    return _asked(run, "pause", lambda: steering.pause(run, Origin.WATCH))


def note(run: Run, text: str) -> Reply:
    return _asked(run, "note", lambda: steering.note(run, text, Origin.WATCH))


def answer(run: Run, task: str, text: str) -> Reply:
    return _asked(run, "answer", lambda: steering.answer(run, task, text, Origin.WATCH))


def _asked(run: Run, command: str, ask: Callable[[], str]) -> Reply:
    """Ask, unless the caller is judged by the run: agents may look at it, and not steer it."""
    try:
        refuse_own_run(os.environ, run, command)
        return Reply(ask())
    except RalphError as error:
        return Reply(error.words, ok=False)
