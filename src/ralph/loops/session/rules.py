"""Rules of the loop inside one session (P)."""

from ralph.kernel.case import Case
from ralph.kernel.contracts import PromiseTag
from ralph.kernel.value import value
from ralph.kernel.verdict import Answer, Continue, Feedback

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
