"""Speaking HTTP to a forge: whom the token is told, what is waited for, what people are told."""

import http.server
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from kits.forge import FakeForge, client
from ralph.errors import ConfigError, ForgeError
from ralph.forge import http as forge_http
from ralph.forge.http import Secret, Service, address
from ralph.kernel.value import replace

Slept = list[float]


@pytest.fixture(params=["github", "gitlab"])
def forge(workspace: Path, request: pytest.FixtureRequest) -> Iterator[FakeForge]:
    """Each of them, without a repository."""
    with FakeForge(workspace, kind=request.param) as fake:
        yield fake


@pytest.fixture
def github(workspace: Path) -> Iterator[FakeForge]:
    with FakeForge(workspace) as fake:
        yield fake


@pytest.fixture
def slept() -> Slept:
    return []


def project(forge: FakeForge, slept: Slept) -> str:
    return client(forge, slept.append).project().name


def refused(forge: FakeForge, slept: Slept) -> ForgeError:
    with pytest.raises(ForgeError) as error:
        project(forge, slept)
    return error.value


# ------------------------------------------------------------------ what is waited for


@pytest.mark.parametrize(
    ("trouble", "waits"),
    [
        ({"status": 502, "times": 3}, [1, 2, 4]),
        ({"status": 503, "headers": {"Retry-After": "3"}}, [3]),
        ({"times": 2}, [1, 2]),  # the connection is cut
        ({"status": 429, "headers": {"Retry-After": "0"}, "times": 3}, [0, 0, 0]),
        (
            {
                "status": 403,
                "headers": {"Retry-After": "2"},
                "body": {"message": "You have exceeded a secondary rate limit."},
            },
            [2],
        ),
        ({"status": 200, "body": "{broken"}, [1]),
        ({"status": 200, "body": "[" * 100_000}, [1]),
        ({"status": 200, "body": '{"a": 1}', "headers": {"Content-Length": "1000"}}, [1]),
    ],
)
def test_what_passes_is_waited_for(
    forge: FakeForge, slept: Slept, trouble: dict[str, Any], waits: Slept
) -> None:
    forge.trouble("GET", **trouble)
    assert project(forge, slept) == "acme/shop"
    assert slept == waits


@pytest.mark.parametrize(
    ("trouble", "words", "later"),
    [
        ({"status": 502}, "failed at GET .* \\(502\\): trouble", 30),
        ({"status": 503, "headers": {"Retry-After": "90"}}, "failed at GET", 90),
        ({}, "broke off its answer|cannot be reached", 30),
        ({"status": 429, "headers": {"Retry-After": "600"}}, "asks to wait for 10m: trouble", 600),
        (
            {"status": 403, "body": {"message": "You have exceeded a secondary rate limit."}},
            "asks to wait for 1m",
            60,
        ),
        (
            {
                "status": 403,
                "headers": {
                    "x-ratelimit-remaining": "0",
                    "x-ratelimit-reset": "1769861000",
                    "Date": "Sat, 31 Jan 2026 12:00:00 GMT",
                },
            },
            "asks to wait for 3m20s",
            200,
        ),
        ({"status": 200, "body": "<html>"}, "sent what is no JSON", 30),
    ],
)
def test_what_lasts_is_for_the_caller_to_wait_for(
    forge: FakeForge, slept: Slept, trouble: dict[str, Any], words: str, later: float
) -> None:
    """`retry_after` says how long. Never more than ten seconds go by before."""
    forge.trouble("GET", times=9, **trouble)
    error = refused(forge, slept)
    assert sum(slept) <= 10
    assert error.retry_after == later
    assert error.status == trouble.get("status", 0) * (trouble.get("status") != 200)
    assert error.remedy
    with pytest.raises(ForgeError, match=words):
        project(forge, slept)


def test_a_post_is_made_again_only_if_it_was_surely_not_done(
    forge: FakeForge, slept: Slept
) -> None:
    service = client(forge, slept.append).service
    forge.trouble("POST", status=502, done=True)
    with pytest.raises(ForgeError):
        service.ask("POST", "projects/acme%2Fshop/merge_requests", {})
    assert len(forge.asked("POST")) == 1
    forge.trouble("POST", status=429, headers={"Retry-After": "1"}, times=2)
    with pytest.raises(ForgeError) as error:
        service.ask("POST", "nowhere", {})
    assert error.value.status == 404
    assert len(forge.asked("POST")) == 4


# ------------------------------------------------------------------ what people are told


def test_a_wrong_token(forge: FakeForge, slept: Slept) -> None:
    there = client(forge)
    forge.token = "another"
    with pytest.raises(ForgeError) as error:
        there.project()
    name = "GITHUB_TOKEN" if forge.kind == "github" else "GITLAB_TOKEN"
    assert error.value.status == 401
    assert f"does not let in the token from {name}: Bad credentials" in error.value.message
    assert "auth login" in error.value.remedy
    assert slept == []


