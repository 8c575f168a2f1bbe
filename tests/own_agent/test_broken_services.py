"""A service that is broken, or that means us harm: the turn ends with words, and in bounds."""

import socket
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from email.message import Message

import pytest

from kits.talks import talk
from ralph.agents.providers import model_of
from ralph.errors import ConfigError
from ralph.kernel.value import replace
from ralph.own_agent import service, sse
from ralph.own_agent.service import Retry, refusal, service_of
from ralph.own_agent.talk import Reply, Trouble

OK = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n"
SAID = b'data: {"choices": [{"delta": {"content": "ok"}}]}\n\n'
END = b'data: {"choices": [{"finish_reason": "stop"}]}\n\n'
DONE = b"data: [DONE]\n\n"


@contextmanager
def answering(*answers: Iterable[bytes], holds: bool = False) -> Iterator[str]:
    """A server that sends these, one a connection, and the last one again and again; one that
    holds does not close what it has answered."""
    given, held = list(answers), []

    def serve(listener: socket.socket) -> None:
        with suppress(OSError):
            while True:
                connection, _ = listener.accept()
                held.append(connection)
                with suppress(OSError):
                    while b"\r\n\r\n" not in connection.recv(65536):
                        pass
                    for chunk in given.pop(0) if len(given) > 1 else given[0]:
                        connection.sendall(chunk)
                    if not holds:
                        connection.shutdown(socket.SHUT_WR)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, args=(listener,), daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()
            for connection in held:
                connection.close()


def ask(url: str, retries: int = 1) -> tuple[Reply, list[Retry]]:
    heard: list[Retry] = []
    environ = {"OPENAI_BASE_URL": url}
    chosen = service_of(model_of("openai-chat:m"), environ, retries=retries)
    return replace(chosen, sleep=lambda _: None).ask(talk(), heard.append), heard


@pytest.mark.parametrize(
    "answer",
    [
        [OK, SAID, END, DONE],
        [OK, (SAID + END + DONE).replace(b"\n", b"\r\n")],
        [OK, b"\xef\xbb\xbf", SAID, END],
        [OK, b": OPENROUTER PROCESSING\n\n", SAID, b": still\n\n", END],
        [OK, b"event: x\nid: 1\nretry: 5\n", SAID, END.rstrip(b"\n")],
        [OK, b"data: \n\ndata: [1]\n\ndata: {\n\n", SAID, END],
        [OK, SAID.replace(b", ", b",\ndata:").replace(b'[{"d', b'[\ndata: {"d'), END],
        [OK, *(bytes((byte,)) for byte in SAID + END)],
        [OK, SAID, DONE],
        [OK.replace(b"event-stream", b"plain"), SAID, END],
        [OK, b"data:" + b"[" * 200_000 + b"\n\n", SAID, END],
        [OK, b'data: {"choices": ' + b"[" * 300 + b"]" * 300 + b"}\n\n", SAID, END],
    ],
)
def test_a_stream_is_understood_as_it_comes(answer: list[bytes]) -> None:
    with answering(answer) as url:
        reply, retries = ask(url)
    assert (reply.text, retries) == ("ok", [])


def test_what_has_ended_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "_SILENCE", 1.0)
    with answering([OK, SAID, DONE], holds=True) as url:
        assert ask(url)[0].text == "ok"


