"""Asks an agent's binary for its help, once per binary (ADR 15)."""

import json
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import field

from ralph.files.safe_open import read_or_nothing
from ralph.files.state_dir import write_atomically
from ralph.kernel.value import value
from ralph.kernel.verdict import Cut
from ralph.processes.child import Command, start
from ralph.processes.which import which

_PATIENCE = 5.0
_LONGEST = 1024 * 1024  # bytes of a help text


def asked(argv: tuple[str, ...], env: Mapping[str, str]) -> str | None:
    """The output of a program, "" if it does not answer in time, None if it may another time."""
    said = bytearray()

    def hear(chunk: bytes) -> None:
        said.extend(chunk[: _LONGEST - len(said)])

    try:
        child = start(Command(argv, ".", {**env, "RALPH_PROBE": "1"}), hear)
    except (OSError, ValueError):
        return None
    late = Cut("it does not answer", grace=0.1)
    ended = child.wait(lambda: late if child.seconds() >= _PATIENCE else None)
    if ended.cut:
        return ""  # nor is it asked again: that would cost every run as much
    return None if ended.code else said.decode("utf-8", "replace")


@value
class Probe:
    """The help text of one command, cached by path, size and modification time. Without `may_ask`
    nothing is started: only what is already known counts."""

    command: tuple[str, ...]
    arguments: tuple[str, ...]
    env: Mapping[str, str]
    cache: str  # the file
    may_ask: bool = True
    ask: Callable[[tuple[str, ...], Mapping[str, str]], str | None] = asked
    _said: dict[str, str | None] = field(default_factory=dict)  # by key

    def __call__(self) -> str | None:
        """The help text; None where it could not be had, which is not asked again in this run."""
        key = self._key()
        if key not in self._said:
            known = _load(self.cache)
            said = None
            if key not in known and self.may_ask:
                said = self.ask((*self.command, *self.arguments), self.env)
            if said is not None:
                known = {**_load(self.cache), key: said}  # others may have asked meanwhile
                with suppress(OSError):  # it will be asked again
                    os.makedirs(os.path.dirname(self.cache), mode=0o700, exist_ok=True)
                    write_atomically(self.cache, json.dumps(known))
            self._said[key] = known.get(key)
        return self._said[key] or None

    def _key(self) -> str:
        path = which(self.command[0], self.env.get("PATH")) or self.command[0]
        real = os.path.realpath(path)
        try:
            info = os.stat(real)
        except OSError:
            return real
        words = " ".join((*self.command[1:], *self.arguments))
        return f"{real} {info.st_size} {info.st_mtime_ns} {words}"


def _load(path: str) -> dict[str, str]:
    try:
        known = json.loads(read_or_nothing(path))
    except ValueError:
        return {}
    entries = known.items() if isinstance(known, dict) else ()
    return {key: said for key, said in entries if isinstance(said, str)}
