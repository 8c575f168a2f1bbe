"""This machine, as `ralph doctor` asks about it. Whatever is started has a time limit."""

import os
import re
import shutil
from collections.abc import Callable, Iterator, Mapping

from ralph.doctor.checks import Check, ok, problem, warning
from ralph.kernel.value import value
from ralph.kernel.verdict import Cut
from ralph.processes.child import Command, start

PATIENCE = 5.0
_NOT_WAITED_FOR = "was not waited for"
_MOST_KEPT = 1024 * 1024  # bytes of what a program prints; the rest is read and dropped
_BEGINNING = 64 * 1024  # where a version is looked for
_LONGEST_LINE = 160
_VERSION = re.compile(r"(?<!\d)\d+(?:\.\d+)+[-+.\w]*", re.ASCII)
_LONGEST_VERSION = 40


@value
class ProgramAnswer:
    """The output of a program. `trouble` says why that is no answer; "" if it is one."""

    said: str
    trouble: str = ""

    @property
    def version(self) -> str:
        """The first thing that looks like a version; "" if nothing does."""
        found = None if self.trouble else _VERSION.search(self.said[:_BEGINNING])
        return found[0][:_LONGEST_VERSION].rstrip(".-+_") if found else ""


@value
class Machine:
    """The surroundings, and the programs to ask there."""

    workspace: str
    environ: Mapping[str, str]
    given_up: Callable[[], bool] = lambda: False  # nobody waits for answers any more

    def which(self, program: str) -> str | None:
        """The path of a program; looked for as `ralph run` does."""
        return shutil.which(program, path=self.environ.get("PATH", os.defpath))

    def ask(self, *argv: str, env: Mapping[str, str] | None = None) -> ProgramAnswer:
        """Run a program to its end, for five seconds at most; its standard input is closed."""
        if self.given_up():
            return ProgramAnswer("", _NOT_WAITED_FOR)
        out, err = bytearray(), bytearray()
        environ = {**(self.environ if env is None else env), "RALPH_PROBE": "1"}
        try:
            child = start(
                Command(argv, self.workspace, environ),
                lambda chunk: out.extend(chunk[: _MOST_KEPT - len(out)]),
                lambda chunk: err.extend(chunk[: _MOST_KEPT - len(err)]),
            )
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or error
            return ProgramAnswer("", f"cannot be started: {why}")

        def impatience() -> Cut | None:
            if self.given_up():
                return Cut(_NOT_WAITED_FOR, grace=0.0)
            late = child.seconds() >= PATIENCE
            return Cut(f"gave no answer within {PATIENCE:g} s", 0.1) if late else None

        ended = child.wait(impatience)
        if ended.cut:
            return ProgramAnswer("", ended.cut.why)
        said, errors = (kept.decode("utf-8", "replace") for kept in (out, err))
        if ended.code:
            words = first_words(errors) or first_words(said)
            return ProgramAnswer("", f"exit code {ended.code}" + (f": {words}" if words else ""))
        return ProgramAnswer(said)


def first_words(text: str) -> str:
    """The first line that says something, short and printable, whatever was printed."""
    lines = ("".join(filter(str.isprintable, line)).strip() for line in text.splitlines())
    line = next(filter(None, lines), "")
    return line if len(line) <= _LONGEST_LINE else f"{line[:_LONGEST_LINE]}..."


def version_numbers(version: str) -> tuple[int, ...]:
    """`2.39.5-rc1` as (2, 39, 5), to be compared."""
    return tuple(int(number) for number in re.findall(r"\d+", version.partition("-")[0]))


def system_check(system: str, release: str, architecture: str) -> Check:
    """ADR 16: Linux first, macOS with honest limits, Windows through WSL 2."""
    found = f"{system} {release} {architecture}"
    if system == "Linux":
        return ok("system", found)
    if system == "Darwin":
        return ok("system", f"{found}: a process that leaves its group can outlive its run here")
    return problem("system", f"{found}: Ralph needs Linux or macOS", "On Windows use WSL 2.")


def python_check(version: str, executable: str) -> Check:
    found = f"{version} at {executable or 'a place that Python cannot tell'}"
    if version_numbers(version) >= (3, 11):
        return ok("python", found)
    return problem("python", f"{found}: too old", "Install Ralph with Python 3.11 or newer.")


@value
class Screen:
    """One stream: whether a person sees it, and how much of it at once, if it is known."""

    terminal: bool
    columns: int | None = None
    rows: int | None = None
    encoding: str = ""


def terminal_checks(
    out: Screen, err: Screen, environ: Mapping[str, str], *, color: bool
) -> Iterator[Check]:
    for name, screen in (("stdout", out), ("stderr", err)):
        if not screen.terminal:
            yield ok(name, "no terminal: lines are plain")
        elif screen.columns is None or screen.rows is None:
            yield ok(name, "a terminal that does not tell its size")
        else:
            yield ok(name, f"a terminal of {screen.columns} x {screen.rows}")
    term = environ.get("TERM")
    yield ok("TERM", term or "not set")
    why = "the settings say so" if out.terminal else "stdout is no terminal"
    why = "TERM is dumb" if term == "dumb" else why
    why = "NO_COLOR is set" if environ.get("NO_COLOR") else why
    yield ok("colours", "on" if color else f"off: {why}")
    if out.encoding.lower().replace("-", "").replace("_", "") == "utf8":
        yield ok("encoding", "UTF-8")
    else:
        found = f"{out.encoding or 'unknown'}: what it cannot show is shown as ?"
        yield warning("encoding", found, "export PYTHONIOENCODING=utf-8 or LANG=C.UTF-8")
