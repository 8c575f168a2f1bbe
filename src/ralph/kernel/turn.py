"""One turn of an agent: its order, its pulse while it runs, and its outcome."""

from enum import StrEnum

from ralph.kernel.claims import Claim
from ralph.kernel.events import Failure, Permission, Usage
from ralph.kernel.value import replace, value
from ralph.kernel.verdict import Cut


class Role(StrEnum):
    """The purpose of a turn; wiring maps it to an agent, a model and an output mode."""

    WORK = "work"
    REVIEW = "review"
    MESSAGE = "message"  # a commit message: words only, no tools and no display


@value
class Order:
    prompt: str
    iteration: int
    role: Role = Role.WORK
    dollars: float | None = None  # its allowance; None is no limit
    place: int = 0  # on the roster, of the agent that takes it


@value
class Pulse:
    """A running turn as it looks now, in seconds."""

    seconds: float  # since it started
    idle: float  # since it last said anything
    since_result: float | None = None  # since its final result, if it said one
    dollars: float = 0.0  # what it has cost so far, as far as its stream tells
    queued: float = 0.0  # while no machine of a fleet had it
    placed: bool = True  # False while none has


class Ending(StrEnum):
    """The way in which the agent's process ended."""

    EXITED = "exited"
    CUT = "cut"
    UNSTARTABLE = "unstartable"


@value
class Turn:
    """The outcome of a turn. Small whatever the agent printed: the stream itself is on disk."""

    ending: Ending = Ending.EXITED
    exit_code: int | None = 0
    why: str = ""  # why it was cut or could not start
    failure: Failure | None = None  # what the stream itself reports as failure
    claims: tuple[Claim, ...] = ()
    overheard: tuple[Claim, ...] = ()  # tags in tool output, hooks, sub-agents: never believed
    question: str | None = None
    text: str = ""  # the last 64 KiB of what the assistant said
    stderr: str = ""  # the last 4 KiB
    stray: str = ""  # the same of what stood on stdout and was no stream, if there is no result
    remedy: str = ""  # what a person can do about it, where only a person can
    tools: int = 0
    tool_errors: int = 0
    wrote: bool = False  # files were changed; looked for where a permission was denied
    denied: tuple[str, ...] = ()
    permissions: tuple[Permission, ...] = ()  # answers of the host, some of many
    asked: int = 0  # how often it asked for one, all told
    unknown: int = 0  # lines not understood or too long
    cost_usd: float | None = None
    usage: Usage = Usage()
    seconds: float = 0.0
    queued: float = 0.0  # before that, while no machine of a fleet had it
    stream: str = ""  # where the raw stream is saved
    place: int = 0  # on the roster, of the agent that took it
    agent: str = ""  # who that is

    @property
    def failed(self) -> bool:
        """A failed turn is never believed, whatever it said (ADR 4)."""
        return self.ending is not Ending.EXITED or bool(self.exit_code) or self.failure is not None

    @property
    def uncounted(self) -> bool:
        """It ran, and nobody knows what it cost."""
        return self.exit_code is not None and self.cost_usd is None

    @property
    def by_itself(self) -> bool:
        """The agent ended of its own accord: not cut, and no service failed it."""
        return self.ending is Ending.EXITED and self.failure is None

    @property
    def barred(self) -> bool:
        """Permission was denied, and nothing came of the turn: so it will be with the next."""
        return bool(self.denied) and not self.wrote

    @property
    def silent(self) -> bool:
        """It succeeded without a word and without a tool call."""
        return not self.failed and not self.text.strip() and not self.tools


def ended_by(turn: Turn, exit_code: int | None, cut: Cut | None) -> Turn:
    """The turn with how its process ended.

    One that had said its result and only would not exit is the success it was (ADR 6).
    """
    if cut is None:
        return replace(turn, exit_code=exit_code)
    if cut.finished:
        return replace(turn, exit_code=0, why=cut.why)
    return replace(turn, ending=Ending.CUT, exit_code=exit_code, why=cut.why)
