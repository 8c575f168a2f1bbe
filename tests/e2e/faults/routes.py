"""The routes by which a run is ended, and how each shows that it was really taken."""

import json
import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from faults.runs import Run
from ralph.kernel.facts import Ended, Fact, Launching
from ralph.kernel.turn import Ending, Turn

GRACE = 0.2
DONE = "<response>DONE</response>"
RESULT = json.dumps(
    {"type": "result", "subtype": "success", "is_error": False, "num_turns": 1, "result": DONE}
)
KILLED = 128 + signal.SIGKILL


@dataclass(frozen=True)
class Route:
    """A way to end a run."""

    name: str
    take: Callable[[Run], None]  # returns when it is up to ralph, or to its keeper
    code: int  # how ralph must end
    objection: Callable[[Sequence[Fact]], str]  # why the journal shows another end; or nothing
    settings: Mapping[str, object] = field(default_factory=dict)
    kind: str = "text"  # what the agent speaks
    says: str = "ready"  # what it says when it is at work
    commands: tuple[str, ...] = ("run", "supervise")  # those that have it


# ------------------------------------------------------------------ how to take them


def wait(_: Run) -> None:
    """Ralph's own clocks bring the end about."""


def stop(run: Run) -> None:
    """`ralph stop`, which waits for the agent, then `ralph stop --now`, which does not."""
    run.ask("stop")
    run.ask("stop", "--now")


def ctrl_c(run: Run) -> None:
    """Once: `stopGrace` ends the agent's time."""
    run.press_ctrl_c()


def ctrl_c_twice(run: Run) -> None:
    """Twice: at once."""
    run.press_ctrl_c()
    run.await_notice()
    run.press_ctrl_c()


def terminate_twice(run: Run) -> None:
    """The same by SIGTERM."""
    run.send(signal.SIGTERM)
    run.await_notice()
    run.send(signal.SIGTERM)


def kill_ralph(run: Run) -> None:
    """Only the keeper is left, and ends everything, then itself."""
    keeper = run.keeper()
    try:
        run.send(signal.SIGKILL)
        run.await_that(keeper.has_ended, "the keeper ends")
    finally:
        keeper.close()


def kill_keeper(run: Run) -> None:
    """Only ralph is left, and inherits everything."""
    keeper = run.keeper()
    try:
        keeper.kill()
    finally:
        keeper.close()


# ------------------------------------------------------------------ what the journal must show


def cut(why: str, *, ending: Ending = Ending.CUT) -> Callable[[Sequence[Fact]], str]:
    """The only turn was cut, for this reason."""

    def objection(facts: Sequence[Fact]) -> str:
        found = [(turn.ending, turn.why) for turn in _turns(facts)]
        return "" if found == [(ending, why)] else f"turns ended by {found}, not by {why!r}"

    return objection


def killed(facts: Sequence[Fact]) -> str:
    """Nobody cut the only turn: its agent died together with its keeper."""
    found = [(turn.ending, turn.exit_code) for turn in _turns(facts)]
    return "" if found == [(Ending.EXITED, KILLED)] else f"turns ended by {found}, not by a kill"


def unfinished(facts: Sequence[Fact]) -> str:
    """The last that is known is that the agent was started."""
    last = type(facts[-1]).__name__ if facts else "nothing"
    return "" if last == Launching.__name__ else f"the journal ends with {last}, not in a turn"


def _turns(facts: Sequence[Fact]) -> list[Turn]:
    return [fact.turn for fact in facts if isinstance(fact, Ended)]


# ------------------------------------------------------------------ the routes

AT_ONCE = cut("asked to stop at once")
ROUTES = (
    Route("stop", stop, 130, AT_ONCE),
    Route("timeout", wait, 1, cut("timed out after 1.0s"), {"timeout": 1}),
    Route("idle timeout", wait, 1, cut("silent for 0.5s"), {"idleTimeout": 0.5}),
    Route(
        "result grace",
        wait,
        0,
        cut("still running 0.2s after its result", ending=Ending.EXITED),
        {"resultGrace": GRACE},
        kind="claude",
        says=RESULT,
        commands=("run",),
    ),
    Route(
        "Ctrl+C",
        ctrl_c,
        130,
        cut("did not end within 0.2s of being asked to stop"),
        {"stopGrace": GRACE},
    ),
    Route("second Ctrl+C", ctrl_c_twice, 130, AT_ONCE),
    Route("SIGTERM twice", terminate_twice, 130, AT_ONCE),
    Route("SIGKILL of ralph", kill_ralph, -signal.SIGKILL, unfinished),
    Route("SIGKILL of keeper", kill_keeper, 1, killed),
)
