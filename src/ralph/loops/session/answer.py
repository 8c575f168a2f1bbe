"""The answer of a loop to a stop: the engine's, counted, kept and told (P §Hook algorithm)."""

import json
import time
from collections.abc import Callable
from typing import NoReturn

from ralph.hosts.protocol import Environ, Event, is_of_claude, project_of, tell, transcript_of
from ralph.hosts.stop_cap import CAP
from ralph.kernel.case import Case
from ralph.kernel.claims import Claim, find_claims
from ralph.kernel.contracts import PromiseTag
from ralph.kernel.engine import stop_hook
from ralph.kernel.facts import Decided, Fact
from ralph.kernel.limits import Spent
from ralph.kernel.ports import Gate, Ports, Watch, Workspace
from ralph.kernel.state import RunState
from ralph.kernel.tasks.task import Assignment, Backlog, Task
from ralph.kernel.turn import Order, Turn
from ralph.kernel.value import replace
from ralph.kernel.verdict import Accept, Continue, Reason, Stop, Verdict
from ralph.kernel.world import Signals
from ralph.loops.session.git_status import fingerprint
from ralph.loops.session.policy import session as session_profile
from ralph.loops.session.state import (
    ACCEPTED,
    CANCELLED,
    EXHAUSTED,
    Decision,
    SessionLoop,
    aged,
    told,
)
from ralph.loops.session.store import Store
from ralph.loops.session.transcript import Seen, seen
from ralph.loops.session.words import SLASH, spelled

_LATE = 0.3  # seconds
_PAUSE = 0.02
_MOST_CLAIMS, _LONGEST_CLAIM = 4, 1100  # that are kept of a stop, each with room for a promise
_USUAL_CAP = 8  # blocks in a row without a tool call, then Claude Code goes its own way