@pytest.mark.parametrize(
    "broken",
    [
        [],
        [b"nonsense\r\n\r\n"],
        [OK],
        [OK, SAID],
        [OK, b": OPENROUTER PROCESSING\n\n"],
        [OK.replace(b"\r\n\r\n", b"\r\ntransfer-encoding: chunked\r\n\r\n"), b"40\r\n", SAID[:9]],
        [OK.replace(b"\r\n\r\n", b"\r\ncontent-length: 999\r\n\r\n"), SAID],
        [b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 200 + b"\r\n"],
        [b"HTTP/1.1 200 OK\r\nx: " + b"y" * 100_000 + b"\r\n\r\n"],
        [b"HTTP/1.1 500 Oh\r\ncontent-length: 999\r\n\r\n{"],
        [OK, b'{"error": {"message": "slow", "code": 429}}'],
    ],
)
def test_what_broke_off_is_taken_again(broken: list[bytes]) -> None:
    with answering(broken, [OK, SAID, END]) as url:
        reply, retries = ask(url)
    assert (reply.text, len(retries)) == ("ok", 1)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ([OK, b"<!doctype html>\n<title>Sign in</title>"], "no stream of events: <!doctype html>"),
        ([OK, b'{"error": {"message": "no such model"}}'], "no such model"),
        ([OK, b"\x1f\x8b\x08\x00"], "no stream of events"),
    ],
)
def test_what_is_no_stream_is_told_and_not_asked_for_again(answer: list[bytes], words: str) -> None:
    with answering(answer) as url, pytest.raises(Trouble, match=words) as trouble:
        ask(url)
    assert not trouble.value.passes


@pytest.mark.parametrize("chunk", [SAID, b"x" * 70_000, b"\n", b"data: x\n"])
def test_an_answer_without_an_end_is_ended(monkeypatch: pytest.MonkeyPatch, chunk: bytes) -> None:
    monkeypatch.setattr(sse, "_LARGEST", 1 << 20)
    monkeypatch.setattr(sse, "_LONGEST_LINE", 1 << 18)

    much = [chunk * (65_536 // len(chunk) + 1) for _ in range(64)]
    with answering([OK, *much]) as url, pytest.raises(Trouble, match="does not end") as trouble:
        ask(url)
    assert not trouble.value.passes


def test_a_trickle_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sse, "_LONGEST", -1.0)
    with answering([OK, SAID]) as url, pytest.raises(Trouble, match="does not end"):
        ask(url)


def test_a_redirect_says_where_to() -> None:
    moved = b"HTTP/1.1 301 Moved\r\nlocation: https://other.example/v1\r\ncontent-length: 0\r\n\r\n"
    with answering([moved]) as url, pytest.raises(Trouble, match=r"https://other\.example/v1"):
        ask(url)


@pytest.mark.parametrize("after", ["-5", "0", "Thu, 01 Jan 1970 00:00:00 GMT", "nan"])
def test_a_wait_of_nothing_is_none(after: str) -> None:
    """The service would be asked again at once, and again."""
    slow = f"HTTP/1.1 429 No\r\nretry-after: {after}\r\ncontent-length: 0\r\n\r\n".encode()
    with answering([slow], [slow], [OK, SAID, END]) as url:
        assert [retry.seconds for retry in ask(url, retries=2)[1]] == [1, 2]


def test_a_wait_of_years_ends_the_turn() -> None:
    told = Message()
    told["retry-after"] = "1e9"
    assert refusal(429, told, b"").retry_after == 1e9


@pytest.mark.parametrize(
    "url",
    [
        *("http://", "http://[::1", "http://h:port", "http://h:0", "http://a b/", "http://a..b/"),
        *("ftp://h/", "h:8000", "http://h/\r\nx", "http://me:s3cret@h/", "http://h/\u00fc"),
    ],
)
def test_a_url_that_is_none_is_refused_at_once(url: str) -> None:
    with pytest.raises(ConfigError, match="OPENAI_BASE_URL") as error:
        service_of(model_of("openai:m"), {"OPENAI_BASE_URL": url})
    assert "s3cret" not in str(error.value)


def test_a_key_comes_from_a_file_or_is_none() -> None:
    assert service_of(model_of("openai:m"), {"OPENAI_API_KEY": " k\n"}).key[1] == "k"
    for key in ("a\nb", "schlüssel", "a\x1bb"):
        with pytest.raises(ConfigError, match="OPENAI_API_KEY") as error:
            service_of(model_of("openai:m"), {"OPENAI_API_KEY": key})
        assert key not in str(error.value)
