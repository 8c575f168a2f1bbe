"""Attempts in words, as S §Restart Counter has them."""

from ralph.kernel.rules import SILENT, TIMED_OUT, describe_failure
from ralph.kernel.turn import Ending, Turn
from ralph.kernel.verdict import Continue, Reason, Stop, Verdict

RESTARTING = ", restarting..."


def outcome(attempt: int, turn: Turn, verdict: Verdict, runs: int | None = None) -> str:
    """`Attempt 1: Agent failed (exit 1), restarting...`; of `runs` the last is not restarted."""
    if isinstance(verdict, Stop) and verdict.reason is Reason.BLOCKED:
        return f"Attempt {attempt}: Agent stopped, {verdict.why}"
    if was_ended(turn, verdict):
        return f"Attempt {attempt}: Agent was ended: {turn.why}"
    then = ""
    if isinstance(verdict, Continue):
        then = "" if turn.failed else " without DONE"
        then += RESTARTING if attempt != runs else ""
    return f"Attempt {attempt}: {_ended(turn)}{then}"


def timeout(turn: Turn) -> tuple[str, ...]:
    """S §Timeout Behavior: the log's lines on an attempt that took too long, or was silent."""
    if turn.ending is not Ending.CUT or not turn.failed:
        return ()
    words = {TIMED_OUT: "Agent timeout after", SILENT: "Agent silent for"}
    said = [turn.why.replace(ours, its) for ours, its in words.items() if turn.why.startswith(ours)]
    killed = "Process group killed, treating as failure"
    return (f"{said[0]}, killing process group", killed) if said else ()


def was_ended(turn: Turn, verdict: Verdict | None) -> bool:
    """The task is done, and the agent would not end by itself."""
    done = isinstance(verdict, Stop) and verdict.reason is Reason.COMPLETED
    return done and turn.ending is Ending.CUT


def _ended(turn: Turn) -> str:
    if not turn.failed:
        return "Agent succeeded"
    if turn.ending is Ending.UNSTARTABLE:
        return f"Agent could not be started: {turn.why}"
    if turn.exit_code and turn.ending is Ending.EXITED and turn.failure is None:
        return f"Agent failed (exit {turn.exit_code})"
    return f"Agent failed ({describe_failure(turn)})"
