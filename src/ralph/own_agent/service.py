"""Asks a model's service over HTTP: one request, one streamed answer, again where it may help."""

import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from email.message import Message
from http.client import HTTPException
from typing import Any

from ralph.agents.providers import Model, access
from ralph.agents.streams.ndjson import as_count, as_list, as_text, field
from ralph.kernel.value import value
from ralph.own_agent.protocols import protocol
from ralph.own_agent.sse import NoStream, decoded, events
from ralph.own_agent.talk import Json, Reply, Request, Talk, Trouble
from ralph.text.headers import date, number

_SILENCE = 300.0  # seconds without a byte after which an answer is taken for broken off
_LONGEST_WAIT = 60.0  # seconds: for longer ones the turn ends, and Ralph waits (ADR 11)
_ERROR_SIZE = 1024 * 1024
_SAID = 200  # characters of an error that is no JSON
_OK = 200


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
                wait = trouble.retry_after or min(2.0 ** (attempt - 1), 30.0)
                if not trouble.passes or attempt > self.retries or wait > _LONGEST_WAIT:
                    raise
                words = f"{trouble.status or ''} {trouble.message}".strip()
                on_retry(Retry(attempt, self.retries, wait, words))
                self.sleep(wait)
        raise AssertionError("the last attempt answers or raises")

    def _events(self, request: Request) -> Iterator[Json]:
        """The events of the answer; Trouble for whatever keeps it from coming."""
        sent = urllib.request.Request(  # noqa: S310  `access` has checked it
            self._place(request.path),
            json.dumps(request.body, ensure_ascii=False).encode("utf-8", "replace"),
            {"content-type": "application/json", "user-agent": "ralph-agent", **request.headers},
        )
        try:
            with _opener().open(sent, timeout=_SILENCE) as answer:
                yield from events(answer)
        except NoStream as error:
            raise refusal(_OK, answer.headers, error.body) from None
        except urllib.error.HTTPError as error:
            with error:
                raise refusal(error.code, error.headers, _body(error)) from None
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
    """The service of a model, as the environment has it; ConfigError where it cannot be called."""
    url, key = access(model, environ)
    return Service(model, key, url, retries)


class _NoDetours(urllib.request.HTTPRedirectHandler):
    """Follows no redirect: the key would go along."""

    def redirect_request(self, *_: object) -> None:
        return None


def _opener() -> urllib.request.OpenerDirector:
    """By the proxies that the environment names."""
    return urllib.request.build_opener(_NoDetours)


def _body(error: urllib.error.HTTPError) -> bytes:
    """What an error says, as far as it comes."""
    try:
        return error.read(_ERROR_SIZE)
    except (OSError, HTTPException):
        return b""


def refusal(status: int, headers: Message, body: bytes) -> Trouble:
    """An HTTP error as its service meant it."""
    found = decoded(body)
    found = found[0] if isinstance(found, list) and found else found  # Google's streams
    error = field(found, "error")
    said = as_text(error) or as_text(field(error, "message")) or as_text(field(found, "message"))
    if not said:
        said = body[:_SAID].decode("utf-8", "replace").strip() or f"HTTP status {status}"
        said = f"this is no stream of events: {said}" if status == _OK else said
    if status == _OK:
        status = as_count(field(error, "code")) or status
    if target := headers.get("location"):
        said = f"{said}: it is at {target[:_SAID]}"
    if field(error, "code") == "insufficient_quota" or field(error, "type") == "insufficient_quota":
        status = 403  # no waiting will help
    wait, until = _told_to_wait(headers, error)
    return Trouble(said, status, retry_after=wait, resets_at=until)


def _told_to_wait(headers: Message, error: object) -> tuple[float | None, float | None]:
    """Seconds to wait, and the Unix time until when, as far as the service says so."""
    told = number(headers.get("retry-after-ms"))
    if told is not None:
        return told / 1000, None
    after = headers.get("retry-after")
    if (told := number(after)) is not None:
        return told, None
    until = date(after) or number(headers.get("anthropic-ratelimit-unified-reset"))
    for detail in as_list(field(error, "details")):
        delay = as_text(field(detail, "retryDelay"))
        if (told := number(delay.removesuffix("s"))) is not None:
            return told, None
    for kind in ("requests", "tokens", "input-tokens", "output-tokens"):
        if headers.get(f"anthropic-ratelimit-{kind}-remaining") == "0":
            reset = _iso(headers.get(f"anthropic-ratelimit-{kind}-reset"))
            until = max(filter(None, (until, reset)), default=None)
    return (None, None) if until is None else (max(0.0, until - time.time()), until)


def _iso(text: str | None) -> float | None:
    try:
        return datetime.fromisoformat(text or "").timestamp()
    except ValueError:
        return None


def _reason(error: Any) -> str:  # noqa: ANN401  urllib's
    return getattr(error, "strerror", None) or str(error) or type(error).__name__
