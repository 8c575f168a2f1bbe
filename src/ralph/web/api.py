"""The answers of `ralph web`: everything that can be asked for, by its path."""

import asyncio
import socket
import time
from collections.abc import Callable

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, Router
from starlette.types import ASGIApp, Receive, Scope, Send

from ralph import __version__
from ralph.kernel.value import value
from ralph.web.gate import Gate, Keys
from ralph.web.list_feed import ListFeed
from ralph.web.listing import Listing
from ralph.web.replies import ApiError, reply
from ralph.web.security import Site
from ralph.web.sse import EventStream
from ralph.web.static_files import StaticFiles

_MOST_RUNS = 10_000


@value
class Parts:
    """What the answers are made of."""

    site: Site
    keys: Keys
    root: str  # the state directory
    tell: Callable[[str], None]


class Api:
    """The answers. A method is an answer to one path."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._files = StaticFiles()
        self._listing = Listing(parts.root)
        self.closing = asyncio.Event()
        self._list_feed = ListFeed(self._listing)

    def app(self) -> ASGIApp:
        routes = [
            Route("/", self.shell),
            Route("/static/{name:path}", self.static),
            Route("/api/login", self.login, methods=["POST"]),
            Route("/api/me", self.me),
            Route("/api/runs", self.runs),
            Route("/api/events", self.events),
        ]
        router = Router(routes, redirect_slashes=False, default=_nothing)
        return Gate(router, self._parts.site, self._parts.keys, self._parts.tell)

    async def shell(self, request: Request) -> Response:
        return self._files.answer("index.html", request.headers.get("if-none-match"))

    async def static(self, request: Request) -> Response:
        name = request.path_params["name"]
        return self._files.answer(name, request.headers.get("if-none-match"))

    async def login(self, request: Request) -> Response:
        """The cookie of the session, for whoever has the token."""
        if not request.scope["state"]["has_token"]:
            raise ApiError(401, "this needs the token", "Send it as Authorization: Bearer TOKEN.")
        response = Response(status_code=204)
        keys, secure = self._parts.keys, self._parts.site.scheme == "https"
        response.set_cookie(
            keys.cookie, keys.session, httponly=True, samesite="strict", secure=secure
        )
        return response

    async def me(self, request: Request) -> Response:
        return reply(
            {
                "version": __version__,
                "now": time.time(),
                "read_only": self._parts.site.read_only,
                "host": socket.gethostname(),
                "user_runs_root": self._parts.root,
            }
        )

    async def runs(self, request: Request) -> Response:
        most = _number(request, "limit", 200, _MOST_RUNS)
        runs, more = await asyncio.to_thread(self._listing.newest, most)
        return reply({"now": time.time(), "runs": runs, "more": more})

    async def events(self, request: Request) -> EventStream[int]:
        return EventStream(self._list_feed.more, 0, self.closing)


def _number(request: Request, name: str, usual: int, most: int) -> int:
    word = request.query_params.get(name, str(usual))
    if not word.removeprefix("-").isdecimal() or not word.isascii() or len(word) > 15:
        raise ApiError(400, f"{name} is no number")
    return min(int(word), most)


async def _nothing(scope: Scope, receive: Receive, send: Send) -> None:
    raise ApiError(404, "there is nothing here", "Open the page: /")
