"""Finds what runs code that somebody hands over: Python, and TypeScript by node, deno or bun."""

import os
import re
import subprocess
import sys
from collections.abc import Callable

from ralph.errors import ConfigError
from ralph.processes.which import which

LANGUAGES = ("python", "typescript")
_PATIENCE = 20.0  # seconds
_STRIPS, _ASKED_TO = "22.6", "--experimental-strip-types"
_QUIET = "--disable-warning=ExperimentalWarning"
_DENO = ("deno", "run", "--quiet", "--allow-all", "-")  # it has the rights that Python has
_BUN = ("bun", "run", "-")
# Node before 22.18 takes TypeScript from a file alone. Beside the project's, so that relative
# imports lead where they lead from standard input.
_BY_FILE = """
f=".ralph-eval-$$.mts"; trap 'rm -f "$f"; exit 130' INT TERM
cat > "$f" && "$@" "$f"; code=$?; rm -f "$f"; exit $code
"""
_REMEDY = f"Install node {_STRIPS} or newer, deno or bun"


def python_of(project: str, path: str) -> str:
    """The Python of a project: that of its `.venv`, else the one on this PATH, else our own."""
    own = os.path.join(project, ".venv", "bin", "python")
    if os.access(own, os.X_OK):
        return own
    return which("python3", path) or sys.executable or "python3"


def typescript_runner(path: str, ask: Callable[[str], str] | None = None) -> tuple[str, ...]:
    """The command that runs TypeScript from its standard input, of programs on this PATH. Its
    relative imports begin in the current directory. `ask` says what a program prints for
    `--version`, "" where there is none. ConfigError names what to install."""
    asked = ask or (lambda program: version_of(program, path))
    said = asked("node")
    numbers = re.match(r"v?(\d+)\.(\d+)", said)
    version = (int(numbers[1]), int(numbers[2])) if numbers else (0, 0)
    if version >= (23, 6) or (22, 18) <= version < (23, 0):
        return ("node", _QUIET, "--input-type=module-typescript", "-")
    if version >= (22, 6):
        return ("sh", "-c", _BY_FILE, "sh", "node", _QUIET, _ASKED_TO)
    for words in (_DENO, _BUN):
        if asked(words[0]):
            return words
    if said:
        raise ConfigError(f"node {said.lstrip('v')} is too old to run TypeScript", f"{_REMEDY}.")
    raise ConfigError("there is nothing here that runs TypeScript", f"{_REMEDY}.")


def version_of(program: str, path: str) -> str:
    """What a program on this PATH prints for `--version`; "" where there is none."""
    found = which(program, path)
    if found is None:
        return ""
    try:
        done = subprocess.run(
            (found, "--version"),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=_PATIENCE,
            env={**os.environ, "PATH": path},
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.decode("utf-8", "replace").strip()
