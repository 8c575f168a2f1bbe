"""The steps of a turn as ATIF has them, out of the events of its stream. Pure, and in little
memory: a step is given away when the next one has begun and its tools have answered.

Events do not say where one answer of the model ends. Here one begins with the first words, thoughts
or calls after a tool has answered, or after the tokens of the one before were told.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import msgspec

from ralph.export.lines import Json, iso
from ralph.export.parts import Paid, Said
from ralph.kernel import events
from ralph.kernel.events import Speaker, Usage, Used
from ralph.text.redact import redact
from ralph.text.words import duration

_LARGEST = 1 << 20  # characters of a step: a longer text goes on in the next one
_MOST_WAITING = 64  # steps behind one whose tools have not answered
_HEAVIEST = 16 << 20  # characters of these
_EXACT = 1e-9  # dollars: sums of the same costs may differ by less


@dataclass
class Draft:
    """A step as far as it is told."""

    source: str
    time: float | None = None
    texts: list[str] = field(default_factory=list)
    thoughts: list[str] = field(default_factory=list)
    calls: list[Json] = field(default_factory=list)
    results: list[Json] = field(default_factory=list)
    open: dict[str, Json] = field(default_factory=dict)  # calls that were not answered, by id
    used: Used | None = None
    paid: Paid | None = None  # the rest of what its turn has cost
    extra: Json = field(default_factory=dict)
    is_told: bool = False  # the model's answer is over
    size: int = 0

    def json(self) -> Json:
        """The step, without its number."""
        for call in self.open.values():
            call["extra"]["answered"] = False
        for call in self.calls:
            if not call["extra"]:
                del call["extra"]
        optional = {
            "timestamp": None if self.time is None else iso(self.time),
            "reasoning_content": "\n".join(self.thoughts) or None,
            "tool_calls": self.calls or None,
            "observation": {"results": self.results} if self.results else None,
            "metrics": (metrics(self.paid) if self.paid else None) or None,
            "extra": self.extra or None,
        }
        told = {name: it for name, it in optional.items() if it is not None}
        return {"source": self.source, "message": _joined(self.texts), **told}


def metrics(paid: Paid) -> Json:
    """The metrics of a step: cached tokens are part of the prompt's."""
    usage = paid.usage
    found: Json = {}
    if usage != Usage():
        found = {
            "prompt_tokens": usage.all_input,
            "completion_tokens": usage.output,
            "cached_tokens": usage.cache_read,
        }
    if paid.cost_usd is not None:
        found["cost_usd"] = paid.cost_usd
    if usage.cache_write:
        found["extra"] = {"cache_write_tokens": usage.cache_write}
    return found


