"""Traces sent to a collector: where to, with what, and what becomes of trouble."""

import json
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from email.utils import formatdate
from pathlib import Path

import pytest

from kits.export.collector import Answer, FakeCollector
from kits.export.traces import request
from ralph.errors import ConfigError
from ralph.export.lines import Json
from ralph.export.sending import Collector, Sent, collector_of, send, write_trace
from ralph.export.spans import Span

BASE, TRACES = "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
HEADERS = "OTEL_EXPORTER_OTLP_HEADERS"


def spans(count: int, size: int = 0) -> Iterator[Json]:
    for number in range(count):
        span = Span("0" * 31 + "1", f"{number}", f"span {number}", 1.0 + number)
        span.attributes["text"] = "x" * size
        yield span.ended(2.0 + number)


def sent_to(
    collector: FakeCollector, count: int = 3, slept: list[float] | None = None, headers: str = ""
) -> Sent:
    found = collector_of({**collector.environ, HEADERS: headers})
    assert found is not None
    sleep = (lambda _: None) if slept is None else slept.append
    return send(spans(count), found, {}, sleep=sleep)


@pytest.mark.parametrize(
    ("environ", "url"),
    [
        ({BASE: "http://h:4318"}, "http://h:4318/v1/traces"),
        ({BASE: "https://h/otlp/"}, "https://h/otlp/v1/traces"),
        ({TRACES: "https://h/mine", BASE: "http://other"}, "https://h/mine"),
        ({TRACES: " ", BASE: "http://h"}, "http://h/v1/traces"),
    ],
)
def test_the_address_of_traces(environ: dict[str, str], url: str) -> None:
    found = collector_of(environ)
    assert found is not None
    assert found.url == url


def test_without_an_address_nothing_is_sent() -> None:
    assert collector_of({}) is None


def test_settings_for_traces_go_before_those_for_all() -> None:
    environ = {
        BASE: "http://h",
        HEADERS: "a=1",
        "OTEL_EXPORTER_OTLP_TRACES_HEADERS": "api-key=x%20y, team=me",
        "OTEL_EXPORTER_OTLP_TIMEOUT": "2500",
        "OTEL_EXPORTER_OTLP_COMPRESSION": "gzip",
    }
    headers = {"api-key": "x y", "team": "me"}
    expected = Collector("http://h/v1/traces", headers, seconds=2.5, compressed=True)
    assert collector_of(environ) == expected


@pytest.mark.parametrize(
    ("text", "seconds"), [("soon", 10), ("-1", 10), ("0", 10), ("1e300", 3600)]
)
def test_a_time_that_makes_no_sense(text: str, seconds: float) -> None:
    found = collector_of({BASE: "http://h", "OTEL_EXPORTER_OTLP_TIMEOUT": text})
    assert found == Collector("http://h/v1/traces", {}, seconds=seconds)


@pytest.mark.parametrize(
    ("environ", "words"),
    [
        ({BASE: "localhost:4318"}, "no http or https address"),
        ({BASE: "http://"}, "no http or https address"),
        ({BASE: "http://[::1"}, "no http or https address"),
        ({TRACES: "ftp://h"}, "no http or https address"),
        ({BASE: "http://me:secret@h"}, "user name"),
        ({BASE: "http://h:4317"}, "speaks gRPC"),
        ({BASE: "http://h", HEADERS: "no header"}, "cannot be understood"),
        ({BASE: "http://h", HEADERS: "a=b%0d%0aX: y"}, "cannot be understood"),
        ({BASE: "http://h", HEADERS: "authorization: Basic abc="}, "cannot be understood"),
        ({BASE: "http://h", HEADERS: "a=%E2%82%AC"}, "cannot be understood"),
    ],
)
def test_settings_that_make_no_sense(environ: dict[str, str], words: str) -> None:
    with pytest.raises(ConfigError, match=words) as error:
        collector_of(environ)
    assert "OTEL_EXPORTER_OTLP_" in error.value.words
    assert "secret" not in error.value.words


def test_a_trace_arrives_with_its_headers() -> None:
    with FakeCollector() as collector:
        assert sent_to(collector, headers="api-key=abc") == Sent(3, 1)
    post = collector.posts[0]
    assert post.path == "/v1/traces"
    assert post.headers["api-key"] == "abc"
    assert post.headers["content-type"] == "application/json"
    assert [span.name for span in collector.spans] == ["span 0", "span 1", "span 2"]


def test_it_is_compressed_where_that_is_asked_for() -> None:
    with FakeCollector() as collector:
        found = collector_of({**collector.environ, "OTEL_EXPORTER_OTLP_COMPRESSION": "gzip"})
        assert found is not None
        send(spans(3), found, {})
    assert collector.posts[0].headers["content-encoding"] == "gzip"
    assert len(collector.spans) == 3


