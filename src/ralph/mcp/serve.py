"""Serves one client on two descriptors, until it leaves. One thread answers; what takes a while is
looked at again and again, so that nothing waits for it."""

import os
import select
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from importlib import import_module
from typing import Any

import msgspec

from ralph import __version__
from ralph.agents.streams.framing import Framer
from ralph.errors import ConfigError, RalphError, failing
from ralph.kernel.value import value
from ralph.mcp.jsonrpc import LARGEST
from ralph.mcp.pending import PendingAnswer, ToolAnswer
from ralph.mcp.protocol import Cancel, Connection, ToolCall
from ralph.mcp.tools import INSTRUCTIONS, TOOLS, Tool
from ralph.text.redact import know, redact
from ralph.ui.safe_stream import Channel

_LOOK_EVERY = 0.05  # seconds, while anything is pending
_GRACE = 1.5  # seconds for what is under way when the client has left
_BLOCK = 1 << 16
_MOST_PENDING = 64
_LONGEST = 40_000  # characters of a text in an answer
_BY_NAME = {tool.name: tool for tool in TOOLS}
Tell = Callable[[str], None]
_Found = ToolAnswer | PendingAnswer


@value
class Client:
    """Where a client's messages come from, and where they go."""

    reads: int
    writes: int


def serve(root: str | None, client: Client, environ: Mapping[str, str], tell: Tell) -> int:
    """Serve until the client has left. ConfigError where the root is no directory."""
    with failing("the current directory cannot be used", "Name another: --root DIR"):
        place = os.path.realpath(os.path.expanduser(root or "."))
    if not os.path.isdir(place):
        raise ConfigError(f"there is no directory {place}", "Name another: --root DIR")
    connection = Connection(__version__, [tool.told() for tool in TOOLS], INSTRUCTIONS)
    serving = _Serving(connection, client, place, environ, tell)
    try:
        serving.serve()
    except ConnectionError:
        pass  # it has left, and does not read what it was answered: a pipe, or a socket
    finally:
        serving.close()
    return 0


def serve_here(root: str | None) -> int:
    """Serve on standard input and output, which nobody else writes to then."""
    client = Client(os.dup(0), os.dup(1))
    os.dup2(2, 1)

    def tell(words: str) -> None:
        Channel(sys.stderr).write([f"[ralph] {words}"])

    if os.isatty(client.reads):
        tell("This speaks MCP with a program, which starts it: see ralph mcp --help.")
        tell("It waits for messages on standard input. Ctrl+C ends it, and no run.")
    return serve(root, client, os.environ, tell)


class _Serving:
    """One client, and the answers that it waits for."""

    def __init__(
        self,
        connection: Connection,
        client: Client,
        root: str,
        environ: Mapping[str, str],
        tell: Tell,
    ) -> None:
        self._connection, self._client, self._tell = connection, client, tell
        self._root, self._environ = root, environ
        self._scope: Any = None  # what it stands on takes a while to import
        self._lines = Framer(LARGEST)
        self._dropped = 0
        self._pending: list[tuple[ToolCall, PendingAnswer]] = []

    def serve(self) -> None:
        poll = select.poll()
        poll.register(self._client.reads, select.POLLIN)
        while True:
            if poll.poll(_LOOK_EVERY * 1000 if self._pending else None):
                block = os.read(self._client.reads, _BLOCK)
                if not block:
                    break
                self._take(self._lines.feed(block))
            self._look()
        self._take(self._lines.rest())
        for _, pending in self._pending:
            pending.hurry()
        until = time.monotonic() + _GRACE
        while self._pending and time.monotonic() < until:
            self._look()
            time.sleep(_LOOK_EVERY / 4)

    def close(self) -> None:
        if self._scope is not None:
            self._scope.close()

    def _take(self, lines: bytes) -> None:
        while self._dropped < self._lines.dropped:
            self._dropped += 1
            self._write(self._connection.too_long())
        for line in lines.split(b"\n"):
            match self._connection.take(line):
                case bytes() as answer:
                    self._write(answer)
                case ToolCall() as call:
                    self._call(call)
                case Cancel(call=call):
                    for other, pending in self._pending:
                        if other is call:
                            pending.cancel()

    def _call(self, call: ToolCall) -> None:
        def first() -> _Found:
            if len(self._pending) >= _MOST_PENDING:
                message = f"{_MOST_PENDING} calls are not answered yet"
                raise ConfigError(message, "Wait for one of them, or cancel it.")
            return self._done(_BY_NAME[call.tool], call)

        found = self._answered(call, first)
        if found is not None:
            self._pending.append((call, found))

    def _done(self, tool: Tool, call: ToolCall) -> _Found:
        """Do what a tool does, unless an agent of a run may not."""
        try:
            given = {name: said for name, said in call.arguments.items() if said is not None}
            wish = msgspec.convert(given, tool.takes)
        except msgspec.ValidationError as error:
            takes = ", ".join(tool.takes.__struct_fields__) or "nothing"
            raise ConfigError(f"{error}", f"`{tool.name}` takes: {takes}.") from error
        if self._scope is None:
            self._scope = _scope(self._root, self._environ)
        if tool.deed:
            from ralph.journal.write_access import refuse_agents, refuse_beside_unseen

            refuse_agents(self._environ, tool.deed)
            refuse_beside_unseen((place.project for place in self._scope.places()), tool.deed)
        module, name = tool.does.split(":")
        found: _Found = getattr(import_module(module), name)(self._scope, wish)
        return found

    def _look(self) -> None:
        still: list[tuple[ToolCall, PendingAnswer]] = []
        for call, pending in self._pending:
            if self._answered(call, partial(_looked, pending)) is None:
                continue
            still.append((call, pending))
            if call.token is not None:
                self._tell_news(call, pending)
        self._pending = still

    def _tell_news(self, call: ToolCall, pending: PendingAnswer) -> None:
        with suppress(RalphError):  # the answer will say what is wrong
            if (news := pending.news()) is not None:
                self._write(
                    self._connection.progress(call, news.done, news.total, _fit(news.words))
                )

    def _answered(self, call: ToolCall, work: Callable[[], _Found]) -> PendingAnswer | None:
        """Answer a call; gives what there is to wait for, if there is no answer yet."""
        try:
            found = work()
            if not isinstance(found, ToolAnswer):
                return found
            answer = self._connection.told(call, _fit(found.text), _fit(found.data))
        except RalphError as error:
            words = "\n".join(filter(None, (error.message, error.remedy)))
            answer = self._connection.told(call, _fit(words), None, failed=True)
        except Exception as error:  # noqa: BLE001  the next call may do well
            self._tell(f"This is a bug in ralph: {call.tool}: {error!r}")
            answer = self._connection.broken(call, _fit(f"this is a bug in ralph: {error!r}"))
        self._write(answer)
        return None

    def _write(self, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(self._client.writes, rest) :]


def _looked(pending: PendingAnswer) -> _Found:
    return pending.look() or pending


def _scope(root: str, environ: Mapping[str, str]) -> object:
    """The runs below the root. What this environment calls secret is told to nobody."""
    from ralph.mcp.scope import Scope
    from ralph.text.secrets import secret_among, secrets_of

    know(secret_among(secrets_of(environ), [root]))
    return Scope(root, environ)


def _fit(said: Any) -> Any:  # noqa: ANN401  JSON
    """The same without secrets, and with no text too long for a model to read."""
    match said:
        case str():
            text = redact(said).encode("utf-8", "replace").decode()
            return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
        case list() | tuple():
            return [_fit(each) for each in said]
        case dict():
            return {name: _fit(each) for name, each in said.items()}
        case _:
            return said