class Stopping:
    """One stop of a session that has a loop."""

    def __init__(self, loop: SessionLoop, event: Event, environ: Environ, here: str) -> None:
        self._event, self._environ = event, environ
        self._now = time.time()
        self._loop = aged(loop, self._now)
        self._project = loop.project or project_of(event, environ, here)
        self._path = transcript_of(event) or loop.transcript
        self._contract = PromiseTag(loop.wish.promise)
        self._again = event.get("stop_hook_active") is True  # else a person has said something
        whole = event.get("prompt_response")  # of Gemini; it grows with every block
        self._whole = whole if isinstance(whole, str) else ""
        self._objecting: tuple[str, ...] = ()
        self._rule = ""  # that has answered

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
        store.take()
        latest = store.read()
        if latest is None or not latest.running or latest.started != loop.started:
            return ""
        return self._told(store, loop, turn, verdict)

    def _look(self) -> Seen | None:
        """New lines of the transcript; None where it cannot be read. It may be late: before a
        promise is refused for want of work, its own message should be there."""
        loop, marker = self._loop, self._contract.marker
        offset = loop.offset if self._path == loop.transcript else None
        promised = {words for words in self._last_words() if marker in words}
        end = time.monotonic() + _LATE
        while True:
            new = seen(self._path, offset, marker, words=loop.since, work=loop.started)
            calls, texts = (len(new.calls), new.texts) if new is not None else (0, [])
            worked = loop.tools + calls >= loop.wish.min_tool_calls
            late = self._path and not worked and promised.difference(texts)
            if not late or time.monotonic() >= end:
                return new
            time.sleep(_PAUSE)

    def _heard(self, new: Seen | None) -> SessionLoop:
        """The loop with the work of its session since the last stop."""
        row = self._loop.unanswered if self._again else 0
        loop = replace(self._loop, touched=self._now, since=self._now, why="", unanswered=row)
        if new is None:
            return loop
        return replace(
            loop,
            transcript=self._path,
            offset=new.offset,
            tools=loop.tools + len(new.calls),
            unanswered=0 if new.calls else row,
        )

    def _turn(self, new: Seen | None, loop: SessionLoop) -> Turn:
        """The agent's words since the last block, and its work since the loop began."""
        texts = [*(new.texts if new else ()), *self._last_words()]
        marker = self._contract.marker
        claims = [claim for text in texts for claim in find_claims(text)]
        if any(marker in text for text in texts):  # an exact substring, whatever is around it
            claims.insert(0, Claim(marker))
        tools, least = loop.tools, loop.wish.min_tool_calls
        visible = new is not None and bool(new.texts or loop.tools)
        if claims and tools < least and not visible and loop.before:
            now = fingerprint(self._project, self._environ)
            tools = tools if now in ("", loop.before) else least
        overheard = (Claim(marker),) if new and new.overheard else ()
        text = texts[-1] if texts else ""
        return Turn(claims=tuple(claims), overheard=overheard, text=text, tools=tools)

    def _last_words(self) -> list[str]:
        """The agent's last words by its host: the transcript may be late."""
        last = self._event.get("last_assistant_message")
        if isinstance(last, str):
            return [last]
        words = self._whole[self._loop.heard :] if self._again else self._whole
        return [words] if words else []

    def _verdict(self, loop: SessionLoop, turn: Turn) -> Verdict:
        wish = loop.wish
        least = wish.min_tool_calls if wish.on_promise_no_work == "reject" else 0
        policy = session_profile(
            self._contract,
            wish.max_iterations,
            least,
            self._gates(wish.gates, least),
            ultrawork=wish.ulw,
        )
        state = RunState(
            iteration=loop.iteration,
            spent=Spent(iterations=loop.iteration),
            assignment=Assignment("loop"),
        )
        here = _Session(self._now)
        world = Workspace(Signals, lambda: Backlog((Task("loop", text=wish.task),)))
        verdict, _ = stop_hook(policy, Ports(here, world, here, here), state, turn)
        assert here.decided is not None, "the engine records what it decides"
        self._objecting = tuple(finding.gate for finding in here.decided.findings)
        self._rule = here.decided.rule
        return verdict

    def _gates(self, commands: tuple[str, ...], least: int) -> tuple[Gate, ...]:
        """Nobody waits for a gate unless a promise depends on it."""
        if not commands:
            return ()
        from ralph.loops.session.gate import MOST_SECONDS, CommandGate

        def matters(case: Case) -> bool:
            return self._contract.met_by(case.turn) is not None and case.turn.tools >= least

        place, end = (self._project, self._environ), time.monotonic() + MOST_SECONDS
        return tuple(CommandGate(command, *place, end, matters) for command in commands)

    def _told(self, store: Store, loop: SessionLoop, turn: Turn, verdict: Verdict) -> str:
        found = self._contract.met_by(turn) is not None
        why = self._why(loop, turn, verdict)
        decision = Decision(
            loop.iteration,
            found,
            isinstance(verdict, Accept),
            why,
            self._rule,
            tuple(claim.raw[:_LONGEST_CLAIM] for claim in turn.claims[-_MOST_CLAIMS:]),
            turn.tools,
            self._objecting,
        )
        match verdict:
            case Continue(feedback=feedback):
                return self._held(store, loop, decision, feedback[0].text)
            case Accept() | Stop(reason=Reason.LIMIT):
                status = ACCEPTED if decision.accepted else EXHAUSTED
                return self._over(store, replace(told(loop, decision), status=status, why=why))
        return self._over(store, replace(loop, status=CANCELLED))

    def _why(self, loop: SessionLoop, turn: Turn, verdict: Verdict) -> str:
        """Missing promise or bypass, in words for the log (P §Observability)."""
        wish, work = loop.wish, f"{turn.tools} of {loop.wish.min_tool_calls} tool calls"
        if isinstance(verdict, Accept):
            gates = "; ".join(verdict.evidence[1:])
            if turn.tools >= wish.min_tool_calls or wish.on_promise_no_work == "accept":
                return f"the promise is believed; {gates}"
            return f"warning: the promise is believed without work ({work}); {gates}"
        if self._contract.met_by(turn) is None:
            near = " ".join(self._contract.near_misses(turn))
            missing = f"missing promise: {near}" if near else "missing promise"
        elif wish.on_promise_no_work == "reject" and turn.tools < wish.min_tool_calls:
            missing = f"bypass: a promise without work ({work})"
        else:
            missing = f"a gate objects: {', '.join(self._objecting) or 'it did not run'}"
        return f"{verdict.why}; {missing}" if isinstance(verdict, Stop) else missing

    def _held(self, store: Store, loop: SessionLoop, decision: Decision, words: str) -> str:
        """Hold the stop. A stop that cannot be counted is not held: it would go on for ever."""
        held, row = loop.iteration + 1, loop.unanswered + 1
        given = self._environ.get(CAP, "")
        most = int(given) if given.isascii() and given.isdigit() else _USUAL_CAP
        cap, reason = "", decision.reason
        if most and row > most and is_of_claude(self._event):
            cap = (
                f"{most} stops in a row were held without a tool call: here the host lets "
                f"the agent stop all the same ({CAP}={most}; 0 lifts this cap)"
            )
            reason = f"{reason}; {cap}"
        loop = replace(loop, iteration=held, unanswered=row, heard=len(self._whole), why=cap)
        store.write(told(loop, replace(decision, reason=reason)))
        cancel = spelled("cancel-ralph", self._environ.get(SLASH, ""))
        why = " ".join(decision.reason.split()).rstrip(".")
        people = f"Ralph loop {loop.progress}: {why}; {cancel} ends the loop"
        return json.dumps({"decision": "block", "reason": words, "systemMessage": people})

    def _over(self, store: Store, loop: SessionLoop) -> str:
        store.write(loop)
        how = f"{loop.progress}: {loop.status}" + (f": {loop.why}" if loop.why else "")
        tell(f"loop {how}")
        return json.dumps({"systemMessage": " ".join(f"Ralph loop {how}".split())})


class _Session:
    """Agent, journal and clock for the engine, of a session that runs without it."""

    def __init__(self, now: float) -> None:
        self._now = now
        self.decided: Decided | None = None

    def take_turn(self, order: Order, watch: Watch) -> NoReturn:
        raise NotImplementedError("the host takes the turns")

    def record(self, fact: Fact) -> None:
        """The loop's own state is the record; it takes from this what led to a decision."""
        self.decided = fact if isinstance(fact, Decided) else self.decided

    def now(self) -> float:
        return self._now

    def rest(self, until: float | None, stirred: Callable[[], bool]) -> None:
        """Nothing waits here."""