@pytest.mark.parametrize(
    ("status", "headers", "words", "remedy"),
    [
        (403, {}, "refuses GET", "The token needs the scope "),
        (
            403,
            {"x-accepted-github-permissions": "pull_requests=write"},
            "GET",
            "pull_requests=write",
        ),
        (403, {"X-GitHub-SSO": "required; url=https://a/b"}, "GET", "single sign-on: https://a/b"),
        (404, {}, "finds nothing at /", "that the token from"),
        (422, {}, "\\(422\\): trouble", ""),
    ],
)
def test_a_refusal_says_what_to_type(
    forge: FakeForge,
    slept: Slept,
    status: int,
    headers: Mapping[str, str],
    words: str,
    remedy: str,
) -> None:
    forge.trouble("GET", status=status, headers=headers)
    error = refused(forge, slept)
    assert (error.status, error.retry_after, slept) == (status, None, [])
    assert remedy in error.remedy
    forge.trouble("GET", status=status, headers=headers)
    with pytest.raises(ForgeError, match=words):
        project(forge, slept)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (
            {"message": "No", "errors": [{"message": "a"}, {"field": "b", "code": "c"}]},
            "No: a: b: c",
        ),
        ({"message": {"base": ["is invalid", "is old"]}}, "base is invalid, is old"),
        ({"message": ["Another one exists"]}, "Another one exists"),
        ({"error": "invalid_token", "error_description": "It expired."}, "It expired."),
        ({"error": "scope is missing"}, "scope is missing"),
        ({"message": None, "errors": 7}, "Unprocessable Entity"),
        ([], "Unprocessable Entity"),
        ("<html>", "Unprocessable Entity"),
        ({"message": "\x1b[2J" + "x" * 900}, "x" * 200),
    ],
)
def test_the_words_of_an_error(forge: FakeForge, slept: Slept, body: object, words: str) -> None:
    forge.trouble("GET", status=422, body=body)
    message = refused(forge, slept).message
    assert words in message
    assert "\x1b" not in message
    assert len(message) < 500


# ------------------------------------------------------------------ redirects


