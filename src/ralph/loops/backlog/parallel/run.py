"""A run by a crew from beginning to end: the foreman's journal, its readers, and threads."""

import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TextIO, cast

from ralph.journal.journal import JOURNAL, FileJournal
from ralph.journal.recovery import History
from ralph.kernel.ports import Crew
from ralph.kernel.state import RunState, replay
from ralph.kernel.value import replace
from ralph.kernel.verdict import Reason, Stop
from ralph.loops.backlog.parallel.coordinator import Surroundings, coordinate
from ralph.loops.backlog.parallel.policy import foreman as foremans_policy
from ralph.loops.backlog.parallel.workers import Foreman
from ralph.loops.backlog.plan import TaskWork
from ralph.loops.backlog.wiring import backlog_notes
from ralph.processes.clock import SystemClock
from ralph.processes.signals import SignalFiles
from ralph.runner.carry_out import carry_out, first_state, last_word
from ralph.runner.display import Attention, Display, Recorder
from ralph.runner.invocation import Invocation
from ralph.runner.keeping import hearing, keeping
from ralph.runner.plan import Plan
from ralph.text.redact import redact
from ralph.ui.console import Console
from ralph.ui.live.board import Board, Tagged


def carry_out_by_crew(
    invocation: Invocation, plan: Plan[TaskWork], run_dir: str, history: History
) -> Reason:
    """Work on several tasks at once, until nothing is left."""
    before = replay(history.facts)
    board = Board(time.time, redact)
    display = Display.of(invocation, plan, run_dir, before, lock=threading.RLock(), board=board)
    journal = FileJournal(os.path.join(run_dir, JOURNAL), history.last_hash)
    with (
        last_word(display, journal),
        hearing(invocation) as heard,
        display.console.live(),
        keeping(invocation.keeper, adopts=invocation.asked is None),
    ):
        attention = Attention(heard, SignalFiles(run_dir), display.console)
        foreman = Foreman(
            _invocations(invocation, display.console, board),
            plan,
            run_dir,
            before,
            signals=attention.quietly,
            carry_out=carry_out,
        )
        display.introduce(plan, [*backlog_notes(plan), *foreman.prepare()])
        recorder = Recorder(journal, display.readers)
        state = first_state(plan, run_dir, "tasks", recorder, history)
        around = Surroundings(
            attention, lambda: board.look(plan.backlog()), recorder, SystemClock()
        )
        stop = _coordinated(plan, foreman, around, state, display.console.note)
    display.end(stop, journal.path)
    return stop.reason


def _coordinated(
    plan: Plan[TaskWork],
    foreman: Foreman,
    around: Surroundings,
    state: RunState,
    tell: Callable[[str], None],
) -> Stop:
    workers = plan.workers
    with ThreadPoolExecutor(workers, thread_name_prefix="ralph") as executor:
        end = partial(foreman.end, tell=tell)
        crew = Crew(workers, executor, foreman.work, foreman.recall, foreman.name, end)
        policy = foremans_policy(plan.work.bounds, foreman.purse)
        try:
            return coordinate(policy, crew, around, state)
        except BaseException:
            foreman.recall()  # the threads are waited for
            raise


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
