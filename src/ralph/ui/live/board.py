"""The workers of a run: each is followed in its own thread, and all are shown in one."""

import threading
from collections.abc import Callable, Sequence
from typing import TextIO

from ralph.kernel.events import AgentEvent
from ralph.kernel.facts import Fact, Returned
from ralph.kernel.limits import Spent
from ralph.kernel.state import RunState, fold
from ralph.kernel.tasks.task import Backlog
from ralph.kernel.value import replace, value
from ralph.kernel.world import Signals
from ralph.text.plain import Redact, clean, one_line
from ralph.text.words import elapsed, money
from ralph.ui.lines import Briefing
from ralph.ui.live.activity import Activity, Doing


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
        parked = frozenset(task for task, _ in state.parked)
        known = state.done | parked | state.at_work  # some are called done before they are back
        total = None if ahead is None else len(known | ahead)
        return cls(len(state.done), len(parked), len(state.crew), total)

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


class Worker:
    """A reader of one worker's run. Its worker's thread tells it, any other may ask."""

    def __init__(self, task: str, activity: Activity, state: RunState) -> None:
        self._task = one_line(clean(task))
        self._activity = activity
        self._state = state
        self._lock = threading.Lock()

    def on_fact(self, fact: Fact) -> None:
        with self._lock:
            self._state = fold(self._state, fact)
            self._activity.on_fact(fact)

    def on_events(self, events: Sequence[AgentEvent]) -> None:
        with self._lock:
            for event in events:
                self._activity.on_event(event)

    def moment(self) -> Doing | None:
        """The words for what it does now; None when it is over."""
        with self._lock:
            found = self._activity.moment(self._state, Signals(), Signals())
        return found and replace(found, which=found.which or self._task)

    @property
    def spent(self) -> Spent:
        """All that it has used, with what is known of the turn that is under way."""
        with self._lock:
            spent = self._state.spent
            return replace(spent, dollars=spent.dollars + self._activity.cost)


class Board:
    """The workers that are at work."""

    def __init__(self, clock: Callable[[], float], redact: Redact) -> None:
        self._clock = clock
        self._redact = redact
        self._workers: dict[str, Worker] = {}
        self._lock = threading.Lock()
        self._backlog: Backlog | None = None
        self._ahead: frozenset[str] | None = None

    def follow(self, task: str, briefing: Briefing, state: RunState) -> Worker:
        """Follow a worker that begins a task, or goes on with it from that state."""
        worker = Worker(task, Activity(briefing, self._clock, self._redact), state)
        with self._lock:
            self._workers[task] = worker
        return worker

    def on_fact(self, fact: Fact) -> None:
        """Follow the run itself: whoever is back is not at work."""
        if isinstance(fact, Returned):
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
            workers = [self._workers[task] for task in tasks if task in self._workers]
        each = [moment for worker in workers if (moment := worker.moment())]
        return (self._summary(state, own, asked, idle=all(m.still for m in each)), *each)

    def _summary(self, state: RunState, own: Signals, asked: Signals, *, idle: bool) -> Doing:
        words = Tally.of(state, self._ahead).words
        more = [elapsed(state.spent_at(self._clock()).seconds)] if state.time else []
        if spent := self.with_workers(state).spent.dollars:
            more.append(money(spent))
        if max(own.cancels, asked.cancels) > 1:
            return Doing("stopping now", more=(words, *more), vital=True)
        if own.cancels or asked.cancels:
            sooner = "Ctrl+C again" if own.cancels else "ralph stop --now"
            stopping = f"stopping after these turns ({sooner}: at once)"
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
