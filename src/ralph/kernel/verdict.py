"""Verdicts: the possible decisions, where each is legal, and the reasons why a run ends."""

from enum import StrEnum
from typing import Self

from ralph.kernel.value import value


class Boundary(StrEnum):
    """A moment when someone must say what is next."""

    OPENING = "opening"  # before a turn
    WATCHING = "watching"  # while the agent works
    STOPPING = "stopping"  # in a live session, the agent wants to end
    CLOSING = "closing"  # the agent's process is gone


class Placement(StrEnum):
    """The place of feedback in the next prompt (H §Guardrails, `failAction`)."""

    APPEND = "APPEND"
    PREPEND = "PREPEND"
    REPLACE = "REPLACE"


@value
class Feedback:
    """Text for the next prompt, and its place there."""

    text: str
    placement: Placement = Placement.APPEND


class Reason(StrEnum):
    """The reason why a run ended, and its exit code: the one table (README §Exit codes)."""

    exit_code: int

    COMPLETED = "completed", 0
    LIMIT = "limit", 1
    CONFIG = "config", 2
    BLOCKED = "blocked", 3
    STALLED = "stalled", 4
    FAILING = "failing", 5
    BUG = "bug", 70
    INTERRUPTED = "interrupted", 130

    def __new__(cls, word: str, exit_code: int = 0) -> Self:  # Reason("limit") finds one
        reason = str.__new__(cls, word)
        reason._value_, reason.exit_code = word, exit_code
        return reason


@value
class Continue:
    """Take another turn, with this feedback, after so many seconds."""

    feedback: tuple[Feedback, ...] = ()
    after: float = 0.0


@value
class Release:
    """Let the agent end its session; the closing boundary will judge."""

    why: str = ""


@value
class Accept:
    """Believe that the task is done, because of this evidence."""

    evidence: tuple[str, ...]


class Cause(StrEnum):
    """The reason why a task is left to a person."""

    LIMIT = "limit"
    STALLED = "stalled"
    CRASH = "crash"  # the agent failed, turn after turn
    QUESTION = "question"  # the agent wants an answer
    PERSON = "person"  # somebody has settled it already
    REVIEW = "review"  # a person must look at its pull request


@value
class Park:
    """Leave this task to a person and go on with the next."""

    why: str
    cause: Cause = Cause.LIMIT

    @property
    def failed(self) -> bool:
        """The task was given up, though nobody was asked and nobody asked for it."""
        return self.cause in (Cause.LIMIT, Cause.STALLED, Cause.CRASH)

    @property
    def stop(self) -> "Stop":
        """The end of a run that has nothing else to do."""
        return Stop(Reason.BLOCKED, self.why)


@value
class Bench:
    """An agent that is not asked before its time."""

    place: int  # on the roster
    until: float | None  # None: not again in this run
    agent: str = ""  # who that is
    times: int = 1  # in a row


@value
class Wait:
    """Take the same iteration again at `until` (Unix time); 0 is at once, None when resumed.
    The agent on the `bench` does not take it, as long as another one can."""

    until: float | None
    why: str
    bench: Bench | None = None


@value
class Stop:
    """End the run."""

    reason: Reason
    why: str = ""
    evidence: tuple[str, ...] = ()


@value
class Cut:
    """End the turn that is under way. `grace` bounds each step of ending it, in seconds.

    A turn that had already said its result and only would not exit is cut, but `finished`.
    """

    why: str
    grace: float = 5.0
    finished: bool = False


Verdict = Continue | Release | Accept | Park | Wait | Stop
Answer = Verdict | Cut

LEGAL: dict[Boundary, tuple[type[Answer], ...]] = {
    Boundary.OPENING: (Continue, Wait, Park, Stop),
    Boundary.WATCHING: (Cut,),
    Boundary.STOPPING: (Continue, Release, Accept, Stop),
    Boundary.CLOSING: (Continue, Accept, Park, Wait, Stop),
}


def is_interrupted(verdict: Verdict | None) -> bool:
    """True if someone asked the run to stop."""
    return isinstance(verdict, Stop) and verdict.reason is Reason.INTERRUPTED
