"""S: restart an agent until it writes DONE. Words and exit codes complete nothing."""

from collections.abc import Callable, Iterator

from ralph.core.case import Case
from ralph.core.facts import Fact, Step
from ralph.core.limits import Limits
from ralph.core.prompt import cut_off, place
from ralph.core.rules import (
    RunLimit,
    SecondSignal,
    Timeouts,
    cancelled,
    carry_on,
    interrupted,
    refused,
    release,
    unreadable,
    unstartable,
)
from ralph.core.rules_marks import CarryOn, DoneGrace, Waiting, marked_done
from ralph.core.select import first_open
from ralph.core.state import RunState
from ralph.core.value import value
from ralph.core.verdict import Feedback, Placement, Reason, Stop, Verdict
from ralph.ports import Policy, Ports
from ralph.profiles.shared import Patience, allowance

AGAIN = "Continue working on the following:"


def supervise(
    max_restarts: int = 100,
    restart_delay: float = 1.0,
    wait_timeout: float = 300.0,
    patience: Patience = Patience(fail_after=0),
    wait_for_children: Callable[[float], str] = lambda _: "no active children",
) -> Policy:
    """The policy of `ralph supervise`; `max_restarts` is the number of runs (ADR 19)."""
    limits = Limits(iterations=max_restarts)
    return Policy(
        name="supervise",
        select=first_open,
        compose=compose,
        opening=(cancelled, unreadable, marked_done, RunLimit(limits), carry_on),
        watching=(
            SecondSignal(patience.stop_grace),
            Timeouts(patience.turn, patience.idle),
            DoneGrace(wait_timeout),
        ),
        stopping=(release,),
        closing=(
            interrupted,
            unstartable,
            refused,
            marked_done,
            Waiting(),
            CarryOn(restart_delay),
        ),
        allowance=allowance(limits, patience),
        settle=Settle(wait_timeout, wait_for_children),
    )


def compose(case: Case) -> str:
    """The task; from the second attempt on it says that work goes on."""
    again = (Feedback(AGAIN, Placement.PREPEND),) if case.state.iteration > 1 else ()
    return place(case.task.text, (*again, *cut_off(case.state)))


@value
class Settle:
    """Completed: wait for the children, then say so (S §DONE File Detection)."""

    wait_timeout: float
    wait_for_children: Callable[[float], str]

    def __call__(self, ports: Ports, state: RunState, verdict: Verdict) -> Iterator[Fact]:
        done = isinstance(verdict, Stop) and verdict.reason is Reason.COMPLETED
        if done and not state.step("children"):
            said = self.wait_for_children(self.wait_timeout)
            yield Step(ports.clock.now(), "children", detail=said)
