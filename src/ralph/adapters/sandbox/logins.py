"""Logins that an agent renews while it works.

What it writes at home in a sandbox is thrown away, but a renewed login makes the old one void: then
neither the next turn nor the person at the terminal could go on.
"""

import json
import os
from collections.abc import Callable, Mapping
from contextlib import suppress

from ralph.adapters.files import write_atomically

_FILES = {  # kind -> the variable that moves the directory, the directory at home, the file in it
    "claude": ("CLAUDE_CONFIG_DIR", ".claude", ".credentials.json"),
    "codex": ("CODEX_HOME", ".codex", "auth.json"),
    "gemini": ("", ".gemini", "oauth_creds.json"),
    "opencode": ("", ".local/share/opencode", "auth.json"),
}
_LARGEST = 1024 * 1024


class Login:
    """The file that holds an agent's login, if it has one."""

    def __init__(self, kind: str, env: Mapping[str, str]) -> None:
        self._path = _path(kind, env)
        self._before: bytes | None = None

    def remember(self) -> None:
        """A turn is about to begin."""
        self._before = _content(self._path)

    def renew(self, read: Callable[[str], bytes]) -> None:
        """Keep what the agent made of it; `read` reads a file as the agent sees it.

        Not if somebody else has renewed it meanwhile, nor if it is no login any more.
        """
        if self._before is None or _content(self._path) != self._before:
            return
        after = read(self._path)
        if after != self._before and _is_like(after, self._before):
            with suppress(
                OSError
            ):  # one that cannot be written could not be renewed outside either
                write_atomically(self._path, after.decode(), mode=0o600)


def _path(kind: str, env: Mapping[str, str]) -> str:
    variable, directory, name = _FILES.get(kind, ("", "", ""))
    if not name:
        return ""
    home = env.get("HOME", "")
    return os.path.join(env.get(variable) or os.path.join(home, directory), name)


def _content(path: str) -> bytes | None:
    try:
        if not path or os.path.getsize(path) > _LARGEST:
            return None
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return None


def _is_like(after: bytes, before: bytes) -> bool:
    """Whether it has everything that was there before, by name."""
    try:
        new, old = json.loads(after), json.loads(before)
    except ValueError:
        return False
    return isinstance(new, dict) and isinstance(old, dict) and old.keys() <= new.keys()