def test_a_large_trace_goes_in_several_requests() -> None:
    with FakeCollector() as collector:
        assert sent_to(collector, 1100) == Sent(1100, 3)
        found = collector_of(collector.environ)
        assert found is not None
        assert send(spans(5, 3 << 20), found, {}) == Sent(5, 5)
        assert send(spans(0), found, {}) == Sent()
    assert len(collector.spans) == 1105


def test_what_passes_is_waited_for() -> None:
    """As long as the collector asks, or longer each time; never the same moment for everybody."""
    later = {"Retry-After": formatdate(time.time() + 30, usegmt=True)}
    script = [Answer(429, headers={"Retry-After": "7"}), Answer(503, headers=later), None]
    slept: list[float] = []
    with FakeCollector(script) as collector:
        assert sent_to(collector, slept=slept) == Sent(3, 1)
    assert slept[0] == 7
    assert 20 < slept[1] <= 30
    assert 3 < slept[2] < 5


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ([Answer(400, '{"message": "bad span"}')], "answers 400: bad span"),
        ([Answer(401)], "OTEL_EXPORTER_OTLP_HEADERS"),
        ([Answer(404, "no")], "See whether the path is right"),
        ([Answer(415)], "-o FILE"),
        ([Answer(302, headers={"Location": "http://127.0.0.1:1/x"})], "answers 302"),
        ([Answer(429, headers={"Retry-After": "3600"})], "answers 429"),
        ([Answer(503)] * 4, "answers 503"),
        ([None] * 4, "cannot be reached"),
    ],
)
def test_trouble_that_stays_says_where_and_what_to_do(
    script: Sequence[Answer | None], words: str
) -> None:
    with FakeCollector(script) as collector, pytest.raises(ConfigError) as error:
        sent_to(collector)
    assert words in error.value.words
    assert f"{collector.url}/v1/traces" in error.value.words
    assert collector.posts == []


def test_nobody_is_there() -> None:
    with FakeCollector() as collector:
        pass
    with pytest.raises(ConfigError, match="cannot be reached: Connection refused") as error:
        sent_to(collector)
    assert BASE in error.value.remedy


def test_somebody_is_there_and_says_nothing() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        found = Collector(url, {}, seconds=0.01)
        with pytest.raises(ConfigError, match="no answer within"):
            send(spans(1), found, {}, sleep=lambda _: None)


def test_an_answer_that_trickles_is_not_read_to_its_end() -> None:
    left = threading.Event()

    def trickle(server: socket.socket) -> None:
        client, _ = server.accept()
        with client:
            client.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
            for _ in range(500):
                try:
                    client.sendall(b" ")
                except OSError:
                    left.set()
                    return
                time.sleep(0.01)

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=trickle, args=(server,))
        thread.start()
        found = Collector(f"http://127.0.0.1:{server.getsockname()[1]}", {}, seconds=0.2)
        assert send(spans(1), found, {}) == Sent(1, 1)
        thread.join()
    assert left.is_set()


def test_what_was_sent_before_is_told() -> None:
    with FakeCollector([Answer(), Answer(400)]) as collector, pytest.raises(ConfigError) as error:
        sent_to(collector, 600)
    assert "(512 spans were sent before)" in error.value.words


def test_what_a_collector_rejects_is_told_and_not_sent_again() -> None:
    answer = {"partialSuccess": {"rejectedSpans": "2", "errorMessage": "too\x1b[31m old"}}
    with FakeCollector([Answer(body=json.dumps(answer)), Answer(body="[1]")]) as collector:
        assert sent_to(collector) == Sent(3, 1, 2, "too old")
        assert sent_to(collector) == Sent(3, 1)
    assert len(collector.posts) == 2


def test_a_certificate_that_is_not_there() -> None:
    found = Collector("https://127.0.0.1:1/", {}, certificate="/nowhere.pem")
    with pytest.raises(ConfigError, match="OTEL_EXPORTER_OTLP_CERTIFICATE"):
        send(spans(1), found, {})


def test_a_file_is_a_request_on_one_line(tmp_path: Path) -> None:
    told: list[str] = []
    environ = {
        "OTEL_SERVICE_NAME": "nightly",
        "OTEL_RESOURCE_ATTRIBUTES": "team=a%20b,service.name=no,nonsense",
    }
    write_trace(spans(2), environ, told.append)
    text = "".join(told)
    assert text.count("\n") == 1
    resource = request(text).resourceSpans[0].resource.told
    assert (resource["service.name"], resource["team"]) == ("nightly", "a b")


def test_of_very_many_events_the_first_are_kept() -> None:
    span = Span("1" * 32, "k", "n", 1.0)
    for number in range(200):
        span.event("e", number + 1.0, {"number": number, "known": True, "half": 0.5, "none": None})
    found = span.ended(0.0)
    assert (len(found["events"]), found["droppedEventsCount"]) == (128, 72)
    assert found["endTimeUnixNano"] == found["startTimeUnixNano"]