class TurnSteps:
    """Takes the events of a turn and gives its steps. `paid` is what the run has accounted for: the
    metrics of all steps are exactly that, whatever the stream says."""

    def __init__(self, prompt: str, paid: Paid | None = None) -> None:
        self._echo = prompt.strip()
        self._queue: deque[Draft] = deque()
        self._now: Draft | None = None  # the last step of the agent
        self._next_used: Used | None = None  # told before the step that it is about
        self._rest = paid
        self._theirs: deque[Draft] = deque()  # the steps of sub-agents
        self._names: set[str] = set()  # calls by which sub-agents were at work

    def take(self, said: Said) -> Iterator[Draft]:
        """One more event; the steps that are done by it."""
        match said.event:
            case events.Text():
                self._text(said.event, said)
            case events.Thinking(text=text):
                step = self._agent(said)
                step.thoughts.append(text)
                step.size += len(text)
            case events.ToolStart(subagent=subagent):
                self._call(said.event, self._subagent(said) if subagent else self._agent(said))
            case events.ToolEnd():
                self._answer(said.event, said)
            case events.Used():
                self._use(said.event)
            case events.Todo(items=items):
                todo = [{"text": item.text, "status": item.status.value} for item in items]
                (self._now or self._agent(said)).extra["todo"] = todo
            case events.Question(text=text):
                (self._now or self._agent(said)).extra["question"] = text
            case other:
                self._note(other, said)
        yield from self._done()

    def gap(self, why: str, size: int) -> Iterator[Draft]:
        """Something of the stream is not there."""
        extra = {"gap": why, **({"bytes": size} if size else {})}
        self._queue.append(Draft("system", texts=[f"[{why}]"], extra=extra))
        yield from self._done()

    def of_subagents(self, *, all_of_them: bool = False) -> Iterator[Draft]:
        """The steps of sub-agents that are done by now."""
        steps = self._theirs
        while steps and (all_of_them or len(steps) > _MOST_WAITING or _is_done(steps)):
            yield steps.popleft()

    def end(self) -> Iterator[Draft]:
        """The turn is over: the steps that are left. The last one of the agent has the rest of the
        cost."""
        after: list[Draft] = []
        while self._queue and self._queue[-1] is not self._now:
            after.append(self._queue.pop())
        while len(self._queue) > 1:
            yield self._given(self._queue.popleft())
        last = self._queue.pop() if self._queue else Draft("agent")
        last.paid = self._share(last)
        if self._rest is not None and not _is_nothing(self._rest):
            last.paid += self._rest
            last.extra["metrics_of"] = "turn"
        if last is self._now or not _is_nothing(last.paid):
            yield last
        yield from reversed(after)

    # ------------------------------------------------------------------ steps

    def _agent(self, said: Said) -> Draft:
        """The step that the agent is at."""
        step = self._now
        if step is None or step.is_told or step.results or step.size > _LARGEST:
            step = self._now = Draft("agent", said.time, used=self._next_used)
            self._next_used = None
            self._queue.append(step)
        return step

    def _subagent(self, said: Said) -> Draft:
        """The step that a sub-agent is at. Calls that wait meanwhile are those that sent it."""
        self._names.update(self._now.open if self._now else ())
        step = self._theirs[-1] if self._theirs else None
        if step is None or step.source != "agent" or step.results or step.size > _LARGEST:
            step = Draft("agent", said.time)
            self._theirs.append(step)
        return step

    def _text(self, said: events.Text, heard: Said) -> None:
        text, speaker = said.text, said.speaker
        if speaker in (Speaker.ASSISTANT, Speaker.SUBAGENT):
            by_subagent = speaker is Speaker.SUBAGENT
            step = self._subagent(heard) if by_subagent else self._agent(heard)
            step.texts.append(text)
            step.size += len(text)
        elif speaker is not Speaker.PROMPT:
            self._aside(heard, text, speaker=speaker.value)
        elif text.strip() != self._echo:  # else it is the step before this turn
            self._aside(heard, text, "user", speaker=speaker.value)

    def _aside(self, said: Said, text: str, source: str = "system", **extra: object) -> None:
        """Words of somebody else."""
        self._queue.append(Draft(source, said.time, [text], extra=extra, size=len(text)))

    def _call(self, start: events.ToolStart, step: Draft) -> None:
        extra: Json = {"summary": start.summary} if start.summary else {}
        given = _object(start.arguments)
        if given is None and start.arguments:
            extra["arguments"] = start.arguments
        number = f"call-{len(step.calls) + 1}"
        if start.id in step.open:  # it will not be known which of them is answered
            step.open[start.id]["extra"]["answered"] = False
        call = {
            "tool_call_id": start.id or number,
            "function_name": start.name,
            "arguments": given or {},
            "extra": extra,
        }
        step.calls.append(call)
        step.open[start.id] = call
        step.size += len(start.arguments)

    def _answer(self, end: events.ToolEnd, said: Said) -> None:
        extra: Json = {"is_error": True} if end.is_error else {}
        result: Json = {"content": end.output}
        if said.time is not None:
            extra["timestamp"] = iso(said.time)
        steps = self._theirs if end.subagent else self._queue
        step = next((each for each in steps if end.id in each.open), None)
        if step is None:  # its call was never told, or too long ago
            extra["tool_call_id"] = end.id
            step = Draft("system", said.time)
            steps.append(step)
        else:
            result["source_call_id"] = step.open.pop(end.id)["tool_call_id"]
        if end.id in self._names and not end.subagent:
            result["subagents"] = True
            self._names.clear()
        step.results.append({**result, **({"extra": extra} if extra else {})})
        step.size += len(end.output)

    def _use(self, used: Used) -> None:
        """Tokens of one answer: of the one that is there, or of the next one."""
        step = self._now
        if step is None or step.used is not None or step.is_told:
            self._next_used = used if self._next_used is None else self._next_used + used
        else:
            step.used, step.is_told = used, True

    def _note(self, event: events.AgentEvent, said: Said) -> None:
        """Something that the CLI says about itself."""
        match event:
            case events.Progress(text=text, session=session):
                self._aside(said, text, **({"session": session} if session else {}))
            case events.Retry(attempt=attempt, seconds=seconds, why=why):
                after = "" if seconds is None else f" in {duration(seconds)}"
                self._aside(said, f"Retry {attempt}{after}: {why}", retry=attempt)
            case events.RateLimited(why=why, resets_at=resets_at):
                self._aside(said, f"Rate limited: {why}", resets_at=resets_at)
            case events.Permission(allowed=False):
                self._aside(said, event.refusal, refused=True)
            case events.Unknown(raw=raw):
                self._aside(said, raw, unread=True)
            case events.Result(failure=failure) if failure is not None:
                self._aside(said, failure.message, failed=True, status=failure.status)

    # ------------------------------------------------------------------ giving away

    def _done(self) -> Iterator[Draft]:
        queue = self._queue
        while queue and queue[0] is not self._now and not queue[0].open:
            yield self._given(queue.popleft())
        while len(queue) > _MOST_WAITING or sum(step.size for step in queue) > _HEAVIEST:
            if len(queue) == 1 and not queue[0].open:
                return
            first = queue.popleft()
            self._now = None if first is self._now else self._now
            yield self._given(first)  # what is answered later stands by itself

    def _given(self, step: Draft) -> Draft:
        """The step with its own cost, as far as that is part of its turn's."""
        if step.used is not None:
            share = self._share(step)
            step.paid = share if not _is_nothing(share) else None
        return step

    def _share(self, step: Draft) -> Paid:
        """Take a step's cost off the rest of its turn's; what that does not cover is no metric."""
        used, rest = step.used, self._rest
        if used is None:
            return Paid()
        step.used = None
        left = rest and _less(rest, used)
        if left is None:
            step.extra["used"] = {"usage": _tokens(used.usage), "cost_usd": used.cost_usd}
            return Paid()
        self._rest = left
        known = rest is not None and rest.cost_usd is not None
        return Paid(used.usage, used.cost_usd if known else None)


