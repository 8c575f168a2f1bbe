"""A collector of traces on loopback. It answers as `script` says, and then takes everything."""

import gzip
import threading
from collections.abc import Mapping, Sequence
from http.server import BaseHTTPRequestHandler, HTTPServer
from types import TracebackType
from typing import NamedTuple, Self

from kits.export.traces import Request, Span, request


class Answer(NamedTuple):
    status: int = 200
    body: str = "{}"
    headers: Mapping[str, str] = {}


class Post(NamedTuple):
    path: str
    headers: dict[str, str]  # their names in lower case
    found: Request


class FakeCollector:
    """A server in a thread of its own; `posts` are the requests that it could read."""

    def __init__(self, script: Sequence[Answer | None] = ()) -> None:
        """None in a script hangs up without a word."""
        self.posts: list[Post] = []
        self._script = list(script)
        self._server = HTTPServer(("127.0.0.1", 0), self._handler())
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    @property
    def environ(self) -> dict[str, str]:
        return {"OTEL_EXPORTER_OTLP_ENDPOINT": self.url}

    @property
    def spans(self) -> list[Span]:
        return [span for post in self.posts for span in post.found.spans]

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        fake = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if self.headers.get("Content-Encoding") == "gzip":
                    body = gzip.decompress(body)
                headers = {name.lower(): value for name, value in self.headers.items()}
                answer = fake._script.pop(0) if fake._script else Answer()
                if answer is None:
                    self.close_connection = True
                    return
                if answer.status == 200:
                    fake.posts.append(Post(self.path, headers, request(body)))
                self.send_response(answer.status)
                for name, value in answer.headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(answer.body)))
                self.end_headers()
                self.wfile.write(answer.body.encode())

            def log_message(self, *_: object) -> None:
                pass

        return Handler
