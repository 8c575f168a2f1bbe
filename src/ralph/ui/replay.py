"""A run told once more from its journal and its streams, or followed as they grow.

Nothing here reads a file: facts come in as values and streams as bytes, from whoever has them.
"""

import json
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Generic, Protocol, TypeVar

from ralph.agents.streams.dialects import Parser, parser_for
from ralph.kernel import events
from ralph.kernel.events import Speaker
from ralph.kernel.facts import Began, Ended, Fact, Launching, Resumed, Settled, Started
from ralph.kernel.limits import Spent
from ralph.kernel.state import NEW, RunState, fold
from ralph.kernel.turn import Role
from ralph.kernel.value import replace, value
from ralph.kernel.verdict import Stop
from ralph.text.plain import columns, one_line, safe, shorten
from ralph.ui.events import Formatter, not_ours
from ralph.ui.jsonlines import JsonLines
from ralph.ui.lines import Briefing, clock_time
from ralph.ui.live.activity import with_workers
from ralph.ui.narration import narrate
from ralph.ui.style import Style, Tone

ITERATIONS_PER_TASK = 10  # as the settings have it, where nobody says another number
_ACTIONS = 5
_ACTION_SHOWN = 120
Told = TypeVar("Told")
_MARGIN = " " * 9  # the width of a time and a blank: what the agent says has no time of its own


# ------------------------------------------------------------------ playing


@value
class Stream:
    """The output of an agent: its parser, what was added since the last call, and when."""

    parser: Parser
    blocks: Callable[[], Iterable[bytes]]
    heard_at: Callable[[], float]


class Teller(Protocol[Told]):
    """Tells facts and events in lines of some kind; `now` is when an event was heard, and `used` is
    what workers have used up who are not back."""

    def fact(self, fact: Fact, used: Sequence[Spent] = ()) -> list[Told]: ...

    def event(self, event: events.AgentEvent, now: float) -> list[Told]: ...


class Player(Generic[Told]):
    """Tells facts in order, with each stream at its place if `open_stream` is given."""

    def __init__(
        self, teller: Teller[Told], open_stream: Callable[[Launching], Stream] | None = None
    ) -> None:
        self._teller = teller
        self._open_stream = open_stream
        self._stream: Stream | None = None

    def fact(self, fact: Fact, used: Sequence[Spent] = ()) -> Iterator[list[Told]]:
        """The lines up to and with this fact. A stream's last words come before its turn's end, and
        are told with the time of that."""
        yield from self._events(fact.time)
        if isinstance(fact, Ended | Launching | Began | Resumed | Settled):
            yield from self._end(fact.time)
        yield self._teller.fact(fact, used)
        if isinstance(fact, Launching) and self._open_stream and fact.role is not Role.MESSAGE:
            self._stream = self._open_stream(fact)

    def idle(self) -> Iterator[list[Told]]:
        """The lines of what the agent said, though no fact has come."""
        if self._stream is not None:
            yield from self._events(self._stream.heard_at())

    def end(self) -> Iterator[list[Told]]:
        """The lines of what a torn stream still holds; there will be no more."""
        if self._stream is not None:
            now = self._stream.heard_at()
            yield from self._events(now)
            yield from self._end(now)

    def _events(self, now: float) -> Iterator[list[Told]]:
        if self._stream is not None:
            for block in self._stream.blocks():
                for event in self._stream.parser.feed(block):
                    yield self._teller.event(event, now)

    def _end(self, now: float) -> Iterator[list[Told]]:
        if self._stream is not None:
            yield from (self._teller.event(event, now) for event in self._stream.parser.end())
            self._stream = None


class Days:
    """Tells where a day begins, to all who tell of the same days."""

    def __init__(self) -> None:
        self._day = ""

    def new(self, now: float) -> str:
        """The day, if it is another one than the last time."""
        before, self._day = self._day, time.strftime("%A %Y-%m-%d", time.localtime(now))
        return self._day if self._day != before else ""


@value
class LogLine:
    """A line about a run, clean and not painted. What goes on from the line before has no `time`,
    nor has what the agent said."""

    text: str
    tone: Tone = Tone.PLAIN
    time: float | None = None
    by_agent: bool = False
    is_day: bool = False  # the day begins that it names
    speaker: str = ""  # stands before the text, and is part of it


class LineTeller:
    """Ralph's lines, and a line where a day begins; between them those of the agent, as `style` has
    them."""

    def __init__(
        self,
        style: Style,
        journal: str,
        *,
        verbose: bool = False,
        worker: bool = False,
        days: Days | None = None,
    ) -> None:
        self._verbose = verbose
        self._worker = worker
        self._days = days or Days()
        self._now = 0.0
        self._formatter = Formatter(style, lambda: self._now)
        self._started: Started | None = None
        self.briefing = Briefing(journal=journal)
        self.state = NEW

    def fact(self, fact: Fact, used: Sequence[Spent] = ()) -> list[LogLine]:
        self._now = fact.time
        before, self.state = self.state, fold(self.state, fact)
        if isinstance(fact, Started):
            self._started = fact
        if isinstance(fact, Started | Resumed) and self._started is not None:
            briefing = briefing_of(self._started, self.briefing.journal, self.state)
            self.briefing = replace(briefing, worker=self._worker)
        if isinstance(fact, Began | Resumed):
            self._formatter.start()
        after = replace(self.state, spent=with_workers(self.state.spent, used))
        told = narrate(fact, before, after, self.briefing)
        lines = [line for line in told if self._verbose or not line.verbose]
        if not lines:
            return []
        day = self._days.new(self._now)
        shown = [LogLine(day, Tone.FAINT, is_day=True)] if day else []
        for line in lines:
            first, *more = safe(line.text).split("\n")
            shown.append(LogLine(first, line.tone, self._now))
            shown += [LogLine(part, line.tone) for part in more]
        return shown

    def event(self, event: events.AgentEvent, now: float) -> list[LogLine]:
        self._now = now
        rows = self._formatter.rows(event)
        return [LogLine(text, tone, by_agent=True, speaker=who) for who, text, tone in rows]


