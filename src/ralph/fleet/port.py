"""An attempt at a turn, as it travels to another machine; and the port to whoever dispatches it."""

from collections.abc import Sequence
from typing import Protocol

from ralph.kernel.turn import Pulse
from ralph.kernel.value import value
from ralph.kernel.verdict import Cut

SCHEMA = 1
MOST_BYTES = 65_536  # of a job, and of each message; what is larger travels by git


@value
class Job:
    """One attempt at one turn. It holds neither the prompt nor a secret: the order does, which is a
    commit at `ref`, on a remote that both sides reach."""

    version: str  # of Ralph, where the run is
    run: str
    task: str  # its id
    attempt: int  # of this task; only the newest is believed
    ref: str  # refs/ralph/<run>/<task>/<attempt>: the order, and later the result
    order: str  # the commit that it stands at, until there is a result
    remote: str  # a URL or a path; no password
    lease: float  # seconds for which each renewal holds
    settings: str = "{}"  # those that the turn needs, as JSON; no secrets
    schema: int = SCHEMA

    @property
    def key(self) -> str:
        """Names the attempt everywhere, also after it was sent again by the same run."""
        return f"{self.ref}@{self.order[:12]}"


@value
class Placed:
    """A machine has it, and may begin."""

    host: str


@value
class Launched:
    """The agent's process is about to start there."""

    dialect: str
    agent: str = ""
    model: str = ""


@value
class Said:
    """The next bytes of the agent's stream; secrets of that machine are redacted."""

    data: bytes


@value
class Beat:
    """How the turn looks now."""

    pulse: Pulse


@value
class Away:
    """Nothing was heard for so many seconds; 0.0 when it is heard again."""

    seconds: float


@value
class Done:
    """Its result is at the ref, nothing of it lives, and the machine has forgotten it."""

    commit: str


@value
class Failed:
    """It has no result, and nothing of it lives. `passes`: another attempt may do better."""

    why: str
    remedy: str = ""
    passes: bool = False


@value
class Lost:
    """Its lease is over, so nothing of it lives; nobody has told how it ended."""

    why: str


@value
class CameBack:
    """One that was lost is heard again. Nothing of it is believed."""

    host: str


Event = Placed | Launched | Said | Beat | Away | Done | Failed | Lost | CameBack
LAST = (Done, Failed, Lost)  # one of these ends every attempt, once; what was lost may come back


class Handle(Protocol):
    """An attempt that was submitted."""

    @property
    def key(self) -> str: ...


class Executor(Protocol):
    """Has attempts made, somewhere. Every method may be called by any thread, and none raises for
    what happens elsewhere: that is an event."""

    def submit(self, job: Job, *, again: bool = False) -> Handle:
        """Have it made, once. `again`: an earlier process of this run may have submitted it. If it
        is under way somewhere, or nobody has asked for it since it ended, it is taken up."""

    def events(self, handle: Handle, wait: float) -> Sequence[Event]:
        """What has happened since the last call; empty if it is nothing for `wait` seconds."""

    def cancel(self, handle: Handle, cut: Cut) -> None:
        """End the agent, as a cut ends it here. The events tell when its tree is empty: within 10
        seconds beyond the cut's grace, where the machine is reached."""

    def lost(self, handle: Handle) -> bool:
        """True once it is over for certain: no agent of it can be alive."""

    def slots(self) -> int:
        """How many attempts can be under way at once, as far as is known now."""

    def close(self) -> None:
        """Let go. What is under way goes on until its lease is over, for a run that goes on."""
