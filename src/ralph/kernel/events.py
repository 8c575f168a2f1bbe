"""The events of an agent's stream, in one vocabulary for every CLI (H §Event Model).

Events are values without time: whoever receives one knows when it came. Who spoke is part of the
event, because only the assistant's own words may complete anything.
"""

from enum import StrEnum

from ralph.kernel.value import value


class Speaker(StrEnum):
    """The one whose words a text is."""

    ASSISTANT = "assistant"
    SUBAGENT = "subagent"
    PROMPT = "prompt"  # our own prompt, echoed
    HOOK = "hook"  # feedback that a hook injected
    HOST = "host"  # the CLI itself speaking in the assistant's place, such as an API error


@value
class Text:
    """Words for people. Consecutive texts are separate blocks, joined by newlines."""

    text: str
    speaker: Speaker = Speaker.ASSISTANT


@value
class Thinking:
    """Reasoning shown before an answer."""

    text: str


@value
class ToolStart:
    """A tool call began. `summary` is the one argument that tells people what it does."""

    id: str
    name: str
    summary: str = ""
    subagent: bool = False
    arguments: str = ""  # all of them as JSON, where the parser was asked for them


@value
class ToolEnd:
    """A tool call ended with its output; `id` is the ToolStart's."""

    id: str
    output: str = ""
    is_error: bool = False
    subagent: bool = False


class TodoStatus(StrEnum):
    """The progress of an item of the agent's own list."""

    PENDING = "pending"
    ACTIVE = "in_progress"
    DONE = "completed"


@value
class TodoItem:
    """One item of the agent's own list."""

    text: str
    status: TodoStatus = TodoStatus.PENDING


@value
class Todo:
    """The agent's own task list, whole, after a change."""

    items: tuple[TodoItem, ...]


@value
class Failure:
    """The reason why a turn failed, from the failure's own fields: never from text or tools."""

    message: str
    status: int | None = None  # HTTP status, where one is stated
    retry_after: float | None = None  # seconds, where stated
    resets_at: float | None = None  # Unix time, where stated

    @property
    def limited(self) -> bool:
        """A rate limit: waiting helps."""
        return self.status == 429

    @property
    def overloaded(self) -> bool:
        """The service itself fails, or has no room: waiting mostly helps."""
        return self.status is not None and 500 <= self.status < 600

    @property
    def passes(self) -> bool:
        """Nothing is wrong with the turn: it is worth taking again later."""
        return self.limited or self.overloaded

    @property
    def refused(self) -> bool:
        """The credential is not accepted: nothing will help but another one."""
        return self.status in (401, 403)


@value
class Usage:
    """Tokens as the CLI counts them; `input` excludes what was read from the cache."""

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0

    @property
    def all_input(self) -> int:
        return self.input + self.cache_read + self.cache_write

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            self.input + other.input,
            self.output + other.output,
            self.cache_read + other.cache_read,
            self.cache_write + other.cache_write,
        )


@value
class Used:
    """The cost of one step of a turn, told while the turn goes on; steps add up."""

    usage: Usage = Usage()
    cost_usd: float | None = None

    def __add__(self, other: "Used") -> "Used":
        """Both; of unknown cost if tokens of either are."""
        both = (self, other)
        unknown = any(used.cost_usd is None and used.usage != Usage() for used in both)
        costs = [used.cost_usd for used in both if used.cost_usd is not None]
        cost = sum(costs) if costs and not unknown else None
        return Used(self.usage + other.usage, cost)


@value
class Result:
    """The stream's last word. A turn without one, in a dialect that has one, failed."""

    text: str = ""
    failure: Failure | None = None
    cost_usd: float | None = None
    usage: Usage = Usage()
    denied: tuple[str, ...] = ()  # tools whose permission was denied
    unstartable: bool = False  # no other turn would do better: the agent cannot be spoken with


@value
class Progress:
    """A status line: the session began, a hook ran, the model changed."""

    text: str
    session: str | None = None


@value
class Retry:
    """The CLI tries an API call again by itself."""

    attempt: int
    of: int | None = None
    seconds: float | None = None
    why: str = ""


@value
class RateLimited:
    """The provider says that the account's limit is used up."""

    why: str
    resets_at: float | None = None


@value
class Question:
    """The agent asks a person something and cannot get an answer here."""

    text: str


@value
class Permission:
    """The agent asked whether it may do something, and the host has answered."""

    what: str
    allowed: bool
    why: str = ""  # it was refused

    @property
    def refusal(self) -> str:
        """The refusal in a sentence; what else stands below the reason is for the agent."""
        why = self.why.partition("\n")[0].removeprefix("guard: refused").lstrip(",: ")
        return f"Refused: {self.what}{' ' if why.startswith('(') else ': '}{why}"


@value
class Unknown:
    """A line that is not understood: kept, counted, never an error."""

    raw: str


AgentEvent = (
    Text
    | Thinking
    | ToolStart
    | ToolEnd
    | Todo
    | Used
    | Result
    | Progress
    | Retry
    | RateLimited
    | Question
    | Permission
    | Unknown
)
