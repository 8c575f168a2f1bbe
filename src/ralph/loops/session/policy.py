"""P: the loop inside one session. Only the stopping boundary exists; nothing is started."""

from ralph.kernel.case import Case
from ralph.kernel.contracts import PromiseTag
from ralph.kernel.limits import Limits
from ralph.kernel.ports import Gate, Policy
from ralph.kernel.rules import Believed, RunLimit, cancelled
from ralph.kernel.tasks.select import first_open
from ralph.kernel.value import value
from ralph.kernel.verdict import Answer, Boundary, Continue, Feedback

ULTRAWORK = "ultrawork mode: work in parallel where you can, verify everything, leave nothing out."


@value
class Disbelieved:
    """The promise was made without work, or a gate objects: it is spent (ADR 3)."""

    contract: PromiseTag
    min_tools: int = 1
    ultrawork: bool = False

    def __call__(self, case: Case) -> Answer | None:
        if self.contract.met_by(case.turn) is None:
            return None
        if case.turn.tools < self.min_tools:
            why = (
                "Promise detected, but no tool calls/work were performed; "
                "you must actually complete the task before emitting the promise."
                + (f" (Tool calls: {case.turn.tools} of {self.min_tools}.)" * bool(case.turn.tools))
            )
        else:
            why = "\n\n".join(f.text for f in case.findings) or "The promise was not accepted."
        return Continue((Feedback(_spoken(case, why, ultrawork=self.ultrawork)),))


@value
class Remind:
    """P §Continuation message: no promise, so the task goes back in."""

    contract: PromiseTag
    ultrawork: bool = False

    def __call__(self, case: Case) -> Answer | None:
        why = (
            "You attempted to end the loop, but you did not output the completion promise "
            f"{self.contract.marker}. Continue working on the original task below. "
            "Only output the promise when the task is fully complete."
        )
        why = " ".join((why, *self.contract.near_misses(case.turn)))
        return Continue((Feedback(_spoken(case, why, ultrawork=self.ultrawork)),))


def _spoken(case: Case, why: str, *, ultrawork: bool) -> str:
    lead = f"{ULTRAWORK}\n\n" if ultrawork else ""
    return f"{lead}{why}\n\nOriginal task: {case.task.text}"


def session(
    contract: PromiseTag = PromiseTag(),
    max_iterations: int = 50,
    min_tools: int = 1,
    gates: tuple[Gate, ...] = (),
    *,
    ultrawork: bool = False,
) -> Policy:
    """The policy of `/ralph-loop`; `max_iterations` 0 is no limit and must be asked for."""
    return Policy(
        name="session",
        select=first_open,
        compose=lambda case: case.task.text,
        opening=(),
        watching=(),
        stopping=(
            cancelled,
            Believed(contract, min_tools),
            RunLimit(Limits(iterations=max_iterations or None)),
            Disbelieved(contract, min_tools, ultrawork),
            Remind(contract, ultrawork),
        ),
        closing=(),
        gates={Boundary.STOPPING: gates},
        notes=lambda case: contract.near_misses(case.turn),
    )
