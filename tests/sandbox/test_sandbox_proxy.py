"""The proxy of a sandbox's network: whom its list allows, and what it takes a request for."""

import pytest

from ralph.sandbox.namespace.proxy import _asked, allows


@pytest.mark.parametrize(
    ("entry", "allowed", "refused"),
    [
        ("pypi.org", "pypi.org:443 PyPI.org.:80 pypi.org:8080", "a.pypi.org:443 evilpypi.org:443"),
        ("PyPI.org", "pypi.org:443", "org:443 pypi.org.evil.example:443 :443"),
        ("*.npmjs.org", "a.npmjs.org:443 a.b.npmjs.org:80", "npmjs.org:443 evilnpmjs.org:443"),
        ("a.example:8443", "a.example:8443", "a.example:443 a.example:84 b.a.example:8443"),
        ("127.0.0.1:8000", "127.0.0.1:8000", "127.0.0.1:80 127.0.0.10:8000 localhost:8000"),
    ],
)
def test_whom_a_list_allows(entry: str, allowed: str, refused: str) -> None:
    """A list of `host`, `host:port` and `*.domain`."""
    calls = [call.rpartition(":") for call in f"{allowed} {refused}".split()]
    found = [allows(["other.example", entry], host, int(port)) for host, _, port in calls]
    assert found == [True] * len(allowed.split()) + [False] * len(refused.split())
    assert not any(allows([], host, int(port)) for host, _, port in calls)


@pytest.mark.parametrize(
    ("line", "host", "port", "forward"),
    [
        ("CONNECT a.example:443 HTTP/1.1", "a.example", 443, ""),
        ("CONNECT [::1]:443 HTTP/1.1", "::1", 443, ""),
        ("GET http://a.example/x?y HTTP/1.1", "a.example", 80, "GET /x?y HTTP/1.1"),
        ("GET http://a.example:81 HTTP/1.1", "a.example", 81, "GET / HTTP/1.1"),
        ("GET http://good.example@a.example/ HTTP/1.0", "a.example", 80, "GET / HTTP/1.0"),
    ],
)
def test_whom_a_request_calls(line: str, host: str, port: int, forward: str) -> None:
    """By its first line only: a server may have others by other names."""
    fields = "Host: b.example\r\nproxy-authorization: x\r\nConnection: keep-alive\r\nAccept: */*"
    method, *asked, sent = _asked(f"{line}\r\n{fields}".encode())
    assert (method, asked) == (line.split(maxsplit=1)[0], [host, port])
    first, *kept = sent.decode().split("\r\n")
    assert first == forward
    if forward:
        place = host if port == 80 else f"{host}:{port}"
        assert kept == [f"Host: {place}", "Connection: close", "Accept: */*", "", ""]


@pytest.mark.parametrize(
    "head",
    [
        "",
        "GET / HTTP/1.1",
        "GET https://a.example/ HTTP/1.1",
        "GET http://a.example/ b HTTP/1.1",
        "CONNECT a.example HTTP/1.1",
        "CONNECT a.example:x HTTP/1.1",
        "GET http://é.example/ HTTP/1.1",
        "GET http://a.example/\nHost: HTTP/1.1",
        "GET http://a.example/ HTTP/1.1\r\nno colon",
        "GET http://a.example/ HTTP/1.1\r\n: x",
        "GET http://a.example/ HTTP/1.1\r\nHost : b.example",
        "GET http://a.example/ HTTP/1.1\r\nX: a\nHost: b.example",
        "GET http://a.example/ HTTP/1.1\r\nX: a\rHost: b.example",
        "POST http://a.example/ HTTP/1.1\r\nContent-Length: 3\r\nTransfer-Encoding: chunked",
    ],
)
def test_what_two_programs_could_read_in_two_ways_is_no_request(head: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011  it says nothing but that
        _asked(head.encode("latin-1"))
