"""`ralph web` under attack: each request is sent to a real server, byte by byte where no library
would send it (ADR 40)."""

import asyncio
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.types import Receive, Scope, Send

from kits.web_server import Reply, WebServer, soon
from ralph.web.gate import Gate, Keys
from ralph.web.security import HEADERS, RULES, Incoming, Site, is_known, refusal

Pairs = list[tuple[str, str]]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebServer]:
    """One for all requests of this module: none may change anything."""
    state = tmp_path_factory.mktemp("web") / "state"
    run = state / "shop-12345678" / "runs" / "20260101-000000-0000"
    run.mkdir(parents=True)
    (state / "secret.json").write_text("{}")
    served = WebServer(state, "--allow-host", "Box.lan")
    yield served
    assert served.end() == 0


def raw(server: WebServer, path: str, headers: Pairs, method: str = "GET", end: str = "1.1") -> int:
    """The status of a request of exactly these headers."""
    lines = [f"{method} {path} HTTP/{end}", *(f"{name}: {words}" for name, words in headers)]
    answer = server.raw(("\r\n".join([*lines, "Connection: close", "", ""])).encode("latin-1"))
    return int(answer.split(b" ", 2)[1])


def own(server: WebServer) -> tuple[str, str]:
    return "Host", f"127.0.0.1:{server.port}"


HOSTS = [
    ("127.0.0.1", True),
    ("127.0.0.1:1234", True),
    ("localhost", True),
    ("LocalHost:80", True),
    ("[::1]", True),
    ("[::1]:1234", True),
    ("192.168.7.5:1", True),
    ("box.lan", True),
    ("BOX.LAN:8734", True),
    ("evil.example", False),
    ("evil.example:80", False),
    ("localhost.evil.example", False),
    ("127.0.0.1.evil.example", False),
    ("localhost.", False),
    ("box.lan.", False),
    ("127.0.0.1.", False),
    ("127.1", False),
    ("0x7f000001", False),
    ("2130706433", False),
    ("[::1%25lo]", False),
    ("::1", False),
    ("127.0.0.1:port", False),
    ("127.0.0.1:1234567", False),
    ("user@127.0.0.1", False),
    ("127.0.0.1, evil.example", False),
    ("127.0.0.1 evil.example", False),
    ("127.0.0.1/evil", False),
    ("", False),
]


@pytest.mark.parametrize(("host", "allowed"), HOSTS)
def test_only_hosts_that_are_ours_are_answered(server: WebServer, host: str, allowed: bool) -> None:
    """DNS rebinding: another site's name leads to our address, and its page asks us as its own."""
    assert is_known(host, frozenset({"box.lan"})) is allowed
    for path in ("/", "/static/vendor/preact-htm.js", "/api/me", "/api/events", "/nothing"):
        status = raw(server, path, [("Host", host), ("Authorization", f"Bearer {server.token}")])
        assert (status == 403) is not allowed, (path, status)


def test_a_host_must_be_told_once(server: WebServer) -> None:
    two = [own(server), ("Host", "evil.example")]
    assert raw(server, "/", two) in (400, 403)
    assert raw(server, "/", [("Host", "evil.example"), own(server)]) in (400, 403)
    assert raw(server, "/", []) == 400
    assert raw(server, "/", [], end="1.0") == 403
    assert raw(server, "http://evil.example/", [own(server)]) in (400, 404)
    assert raw(server, "//evil.example/", [own(server)]) == 404


ODD_SITES = [
    {"Origin": "http://evil.example"},
    {"Origin": "null"},
    {"Origin": "http://127.0.0.1:1"},  # another server of this machine, which gets our cookie
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"},
    {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"},
]


@pytest.mark.parametrize("headers", ODD_SITES)
def test_other_sites_get_nothing(server: WebServer, headers: dict[str, str]) -> None:
    for path in ("/api/me", "/api/events", "/api/runs/20260101-000000-0000/log"):
        assert server.ask("GET", path, headers={**server.bearer, **headers}).status == 403
    both = {**server.bearer, "X-Ralph-Token": server.token, **headers}
    assert server.ask("POST", "/api/login", headers=both).status == 403
    stop = "/api/runs/20260101-000000-0000/stop"
    assert server.ask("POST", stop, headers=both).status == 403


def test_a_link_to_the_page_may_be_anywhere(server: WebServer) -> None:
    visit = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
    assert server.ask("GET", "/", headers=visit).status == 200
    embedded = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}
    assert server.ask("GET", "/", headers=embedded).status == 403
    script = "/static/vendor/preact-htm.js"
    assert server.ask("GET", script, headers=embedded).status == 403
    own_host = {"Origin": f"http://127.0.0.1:{server.port}", "Sec-Fetch-Site": "same-origin"}
    assert server.ask("GET", "/api/me", headers={**server.bearer, **own_host}).status == 200


