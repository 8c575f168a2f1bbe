"""The way on for a run that is gone: what `ralph resume` would do, and the limit it needs."""

import math

from ralph.kernel.state import Phase, RunState
from ralph.kernel.value import value
from ralph.kernel.verdict import Reason

_HOUR = 3600.0
_MORE = 10  # iterations or tasks


@value
class WayOn:
    """`flags` are to be typed after `ralph resume RUN`, because a limit is used up."""

    possible: bool
    words: str  # a sentence without its subject
    flags: str = ""


def way_on(state: RunState, profile: str = "") -> WayOn:
    """The way on of a run from this state."""
    coming = "goes on"
    if profile != "tasks":  # which counts the iterations of each task
        turn = "attempt" if profile == "supervise" else "iteration"
        coming = f"goes on with {turn} {state.iteration + (not state.again)}"
    if not state.has_ended:
        again = "takes the turn that was cut off again"
        return WayOn(True, again if state.phase is Phase.TURN else coming)
    assert state.stop is not None
    match state.stop.reason:
        case Reason.COMPLETED:
            return WayOn(False, "is complete")
        case Reason.LIMIT:
            flags = limits_to_raise(state)
            return WayOn(True, f"{coming}, once its limit is raised" if flags else coming, flags)
        case Reason.BLOCKED:
            return WayOn(True, f"{coming}, once it has what it needs from you")
        case _:
            return WayOn(True, f"{coming}; failures and stalls are counted anew")


def limits_to_raise(state: RunState) -> str:
    """The flags that raise the limits that are used up: `-m +10`."""
    limits, spent, flags = state.limits, state.spent, []
    taken = len(state.done) + len(state.parked) + len(state.crew)
    if limits.iterations is not None and spent.iterations - state.again >= limits.iterations:
        flags.append(f"-m +{_MORE}")
    if limits.tasks is not None and taken >= limits.tasks:
        flags.append(f"--max-tasks +{_MORE}")
    if limits.seconds is not None and spent.seconds >= limits.seconds:
        flags.append(f"--max-time +{1 + int((spent.seconds - limits.seconds) // _HOUR)}h")
    if limits.dollars is not None and spent.dollars >= limits.dollars:
        more = spent.dollars - limits.dollars + limits.dollars / 2
        flags.append(f"--max-cost +{math.floor(more) + 1}")
    return " ".join(flags)
