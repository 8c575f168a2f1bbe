"""What a survey finds outside the run: signals and the state of the workspace."""

from ralph.core.value import value


@value
class Signals:
    """What people and agents ask for while a run goes on; read anew at every survey."""

    cancels: int = 0  # how often the run was asked to end
    cancelled_at: float | None = None  # when first
    paused: bool = False
    done_at: float | None = None  # S: when the DONE file was first seen
    wait: str | None = None  # S: wait without restart, and why
    problem: str | None = None  # a signal that cannot be read, such as a DONE directory


@value
class Snapshot:
    """The workspace before a turn: enough to see progress, and tampering with protected paths."""

    tree: str = ""  # a digest of commits and files; empty when progress is not watched
    protected: tuple[tuple[str, str], ...] = ()  # (path, digest)
