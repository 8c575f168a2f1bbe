"""S: restarts an agent until it writes DONE. Words and exit codes complete nothing."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Protocol

from ralph.kernel.case import Case, Ladder
from ralph.kernel.facts import Fact, Settled, Step
from ralph.kernel.limits import Limits
from ralph.kernel.patience import Patience, allowance
from ralph.kernel.ports import Policy, Ports
from ralph.kernel.prompt import cut_off, place
from ralph.kernel.rules import (
    NO_CHILDREN,
    MoneyLeft,
    RateLimit,
    RunLimit,
    SecondSignal,
    TimeLeft,
    Timeouts,
    cancelled,
    carry_on,
    interrupted,
    paused,
    refused,
    release,
    unreadable,
    unstartable,
)
from ralph.kernel.state import RunState
from ralph.kernel.tasks.select import first_open
from ralph.kernel.value import replace
from ralph.kernel.verdict import Feedback, Placement, Reason, Stop, Verdict
from ralph.loops.supervise.rules import (
    CarryOn,
    DoneGrace,
    MaxRestarts,
    WaitCode,
    marked_done,
    waiting,
)

AGAIN = "Continue working on the following:"
UNLIMITED = Limits()


class ChildRuns(Protocol):
    """The child runs of a task, and its message bus."""

    def wait_for_children(self, seconds: float, stirred: Callable[[], bool]) -> str:
        """Wait for the child runs, at most so long, then end them. Returns what was done."""

    def end_children(self, *, at_once: bool) -> str:
        """End the child runs. Returns their names in a sentence, or ""."""

    def announce(self, stop: Stop, children: str) -> str:
        """Post the end of the task, once. Returns why that failed, or ""."""


class NoChildRuns:
    """A task without child runs or bus."""

    def wait_for_children(self, seconds: float, stirred: Callable[[], bool]) -> str:
        return NO_CHILDREN

    def end_children(self, *, at_once: bool) -> str:
        return ""

    def announce(self, stop: Stop, children: str) -> str:
        return ""


def supervise(
    max_restarts: int = 100,
    restart_delay: float = 1.0,
    wait_timeout: float = 300.0,
    *,
    patience: Patience = Patience(fail_after=0),
    limits: Limits = UNLIMITED,
    child_runs: ChildRuns = NoChildRuns(),
) -> Policy:
    """The policy of `ralph supervise`; `max_restarts` is the number of runs (ADR 19), `limits` are
    the run's time and money."""
    limits = replace(limits, iterations=None)
    return Policy(
        name="supervise",
        select=first_open,
        compose=compose,
        opening=(
            cancelled,
            marked_done,
            unreadable,
            waiting,
            paused,
            MaxRestarts(max_restarts),
            RunLimit(limits),
            carry_on,
        ),
        watching=(
            SecondSignal(patience.stop_grace),
            Timeouts(patience.turn, patience.idle),
            DoneGrace(wait_timeout),
            TimeLeft(limits.seconds),
            MoneyLeft(limits.dollars),
        ),
        stopping=(release,),
        retaking=(cancelled, marked_done, unreadable, waiting, RunLimit(limits)),
        closing=closing(restart_delay, patience),
        allowance=allowance(limits, patience),
        settle=partial(settle, child_runs, wait_timeout),
    )


def closing(restart_delay: float, patience: Patience) -> Ladder:
    """After an attempt."""
    return (
        interrupted,
        unstartable,
        refused,
        marked_done,
        unreadable,
        waiting,
        WaitCode(),
        RateLimit(patience.max_wait),
        CarryOn(restart_delay),
    )


def compose(case: Case) -> str:
    """The task; from the second attempt on headed by a request to continue."""
    if not case.task.text:
        return ""
    again = (Feedback(AGAIN, Placement.PREPEND),) if case.state.iteration > 1 else ()
    return place(case.task.text, (*again, *cut_off(case.state, "Attempt")))


def settle(
    child_runs: ChildRuns, wait_timeout: float, ports: Ports, state: RunState, verdict: Verdict
) -> Iterator[Fact]:
    """Let the child runs of a done task end by themselves, unless a signal comes; end those of any
    other. Then announce how the task ended (S §DONE File Detection)."""

    def cancels() -> int:
        return ports.world.signals().cancels

    if not isinstance(verdict, Stop):
        return
    waited = state.step("children")
    if waited is None:
        said = ""
        if verdict.reason is Reason.COMPLETED:
            said = child_runs.wait_for_children(wait_timeout, lambda: bool(cancels()))
            if cancels():
                verdict = Stop(Reason.INTERRUPTED, "asked to stop")
        if verdict.reason is not Reason.COMPLETED:
            said = child_runs.end_children(at_once=cancels() > 1)
        if verdict.reason is Reason.INTERRUPTED:  # no step of it is to be skipped later
            yield Settled(ports.clock.now(), verdict)
            return
        waited = Step(ports.clock.now(), "children", detail=said)
        yield waited
    if state.step("bus") is None:
        problem = child_runs.announce(verdict, waited.detail)
        yield Step(ports.clock.now(), "bus", ok=not problem, detail=problem)
