"""A change in detail: a unified diff where there is text, a sentence where there is none."""

import difflib
import os
import stat

from ralph.adapters.sandbox.interface import Change

_LARGEST = 512 * 1024  # bytes; comparing takes long for more
_NOWHERE = "/dev/null"


def unified(change: Change, before: str, after: str) -> str:
    """How what stood at the first place became what stands at the second."""
    old, new = _seen(before), _seen(after)
    head = _mode_line(old[0], new[0])
    if old[1] == new[1]:
        return head
    name = change.path.encode("utf-8", "backslashreplace").decode()
    if old[1] is None or new[1] is None:
        return head + f"{name}: {_size(old[0])} became {_size(new[0])}\n"
    names = (f"a/{name}" if old[0] else _NOWHERE, f"b/{name}" if new[0] else _NOWHERE)
    lines = difflib.unified_diff(old[1], new[1], *names)
    return head + "".join(map(_ended, lines))


_Seen = tuple[os.stat_result | None, list[str] | None]


def _seen(path: str) -> _Seen:
    """What stands there, with its lines; None for lines that are too many, or no text."""
    try:
        info = os.lstat(path)
    except OSError:
        return None, []
    if stat.S_ISLNK(info.st_mode):
        return info, [f"link to {os.readlink(path)!r}"]
    if not stat.S_ISREG(info.st_mode):
        return info, []
    return info, _lines(path) if info.st_size <= _LARGEST else None


def _lines(path: str) -> list[str] | None:
    try:
        with open(path, "rb") as file:
            data = file.read(_LARGEST)
    except OSError:
        return None
    if b"\0" in data:
        return None
    return data.decode("utf-8", "backslashreplace").splitlines(keepends=True)


def _mode_line(old: os.stat_result | None, new: os.stat_result | None) -> str:
    if old is None or new is None or old.st_mode == new.st_mode:
        return ""
    return f"old mode {old.st_mode:o}\nnew mode {new.st_mode:o}\n"


def _size(info: os.stat_result | None) -> str:
    return "nothing" if info is None else f"{info.st_size} bytes"


def _ended(line: str) -> str:
    return line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"
