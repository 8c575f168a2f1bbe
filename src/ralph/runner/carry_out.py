"""One run from beginning to end: lock, journal, readers, engine, and the last word."""

import os
import shlex
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any

from ralph import __version__
from ralph.adapters.clock import SystemClock
from ralph.adapters.files import (
    ensure_state_root,
    link_run,
    make_run_dir,
    project_dir,
)
from ralph.adapters.journal import JOURNAL, FileJournal
from ralph.adapters.ledger import Ledger
from ralph.adapters.lock import NAME as LOCK_NAME
from ralph.adapters.lock import Lock, Owner, claimed, read_owner
from ralph.adapters.process import UNBOUND, Starter, start
from ralph.adapters.recovery import History, recover
from ralph.adapters.signals import SignalCounter, SignalFiles
from ralph.adapters.stamps import new_run_id
from ralph.core.facts import Fact, Resumed, Started
from ralph.core.redact import redact, redacted_json
from ralph.core.state import RunState, replay
from ralph.core.verdict import Reason, Stop
from ralph.core.world import Signals
from ralph.engine import run
from ralph.errors import RalphError, StateError
from ralph.ports import Ports
from ralph.runner.display import Attention, Display, Recorder, merged
from ralph.runner.invocation import Invocation
from ralph.runner.plan import Plan, keep_plan, loop_named, plan_again
from ralph.runner.wired import AgentReaders, RunContext
from ralph.runner.workplace import build_agent
from ralph.ui.jsonlines import stop_line

if TYPE_CHECKING:
    from ralph.adapters.keeper import Keeper
    from ralph.adapters.keeper_process import Launched


def execute(name: str, invocation: Invocation) -> int:
    """Have a loop read its command, and carry it out as a new run or only show it (`--dry-run`)."""
    plan = loop_named(name).read(invocation)
    if invocation.flags.get("dry_run"):
        return _show_first_turn(invocation, plan)
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
        from ralph.adapters.orphans import end_orphans

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


@contextmanager
def hearing(invocation: Invocation) -> Iterator[Callable[[], Signals]]:
    """What this process is asked for: by signals, unless it is another program's."""
    if invocation.asked is not None:
        yield invocation.asked
        return
    with SignalCounter() as counter:
        yield counter.signals


@contextmanager
def keeping(
    begun: "Launched | None",
    end_grace: float = UNBOUND,
    jobs: Callable[[int], tuple[int, ...]] = lambda _: (),
    *,
    adopts: bool = True,
    run: str = "",
) -> Iterator[Starter]:
    """What starts the run's children: a keeper, where the system can have one. A program that is
    not ours must not adopt: its own children would be ended with the run's."""
    keeper = _keeper(begun, end_grace, jobs, adopts=adopts, run=run)
    if keeper is None:
        yield partial(start, most_grace=end_grace)
        return
    try:
        keeper.begin()
    except OSError as error:
        raise StateError(
            f"the machine cannot start a process now: {error.strerror}", "Try again later."
        ) from error
    try:
        yield keeper
    finally:
        keeper.close()


def _keeper(
    begun: "Launched | None",
    end_grace: float,
    jobs: Callable[[int], tuple[int, ...]],
    *,
    adopts: bool,
    run: str,
) -> "Keeper | None":
    if sys.platform != "linux":
        return None
    from ralph.adapters.keeper import Keeper
    from ralph.adapters.keeper_process import is_possible

    if not is_possible():
        return None
    return Keeper(adopts=adopts, begun=begun, most_grace=end_grace, jobs=jobs, run=run)


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


def _show_first_turn(invocation: Invocation, plan: Plan[Any]) -> int:
    """`--dry-run`: the prompt and the command of the first turn."""
    assert plan.loop.first is not None, "a command without it has no --dry-run"
    by, order = plan.loop.first(plan)
    launch = build_agent(by, by.project, may_probe=False).launch(order)
    if invocation.flags["in_json"]:
        shown = {"type": "dry_run", "time": time.time(), "run": None}
        first = redacted_json({**shown, "command": launch.argv, "prompt": order.prompt})
        lines = [first, stop_line(Reason.COMPLETED, time=time.time())]
    else:
        argv, how = launch.shown(order.prompt)
        lines = [f"Command: {shlex.join(argv)}", f"Prompt, {how}:", "", order.prompt]
        lines = [redact(line) for line in lines]
    print(*lines, sep="\n", file=invocation.out)
    return 0