def _is_done(steps: deque[Draft]) -> bool:
    """True if the first of them waits for nothing, and is not the one that grows."""
    return len(steps) > 1 and not steps[0].open


def _less(rest: Paid, used: Used) -> Paid | None:
    """What is left of a cost; None if there is not so much."""
    a, b = rest.usage, used.usage
    usage = (
        a.input - b.input,
        a.output - b.output,
        a.cache_read - b.cache_read,
        a.cache_write - b.cache_write,
    )
    cost = rest.cost_usd
    if cost is not None:
        cost -= used.cost_usd or 0.0
        cost = 0.0 if abs(cost) < _EXACT else cost
    if min(usage) < 0 or (cost or 0.0) < 0:
        return None
    return Paid(Usage(*usage), cost)


def _is_nothing(paid: Paid) -> bool:
    return paid.usage == Usage() and not paid.cost_usd


def _tokens(usage: Usage) -> Json:
    return {
        "input": usage.input,
        "output": usage.output,
        "cache_read": usage.cache_read,
        "cache_write": usage.cache_write,
    }


def _object(arguments: str) -> Json | None:
    """The arguments of a call; None where they are no object."""
    try:
        found = msgspec.json.decode(arguments) if arguments else None
        return _with_redacted_names(found) if isinstance(found, dict) else None
    except (ValueError, RecursionError):
        return None


def _with_redacted_names(value: Any) -> Any:  # noqa: ANN401  JSON
    """The value, with no secret among its names; `lines` redacts the rest, whose names are ours."""
    match value:
        case dict():
            return {redact(name): _with_redacted_names(it) for name, it in value.items()}
        case list():
            return [_with_redacted_names(it) for it in value]
        case _:
            return value


def _joined(texts: list[str]) -> str:
    """Blocks of text as their claims are read: a newline between them, unless one is there."""
    pieces = (text if text.endswith("\n") else f"{text}\n" for text in texts[:-1])
    return "".join((*pieces, *texts[-1:]))
