"""A run as a trace of OpenTelemetry, by its GenAI conventions: the run, its workers, iterations,
turns of agents and their tools, checks, and the steps of settling.

Ids follow from the run's: it is the same trace however often it is exported. Nobody's words are in
it unless they are asked for; names, times, numbers and verdicts are (ADR 54).
"""

import json
from collections.abc import Iterator

from ralph.export.lines import Json
from ralph.export.parts import Gap, Opened, Paid, Part, Said, paid_by
from ralph.export.reading import Source
from ralph.export.spans import CLIENT, Attributes, Span, trace_id
from ralph.journal.codec import snake
from ralph.journal.ledger import Accounts
from ralph.journal.spending import Sum
from ralph.kernel import events, facts
from ralph.kernel.events import Usage
from ralph.kernel.facts import Assigned, Fact, Launching, Step
from ralph.kernel.turn import Ending, Role, Turn
from ralph.kernel.verdict import Stop, Verdict
from ralph.text.redact import redact

_MOST_TEXT = 64 * 1024  # characters of a prompt, an answer, a result: collectors limit a request
_MOST_OPEN = 1024  # tool calls that were not answered
_TICK = 1e-6  # seconds between tool calls of which only the order is known
_PROVIDERS = {  # by what an agent is called, or a model's service
    "claude": "anthropic",
    "anthropic": "anthropic",
    "codex": "openai",
    "openai": "openai",
    "gemini": "gcp.gemini",
    "google": "gcp.gemini",
}
# What is told of facts that are neither spans nor verdicts: events, without anybody's words.
_TOLD = {
    facts.Asked: (),
    facts.Resumed: (),
    facts.Sent: ("attempt",),
    facts.Fared: ("attempt", "how", "host"),
    facts.Landed: ("kept", "count"),
    facts.Proved: ("tree", "commit"),
    facts.Published: ("task", "number", "merged"),
    facts.Returned: ("task", "worker", "commit"),
}


def spans_of(source: Source, *, content: bool = False) -> Iterator[Json]:
    """All spans of a run, each when it is complete: the run's own comes last. With `content` also
    what was asked, said and answered."""
    return _Chapter(source, content=content).spans()


