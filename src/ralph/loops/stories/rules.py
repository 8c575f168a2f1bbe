"""Rules of reviewed stories (R)."""

from ralph.kernel.case import Case
from ralph.kernel.contracts import Contract
from ralph.kernel.findings import repeated
from ralph.kernel.rules import objections, spacing
from ralph.kernel.tasks.task import ReviewStatus
from ralph.kernel.value import value
from ralph.kernel.verdict import Answer, Boundary, Continue, Feedback, Reason, Release, Stop, Wait


@value
class AllApproved:
    """The list itself shows every story approved. An empty list is not complete."""

    skip_review: bool = False

    def __call__(self, case: Case) -> Answer | None:
        tasks = case.backlog.tasks
        # An objection after the last turn does not go away by itself.
        last = case.state.findings if case.boundary is Boundary.OPENING else ()
        if not tasks or case.findings or last or not all(t.passes for t in tasks):
            return None
        if not self.skip_review and any(t.review is not ReviewStatus.APPROVED for t in tasks):
            return None
        word = "passes" if self.skip_review else "is approved"
        return Stop(Reason.COMPLETED, f"every story {word}", tuple(f"{t.id} {word}" for t in tasks))


@value
class SilentRetry:
    """An answer without words, tools and traces is taken again, a few times (R §3)."""

    most: int = 3

    def __call__(self, case: Case) -> Answer | None:
        if not case.turn.silent or case.progressed or case.state.waits >= self.most:
            return None
        return Wait(0, "the agent said nothing")


@value
class SameObjection:
    """A gate objects so many times in a row to the same thing, whatever else changed. 0 is off."""

    after: int = 3

    def __call__(self, case: Case) -> Answer | None:
        if not self.after or not case.checked:
            return None
        again = repeated(case.state.objected, case.findings)
        same = [identity[0] for identity, times in again if times >= self.after]
        if not same:
            return None
        why = f"no progress: {same[0]} objects to the same thing {self.after} times in a row"
        return Stop(Reason.STALLED, why)


@value
class FalseClaim:
    """COMPLETE was claimed, and the list says otherwise."""

    contract: Contract
    delay: float = 0.0  # seconds after the first failed turn

    def __call__(self, case: Case) -> Answer | None:
        left = ", ".join(t.id for t in case.backlog.tasks if not t.passes)
        if self.contract.met_by(case.turn) is None or not left:
            return None
        told = f"You said {self.contract.marker}, but these are not approved: {left}."
        return Continue((*objections(case), Feedback(told)), spacing(case, self.delay))


@value
class HoldLimit:
    """A session is held back only so often; then the closing boundary judges it."""

    most: int = 5

    def __call__(self, case: Case) -> Answer | None:
        return Release(f"held back {self.most} times") if case.state.holds >= self.most else None