def login(server: WebServer) -> tuple[Reply, str]:
    answer = server.ask("POST", "/api/login", headers=server.bearer)
    return answer, answer.headers["set-cookie"].partition(";")[0]


def test_the_cookie_reads_and_never_writes(server: WebServer) -> None:
    answer, cookie = login(server)
    assert answer.status == 204
    words = answer.headers["set-cookie"].lower()
    assert "httponly" in words
    assert "samesite=strict" in words
    assert "domain" not in words
    assert "path=/api;" in words
    assert server.token not in cookie
    read = server.ask("GET", "/api/me", headers={"Cookie": f"other=1; {cookie}"})
    assert read.status == 200
    stop = "/api/runs/20260101-000000-0000/stop"
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    token = server.token
    for path, body, headers in [
        (stop, b"", {"Cookie": cookie}),
        (f"{stop}?token={token}", b"", {"Cookie": cookie}),
        (stop, f"token={token}".encode(), {"Cookie": cookie, **form}),
        (stop, json.dumps({"token": token}).encode(), {"Cookie": cookie}),
        (stop, b"", {"Cookie": f"{cookie}; X-Ralph-Token={token}"}),
        (stop, b"", server.bearer),
    ]:
        assert server.ask("POST", path, body, headers).status == 403, (path, headers)
    written = server.ask("POST", stop, b"", {"X-Ralph-Token": token})
    assert written.status == 409, written  # it may, and the run does not go on


def test_nobody_reads_without_a_login(server: WebServer) -> None:
    _, cookie = login(server)
    name, _, secret = cookie.partition("=")
    run = "/api/runs/20260101-000000-0000"
    paths = ["/api/me", "/api/runs", "/api/events", "/api/spending", run]
    paths += [f"{run}/log", f"{run}/events", f"{run}/report.html", f"{run}/iterations/1"]
    for path in paths:
        for headers in (
            {},
            {"Cookie": f"{name}="},
            {"Cookie": f"{name}={secret[:-1]}"},
            {"Cookie": f"{name}x={secret}"},
            {"Cookie": f"{name}={server.token}"},
        ):
            answer = server.ask("GET", path, headers=headers)
            assert answer.status == 401, (path, headers)
            assert answer.json["remedy"]
        assert server.ask("GET", f"{path}?token={server.token}").status == 401
    assert server.ask("GET", "/", headers={}).status == 200


def test_wrong_tokens_wait_and_are_told_without_being_told(server: WebServer) -> None:
    wrong = "Bearer guess-of-mine"
    for headers in (
        {"Authorization": wrong},
        {"Authorization": f"bearer {server.token}x"},
        {"X-Ralph-Token": server.token[:-1]},
        {**server.bearer, "X-Ralph-Token": "no"},
        {"X-Ralph-Token": "\xff" * 40},
    ):
        assert server.ask("POST", "/api/login", headers=headers).status == 401
    soon(lambda: "A wrong token was shown by 127.0.0.1" in server.errors.read_text())
    errors = server.errors.read_text()
    assert "guess-of-mine" not in errors
    assert server.token not in errors
    assert server.ask("POST", "/api/login", headers=server.bearer).status == 204  # it is never shut


def test_every_answer_wears_its_headers(server: WebServer) -> None:
    answers = {
        "page": server.ask("GET", "/"),
        "script": server.ask("GET", "/static/vendor/preact-htm.js"),
        "data": server.ask("GET", "/api/me", headers=server.bearer),
        "login": server.ask("POST", "/api/login", headers=server.bearer),
        "refusal": server.ask("GET", "/api/me"),
        "host": server.ask("GET", "/api/me", headers={"Host": "evil.example"}),
        "nothing": server.ask("GET", "/nothing"),
        "method": server.ask("DELETE", "/"),
        "options": server.ask("OPTIONS", "/api/me", headers={"Origin": "http://evil.example"}),
    }
    for name, answer in answers.items():
        worn = {header: answer.headers.get(header.lower()) for header in HEADERS}
        if name in ("page", "script"):
            assert worn.pop("Cache-Control") == "no-cache"
            assert worn == {n: w for n, w in HEADERS.items() if n != "Cache-Control"}, name
        else:
            assert worn == dict(HEADERS), name
        assert not [header for header in answer.headers if header.startswith("access-control")]
        assert "server" not in answer.headers
        assert server.token.encode() not in answer.body
    policy = HEADERS["Content-Security-Policy"]
    assert "unsafe" not in policy
    assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'")


