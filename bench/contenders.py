"""Who is measured: commands that run an agent N times with a prompt."""

import os
import shlex
import sys
from dataclasses import dataclass

from bench.place import HERE, BenchError

_LOOP = os.path.join(HERE, "loop.sh")
_DECODE = "import json\nfor line in open('.ralph/tasks.jsonl', 'rb'): json.loads(line)"
_PLACEHOLDERS = ("{agent}", "{iterations}", "{prompt}")


@dataclass(frozen=True)
class Contender:
    """A command with `{agent}`, `{iterations}` and `{prompt}` in it, and what else it can do."""

    name: str
    loop: tuple[str, ...]
    version: tuple[str, ...] = ()
    help: tuple[str, ...] = ()
    stream: tuple[str, ...] = ()  # how it runs once over a long stream
    stream_json: tuple[str, ...] = ()  # the same, told to a program
    hook: tuple[str, ...] = ()  # what an agent's host asks before each command
    next_task: tuple[str, ...] = ()  # which task of the backlog here is next
    edit_task: tuple[str, ...] = ()  # change a task of it


def filled(command: tuple[str, ...], agent: str, iterations: int, prompt: str) -> tuple[str, ...]:
    """The command for one run. Anything else in braces stays as it is."""
    values = dict(zip(_PLACEHOLDERS, (agent, str(iterations), prompt), strict=True))
    return tuple(_replaced(word, values) for word in command)


def _replaced(word: str, values: dict[str, str]) -> str:
    for placeholder, value in values.items():
        word = word.replace(placeholder, value)
    return word


def bash() -> Contender:
    """The loop that people write."""
    loop = ("bash", _LOOP)
    unparsed = '"$1" "$2" >saved; exit 1'
    return Contender(
        "bash",
        (*loop, *_PLACEHOLDERS),
        (*loop, "--version"),
        (*loop, "--help"),
        stream=("bash", "-c", unparsed, "bash", "{agent}", "{prompt}"),
    )


def floor() -> Contender:
    """The least that a loop in a shell can cost: it starts nothing but the agent."""
    python = (sys.executable, "-I", "-S", "-c")
    return Contender(
        "floor",
        ("env", "LOOK=builtin", "bash", _LOOP, *_PLACEHOLDERS),
        hook=(*python, "pass"),  # no hook in Python can cost less
        next_task=(*python, _DECODE),
    )


def ralph(command: str | None = None) -> Contender:
    """The `ralph` beside this interpreter, or another."""
    words = tuple(shlex.split(command)) if command else _installed()
    loop = (*words, "run", "-p", "{prompt}", "--agent", "{agent}", "-m", "{iterations}")
    return Contender(
        "ralph",
        loop,
        (*words, "--version"),
        (*words, "--help"),
        loop,
        (*loop, "--json"),
        (*words, "hook", "pre-tool"),
        (*words, "tasks", "next", "--json"),
        (*words, "tasks", "edit"),
    )


def _installed() -> tuple[str, ...]:
    script = os.path.join(os.path.dirname(sys.executable), "ralph")
    return (script,) if os.access(script, os.X_OK) else (sys.executable, "-m", "ralph")


def other(text: str) -> Contender:
    """`NAME=COMMAND`, as it is given on the command line."""
    name, equals, command = text.partition("=")
    if not name.strip() or not equals or not command.strip():
        raise BenchError(f"--contender {text!r}: write NAME='command {{agent}} {{iterations}} ...'")
    missing = [word for word in _PLACEHOLDERS[:2] if word not in command]
    if missing:
        raise BenchError(f"--contender {name}: the command needs {' and '.join(missing)}")
    try:
        loop = tuple(shlex.split(command))
        return Contender(name.strip(), loop, stream=loop)
    except ValueError as error:
        raise BenchError(f"--contender {name}: {error}") from error
