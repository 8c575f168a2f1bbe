"""The world outside a run: signals, and the state of the workspace."""

from enum import StrEnum

from ralph.kernel.value import replace, value
from ralph.kernel.verdict import Cut
from ralph.text.words import duration

HEAD, REFS, SETTINGS = "HEAD", "git's refs", "git's settings"  # they change beside the files
OF_GIT = frozenset({HEAD, REFS, SETTINGS})


class Origin(StrEnum):
    """The way by which somebody steers a run."""

    CLI = "cli"
    WEB = "web"
    WATCH = "watch"
    MCP = "mcp"


# The requests of people.
STOP, STOP_NOW, PAUSE = "stop", "stop-now", "pause"  # stand until they are taken back
RESUME = "resume"  # wires a run anew that is paused
NOTE = "note"  # is told to the agent
ANSWER = "answer"  # to a task's question


@value
class Request:
    """Something that somebody asks of a run, as it is left in its folder of signals."""

    id: str  # no other request of the run has it; later ones sort behind
    request: str  # one of those above
    origin: Origin = Origin.CLI
    time: float = 0.0  # when it was asked for
    text: str = ""  # of a note or an answer
    task: str = ""  # that it is for; "" is the next one


@value
class Signals:
    """Requests of people and agents to a run; read anew at every survey."""

    cancels: int = 0  # how often the run was asked to end
    cancelled_at: float | None = None  # when first
    paused: bool = False
    done_at: float | None = None  # S: when the DONE file was first seen
    wait: str | None = None  # S: wait without restart, and why
    problem: str | None = None  # a signal that cannot be read, such as a DONE directory
    requests: tuple[Request, ...] = ()  # those that people have left, with their words

    @property
    def urgent(self) -> bool:
        """True for a signal worth waking up for."""
        return bool(self.cancels) or self.done_at is not None or self.wait is not None


def together(one: Signals, other: Signals) -> Signals:
    """The signals of two places. Asking once in each is not asking twice."""
    times = [s.cancelled_at for s in (one, other) if s.cancelled_at is not None]
    return Signals(
        cancels=max(one.cancels, other.cancels),
        cancelled_at=min(times, default=None),
        paused=one.paused or other.paused,
        done_at=one.done_at if other.done_at is None else other.done_at,
        wait=one.wait or other.wait,
        problem=one.problem or other.problem,
        requests=(*one.requests, *other.requests),
    )


def of_worker(signals: Signals, task: str, *, recalled: bool) -> Signals:
    """The signals of a run, as the worker at a task hears them. Its lead journals all but notes,
    and calls it back from a pause, to be wired anew."""
    notes = tuple(r for r in signals.requests if r.request == NOTE and r.task in ("", task))
    recalled = recalled or any(each.request == RESUME for each in signals.requests)
    return replace(signals, requests=notes, cancels=max(signals.cancels, int(recalled)))


def hurried(signals: Signals, now: float, stop_grace: float | None) -> Cut | None:
    """Cut what runs if asked to stop twice, or once and too long ago (ADR 7)."""
    if signals.cancels >= 2:
        return Cut("asked to stop at once", grace=0.3)
    asked = signals.cancelled_at
    if stop_grace is None or asked is None or now - asked < stop_grace:
        return None
    return Cut(f"did not end within {duration(stop_grace)} of being asked to stop")


@value
class Stand:
    """The work at one moment. Empty outside git."""

    tree: str = ""  # every file that git would commit
    head: str = ""
    refs: str = ""  # a digest of the branches, the tags and what HEAD is on
    settings: str = ""  # a digest of the repository's configuration

    def moved(self, other: "Stand") -> frozenset[str]:
        """The names of what differs beside the files."""
        ours = (self.head, self.refs, self.settings)
        theirs = (other.head, other.refs, other.settings)
        pairs = zip((HEAD, REFS, SETTINGS), ours, theirs, strict=True)
        return frozenset(name for name, one, two in pairs if one != two)


@value
class Snapshot:
    """The workspace before a turn: enough to see progress, and tampering with protected paths."""

    tree: str = ""  # a digest of commits and files; empty when progress is not watched
    protected: tuple[tuple[str, str], ...] = ()  # (path, digest)
    stand: Stand = Stand()  # of a run that proves something