@pytest.mark.parametrize(
    "path",
    [
        "/static/../security.py",
        "/static/..%2fsecurity.py",
        "/static/%2e%2e/security.py",
        "/static/..\\security.py",
        "/static//etc/passwd",
        "/static/%2fetc%2fpasswd",
        "/static/vendor/../../security.py",
        "/static/vendor",
        "/static/",
        "/static",
        "/static/vendor/README.md",
        "/static/index.html%00.js",
        "/api/runs/..",
        "/api/runs/../../secret.json",
        "/api/runs/..%2f..%2fsecret.json",
        "/api/runs/%2e%2e/log",
        "/api/runs/./log",
        "/api/runs/%00/log",
        "/api/runs/runs%2f20260101-000000-0000/log",
        "/api/runs/20260101-000000-000/log",
        "/api/runs/20260101-000000-0000-001/log",
        "/api/runs/20260101-000000-0000/iterations/..%2f1",
    ],
)
def test_no_path_leads_elsewhere(server: WebServer, path: str) -> None:
    bearer = ("Authorization", f"Bearer {server.token}")
    assert raw(server, path, [own(server), bearer]) in (400, 404)


def test_requests_are_small_and_of_a_known_kind(server: WebServer) -> None:
    note = "/api/runs/20260101-000000-0000/note"
    token = {"X-Ralph-Token": server.token, "Content-Type": "application/json"}
    assert server.ask("POST", note, b"x" * (256 * 1024 + 1), token).status == 413
    chunked = [
        own(server),
        ("X-Ralph-Token", server.token),
        ("Transfer-Encoding", "chunked"),
        ("Connection", "close"),
    ]
    head = "\r\n".join([f"POST {note} HTTP/1.1", *(f"{n}: {w}" for n, w in chunked), "", ""])
    body = (
        b"40000\r\n" + b"x" * 0x40000 + b"\r\n" + b"40000\r\n" + b"x" * 0x40000 + b"\r\n0\r\n\r\n"
    )
    assert server.raw(head.encode() + body).startswith(b"HTTP/1.1 413")
    for said in (b"[]", b"no", b"\xff\xfe", b'{"text": 1}', b"[" * 100_000, b"null"):
        assert server.ask("POST", note, said, token).status == 400, said[:20]
    form = {**token, "Content-Type": "text/plain"}
    assert server.ask("POST", note, b'{"text": "x"}', form).status == 400
    assert raw(server, "/" + "x" * 20_000, [own(server)]) in (400, 431)
    assert raw(server, "/", [own(server), ("X-Long", "x" * 20_000)]) in (400, 431)
    for method in ("PUT", "DELETE", "PATCH", "TRACE", "CONNECT", "OPTIONS", "BREW"):
        assert raw(server, "/api/me", [own(server)], method=method) == 405, method
    for method, path in [
        ("POST", "/"),
        ("POST", "/api/runs"),
        ("GET", "/api/login"),
        ("GET", note),
    ]:
        headers = {**server.bearer, "X-Ralph-Token": server.token}
        assert server.ask(method, path, headers=headers).status in (404, 405), (method, path)
    for query in ("limit=x", "from=1e9", "limit=%F0%9D%9F%99", "from=99999999999999999999"):
        path = f"/api/runs/20260101-000000-0000/log?{query}"
        assert server.ask("GET", path, headers=server.bearer).status == 400, query


def test_nobody_is_waited_for_who_has_no_token(server: WebServer) -> None:
    """The body that is announced never comes."""
    lines = [
        "POST /api/login HTTP/1.1",
        ": ".join(own(server)),
        "Content-Length: 9",
        "Connection: close",
    ]
    answer = server.raw("\r\n".join([*lines, "", ""]).encode())
    assert answer.startswith(b"HTTP/1.1 401")


def test_a_body_has_one_length(server: WebServer) -> None:
    """Whoever stands before us may have read the other: what follows is not answered."""
    both = [("Content-Length", "5"), ("Transfer-Encoding", "chunked")]
    lines = [own(server), ("Authorization", f"Bearer {server.token}"), *both]
    head = ["POST /api/login HTTP/1.1", *(f"{name}: {words}" for name, words in lines), "", ""]
    answer = server.raw("\r\n".join(head).encode() + b"0\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 400")
    assert b"connection: close" in answer.lower()


