"""A real `ralph web` in a process of its own, and clients that send what no library would."""

import atexit
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

Json = dict[str, Any]


@dataclass(frozen=True)
class Reply:
    """An answer; the names of its headers are in lower case."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:  # noqa: ANN401
        return json.loads(self.body)


@dataclass(frozen=True)
class Told:
    """An event that came."""

    name: str
    position: str
    data: Json


class WebServer:
    """`ralph web --json` with these flags, until `end`. It does not outlive the tests."""

    started: ClassVar[list["subprocess.Popen[bytes]"]] = []

    def __init__(self, state: Path, *flags: str, env: Mapping[str, str] = {}) -> None:
        self.errors = state.parent / f"{state.name}.web.err"
        environ = {**os.environ, "RALPH_STATE_DIR": str(state), **env}
        with self.errors.open("wb") as errors:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "ralph", "web", "--json", *flags],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                env=environ,
            )
        self.started.append(self.process)
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, self.errors.read_text()
        self.clients: list[Events] = []
        self.told: Json = json.loads(line)
        self.port: int = self.told["port"]
        self.token: str = self.told["url"].partition("#token=")[2]

    def ask(
        self, method: str, path: str, body: bytes = b"", headers: Mapping[str, str] = {}
    ) -> Reply:
        """Ask with these headers and no others of ours."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request(method, path, body or None, dict(headers))
            answer = connection.getresponse()
            named = {name.lower(): words for name, words in answer.getheaders()}
            return Reply(answer.status, named, answer.read())
        finally:
            connection.close()

    @property
    def bearer(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"}

    def get(self, path: str) -> Any:  # noqa: ANN401
        """The JSON that is there, for whoever has the token."""
        answer = self.ask("GET", path, headers=self.bearer)
        assert answer.status == 200, answer
        return answer.json

    def post(self, path: str, said: Json | None = None) -> Reply:
        headers = {"X-Ralph-Token": self.token, "Content-Type": "application/json"}
        return self.ask("POST", path, json.dumps(said or {}).encode(), headers)

    def raw(self, data: bytes) -> bytes:
        """Send these bytes; the head of the answer."""
        answer = b""
        with socket.create_connection(("127.0.0.1", self.port), timeout=30) as there:
            there.sendall(data)
            while b"\r\n\r\n" not in answer and (more := there.recv(65536)):
                answer += more
        return answer

    def events(self, path: str, position: str = "") -> "Events":
        self.clients.append(Events(self, path, position))
        return self.clients[-1]

    def memory(self) -> int:
        """The resident memory of the server, in KB."""
        status = Path(f"/proc/{self.process.pid}/status").read_text("utf-8")
        return int(status.partition("VmRSS:")[2].split()[0])

    def end(self, number: int = signal.SIGINT) -> int:
        """Ask it to end; its exit code. Nothing is heard of it any more."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        try:
            return self.process.wait(30)
        finally:
            self.process.kill()
            assert self.process.stdout is not None
            self.process.stdout.close()

    def close(self) -> None:
        """End it, and leave."""
        self.end()
        for client in self.clients:
            client.close()


class Events:
    """A client of a stream of events."""

    def __init__(self, server: WebServer, path: str, position: str = "") -> None:
        headers = {**server.bearer, **({"Last-Event-ID": position} if position else {})}
        self._connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
        self._connection.request("GET", path, headers=headers)
        self._answer = self._connection.getresponse()
        assert self._answer.status == 200, self._answer.read()
        self.position = position

    def __iter__(self) -> Iterator[Told]:
        """The events, as they come, until the server ends them. One that must come, comes soon."""
        said: dict[str, str] = {}
        deadline = time.monotonic() + 60
        while line := self._answer.readline():
            assert time.monotonic() < deadline, "the server sends no more than comments"
            if line != b"\n":
                name, _, words = line.decode().rstrip("\n").partition(": ")
                said[name] = words
                continue
            if "event" in said:
                self.position = said.get("id", self.position)
                deadline = time.monotonic() + 60
                yield Told(said["event"], said.get("id", ""), json.loads(said["data"]))
            said = {}

    def until(self, name: str, **fields: object) -> list[Told]:
        """The events up to one of that name with these fields."""
        seen = []
        for told in self:
            seen.append(told)
            if told.name == name and fields.items() <= told.data.items():
                return seen
        raise AssertionError(f"the server ended before {name} {fields}: {seen}")

    def close(self) -> None:
        self._answer.close()
        self._connection.close()


def soon(happened: Any) -> None:  # noqa: ANN401  anything that is true in the end
    """Wait for what must come."""
    deadline = time.monotonic() + 30
    while not happened():
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.02)


@atexit.register
def _end_all() -> None:
    for process in WebServer.started:
        process.kill()
