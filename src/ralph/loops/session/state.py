"""The state of a loop inside one session, kept between two stops (P)."""

from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any, TypeVar

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
    # What led there, so that it can be judged again (ADR 55); older records do not tell.
    rule: str = ""
    claims: tuple[str, ...] = ()  # the last few, as they were written
    tools: int = 0  # calls since the loop began
    objections: tuple[str, ...] = ()  # gates


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
        """The held stops and their limit: 3/50."""
        most = self.wish.max_iterations
        return f"{self.iteration}/{most}" if most else f"{self.iteration}, no limit"


def aged(loop: SessionLoop, now: float) -> SessionLoop:
    """The loop as it is now: one of which nobody has heard for a day is over."""
    if not loop.running or now - loop.touched <= TIME_TO_LIVE:
        return loop
    why = "nothing was heard of its session for 24 hours"
    return replace(loop, status=RELEASED, why=why)


def told(loop: SessionLoop, decision: Decision) -> SessionLoop:
    """The loop with what was said to a stop; the oldest of very many are forgotten."""
    return replace(loop, decisions=(*loop.decisions, decision)[-_MOST_DECISIONS:])


_SETTLED = ("iteration", "found", "accepted", "reason")  # of a decision, to be told
_PUBLIC = (
    *("session", "task", "promise", "iteration", "max_iterations", "status", "decisions"),
    *("started", "why", "min_tool_calls", "on_promise_no_work", "gates", "ulw", "tools", "project"),
)
_Kept = TypeVar("_Kept", Wish, Decision, SessionLoop)


def record_of(loop: SessionLoop) -> dict[str, object]:
    """The loop as it is kept."""
    record = asdict(loop)
    record |= {"decisions": list(record["decisions"]), **record.pop("wish")}
    return {"version": VERSION, **record, "gates": list(loop.wish.gates)}


def shown_record(loop: SessionLoop) -> dict[str, object]:
    """The loop as programs are told about it."""
    record = record_of(loop)
    decisions = [{name: getattr(each, name) for name in _SETTLED} for each in loop.decisions]
    return {**{name: record[name] for name in _PUBLIC}, "decisions": decisions}


def loop_of(record: object) -> SessionLoop:
    """The loop of a record. Raises ValueError if it is none."""
    if not isinstance(record, dict):
        raise ValueError("it is not an object")
    if record.get("version") != VERSION:
        raise ValueError(f"its version is {record.get('version')!r}, and {VERSION} is known here")
    try:
        wish = _made(Wish, record)
        wish = replace(wish, gates=tuple(wish.gates))
        decisions = tuple(map(_decision, record["decisions"]))
        loop = _made(SessionLoop, {**record, "wish": wish, "decisions": decisions})
    except KeyError as error:
        raise ValueError(f"it has no {error.args[0]}") from error
    except TypeError as error:
        raise ValueError("its gates or decisions are no lists") from error
    checks = {**_checks(loop), **_checks(wish), "status": loop.status in STATUSES}
    checks["gates"] = all(isinstance(gate, str) for gate in wish.gates)
    for name, right in checks.items():
        if not right:
            raise ValueError(f"its {name} is not what it should be")
    return loop


def _made(kind: type[_Kept], record: Mapping[str, Any]) -> _Kept:
    return kind(**{each.name: record[each.name] for each in fields(kind)})


def _decision(record: Mapping[str, Any]) -> Decision:
    """The decision of a record, which may be older than what is kept of one today."""
    known = Decision(*(record[name] for name in _SETTLED))
    if "rule" not in record:
        return known
    claims, objections = (tuple(map(str, record[name])) for name in ("claims", "objections"))
    return replace(
        known,
        rule=str(record["rule"]),
        claims=claims,
        tools=int(record["tools"]),
        objections=objections,
    )


def _checks(kept: SessionLoop | Wish) -> dict[str, bool]:
    """The texts and numbers, each with whether it is one."""
    found = [(each.name, each.type, getattr(kept, each.name)) for each in fields(kept)]
    texts = {name: isinstance(given, str) for name, kind, given in found if kind is str}
    numbers = {
        name: isinstance(given, int | float) and not isinstance(given, bool) and given >= 0
        for name, kind, given in found
        if kind in (int, float) or (name == "offset" and given is not None)
    }
    return texts | numbers


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
