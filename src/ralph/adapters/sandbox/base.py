"""What all sandboxes have in common, whatever they stand on."""

import os
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from typing import IO, Self

from ralph.adapters.process import Child, Command
from ralph.adapters.sandbox.diff import unified
from ralph.adapters.sandbox.interface import Capabilities, Change, Files, Policy, Result
from ralph.adapters.sandbox.launcher import Attaching
from ralph.core.value import replace
from ralph.errors import ConfigError

_COARSE = 5  # CLOCK_REALTIME_COARSE
_TICK = 0.0005
_TYPESCRIPT = (  # what runs TypeScript from its standard input
    ("bun", "run", "-"),
    ("deno", "run", "-"),
    ("node", "--experimental-strip-types", "--input-type=module-typescript", "-"),
)


class Common:
    """A sandbox's commands, files and diffs, on a keeper and a directory."""

    def __init__(
        self,
        project: str,
        policy: Policy,
        capabilities: Capabilities,
        *,
        keeper: Attaching,
        tree: Files,
        directory: str,
    ) -> None:
        self.origin = project  # the project itself
        self.project = directory  # where commands find it
        self.policy = policy
        self.capabilities = capabilities
        self.fs: Files = tree
        self._keeper = keeper
        self._open = True

    def environment(self) -> Mapping[str, str]:
        """What commands find in their environment."""
        return self.policy.environ

    def spawn(
        self,
        argv: Iterable[str],
        on_output: Callable[[bytes], None] | None = None,
        on_error: Callable[[bytes], None] | None = None,
        log: IO[bytes] | None = None,
        *,
        stdin: bytes | None = None,
    ) -> Child:
        """Start a program; OSError if it cannot be started."""
        command = Command(tuple(argv), self.origin, self.policy.environ, stdin)
        return self.start(command, on_output, on_error, log)

    def start(
        self,
        command: Command,
        on_output: Callable[[bytes], None] | None = None,
        on_error: Callable[[bytes], None] | None = None,
        log: IO[bytes] | None = None,
    ) -> Child:
        """Start in here what is meant for the project, as a `Starter` does."""
        inside = replace(
            command,
            argv=self._outer(command.argv, reads=command.stdin is not None),
            cwd=self._inside(command.cwd),
            env=self._adapted(command.env),
        )
        return self._keeper(inside, on_output, on_error, log)

    def attach(self, argv: Iterable[str], stdin: int, stdout: int, stderr: int) -> Child:
        """Start a program on streams that we have."""
        terminal = os.isatty(stdin) and os.isatty(stdout)
        words = self._outer(tuple(argv), reads=True, terminal=terminal)
        command = Command(words, self.project, self.environment())
        return self._keeper.attach(command, stdin, stdout, stderr)

    def _outer(
        self, argv: tuple[str, ...], *, reads: bool, terminal: bool = False
    ) -> tuple[str, ...]:
        """What to start out here so that this runs in there; OSError if it is not there."""
        return argv

    def _inside(self, directory: str) -> str:
        """A directory of the project, as it is called in here."""
        if directory != self.origin and not directory.startswith(f"{self.origin}/"):
            return directory
        return self.project + directory.removeprefix(self.origin)

    def _adapted(self, env: Mapping[str, str]) -> dict[str, str]:
        """An environment with what this sandbox sets and takes away."""
        given, own = self.policy.environ, self.environment()
        kept = {name: text for name, text in env.items() if name not in given or name in own}
        return kept | {name: text for name, text in own.items() if given.get(name) != text}

    def run(self, *argv: str, stdin: bytes | None = None) -> Result:
        """Run a program to its end; 127 if there is none."""
        output, error = bytearray(), bytearray()
        try:
            child = self.spawn(argv, output.extend, error.extend, stdin=stdin)
        except OSError as problem:
            code = 127 if isinstance(problem, FileNotFoundError) else 126
            return Result(code, b"", f"{argv[0]}: {problem.strerror}\n".encode())
        code = child.wait(lambda: None).code
        return Result(code, bytes(output), bytes(error))

    def bash(self, command: str) -> Result:
        """Run a shell command to its end."""
        shell = shutil.which("bash", path=self.environment().get("PATH")) or "sh"
        return self.run(shell, "-c", command)

    def eval(self, code: str, language: str = "python") -> Result:
        """Run Python, or TypeScript where a runner is installed."""
        if language == "python":
            return self.run(self._python(), "-", stdin=code.encode())
        if language != "typescript":
            raise ConfigError(f"no runner for {language!r}", "Use python or typescript.")
        path = self.environment().get("PATH")
        runner = next((words for words in _TYPESCRIPT if shutil.which(words[0], path=path)), None)
        if runner is None:
            raise ConfigError("nothing here runs TypeScript", "Install bun, deno or node 22.7.")
        return self.run(*runner, stdin=code.encode())

    def git(self, *arguments: str) -> Result:
        """Run the real git on the project as the sandbox sees it."""
        return self.run("git", *arguments)

    def changes(self) -> tuple[Change, ...]:
        """What differs from the project, sorted by path."""
        raise NotImplementedError

    def refused(self) -> tuple[str, ...]:
        """Nobody: there is no list."""
        return ()

    def rescue(self) -> str:
        """There is nothing to save."""
        self.close()
        return ""

    def seal(self) -> bool:
        """There is nothing to keep."""
        return False

    def diff(self, change: Change) -> str:
        """A change in detail, as a unified diff."""
        return unified(change, self._before(change), self._after(change))

    def close(self) -> None:
        """End what runs, and leave nothing behind."""
        if self._open:
            self._open = False
            self._keeper.close()
            self._leave()

    def rest(self) -> None:
        """Nothing is awake."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _before(self, change: Change) -> str:
        return os.path.join(self.origin, change.path)

    def _after(self, change: Change) -> str:
        raise NotImplementedError

    def _leave(self) -> None:
        """Remove what the backend made."""

    def _python(self) -> str:
        return sys.executable or "python3"


def real_project(project: str) -> str:
    """The directory a sandbox is for, by its real name. ConfigError if it is none."""
    real = os.path.realpath(project)
    if not os.path.isdir(real):
        raise ConfigError(f"{project} is not a directory", "Name the project's directory: -C DIR")
    if real == "/":
        raise ConfigError("the whole system cannot be a project", "Go to the project's directory.")
    return real


class Moment:
    """When a sandbox was opened, by the clock that files are stamped with.

    Files are stamped by ticks of some milliseconds, or exactly: what was written before has an
    earlier stamp only if the ticking clock has passed the exact one's time.
    """

    def __init__(self) -> None:
        self._before = time.time_ns()

    def passed(self) -> int:
        """Now, in nanoseconds; later than anything that was written before the moment began."""
        while (now := _coarse()) <= self._before:
            time.sleep(_TICK)
        return now


def _coarse() -> int:
    try:
        return time.clock_gettime_ns(_COARSE)
    except OSError:
        return time.time_ns()
