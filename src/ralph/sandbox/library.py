"""A sandbox as a library (B §Execution Environment): `from ralph import Sandbox`.

It prints nothing, takes no signal and needs none of the command line. Whatever becomes of the
program, no process, mount or directory of a sandbox stays behind.
"""

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, Self, TypeVar

from ralph.errors import ConfigError, RalphError, StateError
from ralph.files.state_dir import state_root
from ralph.kernel.value import replace, value
from ralph.processes import keeper_main
from ralph.sandbox import catalog
from ralph.sandbox import policy as plan
from ralph.sandbox.backends import overlay
from ralph.sandbox.backends.base import OpenSandbox, real_project
from ralph.sandbox.changes import landing
from ralph.sandbox.changes.by_descriptor import path_in
from ralph.sandbox.changes.commit import is_at
from ralph.sandbox.changes.diff import patch
from ralph.sandbox.credentials import secrets_of
from ralph.sandbox.interface import (
    OFF,
    Capabilities,
    Change,
    CommandResult,
    CommitResult,
    Network,
    SandboxPolicy,
    is_within,
)
from ralph.sandbox.network import network_of, on_the_network
from ralph.text.plain import escaped

_GIT = ".git"
_ON_THE_NETWORK = ("worktree", "direct")  # they keep nobody off it
_TIDIER = os.path.join(os.path.dirname(__file__), "tidier.py")
_Answer = TypeVar("_Answer")


@value
class Result:
    """What a command printed, as text, and its exit code: 128 + n for signal n, 127 if there is no
    such program, 124 if it was ended because it took too long."""

    stdout: str
    stderr: str
    exit_code: int
    timed_out: bool = False

    @property
    def ok(self) -> bool:
        """True if it ended with 0."""
        return self.exit_code == 0


