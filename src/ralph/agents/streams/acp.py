"""ACP: what our client prints of a talk with an agent (ADR 53).

The messages of the Agent Client Protocol stand there as they came, v1 and v2, one a line. Beside
them are the client's own lines, whose methods begin with `_ralph/`. Answers to its requests stand
in such a line, and what was said before the prompt. Text comes in pieces that are cut anywhere.
Who answers `end_turn` without a token may have told an error as its own words.
"""

import binascii
import re
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from ralph.agents.streams.ndjson import (
    NdjsonParser,
    as_count,
    as_list,
    as_number,
    as_text,
    clipped,
    field,
    one_line,
    retry_after,
    service_status,
    session_begins,
    telling,
    todo_list,
)
from ralph.kernel import events

OURS = "_ralph/"
ASIDE = f"{OURS}aside"  # an answer to the client, or what was said before the prompt
AUTH_REQUIRED = -32000
_LONGEST = 64 * 1024  # of a line that is still being said; a longer one comes out in parts
_ASIDE = frozenset({"cwd", "description"})  # arguments that do not tell what a call does
_MOST_WHY = 500  # of a refusal
_MOST_OUTPUT = 32 * 1024  # characters of a tool's output
_KINDS = {"rate_limit": 429, "overloaded": 529, "server_error": 500, "authentication": 401}
_GOOD = ("end_turn", "max_tokens")
_STOPPED = {
    "refusal": "the model refused to go on",
    "max_turn_requests": "the agent has used up its calls of the model",
    "cancelled": "the agent says that it was cancelled",
}
_QUOTED = re.compile(r'"message"\s*:\s*"((?:[^"\\]|\\.)*)"')


class Line(msgspec.Struct, gc=False):
    """A message of the agent, or a line of ours."""

    method: str
    params: Any = None


