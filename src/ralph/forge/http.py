"""Asks a forge over HTTP, by the standard library. What passes soon is waited for; everything else
is a ForgeError that says what to type, with `retry_after` where asking later may help (ADR 43)."""

import ipaddress
import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from email.message import Message
from http.client import HTTPException
from typing import Any
from urllib.parse import parse_qsl, urlencode, urljoin, urlsplit, urlunsplit

from ralph.errors import ConfigError, ForgeError
from ralph.kernel.value import value
from ralph.text.headers import date, number
from ralph.text.plain import plain
from ralph.text.words import duration

_SILENCE = 20.0  # seconds without a byte
_LONGEST = 120.0  # seconds for an answer that trickles
_PATIENCE = 10.0  # seconds of waiting within one request, all in all
_PAUSES = (1.0, 2.0, 4.0)  # before another try, where the forge names no time
_LATER = 30.0  # seconds after which to try once more what went on failing
_SECONDARY = 60.0  # seconds that GitHub asks for where it refuses without a time
_LARGEST = 32 << 20  # bytes of an answer
_LARGEST_LOG = 512 << 20
_ERROR_SIZE = 1 << 20
_CHUNK = 1 << 16
_MOST_PAGES = 400
_MOST_REDIRECTS = 5
_MOST_KNOWN, _LARGEST_KNOWN = 64, 1 << 20  # answers, bytes
_UNCHANGED = 304
_MOVED = (301, 302, 303, 307, 308)


