"""Steers runs: the same for terminals, the page and programs (ADR 38).

Each function checks, leaves a request that names its origin, and returns words for people. It
raises ConfigError or StateError with a remedy. The caller has refused agents.
"""

import os
import shlex
import time
from contextlib import AbstractContextManager, suppress

from ralph.agents.kinds import Command, find_command, installed
from ralph.errors import ConfigError, StateError, failing
from ralph.journal.life import Account, Life
from ralph.journal.runs import Run, account_of, look_again, runs_of, workers_at
from ralph.journal.way_on import way_on
from ralph.kernel.state import Phase
from ralph.kernel.world import ANSWER, NOTE, PAUSE, RESUME, STOP, STOP_NOW, Origin
from ralph.processes import procfs
from ralph.processes.signals import LONGEST_NOTE, MOST_WAITING, SignalFiles
from ralph.runner.arguments import proper, shown
from ralph.runner.kept import loop_of, settings_again
from ralph.runner.plan import Past
from ralph.text.plain import clean
from ralph.text.words import listed
from ralph.ui.narration import changed_words
from ralph.ui.status.listing import COMMANDS
from ralph.ui.status.reading import report_of
from ralph.ui.status.report import age

_LOOK_EVERY = 0.1
_PATIENCE = 3.0  # seconds for a run that has only just taken its lock


def stop(run: Run, origin: Origin, *, now: bool = False) -> str:
    """Ask a run to end after its current operation, or now."""
    _refuse_worker(run)
    before, life = run.asked(), life_now(run)
    _leave(run, STOP_NOW if now else STOP, origin)
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
    _refuse_worker(run)
    before, life = run.asked(), life_now(run)
    _leave(run, PAUSE, origin)
    if life is Life.PAUSED and before.paused:
        return f"Run {run.id} is paused already."
    if before.cancels:
        return f"Run {run.id} was asked to stop before: it ends instead of pausing."
    return f"Run {run.id} pauses before its next turn."


def resume(run: Run, origin: Origin) -> str:
    """Let a run go on that is paused, by its settings as they are now. ConfigError if these cannot
    be read, or the agent that they name is not there: then it stays paused."""
    _refuse_worker(run)
    life = life_now(run)
    if not run.asked().paused:
        pid = f" (pid {run.owner.pid})" if run.owner else ""
        message = f"run {run.id} is going on{pid} and is not paused"
        raise ConfigError(message, "See: ralph status")
    account, changed = account_of(run), tuple[str, ...]()
    if account.started is not None:
        past, here = Past(run.directory, account.state), account.started.workspace
        loaded, found = settings_again(past, here)
        if life is Life.PAUSED:
            _refuse_missing(loaded.settings.agent.command, run, here)
        changed = tuple(map(changed_words, found))
    _leave(run, RESUME, origin)  # first: nobody shall see neither
    with _writing(run):
        SignalFiles(run.directory).take_back(PAUSE)
    if life is not Life.PAUSED:
        return f"Run {run.id} had not paused yet; it goes on without a pause."
    return "\n".join((f"Run {run.id} goes on.", *changed))


def _environment(pid: int) -> dict[str, str]:
    pairs = (each.partition("=") for each in map(os.fsdecode, procfs.environment(pid)))
    return {name: text for name, equals, text in pairs if equals}


def _refuse_missing(command: Command | None, run: Run, workspace: str) -> None:
    """Refuse an agent that is not there, by the environment of the run: ours may be another. Where
    nobody can read that, the run finds it out by itself."""
    environ = _environment(run.owner.pid) if run.owner else {}
    if not environ:
        return
    if command is not None:  # it may be relative to where the run is
        program = command if isinstance(command, str) else command[0]
        below = os.path.join(workspace, program), os.path.join(shlex.quote(workspace), program)
        if any(installed(each, environ) for each in below):
            return
    try:
        find_command(command, environ)
    except ConfigError as error:
        message = f"run {run.id} stays paused: {error.message}"
        raise ConfigError(message, error.remedy) from error


def note(run: Run, text: str, origin: Origin, task: str = "") -> str:
    """Leave words for the next prompt of a run, or of one of its tasks. A worker's are for its
    task. A run that has stopped is told when it goes on."""
    words = clean(proper(text, "the note")).strip()
    if not words:
        raise ConfigError("the note is blank", 'Say something: ralph note "..."')
    if len(words) > LONGEST_NOTE:
        remedy = "Put it into a file, and name that in the note."
        raise ConfigError(f"the note is longer than {LONGEST_NOTE >> 10} KB", remedy)
    if (lead := run.lead) is not None:
        run, task = lead, task or _task_of(run, lead)
    run, account = look_again(run), account_of(run)
    ended = account.state.stop is not None and not way_on(account.state).possible
    if ended or (not run.live and (account.problem or account.started is None)):
        raise gone_error(run, account)
    if task:
        _refuse_task(run, account, task)
    if sum(each.request == NOTE for each in run.asked().requests) >= MOST_WAITING:
        message = f"{MOST_WAITING} notes wait for a turn of run {run.id} already"
        raise StateError(message, "See: ralph status")
    _leave(run, NOTE, origin, text=words, task=task)
    return _coming(run, account, task)