class _Chapter:
    """Tells one source: the run's own, or, below a `parent`, a worker's."""

    def __init__(self, source: Source, *, content: bool, parent: Span | None = None) -> None:
        self._source, self._content, self._above = source, content, parent
        self.spent = Sum()
        self._run = Span(parent.trace if parent else "", source.id, "", 0.0)
        self._iteration: Span | None = None
        self._turn: _TurnSpans | None = None
        self._met: Fact | None = None  # whose cost the last turn has
        self._count = 0  # of spans: a part of their keys
        self._last = 0.0  # the time of the last fact
        self._stop: Stop | None = None

    def spans(self) -> Iterator[Json]:
        accounts = Accounts()
        for part in self._source.told():
            if isinstance(part, Part):
                yield from self._part(part)
            else:
                if not self._last:
                    self._begin(part)
                if (paid := paid_by(part)) is not None and part is not self._met:
                    yield self._bare(part, paid)
                yield from self._fact(part)
                entered = accounts.take(part)
                self.spent = self.spent + entered if entered else self.spent
                self._last = part.time
        if self._iteration is not None:
            yield self._unfinished(self._iteration)
        for worker in self._source.workers:
            below = _Chapter(worker, content=self._content, parent=self._run)
            yield from below.spans()
            self.spent += below.spent
        if self._last:
            yield self._ended()

    def _begin(self, fact: Fact) -> None:
        run = self._run
        run.start = fact.time
        if self._above is None:
            run.trace = trace_id(run.key, fact.time)
        else:
            run.parent = self._above.key
        started = fact if isinstance(fact, facts.Started) else None
        profile = started.profile if started else ""
        sent = self._source.sent
        run.name = f"worker {sent.assignment.task}" if sent else f"invoke_workflow {profile}"
        run.attributes = {
            "gen_ai.operation.name": "" if sent else "invoke_workflow",
            "gen_ai.workflow.name": "" if sent else profile,
            "ralph.run": run.key,
            "ralph.profile": profile,
            "ralph.version": started.version if started else "",
            "ralph.task": sent.assignment.task if sent else "",
        }

    def _ended(self) -> Json:
        run, stop, spent = self._run, self._stop, self.spent
        run.attributes |= {
            "ralph.reason": stop.reason.value if stop else "",
            "ralph.exit": stop.reason.exit_code if stop else None,
            "ralph.why": stop.why if stop and self._content else "",
            "ralph.unfinished": stop is None or None,
            "ralph.turns": spent.turns,
            "ralph.turns_of_unknown_cost": spent.unknown,
            "ralph.cost_usd": spent.known_usd,
            "ralph.usage.input_tokens": spent.usage.all_input,
            "ralph.usage.output_tokens": spent.usage.output,
            "ralph.usage.cache_read.input_tokens": spent.usage.cache_read,
            "ralph.usage.cache_creation.input_tokens": spent.usage.cache_write,
            "ralph.problem": self._source.problem,
        }
        run.error = stop.reason.value if stop and stop.reason.exit_code else run.error
        return run.ended(self._last)

    @property
    def _here(self) -> Span:
        """What new spans and events are part of."""
        return self._iteration or self._run

    def _span(self, name: str, start: float) -> Span:
        self._count += 1
        key = f"{self._run.key}/{self._count}"
        return Span(self._run.trace, key, name, start, self._here.key)

    # ------------------------------------------------------------------ facts

    def _fact(self, fact: Fact) -> Iterator[Json]:
        match fact:
            case facts.Began():
                if self._iteration is not None:
                    yield self._unfinished(self._iteration)
                self._iteration = None
                self._iteration = self._span(f"iteration {fact.iteration}", fact.time)
                self._iteration.attributes = {
                    "ralph.iteration": fact.iteration,
                    "ralph.task": fact.assignment.task,
                    "ralph.mode": fact.assignment.mode.value,
                }
            case facts.Checked():
                yield self._gate(fact)
            case facts.Decided():
                self._decide(fact)
            case Step():
                yield self._step(fact)
            case facts.Settled(verdict=verdict):
                yield from self._settle(fact.time, verdict)
            case Assigned(assignment=assignment, worker=worker):
                told = {"ralph.task": assignment.task, "ralph.worker": worker}
                self._here.event("ralph.assigned", fact.time, told)
            case _ if type(fact) in _TOLD:
                self._note(fact)
                self._stop = None if isinstance(fact, facts.Resumed) else self._stop

    def _unfinished(self, span: Span) -> Json:
        span.attributes["ralph.unfinished"] = True
        return span.ended(self._last)

    def _bare(self, fact: Fact, paid: Paid) -> Json:
        """A cost without a turn that is told: of one that was cut off, and accounted for later."""
        span = self._span("invoke_agent", self._last)
        span.attributes = {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.provider.name": "unknown",
            "ralph.role": Role.WORK.value,
            **_cost(paid),
        }
        return span.ended(fact.time)

    def _gate(self, fact: facts.Checked) -> Json:
        span = self._span(f"gate {fact.gate}", fact.time - fact.seconds)
        texts = tuple(_cut(found.text) for found in fact.findings)
        span.attributes = {
            "ralph.gate": fact.gate,
            "ralph.findings": len(fact.findings),
            "ralph.findings.texts": texts if self._content else (),
        }
        span.error = "finding" if fact.findings else ""
        return span.ended(fact.time)

    def _decide(self, fact: facts.Decided) -> None:
        told: Attributes = {
            "ralph.boundary": fact.boundary.value,
            "ralph.verdict": _name(fact.verdict),
            "ralph.rule": fact.rule,
            "ralph.findings": tuple(found.gate for found in fact.findings),
            "ralph.why": _cut(getattr(fact.verdict, "why", "")) if self._content else "",
        }
        self._here.event("ralph.decided", fact.time, told)

    def _step(self, fact: Step) -> Json:
        """A step of settling; it began when the one before had ended."""
        span = self._span(f"settle {fact.key}", self._last)
        span.attributes = {
            "ralph.step": fact.key,
            "ralph.commit": fact.commit,
            "ralph.detail": _cut(fact.detail) if self._content else "",
        }
        span.error = "" if fact.ok else "step_failed"
        return span.ended(fact.time)

    def _settle(self, time: float, verdict: Verdict) -> Iterator[Json]:
        if isinstance(verdict, Stop):
            self._stop = verdict
        span, self._iteration = self._iteration, None
        if span is not None:
            span.attributes["ralph.verdict"] = _name(verdict)
            yield span.ended(time)

    def _note(self, fact: Fact) -> None:
        told = {f"ralph.{name}": getattr(fact, name) for name in _TOLD[type(fact)]}
        if isinstance(fact, facts.Asked):
            request = fact.request
            told = {"ralph.request": request.request, "ralph.origin": request.origin.value}
            told["ralph.text"] = _cut(request.text) if self._content else ""
        self._here.event(f"ralph.{snake(type(fact).__name__)}", fact.time, told)

    # ------------------------------------------------------------------ turns

    def _part(self, part: Part) -> Iterator[Json]:
        match part:
            case Opened(outcome=outcome):
                self._met = outcome
                span = self._span("invoke_agent", part.launch.time)
                self._turn = _TurnSpans(span, part, content=self._content)
            case Said() if self._turn is not None:
                yield from self._turn.take(part)
            case Gap(why=why, bytes=size) if self._turn is not None:
                self._turn.span.event("ralph.gap", self._turn.floor, {"why": why, "bytes": size})
            case _ if self._turn is not None:
                yield from self._turn.end()
                self._turn = None


