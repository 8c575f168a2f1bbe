"""The state of a run seen from outside: by what its journal tells and whether its process lives."""

from enum import StrEnum

from ralph.kernel.facts import (
    Asked,
    Assigned,
    Began,
    Checking,
    Fact,
    Launching,
    Returned,
    Settled,
    Started,
)
from ralph.kernel.state import NEW, RunState
from ralph.kernel.value import value
from ralph.kernel.verdict import Cause, Park
from ralph.kernel.world import ANSWER, Signals


class Life(StrEnum):
    """The state of a run."""

    RUNNING = "running"
    WAITING = "waiting"  # asleep until its wake time
    PAUSED = "paused"
    ENDED = "ended"
    CRASHED = "crashed"  # its process is gone without a last word
    UNKNOWN = "unknown"  # its process is gone and the journal cannot be read


@value
class Account:
    """The story that a journal tells of its run, up to its end or to what cannot be read."""

    started: Started | None = None
    state: RunState = NEW
    doing: Launching | Checking | None = None  # the last fact, if something is under way
    launch: Launching | None = None  # of the last turn
    problem: str = ""
    asks: tuple[str, ...] = ()  # tasks that wait for an answer


def life_of(account: Account, asked: Signals, now: float, *, live: bool) -> Life:
    """The state of a run by its journal, the signals it was sent and whether it lives."""
    state = account.state
    if state.stop is not None:
        return Life.ENDED
    if not live:
        return Life.UNKNOWN if account.problem else Life.CRASHED
    if state.asleep and state.asleep.until is None and asked.paused:
        return Life.PAUSED
    return Life.WAITING if (state.wakes or 0.0) > now else Life.RUNNING


def note_question(asking: dict[str, str], fact: Fact, task: str) -> None:
    """Keep the questions of tasks up to date with a fact of the run; `task` is under work. A task
    asks until it is answered, or taken up again."""
    match fact:
        case Began(assignment=at) | Assigned(assignment=at):
            asking.pop(at.task, None)
        case Asked(request=request) if request.request == ANSWER:
            asking.pop(request.task, None)
        case Settled(verdict=Park() as park) | Returned(verdict=Park() as park):
            about = fact.task if isinstance(fact, Returned) else task
            asking.pop(about, None)
            if park.cause is Cause.QUESTION:
                asking[about] = park.why
