"""S: restart an agent until it writes DONE. Words and exit codes complete nothing."""

from collections.abc import Callable, Iterator
from typing import Protocol

from ralph.core.case import Case, Ladder
from ralph.core.facts import Fact, Settled, Step
from ralph.core.limits import Limits
from ralph.core.prompt import cut_off, place
from ralph.core.rules import (
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
from ralph.core.rules_marks import (
    CarryOn,
    DoneGrace,
    MaxRestarts,
    WaitCode,
    marked_done,
    waiting,
)
from ralph.core.select import first_open
from ralph.core.state import RunState
from ralph.core.value import replace, value
from ralph.core.verdict import Feedback, Placement, Reason, Stop, Verdict
from ralph.ports import Policy, Ports
from ralph.profiles.shared import Patience, allowance

AGAIN = "Continue working on the following:"
UNLIMITED = Limits()


class Company(Protocol):
    """Who else has to do with a task: its child runs, and those who read its bus."""

    def wait_for_children(self, seconds: float, stirred: Callable[[], bool]) -> str:
        """Wait for the child runs, so long at most, then end them; what came of it in words."""

    def end_children(self, *, at_once: bool) -> str:
        """End the child runs; who they were in words, or nothing."""

    def announce(self, stop: Stop, children: str) -> str:
        """Tell how the task ended, once; why that cannot be told, or nothing."""


class Alone:
    """Nobody else."""

    def wait_for_children(self, seconds: float, stirred: Callable[[], bool]) -> str:
        """There are none."""
        return NO_CHILDREN

    def end_children(self, *, at_once: bool) -> str:
        """There are none."""
        return ""

    def announce(self, stop: Stop, children: str) -> str:
        """Nobody listens."""
        return ""


def supervise(
    max_restarts: int = 100,
    restart_delay: float = 1.0,
    wait_timeout: float = 300.0,
    *,
    patience: Patience = Patience(fail_after=0),
    limits: Limits = UNLIMITED,
    company: Company = Alone(),
) -> Policy:
    """The policy of `ralph supervise`; `max_restarts` is the number of runs (ADR 19).

    `limits` are the run's time and money.
    """
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
        settle=Settle(wait_timeout, company),
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
    """The task; from the second attempt on it says that work goes on. No task: nothing."""
    if not case.task.text:
        return ""
    again = (Feedback(AGAIN, Placement.PREPEND),) if case.state.iteration > 1 else ()
    return place(case.task.text, (*again, *cut_off(case.state, "Attempt")))


@value
class Settle:
    """Completed: wait for the children, then say so (S §DONE File Detection)."""

    wait_timeout: float
    company: Company

    def __call__(self, ports: Ports, state: RunState, verdict: Verdict) -> Iterator[Fact]:
        if not isinstance(verdict, Stop):
            return
        waited = state.step("children")
        if waited is None:
            waited, verdict = self._end_children(ports, verdict)
            if verdict.reason is Reason.INTERRUPTED:  # no step of it is to be skipped later
                yield Settled(ports.clock.now(), verdict)
                return
            yield waited
        if state.step("bus") is None:
            problem = self.company.announce(verdict, waited.detail)
            yield Step(ports.clock.now(), "bus", ok=not problem, detail=problem)

    def _end_children(self, ports: Ports, stop: Stop) -> tuple[Step, Stop]:
        """When the task is done its child runs may end by themselves, unless a signal comes; else
        they are ended. What stands is that the run was interrupted, then."""

        def cancels() -> int:
            return ports.world.signals().cancels

        said = ""
        if stop.reason is Reason.COMPLETED:
            said = self.company.wait_for_children(self.wait_timeout, lambda: bool(cancels()))
            if cancels():
                stop = Stop(Reason.INTERRUPTED, "asked to stop")
        if stop.reason is not Reason.COMPLETED:
            said = self.company.end_children(at_once=cancels() > 1)
        return Step(ports.clock.now(), "children", detail=said), stop