class _TurnSpans:
    """Tells a turn of an agent, and its tools."""

    def __init__(self, span: Span, opened: Opened, *, content: bool) -> None:
        self.span = span
        self.floor = span.start  # the last time that its stream has told
        self._opened, self._content = opened, content
        self._tools = 0
        self._open: dict[str, tuple[Span, bool]] = {}  # calls, and whether their begin is known
        launch = opened.launch
        span.kind = CLIENT
        span.name = f"invoke_agent {launch.agent}".rstrip()
        span.attributes = {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.provider.name": provider_of(launch),
            "gen_ai.agent.name": launch.agent,
            "gen_ai.request.model": launch.model,
            "ralph.role": launch.role.value,
            "gen_ai.input.messages": _message("user", opened.prompt) if content else "",
        }

    def take(self, said: Said) -> Iterator[Json]:
        """One more event; the spans that it ends."""
        if said.time is not None:
            self.floor = max(self.floor, said.time)
        match said.event:
            case events.ToolStart(id=call):
                if call in self._open or len(self._open) >= _MOST_OPEN:
                    yield self._unanswered(call if call in self._open else next(iter(self._open)))
                self._begin(said.event, said.time)
            case events.ToolEnd(id=call) if call in self._open:
                yield self._answered(said.event, said.time)
            case events.Progress(session=session) if session:
                self.span.attributes["gen_ai.conversation.id"] = session
            case events.Retry(attempt=attempt):
                self.span.event("ralph.retry", self.floor, {"ralph.attempt": attempt})
            case events.RateLimited():
                self.span.event("ralph.rate_limited", self.floor, {})

    def end(self) -> Iterator[Json]:
        """The turn's own span, behind those of calls that nobody answered."""
        for call in tuple(self._open):
            yield self._unanswered(call)
        outcome, span = self._opened.outcome, self.span
        paid = self._opened.paid
        span.attributes |= _cost(paid) if paid is not None else {}
        if isinstance(outcome, facts.Ended):
            turn = outcome.turn
            span.attributes["ralph.ending"] = turn.ending.value
            span.attributes["ralph.exit_code"] = turn.exit_code
            span.error = _error_of(turn)
            if self._content and turn.text:
                span.attributes["gen_ai.output.messages"] = _message("assistant", turn.text)
        elif outcome is None:
            span.attributes["ralph.unfinished"] = True
        yield span.ended(self.floor if outcome is None else outcome.time)

    def _begin(self, start: events.ToolStart, time: float | None) -> None:
        """A call. Of one whose time is not told, only the order is known."""
        self._tools += 1
        at = self.floor + self._tools * _TICK if time is None else time
        key = f"{self.span.key}/{self._tools}"
        span = Span(self.span.trace, key, f"execute_tool {start.name}", at, self.span.key)
        span.attributes = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": start.name,
            "gen_ai.tool.call.id": start.id,
            "gen_ai.tool.type": "function",
            "ralph.subagent": start.subagent or None,
        }
        if self._content:
            span.attributes["gen_ai.tool.call.arguments"] = _cut(start.arguments or start.summary)
        self._open[start.id] = (span, time is not None)

    def _answered(self, end: events.ToolEnd, time: float | None) -> Json:
        span, known = self._open.pop(end.id)
        span.error = "tool_error" if end.is_error else ""
        if self._content:
            span.attributes["gen_ai.tool.call.result"] = _cut(end.output)
        told = "stream" if known else "end" if time is not None else "order"
        span.attributes["ralph.times"] = told
        return span.ended(span.start if time is None else time)

    def _unanswered(self, call: str) -> Json:
        span, known = self._open.pop(call)
        span.attributes |= {"ralph.unfinished": True, "ralph.times": "start" if known else "order"}
        return span.ended(span.start)