def test_head_tells_what_get_would(server: WebServer) -> None:
    for path in ("/", "/api/me", "/api/events"):
        answer = server.ask("HEAD", path, headers=server.bearer)
        assert (answer.status, answer.body) == (200, b""), path


def test_the_token_stands_nowhere_but_in_the_link(server: WebServer, tmp_path: Path) -> None:
    process = Path(f"/proc/{server.process.pid}")
    assert server.token.encode() not in (process / "cmdline").read_bytes()
    assert server.token.encode() not in (process / "environ").read_bytes()
    assert not re.search(server.token, server.errors.read_text())
    state = server.told["url"]
    assert state.count(server.token) == 1
    for place, _, files in os.walk(server.errors.parent):
        for name in files:
            assert server.token.encode() not in Path(place, name).read_bytes(), name


def test_a_server_that_only_shows_refuses_every_control(tmp_path: Path) -> None:
    run = tmp_path / "state" / "shop-12345678" / "runs" / "20260101-000000-0000"
    run.mkdir(parents=True)
    # An agent may look, too.
    server = WebServer(tmp_path / "state", "--read-only", env={"RALPH_RUN": "20260101-000000-0000"})
    assert server.get("/api/me")["read_only"] is True
    for name in ("stop", "pause", "resume", "note", "answer"):
        answer = server.post(f"/api/runs/{run.name}/{name}", {"text": "x", "task": "T"})
        assert (answer.status, answer.json["error"]) == (403, "this server only shows")
    assert server.ask("POST", "/api/login", headers=server.bearer).status == 204
    assert server.end() == 0


def test_each_rule_objects_to_something() -> None:
    """A rule that lets everything pass protects nothing: each is the first to refuse one request
    that passes all others."""
    fine = Incoming("GET", "/api/me", {"host": ("127.0.0.1",)}, reader=True)
    assert refusal(fine, Site()) is None
    odd = {
        "host_is_ours": Incoming("GET", "/", {"host": ("evil.example",)}),
        "head_is_small": Incoming("GET", "/", {"host": ("127.0.0.1",)}, size=20_000),
        "target_is_a_path": Incoming("GET", "*", {"host": ("127.0.0.1",)}, reader=True),
        "body_is_told_once": Incoming(
            "GET",
            "/",
            {"host": ("127.0.0.1",), "content-length": ("1",), "transfer-encoding": ("chunked",)},
        ),
        "method_is_known": Incoming("PUT", "/", {"host": ("127.0.0.1",)}, writer=True),
        "asked_by_this_site": Incoming(
            "GET", "/api/me", {"host": ("127.0.0.1",), "origin": ("null",)}, reader=True
        ),
        "token_is_right": Incoming(
            "GET", "/api/me", {"host": ("127.0.0.1",)}, reader=True, mistaken=True
        ),
        "reader_is_known": Incoming("GET", "/api/me", {"host": ("127.0.0.1",)}),
        "writer_has_token": Incoming("POST", "/api/x", {"host": ("127.0.0.1",)}, reader=True),
    }
    assert {rule.__name__ for rule in RULES} == {*odd}
    write = Incoming("POST", "/api/x", {"host": ("127.0.0.1",)}, reader=True, writer=True)
    assert refusal(write, Site()) is None
    assert refusal(write, Site(read_only=True)) is not None
    for rule in RULES:
        others = [other for other in RULES if other is not rule]
        assert rule(odd[rule.__name__], Site()) is not None
        assert not any(other(odd[rule.__name__], Site()) for other in others), rule


def test_a_bug_of_ours_tells_its_finder_nothing() -> None:
    """An answer says that it is a bug; what happened stands on the terminal alone."""
    told: list[str] = []
    sent: list[Any] = []

    async def broken(scope: Scope, receive: Receive, send: Send) -> None:
        raise RuntimeError("/home/me/precious")

    async def receive() -> Any:  # noqa: ANN401
        raise AssertionError("nobody reads this request")

    async def send(message: Any) -> None:  # noqa: ANN401
        sent.append(message)

    gate = Gate(broken, Site(), Keys("x" * 40, "ralph"), told.append)
    scope = {"type": "http", "method": "GET", "path": "/", "raw_path": b"/", "query_string": b""}
    headers = [(b"host", b"127.0.0.1")]
    asyncio.run(gate({**scope, "headers": headers, "state": {}}, receive, send))
    assert sent[0]["status"] == 500
    assert json.loads(sent[1]["body"])["error"] == "this is a bug in ralph"
    assert told == ["GET '/': RuntimeError: /home/me/precious"]
