"""What a loop says to a stop: the engine's answer, counted, kept and told (P §Hook algorithm)."""

import json
import time
from collections.abc import Callable, Mapping
from typing import NoReturn

from ralph.hosts.protocol import is_of_claude, project_of, tell, transcript_of
from ralph.hosts.stop_cap import CAP
from ralph.kernel.case import Case
from ralph.kernel.claims import Claim, find_claims
from ralph.kernel.contracts import PromiseTag
from ralph.kernel.engine import stop_hook
from ralph.kernel.facts import Fact
from ralph.kernel.limits import Spent
from ralph.kernel.ports import Gate, Ports, Watch
from ralph.kernel.state import RunState
from ralph.kernel.tasks.task import Assignment, Backlog, Task
from ralph.kernel.turn import Order, Turn
from ralph.kernel.value import replace
from ralph.kernel.verdict import Accept, Continue, Reason, Stop, Verdict
from ralph.kernel.world import Signals, Snapshot
from ralph.loops.session.policy import session as session_profile
from ralph.loops.session.state import (
    ACCEPTED,
    CANCELLED,
    EXHAUSTED,
    Decision,
    SessionLoop,
    aged,
    ended,
    told,
)
from ralph.loops.session.store import Store
from ralph.loops.session.transcript import Seen, Since, seen
from ralph.loops.session.words import SLASH, spelled

TYPE_CHECKING = False  # as typing has it
if TYPE_CHECKING:
    from ralph.hosts.protocol import Event

_LATE = 0.3  # seconds
_PAUSE = 0.02
_USUAL_CAP = 8  # blocks in a row without a tool call, then Claude Code goes its own way


