"""Logins that an agent renews while it works.

What it writes at home in a sandbox is thrown away, but a renewed login makes the old one void: then
neither the next turn nor the person at the terminal could go on.
"""

import json
import os
import re
from collections.abc import Callable, Mapping

from ralph.files.safe_open import open_regular
from ralph.files.state_dir import write_atomically

_FILES = {  # kind -> the variable that moves the directory, the directory at home, the file in it
    "claude": ("CLAUDE_CONFIG_DIR", ".claude", ".credentials.json"),
    "codex": ("CODEX_HOME", ".codex", "auth.json"),
    "gemini": ("", ".gemini", "oauth_creds.json"),
    "opencode": ("", ".local/share/opencode", "auth.json"),
}
_LARGEST = 1024 * 1024
_OF_A_TOKEN = re.compile(r"token$|expir|refresh", re.IGNORECASE)


class Login:
    """The file that holds an agent's login, if it has one."""

    def __init__(self, kind: str, env: Mapping[str, str]) -> None:
        self._path = login_path(kind, env)
        self._before: bytes | None = None

    def remember(self) -> None:
        """Note the login as it is before a turn."""
        self._before = _content(self._path)

    def renew(self, read: Callable[[str], bytes], saved: str) -> bool:
        """Keep a login that the agent renewed, and save the one before; False if none is new.

        `read` reads a file as the agent sees it. Nothing is kept if somebody else has renewed it
        meanwhile, nor if it is another's: only tokens and times may be new.
        """
        if self._before is None or _content(self._path) != self._before:
            return False
        after = read(self._path)
        try:
            tokens = _differ_in_tokens(json.loads(after), json.loads(self._before))
        except (ValueError, RecursionError):
            return False
        if after == self._before or not tokens:
            return False
        try:
            write_atomically(saved, self._before.decode(), mode=0o600)
            write_atomically(self._path, after.decode(), mode=0o600)
        except OSError:
            return False  # then it could not be renewed outside either
        return True


def login_path(kind: str, env: Mapping[str, str]) -> str:
    """The file with the login of an agent of this kind; "" if that is not known."""
    variable, directory, name = _FILES.get(kind, ("", "", ""))
    if not name:
        return ""
    home = env.get("HOME", "")
    return os.path.join(env.get(variable) or os.path.join(home, directory), name)


def _content(path: str) -> bytes | None:
    try:
        if not path or os.path.getsize(path) > _LARGEST:
            return None
        with open_regular(path) as file:
            return file.read()
    except OSError:
        return None


def _differ_in_tokens(new: object, old: object, name: str = "") -> bool:
    if isinstance(new, dict) and isinstance(old, dict):
        return new.keys() == old.keys() and all(
            _differ_in_tokens(new[key], old[key], key) for key in old
        )
    return new == old or (type(new) is type(old) and bool(_OF_A_TOKEN.search(name)))
