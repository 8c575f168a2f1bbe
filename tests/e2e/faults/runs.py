"""A real `ralph` at work on a hostile agent: what a kill can do to it, and what it tells."""

import os
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Self

from faults.places import Installation, Place, User
from faults.processes import Watched, keeper_of
from ralph.journal.journal import JOURNAL, read_journal
from ralph.kernel.facts import Fact

COMMANDS = {  # {says} is what the agent is told to say, which is its prompt
    "run": ("run", "--no-tell-completion", "-p", "{says}"),
    "supervise": ("supervise", "--task-dir", "task", "--max-restarts", "1", "-p", "{says}"),
}
PATIENCE = 40.0  # seconds for what must happen
_LOOK_EVERY = 0.01
_NOTICE = b"Received signal"
_SAID = "agent-stdout.txt"  # where `ralph supervise` saves what an agent says


class WrongError(Exception):
    """A kill that proves nothing: it came too early, too late, or not at all."""


class CancelledError(Exception):
    """Nobody wants to know any more."""


@dataclass(frozen=True)
class Ralph:
    """How ralph is run: by whom, with which interpreter, and as which of its commands."""

    installation: Installation
    user: User
    python: str
    command: str = "run"
    cancelled: threading.Event = field(default_factory=threading.Event)


class Run:
    """One run that is under way."""

    def __init__(self, ralph: Ralph, place: Place, says: str) -> None:
        self._ralph = ralph
        self._place = place
        self._env = ralph.installation.environment(place.home)
        self._env["RALPH_STATE_DIR"] = str(place.state)
        self._out, self._err = (place.directory / name for name in ("stdout", "stderr"))
        with self._out.open("wb") as out, self._err.open("wb") as err:
            words = (word.format(says=says) for word in COMMANDS[ralph.command])
            self.process = ralph.user.start(
                self._argv(*words), self._env, place.workspace, out, err
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()

    def await_that(self, happened: Callable[[], object], what: str) -> None:
        """Wait for something that must come."""
        end = time.monotonic() + PATIENCE
        while not happened():
            if self._ralph.cancelled.is_set():
                raise CancelledError
            if time.monotonic() > end:
                raise WrongError(f"{what}: that did not happen within {PATIENCE:g} s")
            time.sleep(_LOOK_EVERY)

    def await_agent(self) -> None:
        """Wait until the agent is at work, which is when it speaks."""
        self.await_that(lambda: self._out.stat().st_size or self.has_ended(), "the agent speaks")

    def has_ended(self) -> bool:
        """Whether ralph is gone."""
        return self.process.poll() is not None

    def await_end(self) -> None:
        """Wait until ralph is gone."""
        self.await_that(self.has_ended, "ralph ends")

    # -------------------------------------------------------------- ways to end it

    def ask(self, *words: str) -> None:
        """Run another ralph in the same workspace, such as `ralph stop`."""
        where, named = self._place.workspace, f"ralph {' '.join(words)}"
        with (self._place.directory / "asked").open("ab") as said:
            asked = self._ralph.user.start(self._argv(*words), self._env, where, said, said)
        try:
            self.await_that(lambda: asked.poll() is not None, named)
        finally:
            asked.kill()
            asked.wait()
        if asked.returncode:
            raise WrongError(f"{named}: exit code {asked.returncode}")

    def press_ctrl_c(self) -> None:
        """A terminal tells the whole foreground group."""
        os.killpg(self.process.pid, signal.SIGINT)

    def send(self, number: signal.Signals) -> None:
        """Send a signal to ralph alone."""
        self.process.send_signal(number)

    def await_notice(self) -> None:
        """Wait until ralph says that it has heard the first signal."""
        self.await_that(lambda: _NOTICE in self.stderr(), "ralph hears the signal")

    def keeper(self) -> Watched:
        """The keeper; whoever asks closes it."""
        pid = keeper_of(self.process.pid)
        if pid is None:
            raise WrongError("ralph has no keeper")
        return Watched(pid)

    # -------------------------------------------------------------- what it tells

    def stderr(self) -> bytes:
        """Ralph's own words so far."""
        return self._err.read_bytes()

    def facts(self) -> list[Fact]:
        """What the journal tells."""
        # A supervised run is found by its workspace too, through a link.
        journals = {path.resolve() for path in self._place.state.glob(f"*/runs/*/{JOURNAL}")}
        if len(journals) != 1:
            raise WrongError(f"there are {len(journals)} journals")
        return read_journal(str(journals.pop()))[0]

    def stream(self) -> bytes:
        """What the agent said."""
        saved = (*self._place.state.rglob("*.stream"), *self._place.workspace.rglob(_SAID))
        return b"".join(path.read_bytes() for path in saved)

    def _argv(self, *words: str) -> tuple[str, ...]:
        return (self._ralph.python, "-m", "ralph", *words)
