"""One run from beginning to end: lock, journal, readers, engine, and the last word."""

import os
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any

from ralph import __version__
from ralph.errors import RalphError
from ralph.files.state_dir import (
    ensure_state_root,
    link_run,
    make_run_dir,
    project_dir,
)
from ralph.journal.journal import JOURNAL, FileJournal
from ralph.journal.ledger import Ledger
from ralph.journal.lock import NAME as LOCK_NAME
from ralph.journal.lock import Lock, Owner, claimed, read_owner
from ralph.journal.recovery import History, recover
from ralph.journal.run_id import new_run_id
from ralph.kernel.engine import run
from ralph.kernel.facts import Fact, Resumed, Started
from ralph.kernel.ports import Ports
from ralph.kernel.state import RunState, replay
from ralph.kernel.verdict import Reason, Stop
from ralph.processes.clock import SystemClock
from ralph.processes.signals import SignalFiles
from ralph.runner.display import Attention, Display, Recorder, merged
from ralph.runner.dry_run import show_first_turn
from ralph.runner.invocation import Invocation
from ralph.runner.keeping import hearing, keeping
from ralph.runner.kept import keep_plan, plan_again
from ralph.runner.plan import Plan, loop_named
from ralph.runner.wired import AgentReaders, RunContext

if TYPE_CHECKING:
    pass


def execute(name: str, invocation: Invocation) -> int:
    """Have a loop read its command, and carry it out as a new run or only show it (`--dry-run`)."""
    plan = loop_named(name).read(invocation)
    if invocation.flags.get("dry_run"):
        return show_first_turn(invocation, plan)
    ensure_state_root(plan.state_root)
    run_id = new_run_id(time.time())
    with _locked(plan, run_id):
        plan.loop.begin(plan)
        run_dir = make_run_dir(plan.project, run_id)
        keep_plan(plan, run_dir)
        link_run(run_dir, project_dir(plan.state_root, plan.workspace))
        return _carried_out(invocation, plan, run_dir, History())


def go_on(invocation: Invocation, run_dir: str) -> int:
    """Carry on a run that was cut off or asked to stop, with its own settings and counters."""
    plan = plan_again(invocation, run_dir)
    with _locked(plan, os.path.basename(run_dir)):
        history = recover(os.path.join(run_dir, JOURNAL), plan.prices)
        SignalFiles(run_dir).forget()
        return _carried_out(invocation, plan, run_dir, history)


def _carried_out(invocation: Invocation, plan: Plan[Any], run_dir: str, history: History) -> int:
    with claimed(plan.scope) if plan.loop.claims else nullcontext():
        return (plan.loop.carry_out or carry_out)(invocation, plan, run_dir, history).exit_code


@contextmanager
def _locked(plan: Plan[Any], run_id: str) -> Iterator[None]:
    path = os.path.join(plan.project, LOCK_NAME)
    _end_orphans_of(read_owner(path))  # one of them may hold the lock
    lock = Lock(path)
    lock.acquire(run_id, time.time())
    try:
        yield
    finally:
        lock.release()


def _end_orphans_of(owner: Owner | None) -> None:
    """End what a run left behind whose Ralph and keeper were both killed (ADR 10)."""
    if owner is not None and not owner.is_alive() and sys.platform == "linux":
        from ralph.processes.orphans import end_orphans

        end_orphans(owner.run)


def carry_out(invocation: Invocation, plan: Plan[Any], run_dir: str, history: History) -> Reason:
    """One run, or a worker's, from where it is to its end."""
    before, run_id = replay(history.facts), os.path.basename(run_dir)
    display = Display.of(invocation, plan, run_dir, before)
    journal = FileJournal(os.path.join(run_dir, JOURNAL), history.last_hash)
    with (
        last_word(display, journal),
        ExitStack() as cleanup,
        hearing(invocation) as heard,
        display.console.live(),
        keeping(
            invocation.keeper,
            plan.settings.end_grace,
            partial(plan.loop.jobs, plan, run_id),
            adopts=invocation.asked is None,
            run=run_id,
        ) as start,
    ):
        tell, marks = display.console.note, plan.loop.marks(plan)
        attention = Attention(heard, SignalFiles(run_dir), display.console, marks)
        context = RunContext(run_dir, before, journal, attention, start, tell, cleanup)
        wired = plan.loop.wire(plan, context)
        ledger = Ledger(plan.project, tell, history.facts, plan.lead)
        recorder = Recorder(journal, (*display.readers, ledger, *wired.readers))
        display.introduce(plan, wired.notes)
        readers = AgentReaders(recorder.on_events, display.on_launch, recorder.record)
        agent, world = wired.agent(readers), wired.world
        ports = Ports(agent, world, recorder, SystemClock(), world.trees)
        state = first_state(plan, run_dir, wired.policy.name, recorder, history)
        stop = run(wired.policy, ports, state)
        _forget_view(run_dir, stop)
    display.end(stop, journal.path)
    return stop.reason


def _forget_view(run_dir: str, stop: Stop) -> None:
    """Of a run that is over nobody asks what would be committed."""
    view = os.path.join(run_dir, "view")
    if stop.reason is not Reason.INTERRUPTED and os.path.isdir(view):
        import shutil

        shutil.rmtree(view, ignore_errors=True)


@contextmanager
def last_word(display: Display, journal: FileJournal) -> Iterator[None]:
    """Until here a run is written down; what goes wrong is its last line for programs."""
    try:
        yield
    except RalphError as error:
        display.end(Stop(Reason(error.reason), error.message), journal.path)
        error.told = True
        raise
    finally:
        journal.close()


def first_state(
    plan: Plan[Any], run_dir: str, profile: str, recorder: Recorder, history: History
) -> RunState:
    """The state in which the engine begins; what leads there is recorded."""
    first: tuple[Fact, ...] = (_started(plan, run_dir, profile),)
    if history.facts:
        # What happened before the crash first: the time since then does not count.
        first = (*history.recovered, Resumed(time.time(), os.getpid()))
    for fact in first:
        recorder.record(fact)
    return replay(first, replay(history.facts))


def _started(plan: Plan[Any], run_dir: str, profile: str) -> Started:
    return Started(
        time=time.time(),
        run=os.path.basename(run_dir),
        profile=profile,
        workspace=plan.workspace,
        pid=os.getpid(),
        version=__version__,
        settings=merged(plan),
        limits=plan.limits,
        agent=plan.kind,
        model=plan.model,
        workers=plan.workers,
    )
