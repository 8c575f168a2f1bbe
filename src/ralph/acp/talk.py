"""A talk with an ACP agent, of version 1 or 2: messages in, messages out; no process here."""

from collections.abc import Callable, Generator, Mapping
from itertools import count
from typing import Any, Protocol

from ralph import __version__
from ralph.agents.streams.acp import AUTH_REQUIRED
from ralph.agents.streams.ndjson import as_list, as_text, field
from ralph.kernel.value import value

Json = dict[str, Any]
VERSIONS = (2, 1)  # the newest is offered, and the agent may take another
_READ_ONLY = ("read-only", "readonly", "read_only", "plan", "ask")
_KEY_METHOD = "api-key"  # in the name of one that takes its key from the environment
_METHOD_NOT_FOUND = {"code": -32601, "message": "Method not found"}
_MOST_NAMED = 8
_WHO = {"name": "ralph", "title": "Ralph", "version": __version__}


class Tell(Protocol):
    """Prints a line of our own."""

    def __call__(self, kind: str, **fields: object) -> None: ...


@value
class Wishes:
    """The turn that is wanted."""

    prompt: str
    workspace: str
    model: str | None = None
    has_tools: bool = True


@value
class Answer:
    """What the agent is told: the option, "" where none of its options says so; and why."""

    what: str
    allowed: bool
    option: str = ""
    why: str = ""
    seconds: float = 0.0  # that it took

    def outcome(self) -> dict[str, object]:
        """The answer as the protocol has it."""
        if not self.option:
            return {"outcome": {"outcome": "cancelled"}}
        return {"outcome": {"outcome": "selected", "optionId": self.option}}


class Impossible(Exception):  # noqa: N818
    """No turn with this agent could do better."""


class Failed(Exception):  # noqa: N818
    """The agent answered with an error."""

    def __init__(self, error: object) -> None:
        super().__init__()
        self.error = error


Steps = Generator[tuple[str, Json], object, None]  # a request out, its result in