class AcpParser(NdjsonParser[Line]):
    decoder = msgspec.json.Decoder(Line)

    def __init__(self) -> None:
        super().__init__()
        self._said = _Saying()
        self._calls: dict[str, _Call] = {}  # that have not ended
        self._over: set[str] = set()
        self._screens: dict[str, str] = {}  # what terminals show, by their ids
        self._todo = events.Todo(())
        self._cost: float | None = None
        self._told_tokens = False
        self._has_asked = False  # a person something, which is answered "cancel"
        self._last = ""  # words, if nobody has thought or acted

    def understand(self, line: Line) -> Iterator[events.AgentEvent]:
        params = line.params
        match line.method:
            case "session/update":
                yield from self._update(field(params, "update"))
            case "session/request_permission":
                yield from self._asked(params)
            case "elicitation/create":
                yield from self._said.flush()
                text = clipped(as_text(field(params, "message")))
                self._has_asked = True
                yield events.Question(text or "the agent asks a question")
            case "_ralph/permission":
                yield self._answered(params)
            case "_ralph/session":
                who = f"{as_text(field(params, 'agent'))}, ACP v{field(params, 'protocol')}"
                begins = session_begins(field(params, "session"))
                yield events.Progress(f"{begins.text}: {who.removeprefix(', ')}", begins.session)
            case "_ralph/progress":
                yield events.Progress(one_line(as_text(field(params, "text"))))
            case "_ralph/noise":
                yield events.Unknown(clipped(as_text(field(params, "text"))))
            case "_ralph/ended":
                yield from self._ended(params)

    def held_back(self) -> list[events.AgentEvent]:
        """The last line of what the agent said, and calls of which nothing more was told."""
        begun = [event for call in self._calls.values() for event in call.begin()]
        return [*self._said.flush(), *begun]

    def _update(self, update: object) -> Iterator[events.AgentEvent]:
        kind = as_text(field(update, "sessionUpdate"))
        match kind:
            case "agent_message_chunk" | "agent_thought_chunk" | "user_message_chunk":
                text = as_text(field(update, "content", "text"))
                yield from self._heard(kind, update, text)
            case "agent_message" | "agent_thought" | "user_message":
                blocks = as_list(field(update, "content"))
                whole = "".join(as_text(field(block, "text")) for block in blocks)
                yield from self._heard(f"{kind}_chunk", update, whole, is_whole=True)
            case "tool_call" | "tool_call_update":
                yield from self._call(update)
            case "tool_call_content_chunk":
                call = self._calls.get(as_text(field(update, "toolCallId")))
                if call is not None:
                    call.see_content([field(update, "content")])
            case "terminal_update" | "terminal_output_chunk":
                self._screen(update)
            case "plan" | "plan_update":
                entries = field(update, "plan", "entries") or field(update, "entries")
                todo = todo_list(entries)
                if todo != self._todo:
                    self._todo = todo
                    yield todo
            case "usage_update":
                self._told_tokens |= as_count(field(update, "used")) > 0
                yield from self._spent(field(update, "cost"))

    def _heard(
        self, kind: str, update: object, text: str, *, is_whole: bool = False
    ) -> Iterator[events.AgentEvent]:
        if kind == "agent_message_chunk":
            self._last = (self._last + text)[-_LONGEST:]
        is_others = bool(field(update, "_meta", "claudeCode", "parentToolUseId"))
        speaker = (kind, as_text(field(update, "messageId")), is_others)
        yield from self._said.hear(speaker, text, is_whole=is_whole)

    def _call(self, update: object) -> Iterator[events.AgentEvent]:
        identity = as_text(field(update, "toolCallId"))
        if identity in self._over:
            return
        call = self._calls.setdefault(identity, _Call(identity, self.arguments))
        call.see(update)
        if call.is_known:
            yield from self._begun(call)
        if call.status in ("completed", "failed"):
            yield from self._begun(call)
            del self._calls[identity]
            self._over.add(identity)
            yield call.end(self._screens)

    def _asked(self, params: object) -> Iterator[events.AgentEvent]:
        """A call may be told first by the request to allow it; the answer is told by us."""
        subject = field(params, "subject", "toolCall")
        told = subject if subject is not None else field(params, "toolCall")
        if told is not None:
            yield from self._call(told)
            call = self._calls.get(as_text(field(told, "toolCallId")))
            yield from self._begun(call) if call is not None else ()

    def _answered(self, params: object) -> events.Permission:
        what, why = as_text(field(params, "what")), as_text(field(params, "why"))[:_MOST_WHY]
        is_allowed = field(params, "allowed") is True
        call = self._calls.get(as_text(field(params, "toolCallId")))
        if call is not None and not is_allowed:
            call.refusal = why.partition("\n")[0]
        return events.Permission(one_line(what), is_allowed, why)

    def _begun(self, call: "_Call") -> Iterator[events.AgentEvent]:
        if not call.has_begun:
            self._last = ""
            yield from self._said.flush()
            yield from call.begin()

    def _screen(self, update: object) -> None:
        """Keep what a terminal shows; an update has all of it, a chunk what is new."""
        identity = as_text(field(update, "terminalId"))
        shown, code = field(update, "output", "data"), field(update, "exitStatus", "exitCode")
        before = self._screens.get(identity, "") if shown is None else ""
        new = _decoded(field(update, "data") if shown is None else shown)
        self._screens[identity] = (before + new)[-_MOST_OUTPUT:]
        if as_count(code):
            for call in self._calls.values():
                call.has_failed |= identity in call.terminals

    def _spent(self, cost: object) -> Iterator[events.AgentEvent]:
        """What the session has cost so far; only dollars are counted."""
        amount = as_number(field(cost, "amount"))
        if amount is None or field(cost, "currency") != "USD":
            return
        before, self._cost = self._cost or 0.0, amount
        if amount != before:
            yield events.Used(cost_usd=amount - before)

    def _ended(self, params: object) -> Iterator[events.AgentEvent]:
        response, error = field(params, "response"), field(params, "error")
        if error is None:  # as two agents end a turn of v2
            error = field(response, "error")
        yield from self.held_back()
        for call in self._calls.values():  # some say nothing more of what was refused
            yield from [call.end({})] if call.refusal else ()
        self._calls.clear()
        yield from self._spent(field(response, "cost"))
        usage = usage_told(response)
        reason = field(response, "stopReason")
        if reason == "cancelled" and self._has_asked:  # the question counts
            reason = "end_turn"
        failure = _failed(error) if error is not None else _stopped(reason)
        if failure is None and self._is_unpaid(response, usage):
            words = clipped(self._last.strip())
            failure = _failed({"message": words})
        is_hopeless = field(params, "unstartable") is True
        # Who does not know a model's price says that it costs nothing.
        cost = self._cost or (None if usage != events.Usage() else self._cost)
        yield events.Result("", failure, cost, usage, unstartable=is_hopeless)

    def _is_unpaid(self, response: object, usage: events.Usage) -> bool:
        """True if the agent tells of tokens, and of none, and has only spoken: so it told an error
        of its service."""
        tells = isinstance(response, dict) and "usage" in response
        tells = tells or isinstance(field(response, "_meta", "quota"), dict)
        has_spoken = bool(self._last.strip())
        return tells and has_spoken and usage == events.Usage() and not self._told_tokens


