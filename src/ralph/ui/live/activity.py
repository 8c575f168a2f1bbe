"""Follows what a run does right now. Facts, events and the time in; one moment out, in words."""

from collections.abc import Callable

from ralph.kernel.events import AgentEvent, RateLimited, Result, Retry, ToolEnd, ToolStart, Used
from ralph.kernel.facts import (
    Began,
    Checking,
    Decided,
    Ended,
    Fact,
    Launching,
    Moved,
    Resumed,
    Started,
    Step,
)
from ralph.kernel.state import Phase, RunState
from ralph.kernel.turn import Role
from ralph.kernel.value import replace, value
from ralph.kernel.verdict import Accept, Boundary, Continue
from ralph.kernel.world import Signals
from ralph.text.plain import Redact, clean, shorten
from ralph.text.words import elapsed, money
from ralph.ui.lines import Briefing, coming_time, service_words

_SILENT = 60.0  # seconds without a word of the agent that are worth telling
_SUMMARY = 2000  # characters of a tool's summary: more than any line shows
_BESIDE = 60  # characters of what goes on, beside the news that the run stops


@value
class Doing:
    """The words for what goes on now. Only `what` may be shortened; `more` is left out from its
    end."""

    what: str
    how_long: str = ""
    more: tuple[str, ...] = ()
    which: str = ""  # the iteration: `3/10`
    still: bool = False  # nothing moves: the run waits for a time or for a person
    vital: bool = False  # `what` is not shortened for the sake of more


@value
class _Begun:
    """Something that began; some things have a known end."""

    what: str
    since: float
    noun: str  # what a first signal lets finish
    until: float | None = None
    speaks: bool = False  # the agent is at work: its silence is worth telling

    def words(self, now: float) -> Doing:
        passed = now - self.since
        if self.until is not None:
            return Doing(self.what, f": {_left(self.until, now)}")
        if self.speaks and passed >= _SILENT:
            return Doing("silent", f" for {elapsed(passed)}")
        return Doing(self.what, f" {elapsed(passed)}")


class Activity:
    """Follows a run by what its readers are told."""

    def __init__(self, briefing: Briefing, clock: Callable[[], float], redact: Redact) -> None:
        self._briefing = briefing
        self._clock = clock
        self._redact = redact
        self._doing = _Begun("starting", clock(), "step")
        self._turn_began: float | None = None
        self._quiet = "thinking"  # what an agent does that uses no tool
        self._tools: dict[str, tuple[ToolStart, float]] = {}  # those that have not ended, by id
        self._cost = 0.0

    def on_fact(self, fact: Fact) -> None:
        """Follow the run from step to step."""
        match fact:
            case Began():
                self._turn_began = self._clock()
                self._do("starting the agent", "turn")
            case Resumed():
                self._do("resuming", "step")
            case Launching(role=Role.MESSAGE):
                self._do("writing the commit message", "message")
            case Launching():
                self._turn_began = self._turn_began or self._clock()
                self._quiet = "working" if fact.dialect == "text" else "thinking"
                self._do(self._quiet, "turn", speaks=True)
            case Ended():
                self._turn_began, self._cost = None, 0.0
                self._tools.clear()
                self._do("checking", "check")
            case Checking(gate=gate):
                noun = "guardrail" if self._briefing.announces(gate) else "check"
                self._do(f"{noun}: {gate}", noun)
            case Started() | Decided(boundary=Boundary.OPENING, verdict=Continue()):
                self._do("starting", "step")
            case Decided(boundary=Boundary.CLOSING, verdict=Accept()) if self._briefing.worker:
                self._do("waiting for its turn to merge", "step")  # one at a time can
            case Moved() | Step() if self._briefing.worker:
                self._do("merging", "step")
            case _:
                self._do("finishing the iteration", "step")

    def on_event(self, event: AgentEvent) -> None:
        """Follow the agent from event to event."""
        now = self._clock()
        self._do(self._quiet, "turn", speaks=True)
        match event:
            case ToolStart():
                self._tools[event.id] = (event, now)
            case ToolEnd():
                self._tools.pop(event.id, None)
            case Used(cost_usd=cost) if cost is not None:
                self._cost += max(0.0, cost)
            case Retry():
                until = None if event.seconds is None else now + event.seconds
                of = "" if event.of is None else f"/{event.of}"
                self._do(f"retry {event.attempt}{of}", "turn", until=until)
            case RateLimited():
                self._do("rate limited", "turn", until=event.resets_at)
            case Result(cost_usd=cost):
                self._tools.clear()
                self._cost = self._cost if cost is None else max(0.0, cost)
                self._do("ending the turn", "turn")
            case _:
                pass

    @property
    def cost(self) -> float:
        """The cost of the turn that is under way, as far as its agent tells."""
        return self._cost

    def moment(self, state: RunState, own: Signals, asked: Signals) -> Doing | None:
        """The words for now, given the state and who asks to stop; None when all is over."""
        if state.stop is not None:
            return None
        now = self._clock()
        found = _waiting(state, now) or self._working(now)
        found = replace(found, what=" ".join(self._redact(clean(found.what)).split()))
        if own.cancels or asked.cancels:
            found = self._stopping(found, own, asked)
        if spent := state.spent.dollars + self._cost:
            found = replace(found, more=(*found.more, money(spent)))
        return replace(found, which=self._briefing.where(state))

    def _do(
        self, what: str, noun: str, *, until: float | None = None, speaks: bool = False
    ) -> None:
        self._doing = _Begun(what, self._clock(), noun, until, speaks)

    def _working(self, now: float) -> Doing:
        if self._tools:
            last, since = next(reversed(self._tools.values()))
            others = f" (+{len(self._tools) - 1})" if len(self._tools) > 1 else ""
            called = (f"({last.summary[:_SUMMARY]}", ")") if last.summary else ("", "")
            found = Doing(last.name + called[0], f"{called[1]} {elapsed(now - since)}{others}")
        else:
            found, since = self._doing.words(now), self._doing.since
        if self._turn_began is None or since - self._turn_began < 1:
            return found  # the turn is as old as this
        return replace(found, more=(f"turn {elapsed(now - self._turn_began)}",))

    def _stopping(self, found: Doing, own: Signals, asked: Signals) -> Doing:
        beside = shorten(found.what, _BESIDE, None, "...") + found.how_long
        if max(own.cancels, asked.cancels) > 1:
            return Doing("stopping now", more=(beside,), vital=True)
        sooner = "Ctrl+C again" if own.cancels else "ralph stop --now"
        words = f"stopping after this {self._doing.noun} ({sooner}: at once)"
        return Doing(words, more=(beside, *found.more), vital=True)


def _waiting(state: RunState, now: float) -> Doing | None:
    """The words for what the run waits for before its next turn, if it does."""
    if state.phase is not Phase.OPENING:
        return None
    asleep = state.asleep
    if asleep is not None and asleep.until is None:
        return Doing("paused: ralph resume goes on", still=True)
    if state.wake is None or state.wake <= now:
        return None
    told = asleep.why.rstrip(".") if asleep else "waiting before the next turn"
    why = service_words(state.turn) if asleep else ""
    return Doing(why or told, f": {_left(state.wake, now)}", still=True)


def _left(until: float, now: float) -> str:
    return f"{elapsed(until - now)} left, until {coming_time(until, now)}"