class Talk:
    """One prompt, from the handshake to the end of the turn. `outcome` is how it ended."""

    def __init__(
        self, wishes: Wishes, judge: Callable[[object, object], Answer], tell: Tell
    ) -> None:
        self._wishes, self._judge, self._tell = wishes, judge, tell
        self._steps = self._all_steps()
        self._numbers = count(1)
        self._pending = 0  # the number of the request that waits for its answer
        self._version = 0
        self._session = ""
        self._calls: dict[str, Json] = {}  # what was told of tool calls that go on
        self._cancelled = self._has_run = False
        self.step = ""  # what it waits for; "" once the agent works
        self.outcome: Json | None = None

    def begin(self) -> list[Json]:
        """The first request."""
        return self._go_on(lambda: next(self._steps))

    def hear(self, message: Json) -> list[Json]:
        """Take a message of the agent; what to send for it."""
        method = message.get("method")
        if isinstance(method, str):
            if "id" in message:
                return [self._reply(message["id"], method, message.get("params"))]
            self._update(field(message.get("params"), "update"))
        elif self._pending and message.get("id") == self._pending:
            self._pending = 0
            error = message.get("error")
            if error is None:
                return self._go_on(lambda: self._steps.send(message.get("result")))
            return self._go_on(lambda: self._steps.throw(Failed(error)))
        return []

    def is_about(self, message: Json) -> bool:
        """True for what is said in our session since the prompt, and asked. Gemini says that its
        mode has changed, as words of its own; others tell of sub-agents in sessions of theirs."""
        if message.get("method") != "session/update":
            return message.get("method") is not None
        session = field(message.get("params"), "sessionId")
        return not self.step and session in (None, self._session)

    def cancel(self) -> list[Json]:
        """Ask the agent to stop; it may still say how it ended."""
        self._cancelled = True
        told = {"method": "session/cancel", "params": {"sessionId": self._session}}
        return [{"jsonrpc": "2.0", **told}] if self._session else []

    def _go_on(self, take: Callable[[], tuple[str, Json]]) -> list[Json]:
        try:
            method, params = take()
        except StopIteration:
            return []
        except Failed as failed:
            self._end(error=failed.error)
            return []
        except Impossible as impossible:
            self._end(error={"message": str(impossible)}, unstartable=True)
            return []
        self._pending = next(self._numbers)
        self.step = "" if method == "session/prompt" else method
        return [{"jsonrpc": "2.0", "id": self._pending, "method": method, "params": params}]

    def _end(self, **how: object) -> None:
        if self.outcome is None:
            self.outcome = how
            self.step = ""

    def _all_steps(self) -> Steps:
        """The requests of a turn, one after another."""
        agent = yield from self._initialize()
        session = yield from self._open(agent)
        self._session = as_text(field(session, "sessionId"))
        if not self._session:
            raise Impossible("the agent opened no session: its answer has no sessionId")
        info = field(agent, "info") or field(agent, "agentInfo")
        name = as_text(field(info, "title")) or as_text(field(info, "name")) or "agent"
        who = f"{name} {as_text(field(info, 'version'))}".strip()
        self._tell("session", session=self._session, agent=who, protocol=self._version)
        yield from self._choose_model(session)
        if not self._wishes.has_tools:
            yield from self._choose_mode(session)
        prompt = [{"type": "text", "text": self._wishes.prompt}]
        ended = yield "session/prompt", {"sessionId": self._session, "prompt": prompt}
        if self._version == 1:  # later versions say so by an update
            self._end(response=ended)

    def _initialize(self) -> Generator[tuple[str, Json], object, object]:
        try:
            agent = yield "initialize", _hello(VERSIONS[0])
        except Failed:  # some do not know that they may answer with their own version
            try:
                agent = yield "initialize", _hello(VERSIONS[-1])
            except Failed as failed:
                if field(failed.error, "code") == AUTH_REQUIRED:
                    raise
                why = as_text(field(failed.error, "message")) or "it does not say why"
                raise Impossible(f"the agent refused the handshake of ACP: {why}") from None
        version = field(agent, "protocolVersion")
        if type(version) is not int or version not in VERSIONS:
            words = f"the agent speaks version {version!r} of ACP; Ralph speaks 1 and 2"
            raise Impossible(words)
        self._version = version
        return agent

    def _open(self, agent: object) -> Generator[tuple[str, Json], object, object]:
        """A new session, without servers of ours. An agent that wants a login is told to take the
        key from its environment, if it offers that."""
        asked = {"cwd": self._wishes.workspace, "mcpServers": []}
        try:
            return (yield "session/new", asked)
        except Failed as failed:
            if field(failed.error, "code") != AUTH_REQUIRED:
                raise
            refused = failed
        methods = as_list(field(agent, "authMethods"))
        named = [as_text(field(m, "methodId")) or as_text(field(m, "id")) for m in methods]
        login = "authenticate" if self._version == 1 else "auth/login"
        for method in (name for name in named if _KEY_METHOD in name):
            try:
                yield login, {"methodId": method}
                return (yield "session/new", asked)
            except Failed:
                continue
        ways = ", ".join(filter(None, (as_text(field(m, "name")) for m in methods)))
        message = as_text(field(refused.error, "message")) or "Authentication required"
        offers = f" (it offers: {ways})" if ways else ""
        raise Failed({"code": AUTH_REQUIRED, "message": f"{message}{offers}"})

    def _choose_model(self, session: object) -> Steps:
        """The model that is asked for, by whatever way the agent has for that."""
        wanted = self._wishes.model
        if wanted is None:
            return
        option = _option(session, "model")
        names = _values(option)
        old = [
            as_text(field(m, "modelId"))
            for m in as_list(field(session, "models", "availableModels"))
        ]
        found = _matching(wanted, names) or _matching(wanted, {name: name for name in old})
        if not found:
            offered = [*names, *old]
            more = ", ..." if len(offered) > _MOST_NAMED else ""
            there = (
                f"offers {', '.join(offered[:_MOST_NAMED])}{more}" if offered else "has no choice"
            )
            raise Impossible(
                f"agent.model (--model): the agent {there}, and not {wanted!r}."
                " Name another, or leave it out and choose it by the agent's own settings"
            )
        if names:
            yield from self._set(option, found)
        else:
            yield "session/set_model", {"sessionId": self._session, "modelId": found}

    def _choose_mode(self, session: object) -> Steps:
        """A mode that changes nothing, where there is one. Whatever it asks for is refused, too."""
        option = _option(session, "mode")
        there = _values(option)
        old = [as_text(field(m, "id")) for m in as_list(field(session, "modes", "availableModes"))]
        try:
            if found := next((mode for mode in _READ_ONLY if mode in there), ""):
                yield from self._set(option, found)
            elif found := next((mode for mode in _READ_ONLY if mode in old), ""):
                yield "session/set_mode", {"sessionId": self._session, "modeId": found}
        except Failed:
            self._tell("progress", text=f"the agent does not take its mode {found!r}")

    def _set(self, option: object, chosen: str) -> Steps:
        name = as_text(field(option, "configId")) or as_text(field(option, "id"))
        kind = {} if self._version == 1 else {"type": "id"}
        asked = {"sessionId": self._session, "configId": name, "value": chosen, **kind}
        yield "session/set_config_option", asked

    def _reply(self, number: object, method: str, params: object) -> Json:
        """The answer to a request of the agent."""
        reply: Json = {"jsonrpc": "2.0", "id": number}
        if method == "elicitation/create":  # a person is asked between turns
            return {**reply, "result": {"action": "cancel"}}
        if method != "session/request_permission":
            return {**reply, "error": _METHOD_NOT_FOUND}
        if self._cancelled or self.outcome is not None:
            return {**reply, "result": Answer("", allowed=False).outcome()}
        subject = field(params, "subject", "toolCallId")
        identity = subject or field(params, "toolCall", "toolCallId")
        identity = identity or field(params, "subject", "toolCall", "toolCallId")
        found = self._judge(params, self._calls.get(as_text(identity)))
        told = {"what": found.what, "allowed": found.allowed, "why": found.why}
        told |= {"seconds": found.seconds}
        self._tell("permission", **told, option=found.option, toolCallId=identity)
        return {**reply, "result": found.outcome()}

    def _update(self, update: object) -> None:
        """Keep what is told of a tool call until it has ended; see when a turn of v2 is over."""
        if not isinstance(update, dict):
            return
        if identity := as_text(update.get("toolCallId")):
            if update.get("status") in ("completed", "failed"):
                self._calls.pop(identity, None)
            else:
                told = {k: v for k, v in update.items() if v}
                self._calls[identity] = {**self._calls.get(identity, {}), **told}
        if update.get("sessionUpdate") != "state_update" or self.step or self._version == 1:
            return
        state = update.get("state")
        if state == "idle" and (self._has_run or update.get("stopReason")):
            self._end(response=update)
        self._has_run |= state == "running"