def answer(run: Run, task: str, text: str, origin: Origin) -> str:
    """Answer what a task of a run has asked; the task is pending again."""
    run = run.lead or run
    account, (loop, _) = account_of(run), loop_of(run.directory)
    if loop is None or loop.answer is None or account.started is None:
        message = f"run {run.id} has no tasks that could have asked something"
        raise ConfigError(message, 'To tell it something: ralph note "..."')
    loop.answer(account.started.workspace, run.project, task, text)
    told_of(run.project, task, text.strip(), origin)
    return f"{task} is pending again, with your answer."


def told_of(project: str, task: str, text: str, origin: Origin) -> None:
    """Have the last run of a project, if it goes on or could, journal that a task was answered. The
    answer stands in the task, so that it does not matter if this cannot be left."""
    for run in runs_of(project)[:1]:
        loop, _ = loop_of(run.directory)
        if loop is not None and loop.answer is not None:
            with suppress(OSError):
                SignalFiles(run.directory).ask(ANSWER, origin, text=text[:LONGEST_NOTE], task=task)


def life_now(run: Run) -> Life:
    """The state of a run that lives. ConfigError for one that does not, or has said its last
    word."""
    run = look_again(run)
    report = report_of(run, time.time(), actions=False)
    if not run.live or report.state.stop is not None:
        raise gone_error(run, account_of(run))
    return report.life


def gone_error(run: Run, account: Account) -> ConfigError:
    """The reason why a run cannot be steered any more, and what can be done."""
    stop, way = account.state.stop, way_on(account.state)
    if stop is not None:
        ago = age(time.time() - account.state.time)
        message = f"run {run.id} does not run: it has ended ({stop.reason.value}, {ago} ago)"
        words = " ".join(filter(None, (f"Go on: ralph resume {run.id}", way.flags)))
        first = words if way.possible else new_one(account).removesuffix(".")
        remedy = f"{first}. What it did: ralph logs"
    elif account.problem:
        message = f"run {run.id} does not run, and its journal cannot be read: {account.problem}"
        remedy = new_one(account)
    else:
        message = f"run {run.id} does not run: its process is gone without a last word"
        remedy = "What it did: ralph logs"
    return ConfigError(message, remedy)


def new_one(account: Account) -> str:
    """The remedy where a run is over for good."""
    command = COMMANDS.get(account.started.profile if account.started else "")
    return f"Start a new one: ralph {command}" if command else "Start a new one."


# ------------------------------------------------------------------ notes


def _coming(run: Run, account: Account, task: str) -> str:
    """Says with which prompt a note will be told."""
    state, started = account.state, account.started
    prompt = f"the next prompt of {shown(task)}" if task else "the next prompt"
    if not run.live or state.stop is not None:
        flags = f" {way_on(state).flags}" if way_on(state).flags else ""
        return (
            f"Run {run.id} does not run now. It is told with {prompt}, when the run goes on:\n"
            f"ralph resume {run.id}{flags}"
        )
    if task or started is None:
        return f"Told with {prompt}."
    if started.workers > 1 or state.sent:
        return "Told with the next prompt, whichever task that is for."
    number = state.iteration + (state.phase is not Phase.OPENING or not state.again)
    most = state.limits.iterations
    turn = "attempt" if started.profile == "supervise" else "iteration"
    if most is not None and number > most:
        last = f"{turn} {number - 1} is the last by its limit"
        return f"Told with {prompt}, if there is one: {last}."
    return f"Told with {prompt} ({turn} {number})."


def _task_of(worker: Run, lead: Run) -> str:
    """The task that a worker is at. ConfigError for one that is back."""
    at_work = workers_at(lead, account_of(lead).state)
    for run, sent in at_work:
        if run.id == worker.id:
            return sent.assignment.task
    message = f"{worker.id} is back from its task"
    raise ConfigError(message, f'For the next prompt of the run: ralph note {lead.id} "..."')


def _refuse_task(run: Run, account: Account, task: str) -> None:
    """Refuse a note for a task that has no prompt any more, or never had one."""
    loop, work = loop_of(run.directory)
    workspace = account.started.workspace if account.started else ""
    try:
        tasks = loop.tasks(work, workspace) if loop and workspace else ()
    except (KeyError, TypeError):  # kept by another version
        tasks = ()
    if not tasks:
        raise ConfigError(f"run {run.id} has no tasks", "Leave out --task.")
    still = [each.id for each in tasks if each.open or each.question]
    remedy = f"It still has: {shown(listed(still, 10))}" if still else "All of them are done."
    found = next((each for each in tasks if each.id == task), None)
    if found is None:
        raise ConfigError(f"run {run.id} has no task {shown(task)!r}", remedy)
    if task not in still:
        raise ConfigError(f"{shown(task)} is {found.status}: it has no next prompt", remedy)


# ------------------------------------------------------------------ requests


def _refuse_worker(run: Run) -> None:
    if run.lead is not None:
        message = f"{run.id} is one worker of the run {run.lead.id}"
        raise ConfigError(message, "Steer that run: its workers follow.")


def _leave(run: Run, request: str, origin: Origin, *, text: str = "", task: str = "") -> None:
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
    remedy = f"Signals work too, once or twice: kill -INT {run.owner.pid}" if run.owner else ""
    return failing(f"cannot write into {run.directory}/signals", remedy, StateError)