class Secret(str):
    """A text that does not show itself where a value is shown."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "'[redacted]'"


@value
class Answer:
    """A good answer; `found` is its JSON, None where it was not asked for or there is none."""

    found: Any
    body: bytes
    headers: Message


@value
class Service:
    """The API of a forge, and the way in."""

    name: str
    url: str
    headers: Mapping[str, str]
    authorization: str = ""  # a Secret; "" for whatever everybody may read
    source: str = ""  # of the token, in words
    login: str = ""  # what to type to get in
    rights: str = ""  # that a token needs
    sleep: Callable[[float], None] = time.sleep
    # Answers by their addresses: one that is still true costs nothing of the forge's limit.
    known: dict[str, Answer] = field(default_factory=dict)

    def get(self, path: str) -> Any:  # noqa: ANN401  JSON
        return self.ask("GET", path).found

    def ask(self, method: str, path: str, body: object = None, *, tail: int = 0) -> Answer:
        """The answer to a request. With `tail`, only so many bytes at its end, as they are.
        What may have been done although no answer came is not asked for again, by POST."""
        url = path if "://" in path else f"{self.url}/{path.lstrip('/')}"
        began, slept = time.monotonic(), 0.0
        for pause in (*_PAUSES, None):
            try:
                return self._asked(method, url, body, tail)
            except _PassingError as trouble:
                wait = trouble.told if trouble.told is not None else pause
                gone = max(slept, time.monotonic() - began)
                again = pause is not None and not (trouble.unsure and method == "POST")
                if wait is None or not again or gone + wait > _PATIENCE:
                    raise trouble.error from None
                self.sleep(wait)
                slept += wait
        raise AssertionError("the last try answers or raises")

    def pages(self, path: str) -> Iterator[Any]:
        """The JSON of all pages. One that cannot be had raises: no list is a part of one."""
        url = f"{self.url}/{path.lstrip('/')}"
        for _ in range(_MOST_PAGES):
            answer = self.ask("GET", url)
            yield answer.found
            if not (url := self._next(url, answer.headers)):
                return
        raise ForgeError(f"{self.name} lists more than {_MOST_PAGES} pages of {path}")

    def _asked(self, method: str, url: str, body: object, tail: int) -> Answer:
        data = None if body is None else json.dumps(body).encode()
        headers = {"User-Agent": "ralph", **self.headers}
        headers |= {"Content-Type": "application/json"} if data is not None else {}
        headers |= {"Authorization": self.authorization} if self.authorization else {}
        known = self.known.get(url) if method == "GET" and not tail else None
        headers |= {"If-None-Match": known.headers["etag"]} if known else {}
        first = url
        for _ in range(_MOST_REDIRECTS):
            request = urllib.request.Request(  # noqa: S310  `address` and `_target` have checked it
                url, data, headers, method=method
            )
            try:
                with _opener(url).open(request, timeout=_SILENCE) as opened:
                    answer = self._answer(opened, tail)
                if method == "GET" and not tail:
                    self._remember(first, answer)
                return answer
            except urllib.error.HTTPError as error:
                with error:
                    if error.code == _UNCHANGED and known is not None:
                        return known
                    if error.code not in _MOVED:
                        raise self._refusal(method, url, error) from None
                    target = self._target(method, url, error)
            except urllib.error.URLError as error:
                raise self._broken(f"cannot be reached: {_reason(error.reason)}") from None
            except (OSError, HTTPException) as error:
                raise self._broken(f"broke off its answer: {_reason(error)}") from None
            if _origin(target) != _origin(url):  # the token is for nobody else
                headers = {"User-Agent": headers["User-Agent"]}
            url = target
        raise ForgeError(f"{self.name} sends from one address to the next, without an end")

    def _remember(self, url: str, answer: Answer) -> None:
        """Keep an object. A list is none: its page may stay the same while a next one is added."""
        if len(self.known) >= _MOST_KNOWN:
            self.known.clear()
        is_small = isinstance(answer.found, dict) and len(answer.body) <= _LARGEST_KNOWN
        if answer.headers.get("etag") and is_small:
            self.known[url] = answer
        else:
            self.known.pop(url, None)

    def _answer(self, answer: Any, tail: int) -> Answer:  # noqa: ANN401  urllib's
        body = self._read(answer, _LARGEST_LOG if tail else _LARGEST, tail)
        if tail or not body.strip():
            return Answer(None, body, answer.headers)
        try:
            return Answer(json.loads(body), body, answer.headers)
        except (ValueError, RecursionError):
            raise self._broken("sent what is no JSON") from None

    def _read(self, answer: Any, most: int, tail: int) -> bytes:  # noqa: ANN401  urllib's
        """All of an answer, or its last bytes."""
        body, size, began = bytearray(), 0, time.monotonic()
        while chunk := answer.read1(_CHUNK):
            size += len(chunk)
            body += chunk
            if tail and len(body) > tail + (1 << 20):
                del body[:-tail]
            if size > most:
                raise ForgeError(f"{self.name} sent more than {most >> 20} MB in one answer")
            if time.monotonic() - began > _LONGEST:
                raise self._broken(f"needs more than {duration(_LONGEST)} for an answer")
        if answer.length:  # urllib does not object
            raise self._broken("broke off its answer")
        return bytes(body[-tail:]) if tail else bytes(body)

    def _next(self, url: str, headers: Message) -> str:
        """The address of the next page; "" if there is none."""
        if (page := headers.get("x-next-page")) is not None:  # GitLab's; its links may be cut
            return _with(url, page=page.strip()) if page.strip() else ""
        for link in headers.get("link", "").split(","):
            place, _, rest = link.partition(";")
            if 'rel="next"' in rest:
                target = urljoin(url, place.strip().strip("<>"))
                if _origin(target) != _origin(url):
                    raise ForgeError(f"{self.name} names a next page elsewhere: {plain(target)}")
                return target
        return ""

    def _target(self, method: str, url: str, error: urllib.error.HTTPError) -> str:
        """The address that a redirect names, if one may go there."""
        target = urljoin(url, error.headers.get("location", ""))
        kept = method == "GET" or (error.code in (307, 308) and _origin(target) == _origin(url))
        parts = urlsplit(target)
        safe = parts.scheme == "https" or (_is_local(parts.hostname) and _is_local_url(self.url))
        if kept and safe and parts.username is None and target.isascii():
            return target
        raise ForgeError(
            f"{self.name} says that {method} {_path(url)} has moved to {plain(target)}",
            "If the repository was renamed, tell git: git remote set-url origin URL",
            status=error.code,
        )

    def _broken(self, how: str) -> "_PassingError":
        error = ForgeError(
            f"{self.name} ({_origin(self.url)}) {plain(how)}",
            "See whether the network is there, and try again",
            retry_after=_LATER,
        )
        return _PassingError(error, None, unsure=True)

    def _refusal(self, method: str, url: str, error: urllib.error.HTTPError) -> Exception:
        """An answer that is an error, as the forge means it."""
        try:
            body = error.read(_ERROR_SIZE)
        except (OSError, HTTPException):
            body = b""
        status, said, told = error.code, _said(body) or error.reason, _told(error.headers)
        limited = status == 429 or (status == 403 and "rate limit" in said.lower())
        if limited or (status == 403 and told is not None):
            told = _SECONDARY if told is None else told
            words = f"{self.name} asks to wait for {duration(told)}: {said}"
            late = "Go on later" if self.authorization else self.login
            return _PassingError(ForgeError(words, late, status=status, retry_after=told), told)
        what = f"{method} {_path(url)}"
        if status >= 500:
            words = f"{self.name} failed at {what} ({status}): {said}"
            later = _LATER if told is None else told
            passing = ForgeError(words, "Try again later", status=status, retry_after=later)
            return _PassingError(passing, told, unsure=True)
        return ForgeError(*self._no(status, what, said, error.headers), status=status)

    def _no(self, status: int, what: str, said: str, headers: Message) -> tuple[str, str]:
        """The words, and what to type, for a refusal that no waiting changes."""
        if status == 401:
            known = f"the token from {self.source}" if self.source else "anybody without a token"
            return f"{self.name} does not let in {known}: {said}", self.login
        if status == 403:
            sso = headers.get("x-github-sso", "").partition("url=")[2].partition(";")[0]
            asked = plain(headers.get("x-accepted-github-permissions", ""))
            needs = ": ".join(filter(None, (asked, self.rights)))
            needs = f"The token needs {needs}" if self.authorization else self.login
            remedy = f"Authorize the token for single sign-on: {plain(sso)}" if sso else needs
            return f"{self.name} refuses {what}: {said}", remedy
        if status == 404:
            see = f"See that the name is right, and that the token from {self.source} may read it"
            nothing = f"{self.name} finds nothing at {what.partition(' ')[2]}: {said}"
            return nothing, see if self.source else self.login
        return f"{self.name} refuses {what} ({status}): {said}", ""


class _PassingError(Exception):
    """Trouble that may pass: `told` is how long the forge asks to wait. `unsure`: it may have done
    what it was asked for."""

    def __init__(self, error: ForgeError, told: float | None, *, unsure: bool = False) -> None:
        super().__init__(error.message)
        self.error, self.told, self.unsure = error, told, unsure


class _NoDetours(urllib.request.HTTPRedirectHandler):
    """Follows no redirect by itself: the token would go along."""

    def redirect_request(self, *_: object) -> None:
        return None


def address(url: str, name: str) -> str:
    """The URL of an API, without a slash at its end; ConfigError, naming the variable, if it is
    none that a token may be sent to."""
    try:
        parts = urlsplit(url.strip())
        plain_text = url.isascii() and url.isprintable() and " " not in url and parts.port != 0
    except ValueError:
        parts, plain_text = urlsplit(""), False
    safe = parts.scheme == "https" or (parts.scheme == "http" and _is_local(parts.hostname))
    if not (plain_text and safe and parts.hostname and parts.username is None):
        version = "v3" if name.startswith("GITHUB") else "v4"
        raise ConfigError(
            f"{name} is no address of an API: {plain(url, 80)!r}",
            f"Give one that begins with https://, such as: export {name}=https://HOST/api/{version}",
        )
    return urlunsplit((parts.scheme, parts.netloc, parts.path.rstrip("/"), "", ""))


def _opener(url: str) -> urllib.request.OpenerDirector:
    """By the proxies that the environment names, but for what is on this machine."""
    if _is_local_url(url):
        return urllib.request.build_opener(_NoDetours, urllib.request.ProxyHandler({}))
    return urllib.request.build_opener(_NoDetours)


def _is_local_url(url: str) -> bool:
    return _is_local(urlsplit(url).hostname)


def _is_local(host: str | None) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host or "").is_loopback
    except ValueError:
        return False


def _origin(url: str) -> str:
    """The scheme, host and port of an address."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.lower()}"