class PeopleTeller:
    """The same lines for a terminal, with the time of each. A worker's have its `tag` in front,
    `T-003 | `, and its `days` are those of all."""

    def __init__(
        self,
        style: Style,
        journal: str,
        *,
        verbose: bool = False,
        tag: str = "",
        days: Days | None = None,
    ) -> None:
        taken = len(_MARGIN) + columns(tag)
        width = None if style.width is None else max(20, style.width - taken)
        inner = replace(style, timestamps=False, width=width)
        self._style = style
        self._tag = style.paint(tag, Tone.FAINT)
        self._lines = LineTeller(inner, journal, verbose=verbose, worker=bool(tag), days=days)

    def fact(self, fact: Fact, used: Sequence[Spent] = ()) -> list[str]:
        return [self._dressed(line) for line in self._lines.fact(fact, used)]

    def event(self, event: events.AgentEvent, now: float) -> list[str]:
        return [self._dressed(line) for line in self._lines.event(event, now)]

    def _dressed(self, line: LogLine) -> str:
        if line.is_day:
            return self._style.paint(line.text, line.tone)
        words = line.speaker + self._style.paint(line.text, line.tone)
        stamp = _MARGIN if line.time is None else f"{clock_time(line.time)} "
        return f"{self._tag}{stamp}{words}" if words or not line.by_agent else self._tag.rstrip()


class JsonTeller:
    """The lines of `ralph run --json`. A worker's have its `task`, and no last line."""

    def __init__(self, run: str, journal: str, *, task: str = "") -> None:
        self._told: list[str] = []
        self._now = 0.0
        self._journal = journal
        self._is_worker = bool(task)
        self._lines = JsonLines(self._told.extend, run, clock=lambda: self._now, task=task)

    def fact(self, fact: Fact, used: Sequence[Spent] = ()) -> list[str]:
        self._now = fact.time
        self._lines.on_fact(fact)
        if isinstance(fact, Settled) and isinstance(fact.verdict, Stop) and not self._is_worker:
            self._lines.stop(fact.verdict, self._journal, used)
        return self._taken()

    def event(self, event: events.AgentEvent, now: float) -> list[str]:
        self._now = now
        self._lines.on_events([event])
        return self._taken()

    def _taken(self) -> list[str]:
        told = list(self._told)
        self._told.clear()
        return told


def briefing_of(started: Started, journal: str, state: RunState | None = None) -> Briefing:
    """The briefing of a reader, as far as the journal knows it; `state` knows of new limits."""
    try:
        found = json.loads(started.settings)
    except ValueError:
        found = None
    settings = found if isinstance(found, dict) else {}
    loop = settings.get("loop")
    most = loop.get("maxIterationsPerTask") if isinstance(loop, dict) else None
    per_task = most if isinstance(most, int) else ITERATIONS_PER_TASK  # told only where it is set
    limits, raised = (state.limits, state.raised) if state else (started.limits, ())
    per_task = int(dict(raised).get("loop.maxIterationsPerTask", per_task))
    guardrails: list[str] = []
    with suppress(KeyError, TypeError):  # settings of another time: told as any other gate
        guardrails.extend(str(found["command"]) for found in settings.get("guardrails") or [])
    tasks = started.profile == "tasks"
    return Briefing(
        iterations=per_task if tasks else limits.iterations,
        guardrails=frozenset(guardrails),
        journal=journal,
        attempts=started.profile == "supervise",
        tasks=tasks,
        stories=started.profile == "reviewed",
    )


def last_actions(dialect: str, prompt: str, tail: bytes) -> tuple[str, ...]:
    """The last tool calls and texts in the end of a stream, oldest first."""
    parser = parser_for(dialect, prompt)
    actions = [a for event in (*parser.feed(tail), *parser.end()) for a in _action(event)]
    return tuple(tidy(action, _ACTION_SHOWN) for action in actions[-_ACTIONS:])


def _action(event: events.AgentEvent) -> Iterator[str]:
    match event:
        case events.ToolStart(name=name, summary=summary):
            yield f"{name}({summary})" if summary else name
        case events.Text(text=text, speaker=Speaker.ASSISTANT | Speaker.HOST) if text.strip():
            said = list(filter(str.strip, text.splitlines()))[-_ACTIONS:]
            yield from map(not_ours, said)
        case events.Question(text=text):
            yield f"Question: {text}"
        case events.Permission(allowed=False):
            yield event.refusal
        case events.RateLimited(why=why):
            yield f"Rate limited: {why}"
        case events.Retry(attempt=attempt, why=why):
            yield f"Retry {attempt}: {why}"
        case events.Result(failure=failure) if failure is not None:
            yield f"Failed: {failure.message}"


def tidy(text: str, most: int) -> str:
    # Cut first: a line of output may be long, and only its beginning is shown.
    words = " ".join(one_line(safe(text[: 4 * most])).split())
    return shorten(words, most, None, "...")
