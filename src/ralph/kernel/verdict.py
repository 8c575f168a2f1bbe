"""Verdicts: the possible decisions, where each is legal, and the reasons why a run ends."""

from enum import StrEnum

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
    """The reason why a run ended."""

    COMPLETED = "completed"
    LIMIT = "limit"
    CONFIG = "config"
    BLOCKED = "blocked"
    STALLED = "stalled"
    FAILING = "failing"
    BUG = "bug"
    INTERRUPTED = "interrupted"

    @property
    def exit_code(self) -> int:
        """The one exit-code table of every run (README §Exit codes)."""
        return _EXIT_CODES[self]


_EXIT_CODES = {
    Reason.COMPLETED: 0,
    Reason.LIMIT: 1,
    Reason.CONFIG: 2,
    Reason.BLOCKED: 3,
    Reason.STALLED: 4,
    Reason.FAILING: 5,
    Reason.BUG: 70,
    Reason.INTERRUPTED: 130,
}


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


@value
class Park:
    """Leave this task to a person and go on with the next."""

    why: str
    cause: Cause = Cause.LIMIT

    @property
    def failed(self) -> bool:
        """The task was given up, though nobody was asked and nobody asked for it."""
        return self.cause in (Cause.LIMIT, Cause.STALLED, Cause.CRASH)


@value
class Wait:
    """Take the same iteration again at `until` (Unix time); 0 is at once, None when resumed."""

    until: float | None
    why: str


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
