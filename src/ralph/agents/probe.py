"""What an agent's binary can do, from its own help; asked once per binary (ADR 15)."""

import json
import os
import shutil
from collections.abc import Mapping

from ralph.files.state_dir import write_atomically
from ralph.kernel.verdict import Cut
from ralph.processes.child import Command, start

_PATIENCE = 5.0
_LONGEST = 1024 * 1024  # bytes of a help text


class Probe:
    """The help text of one command, cached by path, size and modification time.

    Without `may_ask` nothing is started: only what is already known counts.
    """

    def __init__(
        self,
        command: tuple[str, ...],
        arguments: tuple[str, ...],
        env: Mapping[str, str],
        cache: str,
        *,
        may_ask: bool = True,
    ) -> None:
        self._command = command
        self._arguments = arguments
        self._env = env
        self._cache = cache
        self._may_ask = may_ask
        self._said: dict[str, str | None] = {}  # by key

    def __call__(self) -> str | None:
        """The help text; None where it could not be had, which is not asked again in this run."""
        key = self._key()
        if key not in self._said:
            known = _load(self._cache)
            self._said[key] = known[key] if key in known else self._learn(key)
        return self._said[key] or None

    def _learn(self, key: str) -> str | None:
        said = self._ask() if self._may_ask else None
        if said is not None:
            _save(self._cache, {**_load(self._cache), key: said})
        return said

    def _key(self) -> str:
        path = shutil.which(self._command[0], path=self._env.get("PATH")) or self._command[0]
        real = os.path.realpath(path)
        try:
            info = os.stat(real)
        except OSError:
            return real
        words = " ".join((*self._command[1:], *self._arguments))
        return f"{real} {info.st_size} {info.st_mtime_ns} {words}"

    def _ask(self) -> str | None:
        """Its help, "" if it does not answer in time, None if it may do better another time."""
        said = bytearray()
        argv = (*self._command, *self._arguments)

        def hear(chunk: bytes) -> None:
            said.extend(chunk[: _LONGEST - len(said)])

        try:
            child = start(Command(argv, ".", {**self._env, "RALPH_PROBE": "1"}), hear)
        except (OSError, ValueError):
            return None
        ended = child.wait(lambda: _impatience(child.seconds()))
        if ended.cut:
            return ""  # nor is it asked again: that would cost every run as much
        return None if ended.code else said.decode("utf-8", "replace")


def _impatience(seconds: float) -> Cut | None:
    return Cut("it does not answer", grace=0.1) if seconds >= _PATIENCE else None


def _load(path: str) -> dict[str, str]:
    try:
        with open(path, encoding="utf-8") as file:
            known = json.load(file)
    except (OSError, ValueError):
        return {}
    entries = known.items() if isinstance(known, dict) else ()
    return {key: said for key, said in entries if isinstance(said, str)}


def _save(path: str, known: dict[str, str]) -> None:
    try:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        write_atomically(path, json.dumps(known))
    except OSError:
        pass  # it will be asked again
