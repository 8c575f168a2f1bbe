"""Follows what a run and its workers do right now. Facts, events and the time in; words out.

Each worker is followed in its own thread, and all are shown in one.
"""

import threading
from collections.abc import Callable, Sequence
from typing import TextIO

from ralph.kernel import facts
from ralph.kernel.events import AgentEvent, RateLimited, Result, Retry, ToolEnd, ToolStart, Used
from ralph.kernel.limits import Spent
from ralph.kernel.state import NEW, Phase, RunState, fold
from ralph.kernel.tasks.task import Backlog
from ralph.kernel.turn import Role
from ralph.kernel.value import replace, value
from ralph.kernel.verdict import Accept, Boundary, Continue
from ralph.kernel.world import Signals
from ralph.text.plain import clean, one_line, safe, shorten
from ralph.text.words import elapsed, money
from ralph.ui.lines import Briefing, coming_time, service_words

_SILENT = 60.0  # seconds without a word of the agent that are worth telling
_SUMMARY = 2000  # characters of a tool's summary: more than any line shows
_BESIDE = 60  # characters of what goes on, beside the news that the run stops


@value
class Doing:
    """The words for what goes on now. Only `what` is shortened; `more` loses its end."""

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


def _under_way(fact: facts.Resumed | facts.Sent | facts.Fared) -> str:
    if isinstance(fact, facts.Resumed):
        return "resuming"
    if isinstance(fact, facts.Fared) and fact.how == "placed":
        return f"{fact.host} prepares"
    return "waiting for a machine"


class Activity:
    """Follows a run by what its readers are told, on from a state. The thread of the run tells it,
    any other may ask."""

    def __init__(
        self, briefing: Briefing, clock: Callable[[], float], state: RunState = NEW
    ) -> None:
        self._briefing = briefing
        self._clock = clock
        self._state = state
        self._lock = threading.RLock()
        self._doing = _Begun("starting", clock(), "step")
        self._turn_began: float | None = None
        self._quiet = "thinking"  # what an agent does that uses no tool
        self._tools: dict[str, tuple[ToolStart, float]] = {}  # those that have not ended, by id
        self._cost = 0.0

    def on_fact(self, fact: facts.Fact) -> None:
        with self._lock:
            self._state = fold(self._state, fact)
            if not (isinstance(fact, facts.Fared) and fact.how == "ignored"):  # an old attempt
                self._follow(fact)

    def _follow(self, fact: facts.Fact) -> None:
        match fact:
            case facts.Began():
                self._turn_began = self._clock()
                self._do("starting the agent", "turn")
            case facts.Resumed() | facts.Sent() | facts.Fared():
                self._do(_under_way(fact), "step")
            case facts.Launching(role=Role.MESSAGE):
                self._do("writing the commit message", "message")
            case facts.Launching():
                self._turn_began = self._turn_began or self._clock()
                self._quiet = "working" if fact.dialect == "text" else "thinking"
                self._do(self._quiet, "turn", speaks=True)
            case facts.Ended():
                self._turn_began, self._cost = None, 0.0
                self._tools.clear()
                self._do("checking", "check")
            case facts.Checking(gate=gate):
                noun = "guardrail" if self._briefing.announces(gate) else "check"
                self._do(f"{noun}: {gate}", noun)
            case facts.Started() | facts.Decided(boundary=Boundary.OPENING, verdict=Continue()):
                self._do("starting", "step")
            case facts.Decided(boundary=Boundary.CLOSING, verdict=Accept()) if (
                self._briefing.worker
            ):
                self._do("waiting for its turn to merge", "step")  # one at a time can
            case facts.Moved() | facts.Step() if self._briefing.worker:
                self._do("merging", "step")
            case _:
                self._do("finishing the iteration", "step")

    def on_events(self, events: Sequence[AgentEvent]) -> None:
        with self._lock:
            for event in events:
                self._on_event(event)

    def _on_event(self, event: AgentEvent) -> None:
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

    @property
    def spent(self) -> Spent:
        """All that the run has used, with what is known of the turn that is under way."""
        with self._lock:
            spent = self._state.spent
            return replace(spent, dollars=spent.dollars + self._cost)

    def moment(self, own: Signals = Signals(), asked: Signals = Signals()) -> Doing | None:
        """The words for now, given who asks to stop; None when all is over."""
        with self._lock:
            if self._state.stop is not None:
                return None
            now = self._clock()
            found = _waiting(self._state, now) or self._working(now)
            found = replace(found, what=" ".join(safe(found.what).split()))
            if words := _stopping_words(own, asked, f"this {self._doing.noun}"):
                beside = shorten(found.what, _BESIDE, None, "...") + found.how_long
                more = () if max(own.cancels, asked.cancels) > 1 else found.more
                found = Doing(words, more=(beside, *more), vital=True)
            if spent := self.spent.dollars:
                found = replace(found, more=(*found.more, money(spent)))
            return replace(found, which=self._briefing.where(self._state))

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


def _stopping_words(own: Signals, asked: Signals, last: str) -> str:
    """The words for a run that stops after its last turns or checks; "" while it does not."""
    if max(own.cancels, asked.cancels) > 1:
        return "stopping now"
    sooner = "Ctrl+C again" if own.cancels else "ralph stop --now"
    return f"stopping after {last} ({sooner}: at once)" if own.cancels or asked.cancels else ""