class Sandbox:
    """A project that can be worked in without touching it, until `keep()` says what to apply.

    `network` is "off", "on", or the hosts that may be called: `["pypi.org", "*.npmjs.org:443"]` or
    the same with commas. `backend` is one of `ralph sandbox probe`, or "auto" for the first of
    overlay, srt and worktree that works. `show` are credentials that would be hidden.

    With `with` it is open. What was not kept by the end of that is thrown away, and what still runs
    in it is ended. It may be used from any thread; its calls take their turns. RalphError, with
    `message` and `remedy`, for everything that cannot be done.
    """

    def __init__(
        self,
        project: str | os.PathLike[str] = ".",
        *,
        network: str | Iterable[str] = "off",
        backend: str = "auto",
        show: Iterable[str] = (),
        environ: Mapping[str, str] | None = None,
    ) -> None:
        self.project = os.path.realpath(os.fspath(project))
        self.fs = Files(self.project, self._asked)
        self._environ = dict(os.environ if environ is None else environ)
        self._network = _network_of(network)
        self._wish = backend
        self._show = tuple(show)
        self._name = ""
        self._policy = SandboxPolicy(self._environ, "")
        self._box: OpenSandbox | None = None
        self._entered = False
        self._lock = threading.RLock()

    def __enter__(self) -> Self:
        with self._lock:
            if self._entered:
                raise ConfigError("this sandbox is open already", "Make another: Sandbox(project)")
            self._entered = True
            try:
                with self._named():
                    self._choose()
                    self._opened()
            except BaseException:
                self.close()
                raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Throw away what was not kept, and leave nothing behind. Again it does nothing."""
        with self._lock:
            entered, self._entered = self._entered, False
            try:
                self._shut()
            finally:
                if entered:
                    overlay.LAUNCHER.close()
                    _TIDY.close()

    @property
    def backend(self) -> str:
        """The backend that works here, by its name."""
        return self._name

    @property
    def capabilities(self) -> Capabilities:
        """Whether it contains, can be undone and limits calls; `lacks` says what is missing."""
        with self._using() as box:
            return box.capabilities

    def bash(self, command: str, timeout: float | None = None) -> Result:
        """Run a shell command in the project, for at most so many seconds. What it leaves running
        is ended with it."""
        return self._ran(lambda box: box.bash(command, timeout))

    def eval(self, code: str, language: str = "python", timeout: float | None = None) -> Result:
        """Run code in a fresh interpreter: Python by the project's .venv or python3, TypeScript by
        node 22.6 or newer, deno or bun."""
        return self._ran(lambda box: box.eval(code, language, timeout))

    def git(self, *arguments: str) -> Result:
        """Run the real git on the project as the sandbox has it. `keep()` applies a commit with the
        files where the sandbox has git's directory in it (overlay); elsewhere only files."""
        return self._ran(lambda box: box.git(*arguments))

    def changes(self) -> tuple[Change, ...]:
        """Everything that differs from the project, sorted by path, git's own files too."""
        with self._using() as box:
            return box.changes()

    def diff(self, path: str | os.PathLike[str] | None = None) -> str:
        """The unified diff of all changes but those in .git, or of those at a path and below."""
        wanted = None if path is None else path_in(self.project, os.fspath(path))
        with self._using() as box:
            return "".join(
                patch(change, box.diff(change))
                for change in box.changes()
                if (not is_within(change.path, _GIT) if wanted is None else is_at(change, wanted))
            )

    def keep(
        self, paths: str | os.PathLike[str] | Iterable[str] | None = None, *, held: bool = False
    ) -> CommitResult:
        """Apply the changes to the project: all, or those at these paths and below.

        What would act on this machine by itself is `held`, unless `held` is asked for; what
        somebody has changed meanwhile is `changed`, and is not overwritten. The rest is in
        `applied`; what is not stays in the sandbox, and a copy of it in `saved`. What still runs in
        the sandbox is ended. ConfigError for a path at which nothing has changed.
        """
        named = [paths] if isinstance(paths, (str, os.PathLike)) else paths
        wanted = (
            None if named is None else [path_in(self.project, os.fspath(path)) for path in named]
        )
        with self._using() as box:
            changes = box.changes() if wanted else ()
            for path in wanted or ():
                if not any(is_at(change, path) for change in changes):
                    raise ConfigError(
                        f"nothing has changed at {escaped(path)!r}", "See what has: changes()"
                    )
            try:
                return box.keep(everything=held, paths=wanted)
            except OSError as error:
                words = box.rescue()
                raise StateError(
                    f"the changes could not be kept: {error.strerror}", f"{words}. Make room."
                ) from error
            finally:
                if not box.is_open:
                    self._shut()

    def discard(self) -> None:
        """Undo everything that was not kept, and go on as in a new sandbox."""
        with self._using() as box:
            box.discard()
            self._shut()

    def refused(self) -> tuple[str, ...]:
        """Hosts that were called in vain since it was opened or kept."""
        with self._using() as box:
            return box.refused()

    def _choose(self) -> None:
        """Choose the backend and whom it may call; finish what others have left."""
        policy = SandboxPolicy(self._environ, state_root(self._environ))
        plan.refuse_within(policy.state, self.project)
        real_project(self.project)
        if self._wish == "auto":
            self._name = catalog.usable("auto", self.project, policy).name
        else:
            catalog.backend(self._wish)
            self._name = self._wish
        network = self._network
        if self._name in _ON_THE_NETWORK:
            network = on_the_network(self._name, network, "a command", 'network="on"')
        secrets = secrets_of([("text", self._environ)], self._show)
        self._policy = replace(
            policy,
            network=network,
            secret=secrets.hidden,
            visible=secrets.shown,
            home=self._environ.get("HOME", ""),
        )
        landing.recover(self.project, policy.state)

    def _opened(self) -> OpenSandbox:
        if self._box is None:
            _TIDY.begin()
            self._box = catalog.backend(self._name).open(self.project, self._policy)
            _TIDY.mine(self._box)
        return self._box

    def _shut(self) -> None:
        box, self._box = self._box, None
        if box is not None:
            try:
                box.close()
            finally:
                _TIDY.gone(box)

    def _ran(self, run: Callable[[OpenSandbox], CommandResult]) -> Result:
        with self._using() as box:
            try:
                done = run(box)
            except ValueError:
                raise ConfigError(
                    "a command cannot hold a NUL byte or half a character", "Leave that out."
                ) from None
        stdout, stderr = (data.decode("utf-8", "replace") for data in (done.output, done.error))
        return Result(stdout, stderr, done.code, done.late)

    def _asked(self, ask: Callable[[OpenSandbox], Any]) -> Any:  # noqa: ANN401  what it answers
        with self._using() as box:
            return ask(box)

    @contextmanager
    def _using(self) -> Iterator[OpenSandbox]:
        """The open sandbox, for this thread alone."""
        with self._lock:
            if not self._entered:
                raise ConfigError("this sandbox is not open", "Type: with Sandbox(project) as box:")
            with self._named():
                yield self._opened()

    @contextmanager
    def _named(self) -> Iterator[None]:
        """Have errors name the backend."""
        try:
            yield
        except RalphError as error:
            if self._name and self._name not in error.message:
                error.message = f"sandbox {self._name}: {error.message}"
                error.args = (error.message,)
            raise


