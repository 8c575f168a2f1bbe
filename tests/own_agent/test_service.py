"""Asking a service over HTTP: what passes is waited for, the rest is told (ADR 11)."""

import http.server
import threading
import time
from collections.abc import Iterator
from email.message import Message
from typing import ClassVar

import pytest

from kits.talks import talk
from ralph.agents.providers import PROVIDERS, default_model, model_of
from ralph.errors import ConfigError
from ralph.kernel.value import replace
from ralph.own_agent.service import Retry, Service, refusal, service_of
from ralph.own_agent.talk import Json, Trouble
from ralph.testing.scripted_model.server import ScriptedModel

MODELS = ("anthropic:m", "openai:m", "openai-chat:m", "google:m")


def service(model: str, url: str, retries: int = 3) -> Service:
    chosen = model_of(model)
    environ = {chosen.provider.url_variable: url, chosen.provider.keys[0]: "k"}
    return replace(service_of(chosen, environ, retries=retries), sleep=lambda _: None)


def ask(model: str, *turns: Json, retries: int = 3) -> tuple[str, list[Retry]]:
    """The text of the answer, and the retries before it."""
    heard: list[Retry] = []
    with ScriptedModel(list(turns)) as scripted:
        reply = service(model, scripted.url, retries).ask(talk(tools=TOOLS), heard.append)
    return reply.text, heard


from ralph.own_agent.actions import TOOLS  # noqa: E402


@pytest.fixture(params=MODELS)
def model(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_an_answer_comes_at_once(model: str) -> None:
    assert ask(model, {"text": "ok"}) == ("ok", [])


@pytest.mark.parametrize(
    "turn",
    [
        {"error": {"status": 529, "message": "busy"}},
        {"error": {"status": 500, "message": "oh"}},
        {"error": {"status": 429, "message": "slow", "headers": {"retry-after": "2"}}},
        {"text": "half", "cut": True},
        {"text": "half", "stream_error": {"type": "server_error", "message": "oh"}},
    ],
)
def test_what_passes_is_tried_again(model: str, turn: Json) -> None:
    """The same request is made again; nothing of a broken answer counts."""
    text, retries = ask(model, turn, {"text": "ok"})
    assert text == "ok"
    assert [(retry.attempt, retry.of) for retry in retries] == [(1, 3)]
    stated = "headers" in turn.get("error", {})
    assert retries[0].seconds == (2 if stated else 1)


def test_what_does_not_pass_is_told_at_the_end(model: str) -> None:
    with pytest.raises(Trouble, match="busy") as trouble:
        ask(model, {"error": {"status": 529, "message": "busy"}}, retries=2)
    assert trouble.value.status == 529


@pytest.mark.parametrize(("status", "passes"), [(401, False), (403, False), (400, False)])
def test_what_waiting_does_not_help_is_told_at_once(model: str, status: int, passes: bool) -> None:
    with pytest.raises(Trouble, match="no way") as trouble:
        ask(model, {"error": {"status": status, "message": "no way"}}, {"text": "ok"})
    assert (trouble.value.status, trouble.value.passes) == (status, passes)


def test_a_long_wait_is_left_to_ralph(model: str) -> None:
    """A run that waits costs nothing and can be seen; a turn that waits looks dead."""
    limited = {"status": 429, "message": "used up", "headers": {"retry-after": "3600"}}
    with pytest.raises(Trouble) as trouble:
        ask(model, {"error": limited}, {"text": "ok"})
    assert (trouble.value.status, trouble.value.retry_after) == (429, 3600)


def headers(**fields: str) -> Message:
    message = Message()
    for name, text in fields.items():
        message[name.replace("_", "-")] = text
    return message


SOON = time.time() + 1000
ISO = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(SOON))
HTTP = time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime(SOON))


@pytest.mark.parametrize(
    ("told", "body", "seconds"),
    [
        (headers(retry_after="7"), b"", 7),
        (headers(retry_after_ms="1500"), b"", 1.5),
        (headers(retry_after=HTTP), b"", 1000),
        (headers(anthropic_ratelimit_unified_reset=str(SOON)), b"", 1000),
        (
            headers(anthropic_ratelimit_tokens_remaining="0", anthropic_ratelimit_tokens_reset=ISO),
            b"",
            1000,
        ),
        (headers(), b'[{"error": {"details": [{"retryDelay": "34s"}]}}]', 34),
        (headers(), b'{"error": {"message": "Please try again in 1m20s."}}', 80),
        (headers(retry_after="soon"), b"<html>", None),
        (headers(retry_after="nan"), b"", None),
    ],
)
def test_the_wait_is_the_one_that_the_service_states(
    told: Message, body: bytes, seconds: float | None
) -> None:
    trouble = refusal(429, told, body)
    if seconds is None:
        assert trouble.retry_after is None
    else:
        assert trouble.retry_after is not None
        if trouble.resets_at is None:
            assert trouble.retry_after == seconds
        else:
            assert abs(trouble.resets_at - SOON) < 2
            assert 0 < trouble.retry_after <= seconds