def _path(url: str) -> str:
    return plain(urlsplit(url).path, 120)


def _with(url: str, **query: str) -> str:
    """The address with these in place of what its query says."""
    parts = urlsplit(url)
    both = {**dict(parse_qsl(parts.query, keep_blank_values=True)), **query}
    return urlunsplit((*parts[:3], urlencode(both), ""))


def _told(headers: Message) -> float | None:
    """Seconds to wait, as far as the forge says so."""
    after = headers.get("retry-after")
    if (wait := number(after)) is not None:
        return wait
    now = date(headers.get("date")) or time.time()  # a reset is a time of its clock
    if until := date(after):
        return max(0.0, until - now)
    for name in ("x-ratelimit", "ratelimit"):
        reset = number(headers.get(f"{name}-reset"))
        if reset is not None and headers.get(f"{name}-remaining") == "0":
            return max(0.0, reset - now)
    return None


def _said(body: bytes) -> str:
    """The message of an error, on one line."""
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return ""
    if not isinstance(found, dict):
        return ""
    parts: list[object] = [
        found.get("message") or found.get("error_description") or found.get("error")
    ]
    errors = found.get("errors")
    parts += errors if isinstance(errors, list) else []
    return plain(": ".join(words for part in parts if (words := _words(part))))


def _words(part: object) -> str:
    """What a part of an error says, whatever its shape."""
    match part:
        case str():
            return part
        case {"message": str(words)}:
            return words
        case {"field": str(name), "code": str(words)}:
            return f"{name}: {words}"
        case dict():
            return "; ".join(f"{name} {_words(held)}" for name, held in part.items())
        case list():
            return ", ".join(_words(held) for held in part)
        case _:
            return ""


def _reason(error: Any) -> str:  # noqa: ANN401  urllib's
    return getattr(error, "strerror", None) or str(error) or type(error).__name__
