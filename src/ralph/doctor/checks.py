"""The report of `ralph doctor`: areas of checks, and the agents that were found."""

from collections.abc import Iterable
from enum import StrEnum

from ralph.kernel.value import value


class CheckState(StrEnum):
    """The result of a check; only a problem keeps a run from working."""

    OK = "ok"
    WARNING = "warning"
    PROBLEM = "problem"


@value
class Check:
    """One thing that was looked at; what is not ok has a remedy, which says what to type."""

    name: str
    state: CheckState
    found: str
    remedy: str = ""


@value
class Area:
    """The checks under one heading, in order."""

    title: str
    checks: tuple[Check, ...]


@value
class KnownAgent:
    """An agent on this machine. `trouble` says why it gave no version; "" if it did."""

    kind: str
    path: str
    version: str = ""
    trouble: str = ""
    tested: bool = True  # whether Ralph has been run with the real CLI
    flags: tuple[tuple[str, str], ...] = ()  # each with the reason
    reports: str = ""  # of money: "cost", "tokens" or nothing
    credential: str = ""  # the name of what pays, never its value; "" where we cannot know
    withheld: tuple[str, ...] = ()  # the names of variables that it does not get
    chosen: bool = False  # whether `ralph run` would take it here


def ok(name: str, found: str) -> Check:
    """A check where all is well, or that is only worth knowing."""
    return Check(name, CheckState.OK, found)


def warning(name: str, found: str, remedy: str) -> Check:
    """A check after which a run works, but not as well as it could."""
    return Check(name, CheckState.WARNING, found, remedy)


def problem(name: str, found: str, remedy: str) -> Check:
    """A check after which a run would fail."""
    return Check(name, CheckState.PROBLEM, found, remedy)


def count(areas: Iterable[Area], state: CheckState) -> int:
    return sum(check.state is state for area in areas for check in area.checks)
