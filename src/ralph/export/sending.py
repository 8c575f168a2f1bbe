"""Takes a trace to a collector by OTLP/HTTP with JSON, by the standard library; or writes the same
as one document. The variables are OpenTelemetry's."""

import gzip
import json
import random
import re
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Iterator, Mapping
from http.client import HTTPException
from typing import Any
from urllib.parse import unquote, urlsplit

from ralph import __version__
from ralph.errors import ConfigError
from ralph.export.lines import Json, line
from ralph.export.spans import attributes_of
from ralph.kernel.value import value
from ralph.text.headers import date, number
from ralph.text.plain import plain
from ralph.text.words import duration

_ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"
_OF_TRACES = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
_MOST_SPANS, _MOST_BYTES = 512, 4 << 20  # of a request; collectors refuse more than 20 MB
_SECONDS = 10.0  # for a request, where OTEL_EXPORTER_OTLP_TIMEOUT says nothing
_MOST_SECONDS = 3600.0
_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")  # of a header
_PASSING = (429, 502, 503, 504)  # what the protocol calls worth another try
_PAUSES = (1.0, 2.0, 4.0)  # before another try, where the collector names no time
_PATIENCE = 60.0  # seconds that a collector may ask to wait
_LARGEST = 1 << 20  # bytes of an answer that are read
_GRPC_PORT = 4317


@value
class Collector:
    """Where traces go."""

    url: str
    headers: Mapping[str, str]
    seconds: float = _SECONDS  # for one request
    compressed: bool = False
    certificate: str = ""  # a file of those that are trusted; "": the system's
    variable: str = _ENDPOINT  # that names it

    @property
    def shown(self) -> str:
        """Its address without a query, which may hold a key."""
        parts = urlsplit(self.url)
        return plain(f"{parts.scheme}://{parts.netloc}{parts.path}")


@value
class Sent:
    """What a collector has taken."""

    spans: int = 0
    requests: int = 0
    rejected: int = 0
    said: str = ""  # why, or a warning


def collector_of(environ: Mapping[str, str]) -> Collector | None:
    """The collector that the environment names; None if it names none."""

    def setting(name: str) -> str:
        """A setting of the exporter; one for traces alone wins."""
        names = (f"OTEL_EXPORTER_OTLP_TRACES_{name}", f"OTEL_EXPORTER_OTLP_{name}")
        return next(filter(None, (environ.get(each, "").strip() for each in names)), "")

    variable = next((name for name in (_OF_TRACES, _ENDPOINT) if environ.get(name, "").strip()), "")
    if not variable:
        return None
    url = environ[variable].strip()
    _check(variable, url)
    if variable == _ENDPOINT:  # the base for all signals; the other one is taken as it is
        url = f"{url.rstrip('/')}/v1/traces"
    milliseconds = number(setting("TIMEOUT"))
    return Collector(
        url,
        _headers(setting("HEADERS")),
        seconds=min(milliseconds / 1000, _MOST_SECONDS) if milliseconds else _SECONDS,
        compressed=setting("COMPRESSION").lower() == "gzip",
        certificate=setting("CERTIFICATE"),
        variable=variable,
    )


def _check(variable: str, url: str) -> None:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        parts, port = urlsplit(""), None
    if parts.scheme not in ("http", "https") or not parts.hostname or not url.isascii():
        remedy = f"Such as: export {variable}=http://localhost:4318"
        raise ConfigError(f"{variable} is no http or https address: {plain(url)}", remedy)
    if parts.username is not None:
        remedy = "Give it as a header: export OTEL_EXPORTER_OTLP_HEADERS=authorization=..."
        raise ConfigError(f"{variable} holds a user name or password", remedy)
    if port == _GRPC_PORT:
        remedy = "OTLP by HTTP is mostly at port 4318."
        raise ConfigError(f"{variable} names port {_GRPC_PORT}, which speaks gRPC", remedy)


def _headers(text: str) -> dict[str, str]:
    """Headers as `name=value,name=value`, with values in percent encoding."""
    found = {}
    for pair in filter(str.strip, text.split(",")):
        name, is_there, content = pair.partition("=")
        name, content = name.strip(), unquote(content.strip())
        is_whole = is_there and _NAME.fullmatch(name)
        if not (is_whole and content.isascii() and content.isprintable()):
            remedy = "Such as: export OTEL_EXPORTER_OTLP_HEADERS=api-key=abc,team=me"
            raise ConfigError("OTEL_EXPORTER_OTLP_HEADERS cannot be understood", remedy)
        found[name] = content
    return found


# ------------------------------------------------------------------ documents


def write_trace(
    spans: Iterable[Json], environ: Mapping[str, str], write: Callable[[str], object]
) -> None:
    """Write a trace as one document on one line, which is a request too, however many spans."""
    before, after = _around(environ)
    write(before)
    for count, span in enumerate(spans):
        write(f"{',' if count else ''}{line(span)}")
    write(f"{after}\n")


def _around(environ: Mapping[str, str]) -> tuple[str, str]:
    """A request before and after its spans."""
    resource = {"service.name": "ralph", "service.version": __version__}
    for pair in environ.get("OTEL_RESOURCE_ATTRIBUTES", "").split(","):
        name, is_there, content = pair.partition("=")
        if is_there and name.strip():
            resource[name.strip()] = unquote(content.strip())
    resource["service.name"] = environ.get("OTEL_SERVICE_NAME") or resource["service.name"]
    told = line({"resource": {"attributes": attributes_of(resource)}})[:-1]
    scope = line({"scope": {"name": "ralph", "version": __version__}})[:-1]
    return f'{{"resourceSpans":[{told},"scopeSpans":[{scope},"spans":[', "]}]}]}"


# ------------------------------------------------------------------ sending


