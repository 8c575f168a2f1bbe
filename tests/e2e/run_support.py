"""`ralph` as its users run it: a workspace, a scripted agent, and what came of it."""

import atexit
import json
import os
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest

from kits.fork_server import Process, run, started
from ralph.cli.main import run_command_line
from ralph.journal.journal import read_journal
from ralph.journal.runs import CopiedRun
from ralph.kernel.facts import Ended, Fact
from ralph.runner.again.judged import judged_again
from ralph.runner.again.words import Tally
from ralph.testing.scripted_agent.install import calls, install_agent

RALPH = (sys.executable, "-m", "ralph")
FINISH = "When everything is done, and only then, end your answer with <response>DONE</response>."
Json = dict[str, Any]


@dataclass(frozen=True)
class Done:
    """How a command ended, and what it said."""

    code: int
    out: str
    err: str

    @property
    def objects(self) -> list[Json]:
        """What stands on stdout, which is nothing but JSON."""
        return [json.loads(line) for line in self.out.splitlines()]


def prepare(workspace: Path, *turns: Json, kind: str = "claude", **settings: Any) -> str:  # noqa: ANN401
    """Install a scripted agent and write settings that name it; the agent's path."""
    agent = install_agent(str(workspace.parent / "bin"), list(turns), kind=kind)
    named = {"command": agent, **settings.pop("agent", {})}
    (workspace / ".ralph").mkdir(exist_ok=True)
    text = json.dumps({"agent": named, "failDelay": 0, **settings})
    (workspace / ".ralph" / "settings.json").write_text(text, "utf-8")
    return agent


def program(path: Path, text: str) -> str:
    """Write an executable shell script."""
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


def ralph(*arguments: str, command: tuple[str, ...] = RALPH, env: Json | None = None) -> Done:
    """Run the real command to its end."""
    code, out, err = run((*command, *arguments), {**os.environ, **(env or {})})
    return Done(code, text(out), text(err))


def in_shell(script: str) -> Done:
    """Run a line of shell in which `ralph` is the command, for what only a shell can do."""
    words = ("sh", "-c", f'ralph() {{ "{sys.executable}" -m ralph "$@"; }}\n{script}')
    return ralph(command=words)


def text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


class Here:
    """Runs `ralph` in this process, which is quicker."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *arguments: str) -> Done:
        self._capsys.readouterr()
        code = run_command_line(list(arguments))
        said = self._capsys.readouterr()
        return Done(code, said.out, said.err)


class Running:
    """A real `ralph` that is under way. Whatever becomes of the test, it does not outlive the
    tests."""

    started: ClassVar[list[Process]] = []

    def __init__(self, workspace: Path, *arguments: str) -> None:
        self._out = workspace.parent / "stdout"
        self._err = workspace.parent / "stderr"
        with self._out.open("wb") as out, self._err.open("wb") as err:
            self.process = started((*RALPH, *arguments), out.fileno(), err.fileno())
        self.started.append(self.process)

    def err(self) -> str:
        return text(self._err.read_bytes())

    def await_that(self, happened: Callable[[], object]) -> None:
        """Wait for an event that must come, as long as the run lives."""
        deadline = time.monotonic() + 30
        while not happened():
            alive = self.process.poll() is None and time.monotonic() < deadline
            assert alive, f"it never happened; stderr:\n{self.err()}"
            time.sleep(0.01)

    def send(self, number: signal.Signals) -> None:
        """Send a signal."""
        self.process.send_signal(number)

    def interrupt(self) -> None:
        """Press Ctrl+C, and wait until ralph says that it has heard."""
        self.send(signal.SIGINT)
        self.await_that(lambda: "Received signal" in self.err())

    def end(self) -> Done:
        """Wait for the end."""
        try:
            code = self.process.wait(timeout=30)
        finally:
            self.process.kill()
        return Done(code, text(self._out.read_bytes()), self.err())


@atexit.register
def _end_all_runs() -> None:
    """A test that fails leaves its runs under way; their keepers end the rest."""
    for process in Running.started:
        process.kill()


def journals() -> list[Path]:
    """Every journal, oldest run first."""
    return sorted(Path(os.environ["RALPH_STATE_DIR"]).glob("*/runs/*/journal.jsonl"))


def facts() -> list[Fact]:
    """The facts of the only run; reading them proves that the chain is whole."""
    (journal,) = journals()
    return read_journal(str(journal))[0]


def assert_replays() -> None:
    """Each run of the test, judged again by the same rules, shows no difference (ADR 55)."""
    for journal in journals():
        if journal.parent.is_symlink():  # to a supervised task's
            continue
        tally, place = Tally(), str(journal.parent)
        for retold in judged_again(CopiedRun(journal.parent.name, str(journal), place=place)):
            tally.add(retold)
        assert not tally.differing, "\n".join(tally.lines())
        assert tally.verdicts, "nothing was judged"


def turns() -> list[Ended]:
    """The turns that the only run has journaled."""
    return [fact for fact in facts() if isinstance(fact, Ended)]


def prompts(agent: str) -> list[str]:
    """What the agent was told, turn by turn, but for the sentence that says how to finish."""
    return [call["prompt"].removesuffix(f"\n\n{FINISH}") for call in calls(agent)]


def nothing_runs(agent: str) -> bool:
    """Whether every process of this agent is gone."""
    return not any(is_alive(call["pid"]) for call in calls(agent))


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that has ended and is not reaped yet does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def assert_clear(done: Done, code: int, *words: str) -> None:
    """It ended with this code, said these words on stderr, and never showed a traceback."""
    assert "Traceback" not in done.err + done.out, done.err
    assert "bug in ralph" not in done.err, done.err
    assert done.code == code, done.err
    missing = [word for word in words if word not in done.err]
    assert not missing, f"{missing} not in:\n{done.err}"


def await_gone(*pids: int) -> None:
    """Wait for processes that must end."""
    deadline = time.monotonic() + 30
    while any(map(is_alive, pids)):
        assert time.monotonic() < deadline, f"still there: {pids}"
        time.sleep(0.01)
