"""The state of a loop inside one session, kept between two stops (P)."""

from ralph.kernel.value import replace, value
from ralph.loops.session.words import Wish

VERSION = 1
RUNNING = "RUNNING"
ACCEPTED = "PROMISE_ACCEPTED"
EXHAUSTED = "MAX_ITERATIONS_REACHED"
CANCELLED = "CANCELLED"
RELEASED = "RELEASED"
STATUSES = (RUNNING, ACCEPTED, EXHAUSTED, CANCELLED, RELEASED)
TIME_TO_LIVE = 24 * 3600.0  # seconds without a word of its session
_MOST_DECISIONS = 1000


@value
class Decision:
    """The answer to one stop."""

    iteration: int  # of blocked stops before it
    found: bool  # the promise was there
    accepted: bool
    reason: str


@value
class SessionLoop:
    """A loop. Times are Unix times."""

    session: str
    wish: Wish
    started: float
    touched: float = 0.0  # when its session was last heard of
    iteration: int = 0  # blocked stops
    status: str = RUNNING
    why: str = ""
    project: str = ""
    transcript: str = ""
    offset: int | None = None  # up to where the transcript was read; None: nobody knows yet
    since: float = 0.0  # what was said before is spent
    tools: int = 0  # tool calls since it began
    unanswered: int = 0  # blocked stops in a row without a tool call
    heard: int = 0  # characters of a message that only grows
    before: str = ""  # what git had to say when it began
    decisions: tuple[Decision, ...] = ()

    @property
    def running(self) -> bool:
        """True while it holds stops."""
        return self.status == RUNNING

    @property
    def progress(self) -> str:
        """3/50, or 3 where there is no limit."""
        most = self.wish.max_iterations
        return f"{self.iteration}/{most}" if most else f"{self.iteration}, no limit"


def begun(wish: Wish, session: str, now: float) -> SessionLoop:
    """A loop that begins now."""
    return SessionLoop(session, wish, started=now, touched=now, since=now)


def aged(loop: SessionLoop, now: float) -> SessionLoop:
    """The loop as it is now: one of which nobody has heard for a day is over."""
    if not loop.running or now - loop.touched <= TIME_TO_LIVE:
        return loop
    return ended(loop, RELEASED, "nothing was heard of its session for 24 hours")


def ended(loop: SessionLoop, status: str, why: str = "") -> SessionLoop:
    """The loop, over."""
    return replace(loop, status=status, why=why)


def told(loop: SessionLoop, decision: Decision) -> SessionLoop:
    """The loop with what was said to a stop; the oldest of very many are forgotten."""
    return replace(loop, decisions=(*loop.decisions, decision)[-_MOST_DECISIONS:])


# ------------------------------------------------------------------ as JSON

_WISH = ("task", "promise", "max_iterations", "min_tool_calls", "on_promise_no_work", "ulw")
_OWN = (
    *("started", "touched", "iteration", "status", "why", "project", "transcript", "offset"),
    *("since", "tools", "unanswered", "heard", "before"),
)
_DECISION = ("iteration", "found", "accepted", "reason")
_PUBLIC = (
    *("session", "task", "promise", "iteration", "max_iterations", "status", "decisions"),
    *("why", "min_tool_calls", "on_promise_no_work", "gates", "ulw", "tools", "project"),
)


def record_of(loop: SessionLoop) -> dict[str, object]:
    """The loop as it is kept."""
    return {
        "version": VERSION,
        "session": loop.session,
        **{name: getattr(loop.wish, name) for name in _WISH},
        "gates": list(loop.wish.gates),
        **{name: getattr(loop, name) for name in _OWN},
        "decisions": [{name: getattr(d, name) for name in _DECISION} for d in loop.decisions],
    }


def shown_record(loop: SessionLoop) -> dict[str, object]:
    """The loop as programs are told about it."""
    record = record_of(loop)
    return {name: record[name] for name in _PUBLIC} | {"started": loop.started}


def loop_of(record: object) -> SessionLoop:
    """The loop of a record. Raises ValueError if it is none."""
    if not isinstance(record, dict):
        raise ValueError("it is not an object")
    if record.get("version") != VERSION:
        raise ValueError(f"its version is {record.get('version')!r}, and {VERSION} is known here")
    try:
        wish = Wish(**{name: record[name] for name in _WISH}, gates=tuple(record["gates"]))
        decisions = tuple(Decision(*(d[name] for name in _DECISION)) for d in record["decisions"])
        own = {name: record[name] for name in _OWN}
        loop = SessionLoop(record["session"], wish, **own, decisions=decisions)
    except KeyError as error:
        raise ValueError(f"it has no {error.args[0]}") from error
    except TypeError as error:
        raise ValueError("its gates or decisions are no lists") from error
    if wrong := _wrong(loop):
        raise ValueError(f"its {wrong} is not what it should be")
    return loop


_NUMBERS = ("iteration", "tools", "unanswered", "heard", "started", "touched", "since")
_TEXTS = ("session", "why", "project", "transcript", "before")


def _wrong(loop: SessionLoop) -> str:
    """The name of a field whose value cannot be; empty if all can."""
    wish = loop.wish
    checks = {name: _is_number(getattr(loop, name)) for name in _NUMBERS}
    checks |= {name: isinstance(getattr(loop, name), str) for name in _TEXTS}
    checks |= {"task": isinstance(wish.task, str), "promise": isinstance(wish.promise, str)}
    checks |= {n: _is_number(getattr(wish, n)) for n in ("max_iterations", "min_tool_calls")}
    checks["gates"] = all(isinstance(gate, str) for gate in wish.gates)
    checks["offset"] = loop.offset is None or _is_number(loop.offset)
    checks["status"] = loop.status in STATUSES
    return next((name for name, right in checks.items() if not right), "")


def _is_number(given: object) -> bool:
    return isinstance(given, int | float) and not isinstance(given, bool) and given >= 0


# ------------------------------------------------------------------ for people


def told_of(loop: SessionLoop) -> str:
    """A loop in a few lines."""
    lines = [
        f"Ralph loop of session {loop.session}: {loop.status}"
        + (f" ({loop.why})" if loop.why else ""),
        f"iteration {loop.progress}; tool calls since it began: {loop.tools}",
        f"promise: {loop.wish.marker}",
        *(f"gate: {gate}" for gate in loop.wish.gates),
        f"task: {loop.wish.task}",
    ]
    for decision in loop.decisions[-5:]:
        found = "promise found" if decision.found else "no promise"
        found += ", accepted" if decision.accepted else ""
        lines.append(f"- after {decision.iteration} blocked stops: {found}: {decision.reason}")
    return "\n".join(lines)
