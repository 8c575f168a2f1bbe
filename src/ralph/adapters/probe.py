"""What an agent's binary can do, from its own help; asked once per binary (DESIGN §4.21)."""

import json
import os
import shutil
import subprocess
from collections.abc import Mapping

from ralph.adapters.files import write_atomically

_PATIENCE = 5.0


class Probe:
    """The help text of one command, cached by path, size and modification time."""

    def __init__(
        self,
        command: tuple[str, ...],
        arguments: tuple[str, ...],
        env: Mapping[str, str],
        cache: str,
    ) -> None:
        self._command = command
        self._arguments = arguments
        self._env = env
        self._cache = cache

    def __call__(self) -> str | None:
        """The help text; None where it could not be had."""
        key = self._key()
        known = _load(self._cache)
        if key not in known:
            said = self._ask()
            if said is None:
                return None
            known[key] = said
            _save(self._cache, known)
        return known[key]

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
        try:
            done = subprocess.run(
                (*self._command, *self._arguments),
                env={**self._env, "RALPH_PROBE": "1"},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                timeout=_PATIENCE,
                check=False,
                start_new_session=True,
            )
        except (OSError, subprocess.TimeoutExpired):
            return None
        return done.stdout.decode("utf-8", "replace")


def _load(path: str) -> dict[str, str]:
    try:
        with open(path, encoding="utf-8") as file:
            known = json.load(file)
    except (OSError, ValueError):
        return {}
    return known if isinstance(known, dict) else {}


def _save(path: str, known: dict[str, str]) -> None:
    try:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        write_atomically(path, json.dumps(known))
    except OSError:
        pass  # it will be asked again
