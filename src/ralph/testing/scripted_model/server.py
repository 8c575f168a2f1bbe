"""A scripted stand-in for a language model, on loopback.

Real coding-agent CLIs (claude, codex, opencode, gemini …) can be pointed at this server; it
answers each model call with the next entry of a script. Standard library only.

Wire protocols
    Anthropic Messages   POST /v1/messages                 (stream or not)
                         POST /v1/messages/count_tokens
    OpenAI Responses     POST /v1/responses                (stream or not)
    OpenAI Chat          POST /v1/chat/completions         (stream or not)
    Gemini               POST /v1beta/models/M:streamGenerateContent
                         POST /v1beta/models/M:generateContent
                         POST /v1beta/models/M:countTokens
    any                  GET  .../models                   (a small list)

Script (JSON): a list of turns, or an object
    {"turns": [...],                  answers to main calls, in order
     "lanes": [{"match": "REGEX", "turns": [...]}],
     "side":  {"text": "..."},        answer to side calls (default "ok")
     "after": "repeat" | "stop"}      when turns run out: repeat the last one
                                      (default) or answer the text "(script over)"

A *main* call is one that offers the model tools; everything else (title generation, quota
probes, summaries) is a *side* call and never takes a turn. A lane takes the main calls whose
user messages match its regex; that is how a sub-agent gets a script of its own.

Turn (every key is optional)
    text       "..."                  assistant text
    thinking   "..."                  reasoning shown before the text
    tools      [{"name": N, "input": {...}}]        function calls
               [{"name": N, "input": "raw"}]        Responses "custom" (freeform)
    usage      {"input": 100, "output": 20, "cache_read": 0, "cache_write": 0}
    stop       "max_tokens" ...       overrides the stop reason
    error      {"status": 529, "type": "overloaded_error", "message": "...",
                "headers": {"retry-after": "1"}}    answer with an HTTP error
    times      3                      use this turn 3 times (-1: for ever)
    delay      1.5                    seconds before the first byte
    pace       0.2                    seconds between stream events
    cut        true                   drop the connection in mid-stream
    hang       60                     stall mid-stream for that many seconds
    stream_error {"type": "...", "message": "..."}  error event in mid-stream
Strings may contain ${NAME}; NAME is filled in from --var NAME=VALUE.

Library use
    with ScriptedModel([{"text": "hi"}]) as model:
        subprocess.run([...], env={"ANTHROPIC_BASE_URL": model.url, ...})
        assert model.main_calls()[0]["body"]["messages"]

Command-line use
    python -m ralph.testing.scripted_model.server --script S.json --port 0 --log L.jsonl

Control endpoints:  GET /__state   POST /__script (replace)   GET /__requests
"""

import argparse
import contextlib
import gzip
import json
import sys
import threading
import time
import zlib
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from ralph.testing.scripted_model.protocols import (
    PROTOCOLS,
    Events,
    Json,
    error_body,
    new_id,
    stream_error,
)
from ralph.testing.scripted_model.script import Script

SECRETS = frozenset({"authorization", "x-api-key", "x-goog-api-key", "cookie"})
NOT_SCRIPTED = {"error": {"message": "not scripted", "type": "not_found_error"}}
MODELS = [{"id": "scripted", "object": "model", "owned_by": "local"}]
ROUTES = (  # end of the path, protocol, action
    ("/messages/count_tokens", "anthropic", "count"),
    ("/messages", "anthropic", "auto"),
    ("/responses", "responses", "auto"),
    ("/chat/completions", "chat", "auto"),
    (":streamGenerateContent", "gemini", "stream"),
    (":generateContent", "gemini", "whole"),
    (":countTokens", "gemini", "count"),
)


def plain_path(path: str) -> str:
    return path.partition("?")[0].rstrip("/")


def route(path: str) -> tuple[str, str]:
    """Protocol and action; the action is stream, whole, auto, count or none."""
    for end, protocol, action in ROUTES:
        if plain_path(path).endswith(end):
            return protocol, action
    return "", "none"