def _hello(version: int) -> Json:
    """The handshake, by the names of both versions: who has another one reads this too. No files
    and no terminal of ours are offered: agents have their own, and version 2 has none."""
    can: Json = {"elicitation": {"form": {}}}
    none = {"fs": {"readTextFile": False, "writeTextFile": False}, "terminal": False}
    by_1 = {"clientCapabilities": {**none, **can}, "clientInfo": _WHO}
    return {"protocolVersion": version, **by_1, "capabilities": can, "info": _WHO}


def _option(session: object, category: str) -> object:
    """The setting of a session that is about this."""
    options = as_list(field(session, "configOptions"))
    by_category = (o for o in options if field(o, "category") == category)
    by_name = (o for o in options if category in (field(o, "configId"), field(o, "id")))
    return next(by_category, None) or next(by_name, None)


def _values(option: object) -> dict[str, str]:
    """What a setting can be, and how people call it; the values may stand in groups."""
    entries = as_list(field(option, "options"))
    grouped = (each for entry in entries for each in as_list(field(entry, "options")))
    found = ((as_text(field(o, "value")), as_text(field(o, "name"))) for o in (*entries, *grouped))
    return {value: name for value, name in found if value}


def _matching(wanted: str, offered: Mapping[str, str]) -> str:
    """The model that is meant: by its name, or by the end of it where only one fits."""
    low = wanted.lower()
    exact = [v for v, name in offered.items() if low in (v.lower(), name.lower())]
    ends = [v for v in offered if v.lower().endswith(f"/{low}")]
    return exact[0] if exact else ends[0] if len(ends) == 1 else ""
