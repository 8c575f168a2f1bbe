"""The sandboxes of a run: one for every turn and every check, each with a layer of its own."""

import glob
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from ralph.agents.turn_files import Filing, TurnFiles
from ralph.errors import RalphError, StateError
from ralph.git.digest import git_output
from ralph.kernel.facts import Landed
from ralph.kernel.ports import Agent, Watch
from ralph.kernel.turn import Order, Role, Turn
from ralph.kernel.value import replace
from ralph.kernel.verdict import Cut
from ralph.processes.child import Child, Command, Exit, Reader
from ralph.sandbox import layer_store
from ralph.sandbox.backends.base import Backend, OpenSandbox
from ralph.sandbox.changes import landing
from ralph.sandbox.credentials import Login
from ralph.sandbox.interface import CommitResult, SandboxPolicy
from ralph.sandbox.profile import is_kept
from ralph.text.words import listed

_SHOW = 'test -f "$1" && exec head -c 1048577 -- "$1"'  # whatever the agent has put there
_PATIENCE = 3.0  # seconds


@dataclass
class RunLayers:
    """Opens a sandbox when something starts, and keeps what a turn changed until it lands."""

    backend: Backend
    project: str  # its real path
    policy: SandboxPolicy
    run_dir: str
    logins: tuple[Login, ...]
    most_grace: float
    tell: Callable[[str], None] = lambda _: None
    _turn: str = ""  # the layer of the turn under way; "" for one that leaves nothing
    _box: OpenSandbox | None = None  # the turn's
    _last: OpenSandbox | None = None  # that was opened
    _refused: tuple[str, ...] = ()
    _lacks: str = ""  # what was told of it

    @contextmanager
    def turn(self, order: Order) -> Iterator[None]:
        """Have everything that starts in it share a sandbox, which then waits for its landing."""
        self._forget()
        for login in self.logins:
            login.remember()
        self._refused = ()
        self._turn = "" if order.role is Role.MESSAGE else self._name(order.iteration)
        self.clear()  # there may be one of a turn that was cut off, and is taken again
        try:
            yield
        except BaseException:
            self._forget()
            raise
        if self._box is not None:
            for number, login in enumerate(self.logins):
                saved = os.path.join(self.run_dir, f"login.before{number or ''}")
                if login.renew(self._seen, saved):
                    self.tell(f"The agent has renewed its login; the one before is in {saved}.")
        box = self._box
        if box is None or not self._turn:
            self._forget()
            return
        self._refused = box.refused()
        try:
            if box.seal():
                self._box = None
        except OSError as error:
            self._box = None
            raise _unlanded(self._path(self._turn), error, box.rescue()) from error

    def start(self, command: Command, on_output: Reader = None, on_error: Reader = None) -> Child:
        """Start the agent's process in the turn's sandbox: a `Starter`."""
        self._box = self._box or self._open(self._turn)
        child = self._box.start(command, on_output, on_error)
        child.most_grace = self.most_grace
        return child

    def take_file(self, path: str) -> str:
        """Read and remove a file that the agent wrote for us in the turn's sandbox."""
        try:
            assert self._box is not None
            text = self._box.fs.read(path).decode("utf-8", "replace")
            self._box.fs.delete(path)
        except OSError:
            return ""
        return text

    def land(self, iteration: int, now: float, *, keep: bool) -> Landed:
        """Apply what a turn changed, or throw it away."""
        if not os.path.isdir(self.project):
            raise StateError(f"{self.project} is gone", "Put it back, then: ralph resume")
        box, self._box = self._box, None
        if box is not None:  # of a backend that keeps nothing on disk
            with box:
                count, refused = len(box.changes()), box.refused()
                if keep or not box.capabilities.rollback:
                    return landing.told(box.commit(), now, count=count, refused=refused)
                box.discard()
                return Landed(now, kept=False, count=count, refused=refused)
        self._turn = self._name(iteration)
        path, thrown = self._path(self._turn), os.path.join(self.run_dir, "thrown")
        try:
            landed = landing.land(path, now, keep=keep, thrown=thrown)
        except OSError as error:
            raise _unlanded(path, error) from error
        return replace(landed, refused=self._refused)

    def landed(self, order: Order, turn: Turn) -> tuple[Landed, ...]:
        """The same at once after a turn, where no policy does that."""
        if order.role is Role.MESSAGE:
            return ()
        landed = self.land(order.iteration, time.time(), keep=is_kept(turn))
        self.clear()
        return (landed,)

    def check(self, command: Command, on_output: Reader = None, on_error: Reader = None) -> Child:
        """Start a guardrail in a sandbox of its own, kept unless it is cut: a `Starter`."""
        try:
            box = self._open("")
        except RalphError as error:
            raise OSError(error.words) from error
        try:
            child = box.start(command, on_output, on_error)
        except BaseException:
            box.close()
            raise
        return _Visit(box, child, self.most_grace, self.tell)

    def clear(self) -> None:
        """Remove the layers that have landed: the journal knows of them."""
        for path in glob.glob(f"{glob.escape(self._path(os.path.basename(self.run_dir)))}-*"):
            tree = os.path.isdir(os.path.join(path, "tree"))
            layer_store.remove(path)
            if tree:
                git_output(self.project, self.policy.environ, "worktree", "prune")

    def close(self) -> None:
        """Leave nothing behind but what waits for a landing."""
        self._forget()
        if self._last is not None:
            self._last.rest()

    def _seen(self, path: str) -> bytes:
        """The beginning of a file outside the project, as the turn's sandbox has it."""
        assert self._box is not None
        output = bytearray()
        words = ("sh", "-c", _SHOW, "sh", path)
        command = Command(words, self.project, self.policy.environ)
        child = self._box.start(command, output.extend)
        child.wait(lambda: Cut("it takes too long", 0.0) if child.seconds() > _PATIENCE else None)
        return bytes(output)

    def _open(self, name: str) -> OpenSandbox:
        box = self.backend.open(self.project, replace(self.policy, name=name, awake=True))
        self._last = box
        if box.capabilities.lacks != self._lacks:
            self._lacks = box.capabilities.lacks
            self.tell(f"In the sandbox {self._lacks}.")
        return box

    def _forget(self) -> None:
        box, self._box = self._box, None
        if box is not None:
            box.close()

    def _name(self, iteration: int) -> str:
        return f"{os.path.basename(self.run_dir)}-{iteration:03d}"

    def _path(self, name: str) -> str:
        return os.path.join(layer_store.sandboxes(self.policy.state, self.project), name)


