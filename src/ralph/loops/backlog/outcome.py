"""The outcome of an iteration, as B's IterationResult has it (B §Iteration Result)."""

from typing import Any

from ralph.kernel.contracts import artifacts_of, last_result, said_failed
from ralph.kernel.findings import Finding
from ralph.kernel.rules import describe_failure
from ralph.kernel.turn import Turn
from ralph.kernel.value import value
from ralph.kernel.verdict import Accept, Continue, Park, Reason, Stop, Verdict, Wait
from ralph.text.plain import first_line

_DETAILS = {"continue": "reason", "blocked": "blocker", "failed": "error", "waiting": "reason"}


@value
class Outcome:
    """An iteration's end: continue, complete, blocked, failed, or waiting to be taken again."""

    status: str
    reason: str = ""
    artifacts: tuple[str, ...] = ()
    error: str = ""  # of the iteration itself, where the reason is another

    def result(self) -> dict[str, Any]:
        """B's object: every status has its own second key."""
        if self.status == "complete":
            return {"status": "complete", "artifacts": list(self.artifacts)}
        result = {"status": self.status, _DETAILS[self.status]: self.reason}
        return {**result, "error": self.error} if self.error else result


def outcome(turn: Turn, verdict: Verdict, findings: tuple[Finding, ...] = ()) -> Outcome:
    """The outcome of a judged turn. A stop of the run leaves the task as the turn left it."""
    match verdict:
        case Accept(evidence=evidence):
            return Outcome("complete", "; ".join(evidence), artifacts_of(turn))
        case Stop(reason=Reason.COMPLETED, why=why):
            return Outcome("complete", why, artifacts_of(turn))
        case Park(why=why) | Stop(reason=Reason.BLOCKED, why=why):
            return Outcome("blocked", why, error=own_error(turn, findings))
        case Wait(why=why):
            return Outcome("waiting", why)
        case _ if turn.failed or said_failed(turn):
            return Outcome("failed", own_error(turn, findings))
        case Stop(why=why):
            told = [why]
        case _:
            feedback = verdict.feedback if isinstance(verdict, Continue) else ()
            told = [first_line(each.text) for each in feedback]
    reasons = filter(None, (own_error(turn, findings), *told, _said(turn, "reason")))
    return Outcome("continue", next(reasons, "not complete yet"))


def own_error(turn: Turn, findings: tuple[Finding, ...]) -> str:
    """The problem with the iteration, whatever was decided then; "" if there is none."""
    if turn.failed:
        return describe_failure(turn)
    if said_failed(turn):
        return _said(turn, "error") or "the agent says that it failed"
    return next((f"{found.gate}: {first_line(found.text)}" for found in findings), "")


def _said(turn: Turn, key: str) -> str:
    word = last_result(turn).get(key)
    return first_line(word) if isinstance(word, str) else ""
