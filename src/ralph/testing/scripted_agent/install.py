"""Put a scripted agent where a test, or `ralph demo`, wants one."""

import json
import os
import shlex
import sys
from typing import Any

import ralph

PACKAGES = os.path.dirname(os.path.dirname(os.path.abspath(ralph.__file__)))
START = (
    "import sys; sys.path.insert(0, sys.argv.pop(1)); "
    "from ralph.testing.scripted_agent.program import main; main()"
)


def install_agent(
    directory: str, script: object, *, kind: str = "claude", name: str | None = None
) -> str:
    """Write an executable `directory/<name or kind>` that plays `script`, a list of turns or a
    whole `script.Book`; returns its path. The kind is whose stream the agent speaks: acp, claude,
    codex, amp, gemini, opencode or ralph-agent; others print plain text. Installing again begins a
    new script."""
    os.makedirs(directory, exist_ok=True)
    path = os.path.join(os.path.abspath(directory), name or kind)
    for leftover in ("count", "calls.jsonl", "probes.jsonl"):
        if os.path.exists(f"{script_path(path)}.{leftover}"):
            os.remove(f"{script_path(path)}.{leftover}")
    book = script if isinstance(script, dict) else {"turns": script}
    with open(script_path(path), "w", encoding="utf-8") as file:
        json.dump({**book, "kind": kind}, file)
    with open(path, "w", encoding="utf-8") as file:
        file.write(launcher(script_path(path)))
    os.chmod(path, 0o755)
    return path


def calls(path: str) -> list[dict[str, Any]]:
    """Every call of the agent at `path` so far, in order: argv, prompt, cwd, pid, env, time. `env`
    has every name; the value only of RALPH_* and a few others, else None."""
    return _read(f"{script_path(path)}.calls.jsonl")


def probes(path: str) -> list[dict[str, Any]]:
    """Every `--version` or `--help` so far: these take no turn and are not calls."""
    return _read(f"{script_path(path)}.probes.jsonl")


def script_path(path: str) -> str:
    return f"{path}.script"


def launcher(script: str) -> str:
    """A shell script, since a `#!` line breaks on blanks and long paths."""
    # -I -S: nothing of the environment or of the current directory can get in the way.
    words = [sys.executable, "-I", "-S", "-X", "utf8", "-c", START, PACKAGES, script]
    return f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n'


def _read(path: str) -> list[dict[str, Any]]:
    if not os.path.exists(path):
        return []
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file]
