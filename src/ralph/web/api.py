"""The answers of `ralph web`: everything that can be asked for, by its path."""

import asyncio
import json
import socket
import time
from collections.abc import Callable, Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, Router
from starlette.types import ASGIApp, Receive, Scope, Send

from ralph import __version__
from ralph.journal.runs import Run
from ralph.kernel.value import value
from ralph.runner.showing.recaps import beside_of
from ralph.ui.recap.gather import Gatherer
from ralph.ui.status.known import KnownRuns
from ralph.web.controls import CONTROLS
from ralph.web.feeds import Feeds
from ralph.web.gate import Gate, Keys
from ralph.web.list_feed import ListFeed
from ralph.web.listing import told_of
from ralph.web.replies import ApiError, reply
from ralph.web.reporting import report_of
from ralph.web.security import REPORT_POLICY, Site
from ralph.web.spending import Spending
from ralph.web.spool import KINDS
from ralph.web.sse import EventStream
from ralph.web.static_files import StaticFiles
from ralph.web.tail import Tail

_MOST_RUNS = 10_000
_MOST_LINES = 2_000
_MOST_MATCHES = 10_000
_LONGEST_SEARCH = 500  # characters
_PATIENCE = 2.0  # seconds for the first lines of a long log


@value
class Parts:
    """The parts that the answers are made of."""

    site: Site
    keys: Keys
    root: str  # the state directory
    environ: Mapping[str, str]
    tell: Callable[[str], None]


class Api:
    """The answers. A method is an answer to one path."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._files = StaticFiles()
        self._listing = KnownRuns(parts.root, told_of)
        self.closing = asyncio.Event()
        self._list_feed = ListFeed(self._listing)
        self._feeds = Feeds(self._listing, self._gatherer, parts.tell)
        self._spending = Spending(parts.root)
        self._reporting = asyncio.Lock()  # one at a time: they take a processor each

    def app(self) -> ASGIApp:
        run = "/api/runs/{run}"
        routes = [
            Route("/", self.shell),
            Route("/static/{name:path}", self.static),
            Route("/api/login", self.login, methods=["POST"]),
            Route("/api/me", self.me),
            Route("/api/runs", self.runs),
            Route("/api/events", self.events),
            Route("/api/spending", self.spending),
            Route(run, self.recap),
            Route(f"{run}/iterations/{{number}}", self.iteration),
            Route(f"{run}/log", self.log),
            Route(f"{run}/events", self.run_events),
            Route(f"{run}/report.html", self.report),
            *(Route(f"{run}/{name}", self.steer, methods=["POST"]) for name in CONTROLS),
        ]
        router = Router(routes, redirect_slashes=False, default=_nothing)
        return Gate(router, self._parts.site, self._parts.keys, self._parts.tell)

    def close(self) -> None:
        """End every stream of events, and what was followed for them."""
        self.closing.set()
        self._feeds.close()

    def _gatherer(self, run: Run) -> Gatherer:
        return Gatherer(run, beside_of(run, self._parts.environ))

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
            keys.cookie,
            keys.session,
            path="/api",
            httponly=True,
            samesite="strict",
            secure=secure,
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

    async def events(self, request: Request) -> ASGIApp:
        return EventStream(self._list_feed.more, 0, self.closing)

    async def spending(self, request: Request) -> Response:
        return reply(await asyncio.to_thread(self._spending.told))

    async def recap(self, request: Request) -> Response:
        async with self._feeds.looking(request.path_params["run"]) as feed:
            return Response(await feed.recap(), media_type="application/json")

    async def iteration(self, request: Request) -> Response:
        word = request.path_params["number"]
        if not word.isdecimal() or not word.isascii() or len(word) > 9:
            raise ApiError(400, "an iteration has a number")
        async with self._feeds.looking(request.path_params["run"]) as feed:
            found = await feed.iteration(int(word), request.query_params.get("worker", ""))
        if found is None:
            raise ApiError(404, f"there is no iteration {int(word)}")
        return reply(found)

    async def log(self, request: Request) -> Response:
        """A window of the log, counted from its end where `from` is negative; of those kinds only
        that are asked for."""
        begin = _number(request, "from", 0, 2**31)
        limit = max(0, _number(request, "limit", 500, _MOST_LINES))
        words = request.query_params.get("q", "")[:_LONGEST_SEARCH]
        kinds = frozenset(request.query_params.get("kinds", "").split(",")) & {*KINDS}
        is_end = begin < 0 or bool(words or kinds)
        async with self._feeds.looking(request.path_params["run"]) as feed:
            await feed.reached(2**31 if is_end else begin + limit, _PATIENCE)
            window = await asyncio.to_thread(_window, feed.tail, begin, limit, words, kinds)
        return reply(window)

    async def run_events(self, request: Request) -> ASGIApp:
        position = request.headers.get("last-event-id") or request.query_params.get("after", "")
        feed = await self._feeds.of(request.path_params["run"])
        feed.users += 1
        return EventStream(feed.more, position, self.closing, lambda: self._feeds.left(feed))

    async def report(self, request: Request) -> Response:
        """The report as `ralph report` writes it: with a policy of its own, and no script."""
        run = await self._feeds.run(request.path_params["run"])
        async with self._reporting:
            page = await report_of(run.id, self._parts.environ)
        headers = {"Content-Security-Policy": REPORT_POLICY}
        if "download" in request.query_params:
            headers["Content-Disposition"] = f'attachment; filename="ralph-{_fit(run.id)}.html"'
        return Response(page, headers=headers, media_type="text/html")

    async def steer(self, request: Request) -> Response:
        run = await self._feeds.run(request.path_params["run"])
        said = await _json(request)
        control = request.url.path.rpartition("/")[2]
        words = await asyncio.to_thread(CONTROLS[control], run, said)
        return reply({"words": words})


def _fit(name: str) -> str:
    return "".join(c if c.isascii() and (c.isalnum() or c in "._-") else "_" for c in name)


def _window(
    tail: Tail, begin: int, limit: int, words: str, kinds: frozenset[str]
) -> dict[str, Any]:
    spool = tail.spool
    is_whole, total = tail.caught_up.is_set(), spool.total
    numbers = spool.of_kinds(kinds) if kinds else None
    count = total if numbers is None else len(numbers)
    begin = max(0, count + begin) if begin < 0 else begin
    if numbers is None:
        rows = spool.read(begin, min(limit, max(0, total - begin)))
        lines = [row.as_dict(begin + at) for at, (_, row) in enumerate(rows)]
    else:
        shown = numbers[begin : begin + limit]
        lines = [row.as_dict(n) for n in shown for _, row in spool.read(n, 1)]
    told = {"total": count, "from": begin, "lines": lines, "is_whole": is_whole}
    return told | ({"matches": spool.matches(words, _MOST_MATCHES)} if words else {})


async def _json(request: Request) -> dict[str, Any]:
    """The object in a request's body; nothing where it is empty."""
    body = await request.body()
    if not body:
        return {}
    if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
        raise ApiError(400, "a request is JSON", "Send Content-Type: application/json.")
    try:
        said = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise ApiError(400, "the request is no JSON") from error
    if not isinstance(said, dict):
        raise ApiError(400, "the request is no object")
    return said


def _number(request: Request, name: str, usual: int, most: int) -> int:
    word = request.query_params.get(name, str(usual))
    if not word.removeprefix("-").isdecimal() or not word.isascii() or len(word) > 15:
        raise ApiError(400, f"{name} is no number")
    return min(int(word), most)


async def _nothing(scope: Scope, receive: Receive, send: Send) -> None:
    raise ApiError(404, "there is nothing here", "Open the page: /")
