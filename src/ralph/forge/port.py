"""What a forge is asked for, as values and three ports. A forge (GitHub, GitLab) carries out all.

Every method raises ForgeError where the forge says no or cannot be reached.
"""

from enum import StrEnum
from typing import Protocol

from ralph.kernel.value import value

MOST_ISSUES = 10_000


@value
class Project:
    """A repository at its forge."""

    name: str  # owner/name, as people write it
    default_branch: str
    url: str = ""  # for a browser


class PullState(StrEnum):
    OPEN = "open"
    MERGED = "merged"
    CLOSED = "closed"


@value
class Pull:
    """A pull request as the forge has it."""

    number: int
    url: str
    branch: str
    base: str
    head: str = ""  # the commit at its top; may be a moment old
    state: PullState = PullState.OPEN
    refused: tuple[str, ...] = ()  # labels and reviewers that the forge did not take


@value
class Proposal:
    """What a pull request shall say."""

    branch: str
    base: str
    title: str
    body: str
    draft: bool = False
    labels: tuple[str, ...] = ()
    reviewers: tuple[str, ...] = ()


class Pulls(Protocol):
    """Pull requests of one repository, whose branches are its own."""

    def project(self) -> Project: ...

    def find(self, branch: str) -> Pull | None:
        """The open pull request for a branch."""

    def put(self, proposal: Proposal) -> Pull:
        """Open a pull request, or let the one that is open for that branch say this."""

    def pull(self, number: int) -> Pull: ...

    def comment(self, number: int, text: str) -> None:
        """Say something below it; the same words are not said twice."""

    def merge(self, number: int, commit: str, method: str) -> None:
        """Merge it, if that commit is still its top; nothing to do where it is merged."""


class CheckState(StrEnum):
    PENDING = "pending"
    PASSED = "passed"
    FAILED = "failed"  # also cancelled, timed out, stale, in need of a person
    NEUTRAL = "neutral"  # at GitLab: failed, and allowed to
    SKIPPED = "skipped"


@value
class Check:
    """The latest answer of one check to one commit."""

    name: str
    state: CheckState
    url: str = ""
    said: str = ""  # a sentence of its own, such as "timed out"
    log: str = ""  # by which the forge finds its log; "" for none


class Checks(Protocol):
    """The checks of commits."""

    def checks(self, commit: str) -> tuple[Check, ...]:
        """Those of this very commit, each once, in the order of their names."""

    def log(self, check: Check) -> str:
        """The end of its log as plain text; "" if there is none."""


class Issues(Protocol):
    """Issues, each as the JSON that `ralph.formats.github` reads."""

    def issues(self, repository: str, labels: tuple[str, ...], state: str = "open") -> str:
        """Those that have all these labels; `state` is open, closed or all. The newest come
        first, and at most MOST_ISSUES."""

    def issue(self, repository: str, number: str) -> str: ...

    def turn(self, repository: str, number: str, *, done: bool, comment: str) -> None:
        """Close an issue, or open it again, with a comment."""
