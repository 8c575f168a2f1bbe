"""An open sandbox, as all backends have it: modules with `probe` and `open`."""

import os
import shutil
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Protocol, Self

from ralph.errors import ConfigError
from ralph.kernel.value import replace
from ralph.kernel.verdict import Cut
from ralph.processes import keeper_main
from ralph.processes.child import Child, Command, Reader
from ralph.processes.interpreters import LANGUAGES, python_of, typescript_runner, version_of
from ralph.processes.keeper import Keeper
from ralph.sandbox.changes.by_descriptor import FileTree
from ralph.sandbox.changes.diff import unified
from ralph.sandbox.interface import (
    Capabilities,
    Change,
    CommandResult,
    CommitResult,
    SandboxPolicy,
    is_within,
)

if TYPE_CHECKING:
    from ralph.sandbox.backends.guest import GuestFiles

_LATE, _NOT_EXECUTABLE, _NOT_FOUND = 124, 126, 127
_GRACE = 1.0  # seconds between the signals that end what takes too long


class OpenSandbox:
    """An open sandbox. `close` ends whatever runs in it and drops what was not committed."""

    kind = ""  # the backend's name
    no_rollback = "nothing can be undone"  # said where there is none

    def __init__(
        self, project: str, policy: SandboxPolicy, capabilities: Capabilities, directory: str = ""
    ) -> None:
        self.origin = project  # the project itself
        self.project = directory or project  # where commands find it
        self.policy = policy
        self.capabilities = capabilities
        self.environ = policy.environ  # of commands
        self.fs: FileTree | GuestFiles = FileTree(self.project)
        self._keeper = Keeper()
        self._results = self.project  # the directory with what changes lead to
        self._open = True

    def spawn(
        self,
        argv: Iterable[str],
        on_output: Reader = None,
        on_error: Reader = None,
        *,
        stdin: bytes | None = None,
    ) -> Child:
        """Start a program; OSError if that fails."""
        command = Command(tuple(argv), self.origin, self.policy.environ, stdin)
        return self.start(command, on_output, on_error)

    def start(self, command: Command, on_output: Reader = None, on_error: Reader = None) -> Child:
        """Start a command meant for the project in here, as a `Starter` does."""
        cwd = command.cwd
        if is_within(cwd, self.origin):
            cwd = self.project + cwd.removeprefix(self.origin)
        given, own = self.policy.environ, self.environ
        # What this sandbox takes away from the environment, and what it sets.
        env = {name: text for name, text in command.env.items() if name not in given or name in own}
        env |= {name: text for name, text in own.items() if given.get(name) != text}
        argv = self._outer(command.argv, () if command.stdin is None else ("-i",))
        inside = replace(command, argv=argv, cwd=cwd, env=env)
        return self._keeper(inside, on_output, on_error)

    def attach(self, argv: Iterable[str], stdin: int, stdout: int, stderr: int) -> Child:
        """Start a program on streams of the caller's."""
        terminal = os.isatty(stdin) and os.isatty(stdout)
        words = self._outer(tuple(argv), ("-it",) if terminal else ("-i",))
        command = Command(words, self.project, self.environ)
        return self._keeper.attach(command, stdin, stdout, stderr)

    def _outer(self, argv: tuple[str, ...], flags: tuple[str, ...]) -> tuple[str, ...]:
        """The words to run out here so that these run in there, with what `docker exec` calls
        flags for their streams; OSError if they cannot."""
        return argv

    def run(
        self, *argv: str, stdin: bytes | None = None, timeout: float | None = None
    ) -> CommandResult:
        """Run a program to its end, or for so many seconds; 127 if there is none."""
        output, error = bytearray(), bytearray()
        try:
            child = self.spawn(argv, output.extend, error.extend, stdin=stdin)
        except OSError as problem:
            code = _NOT_FOUND if isinstance(problem, FileNotFoundError) else _NOT_EXECUTABLE
            return CommandResult(code, b"", f"{argv[0]}: {problem.strerror}\n".encode())

        def watch() -> Cut | None:
            late = timeout is not None and child.seconds() >= timeout
            return Cut("it took too long", _GRACE) if late else None

        ended = child.wait(watch)
        late = ended.cut is not None
        return CommandResult(_LATE if late else ended.code, bytes(output), bytes(error), late)

    def bash(self, command: str, timeout: float | None = None) -> CommandResult:
        shell = shutil.which("bash", path=self.environ.get("PATH")) or "sh"
        return self.run(shell, "-c", command, timeout=timeout)

    def eval(
        self, code: str, language: str = "python", timeout: float | None = None
    ) -> CommandResult:
        """Run Python, or TypeScript where a runner is installed."""
        return self.run(*self.runner(language), stdin=code.encode(), timeout=timeout)

    def runner(self, language: str) -> tuple[str, ...]:
        """The command that runs code of a language from its standard input. ConfigError if there is
        none."""
        if language == "python":
            return (self.python(), "-")
        if language != "typescript":
            names = " or ".join(LANGUAGES)
            raise ConfigError(f"no runner for the language {language!r}", f"Use {names}.")
        return typescript_runner(self.environ.get("PATH", os.defpath), self.version_of)

    def python(self) -> str:
        return python_of(self.origin, self.environ.get("PATH", os.defpath))

    def version_of(self, program: str) -> str:
        """What a program in there prints for `--version`; "" where there is none."""
        return version_of(program, self.environ.get("PATH", os.defpath))

    def git(self, *arguments: str) -> CommandResult:
        """Run the real git on the project as the sandbox sees it."""
        return self.run("git", *arguments)

    @property
    def is_open(self) -> bool:
        return self._open

    @property
    def places(self) -> tuple[str, ...]:
        """The directories that it has for itself, that of its layer first."""
        return ()

    def changes(self) -> tuple[Change, ...]:
        """Differences from the project, sorted by path."""
        raise NotImplementedError

    def diff(self, change: Change) -> str:
        # Where there is no rollback, nobody has what was before.
        before = os.path.join(self.origin, change.path) if self.capabilities.rollback else ""
        after = "" if change.gone else os.path.join(self._results, change.path)
        return unified(change, before, after)

    def refused(self) -> tuple[str, ...]:
        """Hosts that were called and are not on the list, as the list would name them."""
        return ()

    def commit(self, *, everything: bool = False) -> CommitResult:
        """Apply the changes to the project, but for those held, unless everything is wanted."""
        return CommitResult(tuple(change.path for change in self.changes()))

    def keep(self, *, everything: bool = False, paths: Sequence[str] | None = None) -> CommitResult:
        """The same, and go on with what is left: all changes, or those at these paths and below.
        What runs in it is ended."""
        if paths is not None:
            raise ConfigError(
                f"{self.kind} works in place, so that everything is kept already",
                "Keep without naming paths, or use another: ralph sandbox probe",
            )
        return self.commit(everything=everything)

    def seal(self) -> bool:
        """Close, but keep the layer on disk for `landing.land`; False where there is none."""
        return False

    def rescue(self) -> str:
        """Close after a failed commit, and save what can be; words about it, or ""."""
        self.close()
        return ""

    def discard(self) -> None:
        """Forget the changes and close. ConfigError where there is no rollback."""
        if not self.capabilities.rollback:
            raise ConfigError(self.no_rollback, "Use another: ralph sandbox probe")
        self.close()

    def close(self) -> None:
        """End what runs, and leave nothing behind."""
        if self._open:
            self._open = False
            self._end()
            self._leave()

    def rest(self) -> None:
        """Stop what was kept awake for the next sandbox: this one, now closed, was the last."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _end(self) -> None:
        self._keeper.close()

    def _leave(self) -> None:
        """Remove what the backend made."""


class Backend(Protocol):
    """A way to make sandboxes."""

    def probe(self, project: str, policy: SandboxPolicy) -> Capabilities:
        """Try it for real, here; raises nothing."""

    def open(self, project: str, policy: SandboxPolicy) -> OpenSandbox:
        """Open a sandbox over a project. ConfigError says what is missing."""


def real_project(project: str) -> str:
    """The real path of a sandbox's project. ConfigError if it is no directory."""
    real = os.path.realpath(project)
    if not os.path.isdir(real):
        raise ConfigError(f"{project} is not a directory", "Name the project's directory.")
    if real == "/":
        raise ConfigError("the whole system cannot be a project", "Name the project's directory.")
    return real


def missing_keeper() -> str:
    """The reason why nothing can be kept here, or ""."""
    return "" if keeper_main.is_possible() else "needs Linux 5.3 or newer"
