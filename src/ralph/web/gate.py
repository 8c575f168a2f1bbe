"""Stands before every answer: lets in what the rules let in, and dresses what goes out."""

import asyncio
import hmac
import secrets
import time
from collections import deque
from collections.abc import Callable

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ralph.errors import RalphError
from ralph.web.replies import ApiError, refusal_of, refused
from ralph.web.security import HEADERS, Incoming, Refusal, Site, refusal

LARGEST_BODY = 256 * 1024
_PENALTY = 0.5  # seconds that a wrong token waits for its answer
_MOST_WAITING = 8  # of those at once
_LOGGED = 10  # wrong tokens a minute


class Keys:
    """The token, which reads and writes, and the secret of a session, which reads."""

    def __init__(self, token: str, cookie: str) -> None:
        self.cookie = cookie  # its name
        self.session = secrets.token_urlsafe(32)
        self._token = token.encode()

    def is_token(self, said: str) -> bool:
        return hmac.compare_digest(said.encode("latin-1", "replace"), self._token)

    def reads(self, cookies: tuple[str, ...]) -> bool:
        """True if some cookie is that of our session."""
        pairs = (pair.strip().partition("=") for line in cookies for pair in line.split(";"))
        ours = [word for name, _, word in pairs if name == self.cookie]
        found = [
            hmac.compare_digest(word.encode("latin-1"), self.session.encode()) for word in ours
        ]
        return any(found)


class Gate:
    """An ASGI application before another."""

    def __init__(self, app: ASGIApp, site: Site, keys: Keys, tell: Callable[[str], None]) -> None:
        self._app, self._site, self._keys, self._tell = app, site, keys, tell
        self._waiting = 0
        self._logged: deque[float] = deque(maxlen=_LOGGED)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        begun = False

        async def dressed(message: Message) -> None:
            nonlocal begun
            if message["type"] == "http.response.start":
                begun = True
                named = {name.lower() for name, _ in message["headers"]}
                message["headers"] = [
                    *message["headers"],
                    *(pair for pair in _HEADERS if pair[0] not in named),
                ]
            await send(message)

        try:
            await self._pass(scope, receive, dressed)
        except Exception as error:
            self._tell(
                f"{scope['method']} {scope['path'][:200]!a}: {type(error).__name__}: {error}"
            )
            if begun:
                raise
            why = Refusal(
                500, "this is a bug in ralph", "What happened stands where it was started."
            )
            await refused(why)(scope, receive, dressed)

    async def _pass(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = _headers(scope)
        asked = self._known(scope, headers)
        why = refusal(asked, self._site)
        try:
            if why is None:
                if asked.method == "POST":
                    receive = _replayed(await _body(headers, receive))
                await self._app(scope, receive, send)
                return
            if asked.mistaken and why.status == 401:
                await self._slow(scope)
        except ApiError as error:
            why = error.why
        except RalphError as error:
            why = refusal_of(error)
        await refused(why)(scope, receive, send)

    def _known(self, scope: Scope, headers: dict[str, tuple[str, ...]]) -> Incoming:
        """The request, and what it has proved."""
        said = [line.removeprefix("Bearer ") for line in headers.get("authorization", ())]
        token = headers.get("x-ralph-token", ())
        mistaken = not all(map(self._keys.is_token, (*said, *token)))
        scope["state"]["has_token"] = not mistaken and len(said) == 1
        return Incoming(
            scope["method"],
            scope["path"],
            headers,
            reader=bool(said or token) or self._keys.reads(headers.get("cookie", ())),
            writer=len(token) == 1,
            mistaken=mistaken,
            size=len(scope["raw_path"])
            + len(scope["query_string"])
            + sum(len(name) + len(words) for name, words in scope["headers"]),
        )

    async def _slow(self, scope: Scope) -> None:
        now = time.monotonic()
        if len(self._logged) < _LOGGED or now - self._logged[0] > 60:
            self._logged.append(now)
            client = scope.get("client")
            self._tell(f"A wrong token was shown{f' by {client[0]}' if client else ''}.")
        if self._waiting >= _MOST_WAITING:
            raise ApiError(429, "too many wrong tokens", "Wait a second.")
        self._waiting += 1
        try:
            await asyncio.sleep(_PENALTY)
        finally:
            self._waiting -= 1


_HEADERS = [(name.lower().encode(), words.encode()) for name, words in HEADERS.items()]


def _headers(scope: Scope) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for raw, words in scope["headers"]:
        name = raw.decode("latin-1").lower()
        found[name] = (*found.get(name, ()), words.decode("latin-1"))
    return found


async def _body(headers: dict[str, tuple[str, ...]], receive: Receive) -> bytes:
    """The whole body of a request, unless it is too large."""
    body = bytearray()
    told = headers.get("content-length", ("0",))[0]
    more = True
    while more:
        if int(told) > LARGEST_BODY or len(body) > LARGEST_BODY:
            most = f"{LARGEST_BODY >> 10} KB"
            raise ApiError(413, f"a request may hold {most}", "Name a file for the agent to read.")
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ApiError(400, "the request broke off")
        body += message.get("body", b"")
        more = message.get("more_body", False)
    return bytes(body)


def _replayed(body: bytes) -> Receive:
    async def receive() -> Message:
        return {"type": "http.request", "body": body, "more_body": False}

    return receive
