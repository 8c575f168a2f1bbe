"""Asks a model's service over HTTP: one request, one streamed answer, again where it may help."""

import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from email.message import Message
from email.utils import parsedate_to_datetime
from http.client import HTTPException
from typing import IO, Any

from ralph.agents.providers import Model, payer
from ralph.agents.streams.ndjson import as_list, as_text, field, retry_after
from ralph.errors import ConfigError
from ralph.kernel.value import value
from ralph.own_agent.protocols import protocol
from ralph.own_agent.talk import Json, Reply, Request, Talk, Trouble

_SILENCE = 300.0  # seconds without a byte after which an answer is taken for broken off
_LONGEST_WAIT = 60.0  # seconds: for longer ones the turn ends, and Ralph waits (ADR 11)
_LONGEST_LINE = 64 * 1024 * 1024
_ERROR_SIZE = 1024 * 1024
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


@value
class Retry:
    """A request that is made again in so many seconds."""

    attempt: int
    of: int
    seconds: float
    why: str


@value
class Service:
    """A model at its service."""

    model: Model
    key: tuple[str, str]  # the variable and what it holds; both "" where none is needed
    url: str
    retries: int = 5
    sleep: Callable[[float], None] = time.sleep

    def ask(self, talk: Talk, on_retry: Callable[[Retry], None]) -> Reply:
        """The model's answer. What passes is waited for, if not for long; then Trouble."""
        speaks = protocol(self.model.provider.protocol)
        request = speaks.request(self.model.name, self.key, talk)
        for attempt in range(1, self.retries + 2):
            try:
                return speaks.reply(self._events(request))
            except Trouble as trouble:
                wait = trouble.retry_after
                wait = min(2.0 ** (attempt - 1), 30.0) if wait is None else wait
                if not trouble.passes or attempt > self.retries or wait > _LONGEST_WAIT:
                    raise
                words = f"{trouble.status or ''} {trouble.message}".strip()
                on_retry(Retry(attempt, self.retries, wait, words))
                self.sleep(wait)
        raise AssertionError("the last attempt answers or raises")

    def _events(self, request: Request) -> Iterator[Json]:
        """The events of the answer; Trouble for whatever keeps it from coming."""
        sent = urllib.request.Request(  # noqa: S310  checked in `service_of`
            self._place(request.path),
            json.dumps(request.body).encode(),
            {"content-type": "application/json", "user-agent": "ralph-agent", **request.headers},
        )
        try:
            with _opener().open(sent, timeout=_SILENCE) as answer:
                yield from _events(answer)
        except urllib.error.HTTPError as error:
            with error:
                raise refusal(error.code, error.headers, error.read(_ERROR_SIZE)) from None
        except urllib.error.URLError as error:
            raise Trouble(f"{self.url} cannot be reached: {_reason(error.reason)}") from None
        except (OSError, HTTPException) as error:
            raise Trouble(f"the answer broke off: {_reason(error)}") from None

    def _place(self, path: str) -> str:
        """The URL of a path, whose version the base may already have."""
        base = self.url.rstrip("/")
        version = path.split("/")[1]
        return base.removesuffix(f"/{version}") + path


def service_of(model: Model, environ: Mapping[str, str], *, retries: int = 5) -> Service:
    """The service of a model, as the environment has it; ConfigError if nothing pays for it."""
    provider = model.provider
    url = environ.get(provider.url_variable) or provider.url
    if not url.startswith(("http://", "https://")):
        raise ConfigError(
            f"{provider.url_variable}: {url!r} is no URL of HTTP", "Write http://... or https://..."
        )
    variable = payer(provider, environ)
    if not variable and url == provider.url:
        raise ConfigError(
            f"no key for {model}: {' and '.join(provider.keys)} are not set"
            if len(provider.keys) > 1
            else f"no key for {model}: {provider.keys[0]} is not set",
            f"Set it: export {provider.keys[0]}=...",
        )
    return Service(model, (variable, environ.get(variable, "")), url, retries)


class _NoDetours(urllib.request.HTTPRedirectHandler):
    """Follows no redirect: the key would go along."""

    def redirect_request(self, *_: object) -> None:
        return None


def _opener() -> urllib.request.OpenerDirector:
    """By the proxies that the environment names."""
    return urllib.request.build_opener(_NoDetours)


def _events(answer: IO[bytes]) -> Iterator[Json]:
    """The JSON of server-sent events. What is none is passed over, as the end mark `[DONE]`."""
    data: list[bytes] = []
    while line := answer.readline(_LONGEST_LINE):
        text = line.rstrip(b"\r\n")
        if text.startswith(b"data:"):
            data.append(text.removeprefix(b"data:"))
        elif not text and data:
            found, data = _decoded(b"\n".join(data)), []
            if isinstance(found, dict):
                yield found


def _decoded(data: bytes) -> object:
    try:
        return json.loads(data.decode("utf-8", "replace"), strict=False)
    except (ValueError, RecursionError):
        return None


def refusal(status: int, headers: Message, body: bytes) -> Trouble:
    """An HTTP error as its service meant it."""
    found = _decoded(body)
    found = found[0] if isinstance(found, list) and found else found  # Google's streams
    error = field(found, "error")
    said = as_text(error) or as_text(field(error, "message")) or as_text(field(found, "message"))
    if not said:
        said = body[:200].decode("utf-8", "replace").strip() or f"HTTP status {status}"
    if field(error, "code") == "insufficient_quota" or field(error, "type") == "insufficient_quota":
        status = 403  # no waiting will help
    wait, until = _told_to_wait(headers, error)
    if wait is None and status == 429:
        wait = retry_after(said)
    return Trouble(said, status, retry_after=wait, resets_at=until)


def _told_to_wait(headers: Message, error: object) -> tuple[float | None, float | None]:
    """Seconds to wait, and the Unix time until when, as far as the service says so."""
    told = _number(headers.get("retry-after-ms"))
    if told is not None:
        return told / 1000, None
    after = headers.get("retry-after")
    if (told := _number(after)) is not None:
        return told, None
    until = _date(after) or _number(headers.get("anthropic-ratelimit-unified-reset"))
    for detail in as_list(field(error, "details")):
        delay = as_text(field(detail, "retryDelay"))
        if (told := _number(delay.removesuffix("s"))) is not None:
            return told, None
    for kind in ("requests", "tokens", "input-tokens", "output-tokens"):
        if headers.get(f"anthropic-ratelimit-{kind}-remaining") == "0":
            reset = _iso(headers.get(f"anthropic-ratelimit-{kind}-reset"))
            until = max(filter(None, (until, reset)), default=None)
    return (None, None) if until is None else (max(0.0, until - time.time()), until)


def _number(text: str | None) -> float | None:
    try:
        found = float(text or "")
    except ValueError:
        return None
    return found if 0 <= found < float("inf") else None


def _date(text: str | None) -> float | None:
    try:
        return parsedate_to_datetime(text or "").timestamp()
    except (ValueError, TypeError):
        return None


def _iso(text: str | None) -> float | None:
    try:
        return datetime.fromisoformat(text or "").timestamp()
    except ValueError:
        return None


def _reason(error: Any) -> str:  # noqa: ANN401  urllib's
    return getattr(error, "strerror", None) or str(error) or type(error).__name__