@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        (b'{"error": {"code": "insufficient_quota", "message": "pay"}}', 403, "pay"),
        (b'{"error": "model not found"}', 429, "model not found"),
        (b'{"message": "odd"}', 429, "odd"),
        (b"", 429, "HTTP status 429"),
        (b"<html>\xff", 429, "<html>"),
    ],
)
def test_an_error_is_told_in_its_own_words(body: bytes, status: int, said: str) -> None:
    trouble = refusal(429, headers(), body)
    assert trouble.status == status
    assert said in trouble.message


def test_nobody_at_the_address_is_named(model: str) -> None:
    with ScriptedModel([]) as scripted:
        url = scripted.url
    with pytest.raises(Trouble, match="cannot be reached") as trouble:
        service(model, url, retries=1).ask(talk(), lambda _: None)
    assert url in trouble.value.message


class Elsewhere(http.server.BaseHTTPRequestHandler):
    """Sends everybody on, and notes who comes."""

    seen: ClassVar[list[str]] = []
    target = ""

    def do_POST(self) -> None:
        self.seen.append(self.path)
        self.send_response(307)
        self.send_header("Location", f"{self.target}/stolen")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def elsewhere() -> Iterator[str]:
    Elsewhere.seen.clear()
    with http.server.HTTPServer(("127.0.0.1", 0), Elsewhere) as server:
        Elsewhere.target = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        yield Elsewhere.target
        server.shutdown()
        thread.join()


def test_no_redirect_is_followed_with_the_key(model: str, elsewhere: str) -> None:
    with pytest.raises(Trouble) as trouble:
        service(model, elsewhere).ask(talk(), lambda _: None)
    assert trouble.value.status == 307
    assert len(Elsewhere.seen) == 1


@pytest.mark.parametrize(
    ("model", "base", "path"),
    [
        ("anthropic:m", "", "/v1/messages"),
        ("anthropic:m", "/v1/", "/v1/messages"),
        ("openai:m", "/v1", "/v1/responses"),
        ("openai-chat:m", "/api/v1", "/api/v1/chat/completions"),
        ("google:m", "", "/v1beta/models/m:streamGenerateContent?alt=sse"),
        ("google:m", "/v1beta", "/v1beta/models/m:streamGenerateContent?alt=sse"),
    ],
)
def test_a_base_url_may_have_its_version(model: str, base: str, path: str) -> None:
    with ScriptedModel([{"text": "ok"}]) as scripted:
        service(model, scripted.url + base).ask(talk(tools=TOOLS), lambda _: None)
        assert [call["path"] for call in scripted.main_calls()] == [path]


def test_a_proxy_of_the_environment_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """So a sandbox lets it out to its service alone (ADR 26)."""
    with ScriptedModel([{"text": "by proxy"}]) as scripted:
        monkeypatch.setenv("http_proxy", scripted.url)
        far = service("openai-chat:m", "http://model.invalid/v1")
        assert far.ask(talk(tools=TOOLS), lambda _: None).text == "by proxy"


@pytest.mark.parametrize(
    "text", ["", "claude", "anthropic:", "nobody:m", "openai:a b", "google:\n", "google:g\u00e9m"]
)
def test_a_model_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(ConfigError) as error:
        model_of(text)
    assert "anthropic:NAME" in error.value.remedy


def test_a_key_is_needed_only_where_the_service_is() -> None:
    with pytest.raises(ConfigError, match="ANTHROPIC_API_KEY"):
        service_of(model_of("anthropic:m"), {})
    with pytest.raises(ConfigError, match="OPENAI_API_KEY is not set"):
        service_of(model_of("openai:m"), {"ANTHROPIC_API_KEY": "k"})
    local = service_of(model_of("openai-chat:m"), {"OPENAI_BASE_URL": "http://127.0.0.1:1/v1"})
    assert local.key == ("", "")
    with pytest.raises(ConfigError, match="no URL"):
        service_of(model_of("openai:m"), {"OPENAI_BASE_URL": "file:///etc/passwd"})


def test_the_usual_model_is_that_of_the_key() -> None:
    assert default_model({}) is None
    assert str(default_model({"GEMINI_API_KEY": "k"})).startswith("google:")
    both = {"OPENAI_API_KEY": "k", "ANTHROPIC_API_KEY": "k"}
    assert str(default_model(both)).startswith("anthropic:")
    assert all(model_of(f"{p.name}:{p.default_model or 'm'}") for p in PROVIDERS.values())
