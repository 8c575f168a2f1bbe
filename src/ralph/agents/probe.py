"""Asks an agent's binary for its help, once per binary (ADR 15)."""

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
            if key not in known and self._may_ask and (said := self._ask()) is not None:
                known = {**_load(self._cache), key: said}  # others may have asked meanwhile
                try:
                    os.makedirs(os.path.dirname(self._cache), mode=0o700, exist_ok=True)
                    write_atomically(self._cache, json.dumps(known))
                except OSError:
                    pass  # it will be asked again
            self._said[key] = known.get(key)
        return self._said[key] or None

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
        late = Cut("it does not answer", grace=0.1)
        ended = child.wait(lambda: late if child.seconds() >= _PATIENCE else None)
        if ended.cut:
            return ""  # nor is it asked again: that would cost every run as much
        return None if ended.code else said.decode("utf-8", "replace")


def _load(path: str) -> dict[str, str]:
    try:
        with open(path, encoding="utf-8") as file:
            known = json.load(file)
    except (OSError, ValueError):
        return {}
    entries = known.items() if isinstance(known, dict) else ()
    return {key: said for key, said in entries if isinstance(said, str)}
