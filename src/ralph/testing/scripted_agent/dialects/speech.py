"""The streams of each CLI: a voice prints the lines for what a script tells it to do."""

import os
import time
from collections.abc import Iterator
from importlib import import_module
from typing import Any, ClassVar, cast

from ralph.testing.scripted_agent.commandline import Arguments
from ralph.testing.scripted_agent.script import ScriptedFailure, ScriptedTool, ScriptedTurn

Line = dict[str, Any] | str  # an object is printed as one line of JSON
Lines = Iterator[Line]

NO_USAGE = {"input": 0, "output": 0, "cache_read": 0, "cache_write": 0}
DEFAULT_USAGE = {**NO_USAGE, "input": 100, "output": 20}
# Module and class: only the one that is played is loaded, since every call pays for it.
STREAMS = {
    "acp": ("acp", "Acp"),
    "claude": ("claude", "Claude"),
    "codex": ("codex", "Codex"),
    "amp": ("claude", "Amp"),
    "gemini": ("gemini", "Gemini"),
    "opencode": ("opencode", "Opencode"),
    "ralph-agent": ("own", "Own"),
}
TEXTS = {
    "claude": ("claude", "ClaudeText"),
    "codex": ("speech", "LastWord"),
    "amp": ("speech", "LastWord"),
    "gemini": ("gemini", "GeminiText"),
    "cursor-agent": ("speech", "LastWord"),
}


def voice_for(arguments: Arguments, turn: ScriptedTurn) -> "Voice":
    """The voice of a CLI called with these arguments."""
    voices = STREAMS if arguments.streams else TEXTS
    module, name = voices.get(arguments.kind, ("speech", "Plain"))
    found = getattr(import_module(f"ralph.testing.scripted_agent.dialects.{module}"), name)
    return cast("type[Voice]", found)(turn)


def new_id(prefix: str = "") -> str:
    """An identifier in the manner of the APIs."""
    return prefix + os.urandom(12).hex()


def now() -> str:
    """The time as claude and gemini write it."""
    return time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime())


def new_uuid() -> str:
    """A random UUID; the module `uuid` costs more than all the rest of a call."""
    digits = os.urandom(16).hex()
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-a{digits[17:20]}-{digits[20:]}"


class ScriptedCall:
    """A tool call, with the scripted end until it is really run."""

    def __init__(self, tool: ScriptedTool) -> None:
        self.id = new_id("toolu_")
        self.tool = tool
        self.name = tool.get("name", "Bash")
        command = {"command": tool["run"]} if "run" in tool else {}
        self.input = tool.get("input", command)
        self.output = tool.get("output", "")
        self.error = tool.get("is_error", False) or tool.get("denied", False)
        self.code = int(self.error)
        self.ran = False

    def ended(self, output: str, code: int) -> None:
        """Keep what came of really running it."""
        self.ran, self.output, self.code, self.error = True, output, code, code != 0


class Voice:
    """A CLI that prints just what it says; each moment of a turn is a method that gives lines."""

    # How it leaves on a signal, without another word: its exit code, or None to die of it.
    leaves: ClassVar[dict[str, int | None]] = {}
    interrupted_exit: ClassVar[int] = 1  # where it has a last word

    def __init__(self, turn: ScriptedTurn) -> None:
        self.turn = turn
        default = NO_USAGE if "error" in turn else DEFAULT_USAGE
        self.usage = {**default, **turn.get("usage", {})}
        self.last = ""  # the last text said

    def says(self, text: str) -> Lines:
        self.last = text
        yield text

    def silent(self, *_: Any, **__: Any) -> Lines:  # noqa: ANN401  whatever the moment is told
        return iter(())

    opening = silent  # (prompt)
    echo = silent  # (prompt): it is repeated
    limits = silent  # (info): those of the account, as the provider tells them
    thinks = silent  # (text)
    calls = silent  # (call)
    answers = silent  # (call)
    plans = silent  # (todo): the agent's own task list
    delegates = silent  # (text): a sub-agent says this
    hears = silent  # (text): a hook's feedback comes in
    result = silent  # (): the last line of a good turn
    fails = silent  # (failure): by the service; without a line standard error has the message
    interrupted = silent  # (call): SIGINT came, perhaps in the middle of a tool call

    def may(self, call: ScriptedCall) -> bool:
        """False if somebody who was asked does not allow a call."""
        return True

    def failing_exit(self, failure: ScriptedFailure) -> int:
        """The exit code of a turn that the service failed."""
        return 1


class Plain(Voice):
    """Any other agent."""

    def echo(self, prompt: str) -> Lines:
        yield prompt


class LastWord(Voice):
    """A CLI in text mode: the last message, when all is done."""

    def says(self, text: str) -> Lines:
        self.last = text
        return iter(())

    def result(self) -> Lines:
        yield self.last
