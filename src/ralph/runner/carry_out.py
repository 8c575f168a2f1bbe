"""One run from beginning to end: lock, journal, readers, engine, and the last word."""

import os
import shlex
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from functools import partial
from typing import Any

from ralph import __version__
from ralph.errors import ConfigError, RalphError
from ralph.files.state_dir import ensure_state_root, link_run, make_run_dir, project_dir
from ralph.journal.efforts import bookkeepers
from ralph.journal.journal import JOURNAL, FileJournal
from ralph.journal.lock import NAME as LOCK_NAME
from ralph.journal.lock import Lock, claimed, read_owner
from ralph.journal.recovery import History, recover
from ralph.journal.run_id import new_run_id
from ralph.kernel.engine import first_order, first_stop, run
from ralph.kernel.facts import Fact, Resumed, Started
from ralph.kernel.ports import Policy, Ports, ladders_of
from ralph.kernel.roster import rostered
from ralph.kernel.state import RunState, replay
from ralph.kernel.verdict import Reason, Stop
from ralph.processes.clock import SystemClock
from ralph.processes.signals import SignalFiles
from ralph.runner.agent_setup import build_agent
from ralph.runner.display import Display, Recorder, merged
from ralph.runner.invocation import Invocation
from ralph.runner.keeping import Attention, Lasting
from ralph.runner.kept import keep_plan, rewired
from ralph.runner.plan import Past, Plan, loop_named
from ralph.runner.wired import AgentReaders, RunContext
from ralph.text.redact import redact, redacted_json
from ralph.ui.jsonlines import stop_line


def execute(name: str, invocation: Invocation) -> int:
    """Have a loop read its command, and carry it out as a new run or only show it (`--dry-run`)."""
    run_id = new_run_id(time.time())
    plan = loop_named(name).read(invocation)
    plan = plan.on_branch(invocation.branch(run_id), f"ralph/{run_id}")
    if invocation.flags.get("dry_run"):
        return _show_first_turn(invocation, plan)
    ensure_state_root(plan.state_root)
    with locked(plan, run_id):
        plan.loop.begin(plan)
        if plan.branch is not None:
            plan.branch.make(plan.workspace, plan.environ)
        run_dir = make_run_dir(plan.project, run_id)
        keep_plan(plan, run_dir)
        link_run(run_dir, project_dir(plan.state_root, plan.workspace))
        try:
            return carried_out(invocation, plan, run_dir, History())
        except ConfigError:
            _forget_unbegun(run_dir, project_dir(plan.state_root, plan.workspace))
            raise


def _forget_unbegun(run_dir: str, project: str) -> None:
    """Remove what is left of a run that was refused before its first fact, lest it look crashed."""
    if os.path.exists(os.path.join(run_dir, JOURNAL)):
        return
    from shutil import rmtree

    rmtree(run_dir, ignore_errors=True)
    with suppress(OSError):
        os.unlink(os.path.join(project, "runs", os.path.basename(run_dir)))


def _show_first_turn(invocation: Invocation, plan: Plan[Any]) -> int:
    """Print the prompt and the command of the first turn, and begin nothing."""
    assert plan.loop.first is not None, "a command without it has no --dry-run"
    policy, backlog, now = rostered(plan.loop.first(plan), plan.roster), plan.backlog(), time.time()
    order = first_order(policy, backlog, now)
    shown: dict[str, object] = {"type": "dry_run", "time": now, "run": None}
    if order is None:
        stop = first_stop(policy, backlog, now)
        if stop is None or stop.reason is not Reason.COMPLETED:
            why, remedy = plan.loop.none_first
            raise ConfigError(stop.why if stop else why, remedy)
        lines = [f"There is no turn to take: {stop.why}."]
        if invocation.flags["in_json"]:
            nothing = redacted_json({**shown, "command": None, "prompt": None, "why": stop.why})
            lines = [nothing, stop_line(stop.reason, time=now)]
        print(*lines, sep="\n", file=invocation.out)
        return 0
    launches = [
        build_agent(plan.agents[place], plan.project, may_probe=False).launch(order)
        for place in (order.place, *range(1, 1 + plan.roster.fallbacks))
    ]
    launch, *others = launches
    if invocation.flags["in_json"]:
        shown |= {"branch": plan.branch.name} if plan.branch else {}
        shown |= {"fallbacks": [other.argv for other in others]} if others else {}
        first = redacted_json({**shown, "command": launch.argv, "prompt": order.prompt})
        lines = [first, stop_line(Reason.COMPLETED, time=time.time())]
    else:
        argv, how = launch.shown(order.prompt)
        lines = [f"Command: {shlex.join(argv)}"]
        lines += [f"Then: {shlex.join(other.shown(order.prompt)[0])}" for other in others]
        lines += [f"Prompt, {how}:", "", order.prompt]
        lines[:0] = [plan.branch.words()] if plan.branch else []
        lines = [redact(line) for line in lines]
    print(*lines, sep="\n", file=invocation.out)
    return 0


def carried_out(invocation: Invocation, plan: Plan[Any], run_dir: str, history: History) -> int:
    """One run, as its loop carries it out; the exit code."""
    with claimed(plan.scope) if plan.loop.claims else nullcontext():
        return (plan.loop.carry_out or carry_out)(invocation, plan, run_dir, history).exit_code