class _Saying:
    """Text in pieces: comes out in whole lines, each with its newline, so that pieces join."""

    def __init__(self) -> None:
        self._speaker = ("", "", False)  # kind of the message, its id, and whether it is another's
        self._line = ""
        self._told = ""  # of the message, so far

    def hear(
        self, speaker: tuple[str, str, bool], text: str, *, is_whole: bool = False
    ) -> Iterator[events.AgentEvent]:
        """Take a piece, or a message as a whole, of which pieces may have come before."""
        if speaker != self._speaker:
            yield from self.flush()
            self._speaker, self._told = speaker, ""
        if is_whole and text.startswith(self._told):
            text = text[len(self._told) :]
        elif is_whole:  # it was said in other words
            yield from self.flush()
            self._speaker, self._told = speaker, ""
        self._told = (self._told + text)[: 2 * _LONGEST]
        whole, newline, self._line = (self._line + text).rpartition("\n")
        if newline:
            yield from self._event(f"{whole}\n")
        elif len(self._line) > _LONGEST:
            yield from self._out()

    def flush(self) -> Iterator[events.AgentEvent]:
        """The message is over, or something else comes in between."""
        yield from self._out()
        self._speaker, self._told = ("", "", False), ""

    def _out(self) -> Iterator[events.AgentEvent]:
        rest, self._line = self._line, ""
        yield from self._event(rest)

    def _event(self, text: str) -> Iterator[events.AgentEvent]:
        kind, _, is_others = self._speaker
        if not text:
            return
        if kind == "agent_thought_chunk":
            yield events.Thinking(text)
        elif kind == "user_message_chunk":
            yield events.Text(text, events.Speaker.PROMPT)
        else:
            by = events.Speaker.SUBAGENT if is_others else events.Speaker.ASSISTANT
            yield events.Text(text, by)


