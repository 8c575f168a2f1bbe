"""Runs the user's hook and notification commands."""

import os
from collections.abc import Callable, Mapping
from typing import Any

from ralph.kernel.value import value
from ralph.kernel.verdict import Cut
from ralph.processes.child import Command, Starter, run_and_hear, start
from ralph.text.plain import plain
from ralph.text.redact import redacted_json
from ralph.text.words import duration

PATIENCE = 30.0  # seconds
_KEPT = 4096  # bytes of what it says


@value
class Trouble:
    """The failure of a command, in words; `late`: it did not end in time."""

    words: str
    late: bool = False


@value
class UserCommands:
    """The surroundings of such commands. Whatever becomes of one is words, never an exception.
    `hurry` is asked four times a second, and may end one before its time is over."""

    workspace: str
    environ: Mapping[str, str]
    start: Starter = start
    patience: float = PATIENCE
    hurry: Callable[[], Cut | None] = lambda: None

    def run(
        self, command: str, told: Mapping[str, Any], also: Mapping[str, str] | None = None
    ) -> Trouble | None:
        """Run a shell command with JSON on its standard input, and end it and what it started when
        the time is over; why it failed, if it did."""
        stdin = redacted_json(dict(told)).encode() + b"\n"
        env = {**self.environ, **(also or {})}
        try:
            # A keeper has another one for such commands: an agent may be at work meanwhile.
            begin: Starter = getattr(self.start, "beside", self.start)
            spoken = Command(("sh", "-c", command), self.workspace, env, stdin)
            ended, said = run_and_hear(begin, spoken, self._watch, _KEPT)
        except (OSError, ValueError) as error:
            number = getattr(error, "errno", None)
            why = str(error) if number is None else os.strerror(number)
            return Trouble(f"it could not be run: {why}")
        if ended.cut is not None:
            return Trouble(ended.cut.why, late=True)
        if not ended.code:
            return None
        last = said.splitlines()[-1:]
        return Trouble(": ".join((f"exit code {ended.code}", *map(plain, last))))

    def _watch(self, seconds: float) -> Cut | None:
        hurry = self.hurry()
        if hurry is None and seconds >= self.patience:
            return Cut(f"it took longer than {duration(self.patience)}", grace=1.0)
        return hurry
