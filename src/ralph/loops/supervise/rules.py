"""Rules of the restart supervisor (S): markers on disk and exit codes, never words."""

from ralph.kernel.case import Case
from ralph.kernel.value import value
from ralph.kernel.verdict import Answer, Continue, Cut, Reason, Stop
from ralph.text.words import duration


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