class Files:
    """The project's files as the sandbox has them, by paths below the project. OSError for what is
    missing or no file; ConfigError for a path that leads out of the project or by a link."""

    def __init__(self, project: str, asked: Callable[[Callable[[OpenSandbox], Any]], Any]) -> None:
        self._project = project
        self._asked = asked

    def read(self, path: str | os.PathLike[str]) -> str:
        """The text of a file. ConfigError if it is not UTF-8."""
        data = self.read_bytes(path)
        try:
            return data.decode()
        except UnicodeDecodeError:
            raise ConfigError(f"{os.fspath(path)} is not UTF-8 text", "Use read_bytes.") from None

    def read_bytes(self, path: str | os.PathLike[str]) -> bytes:
        """The content of a file."""
        return self._at(path, lambda box, inner: box.fs.read(inner))

    def write(self, path: str | os.PathLike[str], data: str | bytes) -> None:
        """Write a file, and make the directories above it; an existing one keeps its mode."""
        content = data.encode() if isinstance(data, str) else data
        self._at(path, lambda box, inner: box.fs.write(inner, content))

    def list(self, path: str | os.PathLike[str] = "") -> tuple[str, ...]:
        """The names in a directory, sorted."""
        return self._at(path, lambda box, inner: box.fs.list(inner))

    def exists(self, path: str | os.PathLike[str]) -> bool:
        """True if something is there, a link too."""
        above, name = os.path.split(path_in(self._project, os.fspath(path)))
        try:
            return not name or name in self.list(above)
        except (FileNotFoundError, NotADirectoryError):
            return False

    def delete(self, path: str | os.PathLike[str]) -> None:
        """Delete a file, or a directory with all that is in it."""
        self._at(path, lambda box, inner: box.fs.delete(inner))

    def delta(self) -> tuple[Change, ...]:
        """The changes of the project's files, without those in .git."""
        found: tuple[Change, ...] = self._asked(lambda box: box.changes())
        return tuple(change for change in found if not is_within(change.path, _GIT))

    def _at(
        self, path: str | os.PathLike[str], act: Callable[[OpenSandbox, str], _Answer]
    ) -> _Answer:
        inner = path_in(self._project, os.fspath(path))

        def careful(box: OpenSandbox) -> _Answer:
            try:
                return act(box, inner)
            except ValueError:
                raise IsADirectoryError(21, os.strerror(21), os.fspath(path)) from None
            except OSError as error:
                if _is_by_link(box, inner):
                    raise ConfigError(
                        f"{escaped(inner)} leads by a link, which is not followed",
                        f"Name what it leads to, or use bash: cat {escaped(inner)}",
                    ) from error
                error.filename = os.fspath(path)
                raise

        answer: _Answer = self._asked(careful)
        return answer


def _is_by_link(box: OpenSandbox, path: str) -> bool:
    """True if a step of a path in there is a link."""
    return box.run("sh", "-c", _LINKS, "sh", path).code == 0


_LINKS = """
while [ "$1" != . ] && [ "$1" != / ]; do [ -L "$1" ] && exit 0; set -- "$(dirname -- "$1")"; done
exit 1
"""


class _Tidy:
    """Our side of the process that tidies up if this program is killed; it lives as long as any
    sandbox of it is open."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._begun: keeper_main.Launched | None = None
        self._owner = 0
        self._users = 0

    def begin(self) -> None:
        """Start it; it gets ready while we go on."""
        with self._lock:
            if self._begun is None or self._owner != os.getpid():
                self._begun, self._owner, self._users = keeper_main.launch(_TIDIER), os.getpid(), 0

    def mine(self, box: OpenSandbox) -> None:
        with self._lock:
            self._users += 1
            if box.places:
                self._say("mine", box.places[0], box.origin, list(box.places[1:]))

    def gone(self, box: OpenSandbox) -> None:
        with self._lock:
            self._users -= 1
            if box.places:
                self._say("gone", box.places[0])

    def close(self) -> None:
        """Let it go, unless another sandbox is open."""
        with self._lock:
            if self._users <= 0 and self._begun is not None and self._owner == os.getpid():
                begun, self._begun = self._begun, None
                begun.let_go()

    def _say(self, *message: object) -> None:
        if self._begun is None:
            return
        from socket import socket

        link = socket(fileno=self._begun.link)
        with suppress(OSError):  # somebody has killed it: then the next sandbox tidies up
            keeper_main.send(link, message)
        link.detach()


_TIDY = _Tidy()


def _network_of(wanted: str | Iterable[str]) -> Network:
    text = wanted if isinstance(wanted, str) else ",".join(wanted)
    try:
        return network_of(text) if text else OFF
    except ValueError as error:
        raise ConfigError(f"network: {error}", 'For example: network="off"') from None