def provider_of(launch: Launching) -> str:
    """The service behind an agent, as far as its name or its model's tells: `openai:gpt-5.5`."""
    first, named, _ = launch.model.lower().replace("/", ":").partition(":")
    service = first if named else ""
    name = launch.agent.lower().rpartition("/")[2].partition(" ")[0]
    return _PROVIDERS.get(service) or _PROVIDERS.get(name) or service or name or "unknown"


def _cost(paid: Paid) -> dict[str, object]:
    """Tokens by the convention's names, where what the cache had is part of the input; dollars."""
    usage = paid.usage
    if usage == Usage():
        return {"ralph.cost_usd": paid.cost_usd}
    return {
        "ralph.cost_usd": paid.cost_usd,
        "gen_ai.usage.input_tokens": usage.all_input,
        "gen_ai.usage.output_tokens": usage.output,
        "gen_ai.usage.cache_read.input_tokens": usage.cache_read,
        "gen_ai.usage.cache_creation.input_tokens": usage.cache_write,
    }


def _error_of(turn: Turn) -> str:
    """The kind of a turn's failure; "" for one that succeeded."""
    if not turn.failed:
        return ""
    if turn.failure is not None and turn.failure.status:
        return str(turn.failure.status)
    if turn.ending is not Ending.EXITED:
        return turn.ending.value
    return f"exit_{turn.exit_code}" if turn.exit_code else "agent_failure"


def _name(verdict: Verdict) -> str:
    return snake(type(verdict).__name__)


def _message(role: str, text: str) -> str:
    """A message as the conventions have it, as JSON."""
    told = {"role": role, "parts": [{"type": "text", "content": _cut(text)}]}
    return json.dumps([told], ensure_ascii=False)


def _cut(text: str) -> str:
    """A text that is not too long for a collector. What it had of a key must not be cut."""
    text = redact(text)
    left_out = len(text) - _MOST_TEXT
    return text if left_out <= 0 else f"{text[:_MOST_TEXT]} ... {left_out} characters are left out"
