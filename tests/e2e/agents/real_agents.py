"""The real CLIs in a world of their own: a scripted model, a repository, a home, nothing else.

A `World` plays a script to it through
`ralph run`; what the run printed is a `Run`.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from agents.clis import ACP, CLIS, Cli, Json, write_json
from ralph.testing.scripted_model.script import Script, user_text
from ralph.testing.scripted_model.server import ScriptedModel

DONE = "<response>DONE</response>"
PROMPT = "Write hello.txt."
MESSAGE_PROMPT = "Provide a short imperative commit message for the changes."
TITLE = "Generate a title"  # what opencode asks beside a prompt
PATIENCE = 60.0  # seconds until a test gives up; nothing is measured by it
DYING = 2.0  # seconds in which a killed process is surely gone


@dataclass(frozen=True)
class Run:
    """What a run with `--json` said."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[Json]:
        """Every line is a JSON object, and nothing else is on stdout."""
        return [json.loads(line) for line in self.out.splitlines()]

    @property
    def stop(self) -> Json:
        """The last line."""
        last = self.lines[-1]
        assert last["type"] == "stop"
        assert last["exit"] == self.code
        return last

    def facts(self, kind: str) -> list[Json]:
        """The facts of a kind, in order."""
        return [line for line in self.lines if line["type"] == kind]

    @property
    def turns(self) -> list[Json]:
        """The agent's turns."""
        return [fact["turn"] for fact in self.facts("ended")]

    @property
    def closings(self) -> list[Json]:
        """What was decided after each turn, with the reasons."""
        return [fact for fact in self.facts("decided") if fact["boundary"] == "closing"]

    @property
    def verdicts(self) -> list[str]:
        """What was decided after each turn, in a word."""
        return [fact["verdict"]["type"] for fact in self.closings]


class Committing(Script):
    """Knows a message turn by its prompt: an agent without tools offers the model none."""

    def __init__(
        self, turns: tuple[Json, ...], message: tuple[Json, ...], names: dict[str, str]
    ) -> None:
        super().__init__(list(turns), names)
        self.message = Script(list(message), names).main

    def next(self, body: Json) -> tuple[str, int, Json]:
        """Lane name, turn index and turn for one model call."""
        text = user_text(body)
        if MESSAGE_PROMPT not in text or TITLE in text:
            return super().next(body)
        with self.lock:
            return ("lane", *self.message.take(self.after))


@dataclass
class World:
    """One agent's world. Its root is part of the environment of everything that runs in it."""

    kind: str
    root: Path
    repo: Path
    path: str  # PATH
    model: ScriptedModel
    started: list["subprocess.Popen[bytes]"] = field(default_factory=list)

    @property
    def cli(self) -> Cli:
        """The agent's own ways."""
        return {**CLIS, **ACP}[self.kind]

    def plays(self, *turns: Json, message: tuple[Json, ...] = ()) -> None:
        """What the model answers, call by call, and to whoever asks for a commit message; the last
        answer is given for ever."""
        self.model.server.script = Committing(turns, message, {"REPO": str(self.repo)})

    def shell(self, command: str, **more: object) -> Json:
        """A model's answer: run this command."""
        return {"tools": [self.cli.shell(command)], **more}

    def configure(
        self, *, free: bool = True, agent: Json | None = None, **settings: object
    ) -> None:
        """Write .ralph/settings.json; `free` lets every tool run."""
        usual = {
            "command": list(self.cli.command) or self.kind,
            "flags": [
                *self.cli.flags(self.model.url),
                *([self.cli.autonomy] if free and self.cli.autonomy else []),
            ],
            "env": {"set": self.cli.env(self.model.url)},
        }
        write_json(
            self.repo / ".ralph" / "settings.json",
            {"agent": {**usual, **(agent or {})}, **settings},
        )
        self.cli.settle_in(self.root / "home", self.model.url)

    def run(self, *arguments: str) -> Run:
        """Run `ralph run --json` to its end."""
        return self.finish(self.start(*arguments))

    def start(self, *arguments: str) -> "subprocess.Popen[bytes]":
        """Start `ralph run --json`; with a prompt, unless one is given."""
        if not {"-p", "-f"} & set(arguments):
            arguments = ("-p", PROMPT, *arguments)
        command = (sys.executable, "-m", "ralph", "run", "--json", *arguments)
        with open(self.root / "out", "wb") as out, open(self.root / "err", "wb") as err:
            process = subprocess.Popen(
                command, cwd=self.repo, env=self.environment(), stdout=out, stderr=err
            )
        self.started.append(process)
        return process

    def environment(self) -> dict[str, str]:
        """Built from nothing, as `env -i` does."""
        places = {name: self.root / name.lower() for name in ("HOME", "TMPDIR", "RALPH_STATE_DIR")}
        for place in places.values():
            place.mkdir(exist_ok=True)
        git = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
        return {"PATH": self.path, **git, **{name: str(place) for name, place in places.items()}}

    def finish(self, process: "subprocess.Popen[bytes]") -> Run:
        """What the run said, now that it is over."""
        code = process.wait(timeout=PATIENCE)
        return Run(code, (self.root / "out").read_text(), self.said())

    def until(self, condition: Callable[[], object], what: str) -> None:
        """Wait for something that must come while the run goes on."""
        end = time.monotonic() + PATIENCE
        while True:
            over = self.started[-1].poll() is not None or time.monotonic() > end
            if condition():
                return
            assert not over, f"waited in vain until {what}:\n{self.said()}"
            time.sleep(0.05)

    def said(self) -> str:
        """What the run has told people so far."""
        return (self.root / "err").read_text()

    def git(self, *arguments: str) -> str:
        """What git says about the repository."""
        command = ("git", "-C", str(self.repo), *arguments)
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    def asked(self, call: int) -> str:
        """All that the model was told in its n-th call."""
        return "\n".join(strings(self.model.main_calls()[call]["body"]))

    def left_behind(self) -> dict[int, str]:
        """Processes that run in this world: our root is in their environment or command."""
        root = os.fsencode(self.root)
        numbers = (int(name) for name in os.listdir("/proc") if name.isdigit())
        found = ((number, *described(number)) for number in numbers)
        return {number: command for number, command, all_of_it in found if root in all_of_it}

    def sweep(self) -> dict[int, str]:
        """End what a run left behind, and name it. What was killed is given time to be gone."""
        end = time.monotonic() + DYING
        while (left := self.left_behind()) and time.monotonic() < end:
            time.sleep(0.05)
        for number in left:
            try:
                os.kill(number, signal.SIGKILL)
            except ProcessLookupError:
                pass  # it ended by itself
        return left


def described(number: int) -> tuple[str, bytes]:
    """A process's command, and everything that tells where it belongs; it may be gone."""
    try:
        command = Path(f"/proc/{number}/cmdline").read_bytes()
        environ = Path(f"/proc/{number}/environ").read_bytes()
    except OSError:
        return "", b""
    return command.replace(b"\0", b" ").decode("utf-8", "replace"), command + environ


def strings(value: object) -> Iterator[str]:
    """Every string in a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from strings(item)
    elif isinstance(value, list):
        for item in value:
            yield from strings(item)