def send(
    spans: Iterable[Json],
    collector: Collector,
    environ: Mapping[str, str],
    sleep: Callable[[float], None] = time.sleep,
) -> Sent:
    """Send a trace, in as many requests as it takes. ConfigError says why that cannot be."""
    before, after = _around(environ)
    opener = _opener(collector)
    sent = requests = rejected = 0
    said = ""
    for batch in _batches(spans):
        body = f"{before}{','.join(batch)}{after}".encode()
        try:
            answer = _post(opener, collector, body, sleep)
        except ConfigError as error:
            error.message += f" ({sent} spans were sent before)" if sent else ""
            raise
        refused, why = _partial(answer)
        sent, requests, rejected = sent + len(batch), requests + 1, rejected + refused
        said = said or why
    return Sent(sent, requests, rejected, said)


def _batches(spans: Iterable[Json]) -> Iterator[list[str]]:
    batch: list[str] = []
    size = 0
    for span in map(line, spans):
        if batch and (len(batch) == _MOST_SPANS or size + len(span) > _MOST_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(span)
        size += len(span)
    if batch:
        yield batch


class _Stay(urllib.request.HTTPRedirectHandler):
    """Follows no redirect: the headers hold a key, and are for nobody else."""

    def redirect_request(self, *_: Any) -> None:  # noqa: ANN401  urllib's
        return None


def _opener(collector: Collector) -> urllib.request.OpenerDirector:
    handlers: list[urllib.request.BaseHandler] = [_Stay()]
    if collector.certificate:
        try:
            context = ssl.create_default_context(cafile=collector.certificate)
        except OSError as error:
            where = f"OTEL_EXPORTER_OTLP_CERTIFICATE: {plain(collector.certificate)}"
            raise ConfigError(f"{where}: {error.strerror or error}") from error
        handlers.append(urllib.request.HTTPSHandler(context=context))
    return urllib.request.build_opener(*handlers)


def _post(
    opener: urllib.request.OpenerDirector,
    collector: Collector,
    body: bytes,
    sleep: Callable[[float], None],
) -> bytes:
    """The answer to one request. What passes soon is waited for."""
    headers = {"User-Agent": f"ralph/{__version__}", **collector.headers}
    headers["Content-Type"] = "application/json"
    if collector.compressed:
        body = gzip.compress(body, compresslevel=5)
        headers["Content-Encoding"] = "gzip"
    for pause in (*_PAUSES, None):
        request = urllib.request.Request(collector.url, body, headers, method="POST")  # noqa: S310  `_check` has looked at it
        told = None
        try:
            with opener.open(request, timeout=collector.seconds) as answer:
                return _body(answer, collector)
        except urllib.error.HTTPError as error:
            with error:
                trouble = _refusal(collector, error)
                told = _wait(error)
                if error.code not in _PASSING or (told or 0.0) > _PATIENCE:
                    raise trouble from None
        except urllib.error.URLError as error:
            trouble = _unreachable(collector, error.reason)
            if isinstance(error.reason, ssl.SSLError):
                raise trouble from None
        except (OSError, HTTPException) as error:
            trouble = _unreachable(collector, error)
        if pause is None:
            raise trouble
        sleep(pause * random.uniform(0.8, 1.2) if told is None else told)  # noqa: S311  no secret
    raise AssertionError("the last try answers or raises")


def _body(answer: Any, collector: Collector) -> bytes:  # noqa: ANN401  urllib's
    """What a collector answers, as far as it comes in time: one may trickle for hours."""
    until, found = time.monotonic() + collector.seconds, b""
    while len(found) < _LARGEST and time.monotonic() < until:
        piece = answer.read1(_LARGEST)
        if not piece:
            break
        found += piece
    return found


def _wait(error: urllib.error.HTTPError) -> float | None:
    """The seconds that a collector asks to wait."""
    asked = error.headers.get("retry-after")
    until = date(asked)
    return max(0.0, until - time.time()) if until is not None else number(asked)


def _refusal(collector: Collector, error: urllib.error.HTTPError) -> ConfigError:
    try:
        body = _body(error, collector)
    except (OSError, HTTPException):
        body = b""
    told = _object(body).get("message")
    said = plain(told if isinstance(told, str) and told else str(error.reason))
    remedies = {
        401: "Give it your key: export OTEL_EXPORTER_OTLP_HEADERS=name=value",
        403: "Give it your key: export OTEL_EXPORTER_OTLP_HEADERS=name=value",
        404: f"See whether the path is right: {_ENDPOINT} is what stands before /v1/traces,"
        f" {_OF_TRACES} the whole address.",
        415: "It does not take OTLP as JSON: send to a collector, or write a file with -o FILE.",
    }
    remedy = remedies.get(error.code, "Write the trace to a file instead: -o FILE")
    return ConfigError(f"{collector.shown} answers {error.code}: {said}", remedy)


def _unreachable(collector: Collector, reason: object) -> ConfigError:
    words = getattr(reason, "strerror", None) or str(reason) or type(reason).__name__
    if isinstance(reason, TimeoutError):
        words = f"no answer within {duration(collector.seconds)}"
    remedy = f"See whether it runs there, or change {collector.variable}."
    return ConfigError(f"{collector.shown} cannot be reached: {plain(words)}", remedy)


def _partial(answer: bytes) -> tuple[int, str]:
    """How many spans a collector has rejected, and what it says."""
    found = _object(answer).get("partialSuccess")
    if not isinstance(found, dict):
        return 0, ""
    rejected, said = found.get("rejectedSpans"), found.get("errorMessage")
    count = int(number(str(rejected)) or 0)
    return count, plain(said) if isinstance(said, str) else ""


def _object(body: bytes) -> Json:
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