@contextmanager
def locked(plan: Plan[Any], run_id: str) -> Iterator[None]:
    """Hold the lock of the run's scope; what a dead owner has left is ended first."""
    path = os.path.join(plan.project, LOCK_NAME)
    owner = read_owner(path)
    if owner is not None and not owner.is_alive() and sys.platform == "linux":
        # Ralph and its keeper were both killed (ADR 10); what they left may hold the lock.
        from ralph.processes.keeper import end_orphans

        end_orphans(owner.run)
    lock = Lock(path)
    lock.acquire(run_id, time.time())
    try:
        yield
    finally:
        lock.release()


# Carries on with a run to its end, or to where it has to be wired anew.
Part = Callable[[Invocation, Plan[Any], str, History, Lasting], tuple[Display, RunState]]


def in_parts(
    invocation: Invocation, plan: Plan[Any], run_dir: str, history: History, part: Part
) -> Reason:
    """One run from where it is to its end. A person who lets it go on after a pause has it wired
    anew by the settings as they are then, as if its process were another (ADR 38)."""
    journal = os.path.join(run_dir, JOURNAL)
    with Lasting(invocation, os.path.basename(run_dir)) as lasting:
        while True:
            display, state = part(invocation, plan, run_dir, history, lasting)
            if state.stop is not None:
                break
            history = recover(journal, plan.prices_of_all)
            plan, lasting.notes = rewired(invocation, plan, Past(run_dir, state), history)
    display.end(state.stop, journal)
    return state.stop.reason


def carry_out(invocation: Invocation, plan: Plan[Any], run_dir: str, history: History) -> Reason:
    """One run, or a worker's, from where it is to its end."""
    return in_parts(invocation, plan, run_dir, history, _by_engine)


def _by_engine(
    invocation: Invocation,
    plan: Plan[Any],
    run_dir: str,
    history: History,
    lasting: Lasting,
) -> tuple[Display, RunState]:
    before, run_id = history.state, os.path.basename(run_dir)
    display = Display.of(invocation, plan, run_dir, before)
    journal = FileJournal(os.path.join(run_dir, JOURNAL), history.last_hash)
    with last_word(display, journal), ExitStack() as cleanup:
        heard = lasting.heard()
        cleanup.enter_context(display.console.live())
        start = lasting.keeper(plan.settings.end_grace, partial(plan.loop.jobs, plan, run_id))
        tell, marks = display.console.note, plan.loop.marks(plan)
        files, console = SignalFiles(run_dir), display.console
        attention = Attention(heard, files, console, marks, invocation.lead)
        books = bookkeepers(plan.project, tell, history.facts, plan.lead)
        recorder = Recorder(journal, [attention, *display.readers, *books])
        readers = AgentReaders(recorder.on_events, display.on_launch, recorder.record)
        context = RunContext(run_dir, before, journal, attention, readers, start, tell, cleanup)
        plan = plan.loop.ready(plan, context)
        wired = plan.loop.wire(plan, context)
        recorder.readers.extend((*wired.readers, *display.notices))
        display.introduce(plan, (*lasting.notes, *wired.notes))
        ports = Ports(wired.agent, wired.world, recorder, SystemClock(), wired.world.trees)
        policy = rostered(wired.policy, plan.roster, plan.limits.dollars, plan.paid)
        state = first_state(plan, run_dir, policy, recorder, history)
        state = run(policy, ports, state)
        if state.stop is not None:
            lasting.close()  # nothing that it has started is left when its places are tidied
            attention.say_untold(state)
        if state.stop is not None and state.stop.reason is Reason.COMPLETED:
            # Nobody asks any more what would be committed.
            from shutil import rmtree

            rmtree(os.path.join(run_dir, "view"), ignore_errors=True)
    return display, state


@contextmanager
def last_word(display: Display, journal: FileJournal) -> Iterator[None]:
    """Until here a run is written down; what goes wrong is its last line for programs, and people
    are told of it."""
    try:
        yield
    except Exception as error:
        stop = Stop(Reason.BUG, repr(error))
        if isinstance(error, RalphError):
            stop = Stop(Reason(error.reason), error.message)
            display.end(stop, journal.path)
            error.told = True
        for notice in display.notices:
            notice.ended(stop)
        raise
    finally:
        journal.close()


def first_state(
    plan: Plan[Any], run_dir: str, policy: Policy, recorder: Recorder, history: History
) -> RunState:
    """The state in which the engine begins; what leads there is recorded."""
    now, pid, ladders = time.time(), os.getpid(), ladders_of(policy)
    # What happened before the crash first: the time since then does not count.
    first: tuple[Fact, ...] = (
        *history.recovered,
        Resumed(now, pid, plan.limits, plan.raised, plan.changed, ladders),
    )
    if not history.facts:
        started = Started(
            time=now,
            run=os.path.basename(run_dir),
            profile=policy.name,
            workspace=plan.workspace,
            pid=pid,
            version=__version__,
            settings=merged(plan),
            limits=plan.limits,
            agent=plan.kind,
            model=plan.model,
            workers=plan.workers,
            ladders=ladders,
        )
        first = (started,)
    for fact in first:
        recorder.record(fact)
    return replay(first, history.state)
