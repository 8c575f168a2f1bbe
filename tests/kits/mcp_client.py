"""A client of `ralph mcp` for tests: the server is served in a thread, over pipes."""

import json
import os
import select
import threading
from collections.abc import Mapping
from typing import Any, Self

from ralph.mcp.protocol import LEGACY
from ralph.mcp.serve import Client, serve

LONGEST = 30.0  # seconds that an answer may take
Json = dict[str, Any]


class McpClient:
    """A client of the older era, if it does not say otherwise."""

    def __init__(self, root: str, environ: Mapping[str, str] | None = None) -> None:
        theirs, self._writes = os.pipe()
        self._reads, writes = os.pipe()
        self.said: list[str] = []  # for people
        self.code: int | None = None
        self._lines = os.fdopen(self._reads, "rb", buffering=0)
        self._kept = b""
        self._number = 0
        self.others: list[Json] = []  # what came and was not waited for
        environ = os.environ if environ is None else environ

        def work() -> None:
            self.code = serve(root, Client(theirs, writes), environ, self.said.append)
            os.close(writes)
            os.close(theirs)

        self.thread = threading.Thread(target=work, daemon=True)
        self.thread.start()

    def __enter__(self) -> Self:
        self.answer(self.ask("initialize", {"protocolVersion": LEGACY[0]}))
        return self

    def __exit__(self, *_: object) -> None:
        self.leave()
        self._lines.close()

    def leave(self) -> None:
        """Close our end, and wait until the server has noticed."""
        if self._writes >= 0:
            os.close(self._writes)
            self._writes = -1
        self.thread.join(LONGEST)
        assert not self.thread.is_alive()

    def write(self, data: bytes) -> None:
        """Send bytes as they are."""
        while data:
            data = data[os.write(self._writes, data) :]

    def ask(self, method: str, params: Json) -> int:
        """Send a request; its id."""
        self._number += 1
        said = {"jsonrpc": "2.0", "id": self._number, "method": method, "params": params}
        self.write(json.dumps(said).encode() + b"\n")
        return self._number

    def begin(self, tool: str, token: str | None = None, **arguments: Any) -> int:  # noqa: ANN401
        """Call a tool, and do not wait for it."""
        meta = {} if token is None else {"_meta": {"progressToken": token}}
        return self.ask("tools/call", {"name": tool, "arguments": arguments, **meta})

    def cancel(self, number: int) -> None:
        said = {"jsonrpc": "2.0", "method": "notifications/cancelled"}
        self.write(json.dumps({**said, "params": {"requestId": number}}).encode() + b"\n")

    def read(self) -> Json | None:
        """The next message, or None once there will be no more."""
        while b"\n" not in self._kept:
            assert select.select([self._reads], (), (), LONGEST)[0], "no answer came"
            block = self._lines.read(1 << 16)
            if not block:
                return None
            self._kept += block
        line, _, self._kept = self._kept.partition(b"\n")
        message: Json = json.loads(line)
        return message

    def answer(self, number: int) -> Json:
        """The answer to that request; what came before it is kept."""
        while True:
            message = self.read()
            assert message is not None, "the server has left"
            if message.get("id") == number:
                return message
            self.others.append(message)

    def call(self, tool: str, **arguments: Any) -> Json:  # noqa: ANN401
        """What a tool tells, as values."""
        found = self.result(self.begin(tool, **arguments))
        assert not found["isError"], found
        data: Json = found["structuredContent"]
        return data

    def refused(self, tool: str, **arguments: Any) -> str:  # noqa: ANN401
        """What a tool says that fails."""
        found = self.result(self.begin(tool, **arguments))
        assert found["isError"], found
        return str(found["content"][0]["text"])

    def result(self, number: int) -> Json:
        message = self.answer(number)
        assert "result" in message, message
        result: Json = message["result"]
        return result