class _Call:
    """A tool call, as far as it was told. What it does is often told later than that it is."""

    def __init__(self, identity: str, arguments: Callable[[object], str]) -> None:
        self.identity = identity
        self._arguments = arguments
        self.status = self.refusal = ""
        self.has_begun = self.has_failed = self.is_others = False
        self.terminals: set[str] = set()
        self._name = self._kind = self._title = self._output = ""
        self._input: object = None

    @property
    def is_known(self) -> bool:
        """True if it is told what it does."""
        told = self._input.keys() - _ASIDE if isinstance(self._input, dict) else self._input
        return bool(told) or self.status not in ("", "pending")

    def see(self, update: object) -> None:
        """Take what an update tells; what it leaves out stays."""
        tool = field(update, "_meta", "claudeCode", "toolName")
        self._name = as_text(field(update, "name")) or as_text(tool) or self._name
        self._kind = as_text(field(update, "kind")) or self._kind
        self._title = as_text(field(update, "title")) or self._title
        self.status = as_text(field(update, "status")) or self.status
        self._input = field(update, "rawInput") or self._input
        self.is_others |= bool(field(update, "_meta", "claudeCode", "parentToolUseId"))
        content = field(update, "content")
        if isinstance(content, list):
            self._output = ""
            self.see_content(content)
        raw = field(update, "rawOutput")
        more = as_text(raw) or as_text(field(raw, "output")) or as_text(field(raw, "error"))
        more = more or as_text(field(update, "_meta", "terminal_output_delta", "data"))
        self._output = self._output or more[-_MOST_OUTPUT:]
        for code in (
            field(raw, "metadata", "exit"),
            field(update, "_meta", "terminal_exit", "exit_code"),
        ):
            self.has_failed |= bool(as_count(code))

    def see_content(self, content: list[object]) -> None:
        """Take what it shows: text, or a terminal."""
        for block in content:
            if terminal := as_text(field(block, "terminalId")):
                self.terminals.add(terminal)
            text = as_text(field(block, "content", "text"))
            self._output = (self._output + text)[-_MOST_OUTPUT:]

    def begin(self) -> Iterator[events.AgentEvent]:
        if self.has_begun:
            return
        self.has_begun = True
        name = self._name or self._kind or "tool"
        is_plain = self._title.lower() in ("", name.lower(), self._kind, "terminal")
        summary = telling(self._input) if is_plain else ""
        summary, given = summary or one_line(self._title), self._arguments(self._input)
        yield events.ToolStart(self.identity, name, summary, self.is_others, given)

    def end(self, screens: dict[str, str]) -> events.ToolEnd:
        shown = "".join(screens.pop(terminal, "") for terminal in sorted(self.terminals))
        output = self._output or shown or self.refusal
        failed = self.has_failed or bool(self.refusal) or self.status == "failed"
        return events.ToolEnd(self.identity, output, failed, self.is_others)


def usage_told(response: object) -> events.Usage:
    """The tokens of a turn: by the draft of the protocol, or as some told them before it."""
    told = field(response, "usage") or field(response, "_meta", "quota", "token_count")
    return events.Usage(
        as_count(field(told, "inputTokens")) or as_count(field(told, "input_tokens")),
        as_count(field(told, "outputTokens")) or as_count(field(told, "output_tokens")),
        as_count(field(told, "cachedReadTokens")),
        as_count(field(told, "cachedWriteTokens")),
    )


def _stopped(reason: object) -> events.Failure | None:
    """Why a turn that ended so has failed, if it has."""
    if reason in _GOOD:
        return None
    words = as_text(reason)
    return events.Failure(
        _STOPPED.get(words) or f"the agent stopped: {words or 'it does not say why'}"
    )


def _failed(error: object) -> events.Failure:
    """A failure by the fields of an error. Its code may be a status of HTTP; where it is not, the
    service's own words in it tell one."""
    message = as_text(field(error, "message")) or as_text(error) or "the agent reports an error"
    code, kind = as_number(field(error, "code")), as_text(field(error, "data", "errorKind"))
    status = int(code) if code is not None and 400 <= code < 600 else None
    status = 401 if code == AUTH_REQUIRED else status or _KINDS.get(kind) or service_status(message)
    quoted = _QUOTED.search(message)
    return events.Failure(clipped(quoted[1] if quoted else message), status, retry_after(message))


def _decoded(data: object) -> str:
    """Bytes of a terminal, as text."""
    try:
        return binascii.a2b_base64(as_text(data)).decode("utf-8", "replace")
    except (ValueError, binascii.Error):
        return ""
