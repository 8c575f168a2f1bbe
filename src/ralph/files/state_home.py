"""Finds the state directory and the cache; hooks need this and nothing more."""

import os
from _collections_abc import Mapping  # `os` has it; `collections` is slow


def state_home(environ: Mapping[str, str]) -> str:
    """`$RALPH_STATE_DIR`, else `ralph` in the XDG state directory; empty if there is none."""
    chosen, base = environ.get("RALPH_STATE_DIR"), environ.get("XDG_STATE_HOME", "")
    if chosen:
        return os.path.abspath(chosen)
    if not os.path.isabs(base):  # XDG: a relative path is to be ignored
        base = os.path.join(environ.get("HOME") or _home(), ".local", "state")
    return os.path.join(base, "ralph") if os.path.isabs(base) else ""


def cache_home(environ: Mapping[str, str]) -> str:
    """The XDG cache directory."""
    said = environ.get("XDG_CACHE_HOME", "")
    home = environ.get("HOME") or os.path.expanduser("~")
    return said if os.path.isabs(said) else os.path.join(home, ".cache")


def _home() -> str:
    """The user's home by the system's own list; HOME may be unset, or empty."""
    import pwd

    try:
        return pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:
        return ""