def _waiting(state: RunState, now: float) -> Doing | None:
    """The words for what the run waits for before its next turn, if it does."""
    asleep = state.asleep
    if state.resting is not None:
        return Doing(state.resting.why, still=True)
    if state.phase is not Phase.OPENING:
        return None
    if asleep is not None and asleep.until is None:
        return Doing("paused: ralph resume goes on", still=True)
    if state.wake is None or state.wake <= now:
        return None
    told = asleep.why.rstrip(".") if asleep else "waiting before the next turn"
    why = service_words(state.turn) if asleep else ""
    return Doing(why or told, f": {_left(state.wake, now)}", still=True)


def _left(until: float, now: float) -> str:
    return f"{elapsed(until - now)} left, until {coming_time(until, now)}"


@value
class Tally:
    """The progress of a run with its tasks."""

    done: int
    parked: int  # left to a person
    at_work: int
    total: int | None = None  # with those that nobody has taken up yet, where that is known

    @classmethod
    def of(cls, state: RunState, ahead: frozenset[str] | None = None) -> "Tally":
        """The progress in this state; `ahead` are the tasks of the list that are not done."""
        left = frozenset(task for task, _ in state.parked)
        known = state.done | left | state.at_work  # some are called done before they are back
        total = None if ahead is None else len(known | ahead)
        return cls(len(state.done), len(left - state.at_work), len(state.crew), total)

    @property
    def words(self) -> str:
        """`5 of 12 done, 1 left to you`."""
        of = "" if self.total is None else f" of {self.total}"
        left = f", {self.parked} left to you" if self.parked else ""
        return f"{self.done}{of} done{left}"


def with_workers(spent: Spent, used: Sequence[Spent]) -> Spent:
    """All that a run has used, with its workers at work; time passes for all at once."""
    return replace(
        spent,
        iterations=spent.iterations + sum(each.iterations for each in used),
        dollars=spent.dollars + sum(each.dollars for each in used),
        usage=sum((each.usage for each in used), spent.usage),
        uncounted=spent.uncounted + sum(each.uncounted for each in used),
    )


def tag_of(task: str) -> str:
    """The words before each line of the worker at this task."""
    return f"{one_line(clean(task))} | "


class Board:
    """The workers that are at work."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._workers: dict[str, Activity] = {}
        self._lock = threading.Lock()
        self._backlog: Backlog | None = None
        self._ahead: frozenset[str] | None = None

    def follow(self, task: str, briefing: Briefing, state: RunState) -> Activity:
        """Follow a worker that begins a task, or goes on with it from that state."""
        worker = Activity(briefing, self._clock, state)
        with self._lock:
            self._workers[task] = worker
        return worker

    def on_fact(self, fact: facts.Fact) -> None:
        """Follow the run itself: whoever is back is not at work."""
        if isinstance(fact, facts.Returned):
            with self._lock:
                self._workers.pop(fact.task, None)

    def look(self, backlog: Backlog) -> Backlog:
        """See what is to be done; the same backlog again, for whoever asked for it."""
        if backlog is not self._backlog:
            self._backlog = backlog
            ahead = frozenset(task.id for task in backlog.tasks if task.open)
            self._ahead = None if backlog.problem else ahead
        return backlog

    def with_workers(self, state: RunState) -> RunState:
        """The state, with what those have used up who are not back."""
        return replace(state, spent=with_workers(state.spent, self.used()))

    def used(self) -> list[Spent]:
        """The spending of the workers that are not back."""
        with self._lock:
            workers = list(self._workers.values())
        return [worker.spent for worker in workers]

    def moments(self, state: RunState, own: Signals, asked: Signals) -> tuple[Doing, ...]:
        """The progress of the run, then what each worker does; nothing when all is over."""
        if state.stop is not None:
            return ()
        tasks = [sent.assignment.task for sent in state.crew]  # none changes its line with another
        with self._lock:
            workers = {task: self._workers[task] for task in tasks if task in self._workers}
        each = [
            replace(found, which=found.which or one_line(clean(task)))
            for task, worker in workers.items()
            if (found := worker.moment())
        ]
        return (self._summary(state, own, asked, idle=all(m.still for m in each)), *each)

    def _summary(self, state: RunState, own: Signals, asked: Signals, *, idle: bool) -> Doing:
        words = Tally.of(state, self._ahead).words
        more = [elapsed(state.spent_at(self._clock()).seconds)] if state.time else []
        if spent := self.with_workers(state).spent.dollars:
            more.append(money(spent))
        if stopping := _stopping_words(own, asked, "these turns"):
            return Doing(stopping, more=(words, *more), vital=True)
        if asked.paused:
            pause = "paused: ralph resume goes on" if idle else "pausing before the next turns"
            return Doing(pause, more=(words, *more), still=idle)
        return Doing(words, more=tuple(more))


class Tagged:
    """Takes the place of a stream; whole lines are handed on, as one piece."""

    def __init__(self, stream: TextIO, tag: str, hand_on: Callable[[TextIO, str], None]) -> None:
        self._stream = stream
        self._tag = tag
        self._hand_on = hand_on
        self._rest = ""

    @property
    def encoding(self) -> str:
        return self._stream.encoding

    def write(self, text: str) -> int:
        """Keep what is no whole line yet."""
        *lines, self._rest = (self._rest + text).split("\n")
        if lines:
            self._hand_on(self._stream, "".join(f"{self._tag}{line}\n" for line in lines))
        return len(text)

    def flush(self) -> None:
        """Lines have been handed on."""

    def isatty(self) -> bool:
        return self._stream.isatty()

    def fileno(self) -> int:
        return self._stream.fileno()