class Handler(BaseHTTPRequestHandler):
    """One request."""

    protocol_version = "HTTP/1.1"
    server: "Server"

    def log_message(self, *_: object) -> None:
        """Nothing: the request log says it all."""

    def reply(self, status: int, value: object, headers: Json | None = None) -> None:
        """Answer with a JSON value."""
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        for name, text in (headers or {}).items():
            self.send_header(name, str(text))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def read_body(self) -> bytes:
        """The request's body, unpacked."""
        data = self.read_data()
        encoding = self.headers.get("Content-Encoding", "")
        if encoding == "gzip":
            return gzip.decompress(data)
        return zlib.decompress(data) if encoding == "deflate" else data

    def read_data(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        data = b""
        while size := int(self.rfile.readline().split(b";")[0] or b"0", 16):
            data += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return data

    def do_HEAD(self) -> None:
        self.reply(200, {})

    def do_GET(self) -> None:
        path = plain_path(self.path)
        if path == "/__requests":
            self.reply(200, self.server.calls())
        elif path == "/__state":
            keys = ("n", "path", "lane", "turn")
            calls = [{key: call[key] for key in keys} for call in self.server.calls()]
            self.reply(200, {"calls": calls})
        else:
            self.server.record(self, "GET", "", 0, None)
            if path.endswith("/models"):
                self.reply(200, {"object": "list", "models": [], "data": MODELS})
            else:
                self.reply(404, NOT_SCRIPTED)

    def do_POST(self) -> None:
        raw = self.read_body()
        try:
            body = json.loads(raw or b"{}")
        except ValueError:
            body = {"_unreadable": f"{len(raw)} bytes"}
        protocol, action = route(self.path)
        if self.path == "/__script":
            self.server.script = Script(body, self.server.names)
            self.reply(200, {"ok": True})
        elif action == "none":
            self.server.record(self, "POST", "", 0, body)
            self.reply(404, NOT_SCRIPTED)
        elif action == "count":
            self.server.record(self, "count", "", 0, body)
            self.reply(200, {"input_tokens": 100, "totalTokens": 100})
        else:
            self.answer(protocol, action, body)

    do_PUT = do_POST  # noqa: N815

    def answer(self, protocol: str, action: str, body: Json) -> None:
        """A model call: play the next turn."""
        lane, at, turn = self.server.script.next(body)
        self.server.record(self, lane, protocol, at, body)
        time.sleep(turn.get("delay", 0))
        events, whole = PROTOCOLS[protocol]
        if turn.get("error"):
            error = turn["error"]
            status = error.get("status", 500)
            self.reply(status, error_body(protocol, error), error.get("headers"))
        elif action == "whole" or (action == "auto" and not body.get("stream")):
            self.reply(200, whole(turn, body))
        else:
            # The client may go away, for example because it was interrupted.
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                self.stream(protocol, turn, events(turn, body))
            self.close_connection = True

    def stream(self, protocol: str, turn: Json, events: Events) -> None:
        """Server-sent events, up to the place where the script breaks off."""
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Cache-Control", "no-cache")
        self.send_header("Connection", "close")
        self.send_header("request-id", new_id("req_"))
        self.end_headers()
        middle_seen = False
        for name, value in events:
            if value is not None:
                self.send_event(name, value)
                time.sleep(turn.get("pace", 0))
            elif not middle_seen:
                middle_seen = True
                if self.breaks_off(protocol, turn):
                    return

    def breaks_off(self, protocol: str, turn: Json) -> bool:
        """What the script wants in the middle of an answer; whether that ends it."""
        time.sleep(turn.get("hang", 0))
        if turn.get("stream_error"):
            self.send_event(*stream_error(protocol, turn["stream_error"]))
            return True
        return bool(turn.get("cut"))

    def send_event(self, name: str | None, value: object) -> None:
        data = value if isinstance(value, str) else json.dumps(value)
        head = f"event: {name}\n" if name else ""
        self.wfile.write(f"{head}data: {data}\n\n".encode())
        self.wfile.flush()


class Server(ThreadingHTTPServer):
    """Listens on 127.0.0.1 and remembers every request."""

    daemon_threads = True

    def __init__(self, port: int, script: Script, names: dict[str, str], log: str | None) -> None:
        super().__init__(("127.0.0.1", port), Handler)
        self.script = script
        self.names = names
        self.log = log
        self.requests: list[Json] = []
        self.lock = threading.Lock()

    def record(self, handler: Handler, lane: str, protocol: str, turn: int, body: object) -> None:
        """Remember a request; credentials are left out."""
        headers = {name.lower(): value for name, value in handler.headers.items()}
        headers |= dict.fromkeys(headers.keys() & SECRETS, "(left out)")
        with self.lock:
            entry = {"n": len(self.requests), "at": time.time(), "path": handler.path}
            entry |= {"lane": lane, "turn": turn, "protocol": protocol}
            entry |= {"headers": headers, "body": body}
            self.requests.append(entry)
            if self.log:
                with open(self.log, "a", encoding="utf-8") as file:
                    file.write(json.dumps(entry) + "\n")

    def calls(self) -> list[Json]:
        with self.lock:
            return list(self.requests)


class ScriptedModel:
    """Runs the server in a thread; use as a context manager."""

    def __init__(
        self,
        spec: object,
        names: dict[str, str] | None = None,
        port: int = 0,
        log: str | None = None,
    ) -> None:
        names = names or {}
        self.server = Server(port, Script(spec, names), names, log)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True)

    def __enter__(self) -> Self:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self.server.server_close()

    def calls(self) -> list[Json]:
        """Every request so far, in order."""
        return self.server.calls()

    def main_calls(self) -> list[Json]:
        """Model calls that took a turn, in order."""
        return [call for call in self.calls() if call["lane"].startswith(("main", "lane"))]


def parse(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Scripted model on loopback.")
    parser.add_argument("--script", required=True, help="JSON file, or - for standard input")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--port-file", help="write the port here once listening")
    parser.add_argument("--log", help="append every request here, one JSON object per line")
    parser.add_argument("--var", action="append", default=[], metavar="NAME=VALUE")
    return parser.parse_args(argv)


def read_script(path: str) -> Any:  # noqa: ANN401 - any JSON value
    with sys.stdin if path == "-" else open(path, encoding="utf-8") as file:
        return json.load(file)


def main(argv: list[str] | None = None) -> int:
    """The program: serve until interrupted."""
    arguments = parse(argv)
    names = dict(pair.split("=", 1) for pair in arguments.var)
    script = Script(read_script(arguments.script), names)
    with Server(arguments.port, script, names, arguments.log) as server:
        port = server.server_address[1]
        print(f"http://127.0.0.1:{port}", flush=True)
        if arguments.port_file:
            with open(arguments.port_file, "w", encoding="utf-8") as file:
                file.write(str(port))
        with contextlib.suppress(KeyboardInterrupt):
            server.serve_forever()
    return 0


if __name__ == "__main__":
    sys.exit(main())
