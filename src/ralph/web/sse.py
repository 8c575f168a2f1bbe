"""Server-sent events: what there is after a cursor, then what comes, until the client is gone.

Nothing waits in a queue for a client. Each has a cursor, and takes what is behind it when it can: a
slow one costs no memory, and one that takes nothing at all is cut off.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from starlette.types import Receive, Scope, Send

from ralph.web.replies import as_json

_ALIVE = 15.0  # seconds of silence
_PATIENCE = 30.0  # seconds for a client to take what is sent
_START: dict[str, Any] = {
    "type": "http.response.start",
    "status": 200,
    "headers": [
        (b"content-type", b"text/event-stream; charset=utf-8"),
        (b"x-accel-buffering", b"no"),
    ],
}
More = Callable[[Any], Awaitable[tuple[bytes, Any]]]


def event(name: str, data: object, position: str = "") -> bytes:
    """One event; JSON has no newline of its own."""
    mark = f"id: {position}\n" if position else ""
    return f"event: {name}\n{mark}data: ".encode() + as_json(data) + b"\n\n"


class EventStream:
    """An answer that lasts. `more` waits for what is behind a cursor, and moves it."""

    def __init__(
        self,
        more: More,
        cursor: object,
        closing: asyncio.Event,
        done: Callable[[], None] = lambda: None,
        *,
        patience: float = _PATIENCE,
    ) -> None:
        self._more, self._cursor, self._closing, self._done = more, cursor, closing, done
        self._patience = patience

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            if scope["method"] == "HEAD":
                await send(_START)
                await send({"type": "http.response.body"})
                return
            await send(_START | {"headers": [*_START["headers"]]})
            pump = asyncio.ensure_future(self._pump(scope, send))
            others = [
                asyncio.ensure_future(_left(receive)),
                asyncio.ensure_future(self._closing.wait()),
            ]
            try:
                await asyncio.wait((pump, *others), return_when=asyncio.FIRST_COMPLETED)
            finally:
                for task in (pump, *others):
                    task.cancel()
                ended = await asyncio.gather(pump, *others, return_exceptions=True)
            if isinstance(ended[0], Exception):
                raise ended[0]
            if self._closing.is_set():
                await send({"type": "http.response.body"})
        finally:
            self._done()

    async def _pump(self, scope: Scope, send: Send) -> None:
        # A comment at once: the client knows that it is heard.
        data = b"retry: 1000\n: here\n\n"
        while True:
            try:
                async with asyncio.timeout(self._patience):
                    await send({"type": "http.response.body", "body": data, "more_body": True})
            except TimeoutError:
                if (transport := scope["state"].get("transport")) is not None:
                    transport.abort()
                return
            try:
                async with asyncio.timeout(_ALIVE):
                    data, self._cursor = await self._more(self._cursor)
            except TimeoutError:
                data = b": alive\n\n"


async def _left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
