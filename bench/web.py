"""What `ralph web` costs: `python -m bench.web`.

A run of 100,000 lines is opened, then fifty clients hear another at 500 events a second. Printed
are the server's memory, its share of a processor, and how soon and how much it tells.
"""

import http.client
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from ralph.journal.journal import FileJournal
from ralph.kernel.facts import Began, Launching, Started
from ralph.kernel.tasks.task import Assignment
from ralph.kernel.turn import Role

LINES = 100_000
CLIENTS = 50
RATE = 500  # events a second
SECONDS = 20.0
_TICKS = os.sysconf("SC_CLK_TCK")


def main() -> None:
    """Measure, and print a table."""
    with tempfile.TemporaryDirectory() as place:
        root = Path(place, "state")
        long, live = (made(root, f"20260101-00000{n}-000{n}", n) for n in (0, 1))
        with long.open("a") as file:
            for number in range(LINES // 4):
                file.writelines(step(number))
        live.touch()
        server = Server(root)
        try:
            for name, figure in measured(server, long, live):
                print(f"{name:<58} {figure}")
        finally:
            server.process.send_signal(signal.SIGINT)
            server.process.wait(10)


def measured(server: "Server", long: Path, live: Path) -> Any:  # noqa: ANN401  rows
    server.get("/api/runs")
    yield "idle: RSS", f"{server.rss():.1f} MB"
    run = f"/api/runs/{long.parent.name}"
    began = time.perf_counter()
    server.get(f"{run}/log?from=0&limit=500")
    yield f"{LINES:,} stream lines: first window", f"{time.perf_counter() - began:.2f} s"
    while not (window := server.get(f"{run}/log?from=-500&limit=500"))["is_whole"]:
        pass
    yield f"all {window['total']:,} lines of its log read", f"{time.perf_counter() - began:.2f} s"
    began = time.perf_counter()
    server.get(f"{run}/log?from={window['total'] // 2}&limit=500")
    yield "a window from its middle", f"{1000 * (time.perf_counter() - began):.1f} ms"
    began = time.perf_counter()
    server.get(f"{run}/log?limit=1&q=that%20was%201234")
    yield "a search in it", f"{1000 * (time.perf_counter() - began):.0f} ms"
    server.get(run)
    yield "with it open: RSS", f"{server.rss():.1f} MB"
    heard = [0] * CLIENTS
    for number in range(CLIENTS):
        words = (server, f"/api/runs/{live.parent.name}/events?after=0.0", heard, number)
        threading.Thread(target=listen, args=words, daemon=True).start()
    time.sleep(1)
    before, began, said = server.seconds(), time.perf_counter(), 0
    peak = 0.0
    with live.open("a", buffering=1) as file:
        while (passed := time.perf_counter() - began) < SECONDS:
            while said < passed * RATE:
                file.write("".join(step(said // 4)[said % 4 : said % 4 + 1]))
                said += 1
            peak = max(peak, server.rss())
            time.sleep(0.01)
    time.sleep(1)
    took = time.perf_counter() - began
    total = server.get(f"/api/runs/{live.parent.name}/log?limit=1")["total"]
    yield f"{CLIENTS} clients at {said / SECONDS:.0f} events/s: RSS", f"{peak:.1f} MB"
    yield "lines delivered, all clients", f"{sum(heard) / took:,.0f}/s"
    yield "of these missed", f"{CLIENTS * total - sum(heard)}"
    yield "CPU", f"{100 * (server.seconds() - before) / took:.0f} % of a processor"


def listen(server: "Server", path: str, heard: list[int], number: int) -> None:
    """Count the lines that one client is told."""
    answer = server.ask(path)
    while line := answer.readline():
        if line.startswith(b'data: {"from":'):
            heard[number] += line.count(b'{"n":')


def made(root: Path, name: str, number: int) -> Path:
    """A run whose turn goes on; the path of its stream."""
    run = root / "shop-12345678" / "runs" / name
    (run / "signals").mkdir(parents=True)
    journal, stream = FileJournal(str(run / "journal.jsonl")), run / "001.stream"
    journal.record(Started(1.0 + number, run.name, "harness", "/shop", 1, "0", agent="claude"))
    journal.record(Began(2.0, 1, Assignment("prompt", "Do it")))
    journal.record(Launching(3.0, Role.WORK, "claude", str(stream)))
    journal.close()
    return stream


def step(number: int) -> list[str]:
    """Four lines as Claude Code prints them."""
    use = {"id": f"t{number}", "name": "Bash", "input": {"command": f"cat src/file_{number}.py"}}
    output = "line one\nline two\nline three\nline four\nend"
    result = {"type": "tool_result", "tool_use_id": f"t{number}", "content": output}
    said = [
        ("assistant", {"type": "text", "text": f"Step {number}: I look at the next file."}),
        ("assistant", {"type": "tool_use", **use}),
        ("user", result),
        ("assistant", {"type": "text", "text": f"That was {number}."}),
    ]
    return [
        f"{json.dumps({'type': who, 'message': {'role': who, 'content': [content]}})}\n"
        for who, content in said
    ]


class Server:
    """A real `ralph web`."""

    def __init__(self, root: Path) -> None:
        environ = {**os.environ, "RALPH_STATE_DIR": str(root)}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "ralph", "web", "--json"], stdout=subprocess.PIPE, env=environ
        )
        assert self.process.stdout is not None
        told = json.loads(self.process.stdout.readline())
        self._port, self._token = told["port"], told["url"].partition("#token=")[2]

    def ask(self, path: str) -> http.client.HTTPResponse:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=60)
        connection.request("GET", path, headers={"Authorization": f"Bearer {self._token}"})
        return connection.getresponse()

    def get(self, path: str) -> Any:  # noqa: ANN401  JSON
        answer = self.ask(path)
        assert answer.status == 200, answer.read()
        return json.loads(answer.read())

    def rss(self) -> float:
        """Its resident memory in MB."""
        status = Path(f"/proc/{self.process.pid}/status").read_text("utf-8")
        return int(status.partition("VmRSS:")[2].split()[0]) / 1000

    def seconds(self) -> float:
        """The time that it has had of processors."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS


if __name__ == "__main__":
    main()
