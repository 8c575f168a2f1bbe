"""A run by a crew from beginning to end: the foreman's journal, its readers, and threads."""

import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import TextIO, cast

from ralph.journal.journal import JOURNAL, FileJournal
from ralph.journal.recovery import History
from ralph.kernel.facts import Assigned, Returned
from ralph.kernel.ports import Crew, Workspace
from ralph.kernel.state import RunState, replay
from ralph.kernel.value import replace
from ralph.kernel.verdict import Reason
from ralph.loops.backlog.parallel.coordinator import coordinate
from ralph.loops.backlog.parallel.policy import foreman as foremans_policy
from ralph.loops.backlog.parallel.workers import Foreman
from ralph.loops.backlog.plan import TaskWork, is_apart
from ralph.loops.backlog.refusals import backlog_notes
from ralph.loops.backlog.reopening import reopened
from ralph.processes.clock import SystemClock
from ralph.processes.signals import SignalFiles
from ralph.runner.carry_out import first_state, in_parts, last_word
from ralph.runner.display import Display, Recorder
from ralph.runner.invocation import Invocation
from ralph.runner.keeping import Attention, Lasting
from ralph.runner.plan import Plan
from ralph.ui.console import Console
from ralph.ui.live.activity import Board, Tagged


def carry_out_by_crew(
    invocation: Invocation, plan: Plan[TaskWork], run_dir: str, history: History
) -> Reason:
    """Work on several tasks at once, until nothing is left."""
    return in_parts(invocation, plan, run_dir, history, _connected)


def _connected(
    invocation: Invocation,
    plan: Plan[TaskWork],
    run_dir: str,
    history: History,
    lasting: Lasting,
) -> tuple[Display, RunState]:
    """The crew, with the fleet that its settings name now."""
    if plan.work.fleet is None:
        return _by_crew(invocation, plan, run_dir, history, lasting)
    with plan.work.fleet.connected(plan.environ, plan.workers) as fleet:
        if not history.facts:  # one that goes on waits for it
            fleet.look_at_remote(plan.workspace, plan.environ)
        plan = replace(plan, work=replace(plan.work, fleet=fleet))
        if plan.loaded.origins.get("loop.parallelism") is None and not plan.work.backlog.task:
            plan = replace(plan, workers=max(1, fleet.slots))
        return _by_crew(invocation, plan, run_dir, history, lasting)


def _by_crew(
    invocation: Invocation,
    plan: Plan[TaskWork],
    run_dir: str,
    history: History,
    lasting: Lasting,
) -> tuple[Display, RunState]:
    before = replay(history.facts)
    board = Board(time.time)
    display = Display.of(invocation, plan, run_dir, before, lock=threading.RLock(), board=board)
    journal = FileJournal(os.path.join(run_dir, JOURNAL), history.last_hash)
    with last_word(display, journal), display.console.live():
        lasting.keeper()
        files = SignalFiles(run_dir)
        attention = Attention(lasting.heard(), files, display.console)
        ours, tell = replace(invocation, lead=files), display.console.note
        invocations = _invocations(ours, display.console, board)
        signals = attention.quietly
        foreman = Foreman(invocations, plan, run_dir, before, signals=signals, tell=tell)
        notes = (
            *lasting.notes,
            *reopened(plan, run_dir, before),
            *backlog_notes(plan, before, run_dir),
            *([fleet.words(), *fleet.lacks(plan.workers)] if (fleet := plan.work.fleet) else []),
        )
        display.introduce(plan, (*notes, *foreman.prepare()))
        recorder = Recorder(journal, [attention, foreman, *display.readers, *display.notices])
        policy, size = foremans_policy(plan.work.bounds, foreman.budget), plan.workers
        state = first_state(plan, run_dir, policy, recorder, history)
        world = Workspace(attention, lambda: board.look(plan.backlog()))
        threads = size if not is_apart(plan) else size + (plan.work.bounds.tasks or 0)
        with ThreadPoolExecutor(threads, thread_name_prefix="ralph") as pool:
            crew = _crew(foreman, pool, size)
            try:
                state = coordinate(
                    policy, crew, state, world=world, journal=recorder, clock=SystemClock()
                )
            except BaseException:
                foreman.recall()  # the threads are waited for
                raise
        if state.stop is not None:
            lasting.close()
            attention.say_untold(state)
    return display, state


def _crew(foreman: Foreman, executor: ThreadPoolExecutor, size: int) -> Crew:
    places = foreman.places

    def send(assigned: Assigned) -> Future[Returned | None]:
        places.enter(assigned.worker)
        back = executor.submit(foreman.work, assigned)
        back.add_done_callback(lambda _: places.leave(assigned.worker))
        return back

    return Crew(size, send, foreman.recall, foreman.name, foreman.end, places.resting)


def _invocations(
    invocation: Invocation, console: Console, board: Board
) -> Callable[[str], Invocation]:
    """For each task, with its name before every line; programs find it in the objects."""

    def hand_on(stream: TextIO, text: str) -> None:
        console.relay(text, out=stream is invocation.out)

    def of(task: str) -> Invocation:
        tag = "" if invocation.flags["in_json"] else console.tag(task, out=True)

        def tagged(stream: TextIO | None, tag: str) -> TextIO | None:
            return stream and cast("TextIO", Tagged(stream, tag, hand_on))

        out = tagged(invocation.out, tag)
        err = tagged(invocation.err, console.tag(task, out=False))
        return replace(invocation, out=out, err=err, follow=partial(board.follow, task))

    return of
