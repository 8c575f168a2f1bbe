"""Answers that take a while: what is looked at again and again, while others are answered."""

import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Protocol

from ralph.errors import ConfigError
from ralph.kernel.value import value
from ralph.processes.child import memory_file, shell_code
from ralph.text.plain import clean, shorten
from ralph.text.redact import redact

_LONGEST_TEXT = 2_000  # characters of a text of somebody


@value
class ToolAnswer:
    """What a tool tells: the same in words and as values."""

    text: str
    data: dict[str, Any]


@value
class News:
    """How far a pending answer is."""

    done: float
    total: float
    words: str


class PendingAnswer(Protocol):
    """An answer that is not there yet."""

    def look(self) -> ToolAnswer | None:
        """The answer, if it is there now. RalphError is one too."""

    def news(self) -> News | None:
        """What there is to tell meanwhile."""

    def hurry(self) -> None:
        """The client has left, and is told only what can be told now."""

    def cancel(self) -> None:
        """Nobody wants the answer any more."""


@value
class CommandEnd:
    """What a command of ours printed, and its exit code."""

    code: int
    out: str
    err: str

    def said(self) -> str:
        """What it told people, without the mark before each line."""
        return "\n".join(line.removeprefix("[ralph] ") for line in self.err.splitlines()).strip()


class OwnCommand:
    """A command `ralph ...` in a process of its own: it fails as it would in a terminal, and what
    it takes is given back at its end. It does not end with us, so that what it begins goes on."""

    def __init__(
        self,
        words: Sequence[str],
        directory: str,
        environ: Mapping[str, str],
        told: Callable[[CommandEnd], ToolAnswer],
    ) -> None:
        self._told = told
        self._said = [memory_file(b""), memory_file(b"")]
        import subprocess  # which takes a while, and the first answers need none

        argv = (sys.executable, "-P", "-m", "ralph", *words)
        try:
            self._child = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=self._said[0],
                stderr=self._said[1],
                cwd=directory,
                env=environ,
                start_new_session=True,
            )
        except OSError as error:
            self._taken()
            words = f"ralph cannot be started for this: {error.strerror}"
            raise ConfigError(words, "Try again, with shorter texts.") from error

    def look(self) -> ToolAnswer | None:
        code = self._child.poll()
        if code is None:
            return None
        out, err = self._taken()
        return self._told(CommandEnd(shell_code(code), out, err))

    def news(self) -> News | None:
        return None

    def hurry(self) -> None:
        """It ends by itself, soon."""

    def cancel(self) -> None:
        """A run that has not begun does not begin; one that has goes on."""
        with suppress(OSError):
            self._child.send_signal(signal.SIGINT)

    def _taken(self) -> tuple[str, str]:
        """What it printed; the files are gone then."""
        texts = []
        for descriptor in self._said:
            os.lseek(descriptor, 0, os.SEEK_SET)
            with open(descriptor, encoding="utf-8", errors="replace") as file:
                texts.append(file.read())
        return texts[0], texts[1]


def known(told: dict[str, Any]) -> dict[str, Any]:
    """What is known of it: a model reads the rest for nothing."""
    pairs = ((key, known(each) if isinstance(each, dict) else each) for key, each in told.items())
    return {key: each for key, each in pairs if each not in (None, "", [], {})}


def cut(text: str) -> str:
    """A text of somebody, as much of it as there is room for. What it had of a key must not be
    cut."""
    return shorten(clean(redact(text)), _LONGEST_TEXT, None, "...")