class SandboxedAgent:
    """An agent whose every turn is in a sandbox."""

    def __init__(self, agent: Agent, layers: RunLayers) -> None:
        self._agent = agent
        self._layers = layers

    def take_turn(self, order: Order, watch: Watch) -> Turn:
        with self._layers.turn(order):
            return self._agent.take_turn(order, watch)


class InnerFiling:
    """Files of turns, but for the answer, which an agent in a sandbox writes in the project."""

    def __init__(self, filing: Filing) -> None:
        self._filing = filing

    def begin(self, order: Order) -> TurnFiles:
        return replace(self._filing.begin(order), answer=".ralph-answer")

    def started(self, pid: int) -> None:
        self._filing.started(pid)


class _Visit(Child):
    """A child in a sandbox of its own, which is kept when the child has ended by itself."""

    def __init__(
        self, box: OpenSandbox, child: Child, most_grace: float, tell: Callable[[str], None]
    ) -> None:
        super().__init__(child.handle, child.started, child.readers, most_grace)
        self._box = box
        self._tell = tell

    def wait(self, watch: Callable[[], Cut | None]) -> Exit:
        """Read until the child is gone, then keep what it left."""
        with self._box:
            ended = super().wait(watch)
            kept = self._box.commit() if ended.cut is None else CommitResult()
        if kept.spared:
            paths = listed([spared.path for spared in kept.spared])
            see = f"; see {kept.saved}" if kept.saved else ""
            self._tell(f"Not kept of what a guardrail changed: {paths}{see}")
        return ended


def _unlanded(path: str, error: OSError, saved: str = "") -> StateError:
    return StateError(
        f"cannot keep what the turn changed: {error.strerror} ({path})",
        f"{saved}\nFix that, then: ralph resume".strip(),
    )
