"""The exceptions people see. One catch, in `cli`, turns each into a message and an exit code.

    RalphError          something a person can fix: `message`, and `remedy`, what to type next
    ├── ConfigError     2    bad settings, usage or prompt; an agent that cannot be started
    ├── LockedError     2    another run holds this workspace
    ├── StateError      2    the state directory or the journal cannot be read or written
    ├── ForgeError      2    GitHub or GitLab says no, or cannot be reached
    └── AbortedError  130    a person ended a dialogue, or a commit

Anything else is a bug (exit 70). How a *run* ends is never an exception: that is a verdict.
"""

from collections.abc import Iterator
from contextlib import contextmanager


class RalphError(Exception):
    """An error with its place and what to type next."""

    reason = "config"

    def __init__(self, message: str, remedy: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy
        self.told = False  # whether a run's readers have said how it ended

    @property
    def words(self) -> str:
        """The message with its remedy."""
        return f"{self.message}. {self.remedy}".strip()


class ConfigError(RalphError):
    """Bad settings, usage or prompt; an agent that cannot be started."""


class LockedError(RalphError):
    """Another run holds this workspace."""


class StateError(RalphError):
    """The state directory or the journal cannot be read or written."""


class ForgeError(RalphError):
    """GitHub or GitLab says no, or cannot be reached: `status` is that of its answer, 0 for none.
    `retry_after` is how many seconds to leave it alone, where asking again may help."""

    def __init__(
        self, message: str, remedy: str = "", *, status: int = 0, retry_after: float | None = None
    ) -> None:
        super().__init__(message, remedy)
        self.status, self.retry_after = status, retry_after


class AbortedError(RalphError):
    """A person ended a dialogue with Ctrl+C or the end of input, or a commit by Ctrl+C twice."""

    reason = "interrupted"


@contextmanager
def failing(message: str, remedy: str = "", kind: type[RalphError] = ConfigError) -> Iterator[None]:
    """Raise an OSError within as an error for people: the message, and the system's reason."""
    try:
        yield
    except OSError as error:
        raise kind(f"{message}: {error.strerror or error}", remedy) from error
