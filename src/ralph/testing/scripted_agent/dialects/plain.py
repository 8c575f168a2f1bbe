"""Plain text on standard output, and the voice that the others are made from."""

import os
import time
from collections.abc import Iterator
from typing import Any, ClassVar

from ralph.testing.scripted_agent.script import ScriptedFailure, ScriptedTool, ScriptedTurn

Line = dict[str, Any] | str  # an object is printed as one line of JSON
Lines = Iterator[Line]

NO_USAGE = {"input": 0, "output": 0, "cache_read": 0, "cache_write": 0}
DEFAULT_USAGE = {**NO_USAGE, "input": 100, "output": 20}


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
    """A CLI that prints what it says, block by block, and nothing else."""

    # How it leaves on a signal, without another word: its exit code, or None to die of it.
    leaves: ClassVar[dict[str, int | None]] = {}

    def __init__(self, turn: ScriptedTurn) -> None:
        self.turn = turn
        default = NO_USAGE if "error" in turn else DEFAULT_USAGE
        self.usage = {**default, **turn.get("usage", {})}
        self.last = ""  # the last text said

    def opening(self, prompt: str) -> Lines:
        return iter(())

    def echo(self, prompt: str) -> Lines:
        yield prompt

    def limits(self, info: dict[str, Any]) -> Lines:
        """The limits of the account, as the provider tells them."""
        return iter(())

    def thinks(self, text: str) -> Lines:
        return iter(())

    def says(self, text: str) -> Lines:
        self.last = text
        yield text

    def calls(self, call: ScriptedCall) -> Lines:
        return iter(())

    def answers(self, call: ScriptedCall) -> Lines:
        return iter(())

    def plans(self, todo: list[tuple[str, str]]) -> Lines:
        """The agent's own task list."""
        return iter(())

    def delegates(self, text: str) -> Lines:
        """A sub-agent says this."""
        return iter(())

    def hears(self, text: str) -> Lines:
        """A hook's feedback comes in."""
        return iter(())

    def result(self) -> Lines:
        """The last line of a good turn."""
        return iter(())

    def fails(self, failure: ScriptedFailure) -> Lines:
        """The service fails the turn. Where there are no lines, standard error has the message."""
        return iter(())

    def failing_exit(self, failure: ScriptedFailure) -> int:
        """The exit code of a turn that the service failed."""
        return 1

    def interrupted(self, call: ScriptedCall | None) -> Lines:
        """SIGINT came, perhaps in the middle of a tool call."""
        return iter(())


class LastWord(Voice):
    """A CLI in text mode: the last message, when all is done."""

    def echo(self, prompt: str) -> Lines:
        return iter(())

    def says(self, text: str) -> Lines:
        self.last = text
        return iter(())

    def result(self) -> Lines:
        yield self.last
