"""Rules of the restart supervisor (S): markers on disk and exit codes, never words."""

from ralph.core.case import Case
from ralph.core.value import value
from ralph.core.verdict import Answer, Reason, Stop


def marked_done(case: Case) -> Answer | None:
    """The DONE file is there. It is what ends a supervised task; exit code 0 never does."""
    if case.signals.done_at is None:
        return None
    return Stop(Reason.COMPLETED, "DONE marker present", ("DONE marker present",))


@value
class Waiting:
    """S §Wait-Without-Restart: exit code 42, a bus message or a marker file."""

    exit_code: int = 42

    def __call__(self, case: Case) -> Answer | None:
        why = case.signals.wait
        if why is None and case.turn.exit_code == self.exit_code:
            why = f"exit code {self.exit_code}"
        return None if why is None else Stop(Reason.BLOCKED, f"waiting without restart: {why}")
