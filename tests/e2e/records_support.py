"""Agents that call `ralph` as if they were a person, and a `ralph` that is seen in a sandbox."""

import importlib.util
import os
import shlex
import shutil
import sys
from pathlib import Path

import pytest

OWN = f"{shlex.quote(sys.executable)} -m ralph"
# Nothing of the environment but what a person's shell has too.
CLEARED = 'env -i HOME="$HOME" PATH="$PATH" RALPH_STATE_DIR="$RALPH_STATE_DIR"'


def attempts(place: Path, *calls: str, ralph: str = OWN) -> str:
    """Shell that makes these calls of `ralph`, each with a cleared environment, and keeps what was
    said and the exit code of each."""
    made = [f'{CLEARED} {ralph} {call} >> $SAID 2>&1; echo "=> $?" >> $SAID' for call in calls]
    return "\n".join([f"SAID={shlex.quote(str(place))}", *made, ""])


def codes(place: Path) -> list[int]:
    """The exit codes of the calls."""
    lines = place.read_text().splitlines()
    return [int(line.removeprefix("=> ")) for line in lines if line.startswith("=> ")]


def visible_ralph(place: Path) -> str:
    """A `ralph` in a directory that is seen in a sandbox: what tests use may lie in /tmp."""
    python = os.path.realpath(sys.executable)
    if python.startswith(("/tmp/", "/var/tmp/", "/run/")):
        pytest.skip("the interpreter lies where a sandbox has a place of its own")
    for package in ("ralph", "click", "msgspec"):
        found = importlib.util.find_spec(package)
        assert found is not None
        assert found.origin is not None
        leave = shutil.ignore_patterns("__pycache__")
        shutil.copytree(os.path.dirname(found.origin), place / "lib" / package, ignore=leave)
    program = place / "ralph"
    program.write_text(
        f"#!{python} -B\nimport sys; sys.path.insert(0, {str(place / 'lib')!r})\n"
        "from ralph.__main__ import main; main()\n"
    )
    program.chmod(0o755)
    return str(program)
