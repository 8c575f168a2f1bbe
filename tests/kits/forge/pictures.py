"""What the checks of a commit look like at one look."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Run:
    """A check run of GitHub, or a job of GitLab."""

    name: str
    conclusion: str = ""  # of GitHub: success, failure, ...; "" while it runs
    status: str = ""  # while it runs: queued, in_progress, waiting, ...
    log: str = ""
    suite: int = 1
    number: int = 0  # 0: the next one; a greater one is a later one
    app: str = "github-actions"  # or another app, which has no log
    title: str = ""
    summary: str = ""
    sha: str = ""  # another commit's: a stale answer
    allowed: bool = False  # to fail, at GitLab


@dataclass(frozen=True)
class Status:
    """A commit status, as other services post them."""

    context: str
    state: str = "success"  # or pending, failure, error
    description: str = ""
    number: int = 0
    sha: str = ""  # another commit's: a stale answer


@dataclass(frozen=True)
class Suites:
    """The suites, or pipelines, that are not at their end, although their runs may be."""

    numbers: tuple[int, ...] = (1,)


Picture = Sequence[Run | Status | Suites]


def passed(name: str, **more: object) -> Run:
    return Run(name, "success", **more)  # type: ignore[arg-type]


def failed(name: str, **more: object) -> Run:
    return Run(name, "failure", **more)  # type: ignore[arg-type]


def neutral(name: str, **more: object) -> Run:
    return Run(name, "neutral", **more)  # type: ignore[arg-type]


def skipped(name: str, **more: object) -> Run:
    return Run(name, "skipped", **more)  # type: ignore[arg-type]


def pending(name: str, **more: object) -> Run:
    return Run(name, status="in_progress", **more)  # type: ignore[arg-type]


def status(context: str, state: str = "success", **more: object) -> Status:
    return Status(context, state, **more)  # type: ignore[arg-type]