class Stopping:
    """One stop of a session that has a loop."""

    def __init__(
        self, loop: SessionLoop, event: "Event", environ: Mapping[str, str], here: str
    ) -> None:
        self._event, self._environ = event, environ
        self._now = time.time()
        self._loop = aged(loop, self._now)
        self._project = loop.project or project_of(event, environ, here)
        self._path = transcript_of(event) or loop.transcript
        self._contract = PromiseTag(loop.wish.promise)
        self._objecting: tuple[str, ...] = ()

    def answered(self, store: Store) -> str:
        """The line that holds the stop, or tells people that the loop is over; kept in the store
        before it is said. OSError, Unreadable."""
        if not self._loop.running:
            return self._over(store, self._loop)
        new = self._look()
        loop = self._heard(new)
        turn = self._turn(new, loop)
        if not loop.wish.gates:
            return self._told(store, loop, turn, self._verdict(loop, turn))
        store.let_go()  # gates take their time, and people must be able to cancel
        verdict = self._verdict(loop, turn)
        store.take_again()
        latest = store.read()
        if latest is None or not latest.running or latest.started != loop.started:
            return ""
        return self._told(store, loop, turn, verdict)

    # -------------------------------------------------------------- what happened

    def _look(self) -> Seen | None:
        """What is new in the transcript. It may be late: before a promise is refused for want of
        work, its own message should be there."""
        new, end = self._read(), time.monotonic() + _LATE
        while self._is_late(new) and time.monotonic() < end:
            time.sleep(_PAUSE)
            new = self._read()
        return new

    def _is_late(self, new: Seen | None) -> bool:
        calls, texts = (len(new.calls), new.texts) if new is not None else (0, [])
        if not self._path or self._loop.tools + calls >= self._loop.wish.min_tool_calls:
            return False
        promised = [words for words in self._last_words() if self._contract.marker in words]
        return any(words not in texts for words in promised)

    def _read(self) -> Seen | None:
        """What is new in the transcript; None where it cannot be read."""
        loop = self._loop
        offset = loop.offset if self._path == loop.transcript else None
        since = Since(words=loop.since, work=loop.started)
        return seen(self._path, offset, since, self._contract.marker)

    def _heard(self, new: Seen | None) -> SessionLoop:
        """The loop with what its session did since the last stop."""
        again = self._event.get("stop_hook_active") is True  # else a person has said something
        row = self._loop.unanswered if again else 0
        loop = replace(self._loop, touched=self._now, since=self._now, why="", unanswered=row)
        if new is None:
            return loop
        silent = loop.unanswered if not new.calls else 0
        tools = loop.tools + len(new.calls)
        loop = replace(loop, transcript=self._path, offset=new.offset)
        return replace(loop, tools=tools, unanswered=silent)

    def _turn(self, new: Seen | None, loop: SessionLoop) -> Turn:
        """What the agent said since the last block, and did since the loop began."""
        texts = [*(new.texts if new else ()), *self._last_words()]
        marker = self._contract.marker
        claims = [claim for text in texts for claim in find_claims(text)]
        if any(marker in text for text in texts):  # an exact substring, whatever is around it
            claims.insert(0, Claim(marker))
        tools = loop.tools
        visible = new is not None and bool(new.texts or loop.tools)
        if claims and tools < loop.wish.min_tool_calls and not visible and self._changed():
            tools = loop.wish.min_tool_calls
        overheard = (Claim(marker),) if new and new.overheard else ()
        text = texts[-1] if texts else ""
        return Turn(claims=tuple(claims), overheard=overheard, text=text, tools=tools)

    def _last_words(self) -> list[str]:
        """What the host says that the agent said last: the transcript may be late."""
        last = self._event.get("last_assistant_message")
        if isinstance(last, str):
            return [last]
        whole = self._event.get("prompt_response")  # of Gemini; it grows with every block
        if not isinstance(whole, str):
            return []
        again = self._event.get("stop_hook_active") is True
        return [whole[self._loop.heard :] if again else whole]

    def _changed(self) -> bool:
        from ralph.loops.session.changes import fingerprint

        before = self._loop.before
        return bool(before) and fingerprint(self._project, self._environ) not in ("", before)

    # -------------------------------------------------------------- what to say to it

    def _verdict(self, loop: SessionLoop, turn: Turn) -> Verdict:
        wish = loop.wish
        least = wish.min_tool_calls if wish.on_promise_no_work == "reject" else 0
        gates = self._gates(loop, least)
        policy = session_profile(
            self._contract, wish.max_iterations, least, gates, ultrawork=wish.ulw
        )
        state = RunState(
            iteration=loop.iteration,
            spent=Spent(iterations=loop.iteration),
            assignment=Assignment("loop"),
        )
        here = _Session(Task("loop", text=wish.task), self._now)
        verdict, after = stop_hook(policy, Ports(here, here, here, here), state, turn)
        self._objecting = tuple(finding.gate for finding in after.findings)
        return verdict

    def _gates(self, loop: SessionLoop, least: int) -> tuple[Gate, ...]:
        """Nobody waits for a gate unless a promise depends on it."""
        if not loop.wish.gates:
            return ()
        from ralph.loops.session.gate import MOST_SECONDS, CommandGate

        def matters(case: Case) -> bool:
            return self._contract.met_by(case.turn) is not None and case.turn.tools >= least

        place = (self._project, self._environ)
        end = time.monotonic() + MOST_SECONDS
        return tuple(CommandGate(command, place, end, matters) for command in loop.wish.gates)

    def _told(self, store: Store, loop: SessionLoop, turn: Turn, verdict: Verdict) -> str:
        found = self._contract.met_by(turn) is not None
        why = self._why(loop, turn, verdict)
        decision = Decision(loop.iteration, found, isinstance(verdict, Accept), why)
        match verdict:
            case Continue(feedback=feedback):
                return self._held(store, loop, decision, feedback[0].text)
            case Accept():
                after = ended(told(loop, decision), ACCEPTED, why)
            case Stop(reason=Reason.LIMIT):
                after = ended(told(loop, decision), EXHAUSTED, why)
            case _:
                after = ended(loop, CANCELLED)
        return self._over(store, after)

    def _why(self, loop: SessionLoop, turn: Turn, verdict: Verdict) -> str:
        """Missing promise or bypass, in words for the log (P §Observability)."""
        wish, work = loop.wish, f"{turn.tools} of {loop.wish.min_tool_calls} tool calls"
        if isinstance(verdict, Accept):
            gates = "; ".join(verdict.evidence[1:])
            if turn.tools >= wish.min_tool_calls or wish.on_promise_no_work == "accept":
                return f"the promise is believed; {gates}"
            return f"warning: the promise is believed without work ({work}); {gates}"
        if isinstance(verdict, Stop):
            return f"{verdict.why}; {self._missing(loop, turn, work)}"
        return self._missing(loop, turn, work)

    def _missing(self, loop: SessionLoop, turn: Turn, work: str) -> str:
        """Why there is no promise to believe."""
        wish = loop.wish
        if self._contract.met_by(turn) is None:
            near = " ".join(self._contract.near_misses(turn))
            return f"missing promise: {near}" if near else "missing promise"
        if wish.on_promise_no_work == "reject" and turn.tools < wish.min_tool_calls:
            return f"bypass: a promise without work ({work})"
        return f"a gate objects: {', '.join(self._objecting) or 'it did not run'}"

    def _held(self, store: Store, loop: SessionLoop, decision: Decision, words: str) -> str:
        """Hold the stop. What cannot be counted is not held: it would go on for ever."""
        whole = self._event.get("prompt_response")
        heard = len(whole) if isinstance(whole, str) else 0
        loop = replace(
            loop, iteration=loop.iteration + 1, unanswered=loop.unanswered + 1, heard=heard
        )
        cap = self._cap(loop)
        reason = f"{decision.reason}; {cap}" if cap else decision.reason
        store.write(told(replace(loop, why=cap), replace(decision, reason=reason)))
        cancel = spelled("cancel-ralph", self._environ.get(SLASH, ""))
        why = " ".join(decision.reason.split()).rstrip(".")
        people = f"Ralph loop {loop.progress}: {why}; {cancel} ends the loop"
        return json.dumps({"decision": "block", "reason": words, "systemMessage": people})

    def _cap(self, loop: SessionLoop) -> str:
        """Words about the host's own limit, where it is about to strike."""
        given = self._environ.get(CAP, "")
        cap = int(given) if given.isascii() and given.isdigit() else _USUAL_CAP
        if not cap or loop.unanswered <= cap or not is_of_claude(self._event):
            return ""
        return (
            f"{cap} stops in a row were held without a tool call: here the host lets "
            f"the agent stop all the same ({CAP}={cap}; 0 lifts this cap)"
        )

    def _over(self, store: Store, loop: SessionLoop) -> str:
        store.write(loop)
        how = f"{loop.progress}: {loop.status}" + (f": {loop.why}" if loop.why else "")
        tell(f"loop {how}")
        shown = " ".join(f"Ralph loop {how}".split())
        return json.dumps({"systemMessage": shown})


class _Session:
    """The engine's world, for a session that runs without it."""

    def __init__(self, task: Task, now: float) -> None:
        self._task, self._now = task, now

    def take_turn(self, order: Order, watch: Watch) -> NoReturn:
        raise NotImplementedError("the host takes the turns")

    def signals(self) -> Signals:
        return Signals()

    def backlog(self) -> Backlog:
        return Backlog((self._task,))

    def snapshot(self) -> Snapshot:
        return Snapshot()

    def checkpoint(self) -> str:
        return ""

    def record(self, fact: Fact) -> None:
        """The loop's own state is the record."""

    def now(self) -> float:
        return self._now

    def rest(self, until: float | None, stirred: Callable[[], bool]) -> None:
        """Nothing waits here."""
