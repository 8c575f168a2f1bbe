"""`ralph web` for tests, the cable between it and a browser, and runs to look at."""

import json
import os
import select
import socket
import subprocess
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

from run_support import RALPH, Running

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext, Dialog, Page

TOKEN = "a-token-of-the-tests-which-is-long-enough"
# Waits until a file is there, as long as the test wants.
WAIT = 'while [ ! -e "{}" ]; do sleep 0.02; done'


class Web:
    """A server under way."""

    def __init__(self, place: Path, *flags: str) -> None:
        self._errors = (place / "web.stderr").open("wb")
        self.process = subprocess.Popen(
            [*RALPH, "web", "--json", *flags],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env={**os.environ, "RALPH_WEB_TOKEN": TOKEN},
        )
        Running.started.append(self.process)
        assert self.process.stdout is not None
        told = json.loads(self.process.stdout.readline())
        self.link: str = told["url"]
        self.port: int = told["port"]

    def end(self) -> None:
        self.process.terminate()
        self.process.wait(timeout=30)
        self._errors.close()


class Watcher:
    """A page, and everything that it complained about."""

    def __init__(self, context: "BrowserContext") -> None:
        self._context = context
        self._complaints: list[str] = []
        self.page: Page = context.new_page()
        self.page.on("console", lambda said: self._hear(said.type, said.text))
        self.page.on("pageerror", lambda error: self._hear("error", str(error)))
        self.page.on("dialog", self._dialog)

    def _hear(self, kind: str, text: str) -> None:
        # The browser itself tells of answers that are no success, and of cut cables.
        if kind in {"error", "warning"} and "Failed to load resource" not in text:
            self._complaints.append(f"{kind}: {text}")

    def _dialog(self, dialog: "Dialog") -> None:
        self._complaints.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def close(self) -> list[str]:
        self._context.close()
        return self._complaints


class Cable:
    """A way to a port, which can be cut and mended."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._whole = threading.Event()
        self._whole.set()
        self._gone = False
        self._serving = threading.Thread(target=self._serve)
        self._serving.start()

    def cut(self) -> None:
        """Everything that goes through breaks off, and nothing new does."""
        self._whole.clear()

    def mend(self) -> None:
        self._whole.set()

    def end(self) -> None:
        self._gone = True
        self._serving.join()
        self._listener.close()

    def _serve(self) -> None:
        pairs: dict[socket.socket, socket.socket] = {}
        while not self._gone:
            if not self._whole.is_set():
                self._drop(pairs)
            ready, _, _ = select.select([self._listener, *pairs], [], [], 0.05)
            for one in ready:
                if one is self._listener:
                    self._connect(pairs)
                else:
                    self._pass_on(one, pairs)
        self._drop(pairs)

    @staticmethod
    def _drop(pairs: dict[socket.socket, socket.socket]) -> None:
        for end in pairs:
            end.close()
        pairs.clear()

    def _connect(self, pairs: dict[socket.socket, socket.socket]) -> None:
        near, _ = self._listener.accept()
        if not self._whole.is_set():
            near.close()
            return
        far = socket.create_connection(("127.0.0.1", self._target))
        pairs[near], pairs[far] = far, near

    @staticmethod
    def _pass_on(one: socket.socket, pairs: dict[socket.socket, socket.socket]) -> None:
        other = pairs.get(one)
        if other is None:
            return
        try:
            data = one.recv(1 << 16)
            if data:
                other.sendall(data)
                return
        except OSError:
            pass
        for end in (one, other):
            end.close()
            pairs.pop(end, None)


def waiting(gate: Path, **turn: Any) -> dict[str, Any]:  # noqa: ANN401
    """A turn of a scripted agent that lasts until this file is there."""
    return {"tools": [{"name": "Bash", "run": WAIT.format(gate)}], **turn}
