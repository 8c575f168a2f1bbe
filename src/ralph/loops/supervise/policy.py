"""S: restarts an agent until it writes DONE. Words and exit codes complete nothing."""

from collections.abc import Callable, Iterator
from functools import partial

from ralph.errors import AbortedError
from ralph.kernel import rules
from ralph.kernel.case import Case
from ralph.kernel.facts import Fact, Step
from ralph.kernel.limits import Limits
from ralph.kernel.ports import Policy, Ports
from ralph.kernel.prompt import cut_off, place
from ralph.kernel.state import RunState
from ralph.kernel.tasks.select import first_open
from ralph.kernel.value import replace, value
from ralph.kernel.verdict import Answer, Continue, Cut, Feedback, Placement, Reason, Stop, Verdict
from ralph.text.words import duration

AGAIN = "Continue working on the following:"


class ChildRuns:
    """The child runs of a task, and its message bus; here a task has neither."""

    def wait_for_children(self, seconds: float, stirred: Callable[[], bool]) -> str:
        """Wait for the child runs, at most so long, then end them. Returns what was done."""
        return rules.NO_CHILDREN

    def end_children(self, *, at_once: bool) -> str:
        """End the child runs. Returns their names in a sentence, or ""."""
        return ""

    def announce(self, stop: Stop, children: str) -> str:
        """Post the end of the task, once. Returns why that failed, or ""."""
        return ""


def supervise(
    max_restarts: int = 100,
    restart_delay: float = 1.0,
    wait_timeout: float = 300.0,
    *,
    patience: rules.Patience = rules.Patience(fail_after=0),
    limits: Limits = Limits(),
    child_runs: ChildRuns = ChildRuns(),
) -> Policy:
    """The policy of `ralph supervise`; `max_restarts` is the number of runs (ADR 19), `limits` are
    the run's time and money."""
    limits = replace(limits, iterations=None)
    return Policy(
        name="supervise",
        select=first_open,
        compose=compose,
        opening=(
            rules.cancelled,
            marked_done,
            rules.unreadable,
            waiting,
            rules.paused,
            MaxRestarts(max_restarts),
            rules.RunLimit(limits),
            rules.carry_on,
        ),
        watching=(
            rules.SecondSignal(patience.stop_grace),
            rules.Timeouts(patience.turn, patience.idle),
            DoneGrace(wait_timeout),
            rules.TimeLeft(limits.seconds),
            rules.MoneyLeft(limits.dollars),
        ),
        stopping=(rules.release,),
        retaking=(rules.cancelled, marked_done, rules.unreadable, waiting, rules.RunLimit(limits)),
        closing=(
            rules.interrupted,
            rules.unstartable,
            rules.refused,
            marked_done,
            rules.unreadable,
            waiting,
            WaitCode(),
            rules.RateLimit(patience.max_wait),
            CarryOn(restart_delay),
        ),
        allowance=rules.allowance(limits),
        settle=partial(settle, child_runs, wait_timeout),
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
            raise AbortedError(verdict.why)
        waited = Step(ports.clock.now(), "children", detail=said)
        yield waited
    if state.step("bus") is None:
        problem = child_runs.announce(verdict, waited.detail)
        yield Step(ports.clock.now(), "bus", ok=not problem, detail=problem)


def marked_done(case: Case) -> Answer | None:
    """The DONE file is there. It is what ends a supervised task; exit code 0 never does."""
    if case.signals.done_at is None:
        return None
    return Stop(Reason.COMPLETED, "DONE marker present", ("DONE marker present",))


def waiting(case: Case) -> Answer | None:
    """S §Wait-Without-Restart: a marker file or a bus message asks for it."""
    why = case.signals.wait
    return None if why is None else Stop(Reason.BLOCKED, f"waiting without restart: {why}")


@value
class WaitCode:
    """S §Wait-Without-Restart: the agent's exit code asks for it."""

    exit_code: int = 42

    def __call__(self, case: Case) -> Answer | None:
        if case.turn.exit_code != self.exit_code:
            return None
        return Stop(Reason.BLOCKED, f"waiting without restart: exit code {self.exit_code}")


@value
class MaxRestarts:
    """So many attempts were made (ADR 19)."""

    runs: int = 100

    def __call__(self, case: Case) -> Answer | None:
        if case.spent.iterations - case.state.again < self.runs:  # one taken again is not spent
            return None
        return Stop(Reason.LIMIT, f"max restarts ({self.runs}) exceeded")


@value
class CarryOn:
    """Another attempt, after a delay."""

    after: float = 1.0

    def __call__(self, case: Case) -> Answer | None:
        return Continue(after=self.after)


@value
class DoneGrace:
    """DONE appeared while the agent works, and it does not end (ADR 19)."""

    seconds: float = 300.0

    def __call__(self, case: Case) -> Answer | None:
        done_at = case.signals.done_at
        if done_at is None or case.now - done_at < self.seconds:
            return None
        return Cut(f"still running {duration(self.seconds)} after DONE")