class Elsewhere:
    """Another server, which sees who is sent to it."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, Mapping[str, str]]] = []
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.seen.append((self.path, dict(self.headers)))
                self.send_response(200)
                self.end_headers()
                self.wfile.write(b'{"full_name": "else/where"}')

            do_PUT = do_POST = do_GET  # noqa: N815

            def log_message(self, *_: object) -> None:
                pass

        self.server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()


@pytest.fixture
def elsewhere() -> Iterator[Elsewhere]:
    there = Elsewhere()
    yield there
    there.server.shutdown()
    there.server.server_close()


@pytest.mark.parametrize("code", [301, 302, 307, 308])
def test_the_token_goes_to_no_other_host(
    github: FakeForge, slept: Slept, elsewhere: Elsewhere, code: int
) -> None:
    """Another port is another host."""
    github.trouble("GET", status=code, headers={"Location": f"{elsewhere.url}/x"})
    assert project(github, slept) == "else/where"
    ((path, headers),) = elsewhere.seen
    assert path == "/x"
    assert "authorization" not in {name.lower() for name in headers}
    assert github.token not in str(headers)


def test_on_the_same_host_the_token_goes_along(github: FakeForge, slept: Slept) -> None:
    """A repository that was renamed."""
    github.trouble("GET", status=301, headers={"Location": "/repos/acme/shop"})
    assert project(github, slept) == "acme/shop"
    assert all(sent.authorized for sent in github.requests)


def test_what_is_to_be_written_goes_nowhere_else(
    github: FakeForge, slept: Slept, elsewhere: Elsewhere
) -> None:
    service = client(github, slept.append).service
    for code in (301, 302, 303, 307, 308):
        github.trouble("PUT", status=code, headers={"Location": f"{elsewhere.url}/x"})
        with pytest.raises(ForgeError, match="has moved to") as error:
            service.ask("PUT", "x", {"secret": 1})
        assert "git remote set-url" in error.value.remedy
    assert elsewhere.seen == []


@pytest.mark.parametrize("place", ["ftp://127.0.0.1/x", "http://a@127.0.0.1/x", "http://é/x", ""])
def test_a_redirect_to_no_place(github: FakeForge, slept: Slept, place: str) -> None:
    github.trouble(
        "GET", status=302, times=9, headers={"Location": place.encode().decode("latin1")}
    )
    assert refused(github, slept).status in (302, 0)


def test_redirects_without_an_end(github: FakeForge, slept: Slept) -> None:
    github.trouble("GET", status=302, times=99, headers={"Location": "/repos/acme/shop"})
    assert "without an end" in refused(github, slept).message
    assert len(github.requests) == 5


def test_from_a_forge_far_away_nothing_leads_to_this_machine() -> None:
    service = Service("GitHub", "https://api.github.test", {})
    error: Any = type("Error", (), {"code": 302, "headers": {"location": "http://127.0.0.1/x"}})
    with pytest.raises(ForgeError, match="has moved to"):
        service._target("GET", "https://api.github.test/x", error)


def test_a_next_page_is_on_the_same_host(
    github: FakeForge, slept: Slept, elsewhere: Elsewhere
) -> None:
    link = f'<{elsewhere.url}/x>; rel="next"'
    github.trouble("issues", status=200, body=[], headers={"Link": link})
    with pytest.raises(ForgeError, match="names a next page elsewhere"):
        client(github, slept.append).issues("acme/shop", ())
    assert elsewhere.seen == []


def test_what_is_kept_is_bounded(
    github: FakeForge, slept: Slept, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forge_http, "_MOST_KNOWN", 3)
    service = client(github, slept.append).service
    for number in range(9):
        service.get(f"repos/acme/shop?page={number}")
        assert 0 < len(service.known) <= 3
    monkeypatch.setattr(forge_http, "_LARGEST_KNOWN", 1)
    service.get("repos/acme/shop?page=99")
    assert not any("page=99" in url for url in service.known)


# ------------------------------------------------------------------ bounds


@pytest.mark.parametrize(
    ("name", "held", "words"),
    [
        ("_LARGEST", 10, "sent more than"),
        ("_LONGEST", 0.0, "needs more than"),
        ("_SILENCE", 0.2, "broke off|reached"),
    ],
)
def test_an_answer_is_bounded(
    github: FakeForge,
    slept: Slept,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    held: float,
    words: str,
) -> None:
    monkeypatch.setattr(forge_http, name, held)
    if name == "_SILENCE":
        github.trouble("GET", times=9, delay=0.6)
    with pytest.raises(ForgeError, match=words):
        project(github, slept)


def test_pages_have_an_end(
    github: FakeForge, slept: Slept, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forge_http, "_MOST_PAGES", 3)
    link = {"Link": f'<{github.url}/repos/acme/shop/issues?page=2>; rel="next"'}
    github.trouble("issues", status=200, body=[], headers=link, times=99)
    with pytest.raises(ForgeError, match="more than 3 pages"):
        client(github, slept.append).issues("acme/shop", ())


def test_nobody_is_there(github: FakeForge, slept: Slept) -> None:
    there = client(github, slept.append)
    gone = replace(there, service=replace(there.service, url="http://127.0.0.1:9"))
    with pytest.raises(ForgeError, match=r"cannot be reached: .*refused") as error:
        gone.project()
    assert (error.value.status, error.value.retry_after) == (0, 30)
    assert slept == [1, 2, 4]


def test_a_proxy_is_not_asked_for_what_is_here(
    github: FakeForge, slept: Slept, elsewhere: Elsewhere, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", elsewhere.url)
    assert project(github, slept) == "acme/shop"
    assert elsewhere.seen == []


# ------------------------------------------------------------------ addresses


@pytest.mark.parametrize(
    ("given", "made"),
    [
        ("https://api.github.com", "https://api.github.com"),
        ("https://git.corp.test:8443/api/v3/", "https://git.corp.test:8443/api/v3"),
        ("http://127.0.0.1:8000", "http://127.0.0.1:8000"),
        ("http://[::1]:8000/api/v4", "http://[::1]:8000/api/v4"),
        ("http://localhost/", "http://localhost"),
        ("https://gitlab.test/api/v4?x=1#y", "https://gitlab.test/api/v4"),
    ],
)
def test_an_address_of_an_api(given: str, made: str) -> None:
    assert address(given, "CI_API_V4_URL") == made


@pytest.mark.parametrize(
    "given",
    [
        *("http://gitlab.test", "ftp://127.0.0.1", "gitlab.test/api", "https://", "https://u:p@h"),
        *(
            "https://é.test",
            "https://h:x/",
            "https://h:0",
            "https://h /",
            "file:///etc",
            "https://[::",
        ),
    ],
)
def test_no_address_of_an_api(given: str) -> None:
    with pytest.raises(ConfigError, match="CI_API_V4_URL is no address") as error:
        address(given, "CI_API_V4_URL")
    assert "https://" in error.value.remedy


def test_a_token_does_not_show_itself(github: FakeForge) -> None:
    service = client(github).service
    assert service.authorization == f"Bearer {github.token}"
    assert github.token not in repr(service)
    assert isinstance(service.authorization, Secret)
