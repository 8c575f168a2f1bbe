"""Unified diffs of changes, or a sentence where there is no text."""

import difflib
import os
import re
import stat

from ralph.sandbox.interface import Change, ChangeKind

_LARGEST = 512 * 1024  # bytes; comparing takes long for more
_NOWHERE = "/dev/null"
_QUOTED = re.compile(r'[\x00-\x1f"\\\x7f-\x9f\ud800-\udfff\u2028\u2029]')
_SHORT = {"\n": "\\n", "\t": "\\t", "\r": "\\r", '"': '\\"', "\\": "\\\\"}


def unified(change: Change, before: str, after: str) -> str:
    """The difference between what stood at the first place and what stands at the second."""
    old, new = _seen(before), _seen(after)
    head = ""
    if old[0] is not None and new[0] is not None and old[0].st_mode != new[0].st_mode:
        head = f"old mode {old[0].st_mode:o}\nnew mode {new[0].st_mode:o}\n"
    if change.kind is ChangeKind.MODE or (old[1] is not None and old[1] == new[1]):
        return head
    if old[1] is None or new[1] is None:
        return head + f"{quoted(change.path)}: {_size(old)} became {_size(new)}\n"
    names = [quoted(f"{side}/{change.path}") for side in "ab"]
    lines = difflib.unified_diff(
        old[1], new[1], names[0] if old[0] else _NOWHERE, names[1] if new[0] else _NOWHERE
    )
    unended = "\n\\ No newline at end of file\n"
    return head + "".join(line if line.endswith("\n") else line + unended for line in lines)


def patch(change: Change, text: str) -> str:
    """A unified diff with the line before it that says which file it is of, as git has it."""
    names = " ".join(quoted(f"{side}/{change.path}") for side in "ab")
    return f"diff --git {names}\n{text}" if text else ""


def quoted(name: str) -> str:
    """A name as git writes it where a line holds nothing else: in quotes if it has to be."""

    def escaped(found: re.Match[str]) -> str:
        octal = (f"\\{byte:03o}" for byte in os.fsencode(found[0]))
        return _SHORT.get(found[0]) or "".join(octal)

    text = _QUOTED.sub(escaped, name)
    return f'"{text}"' if text != name else name


_Seen = tuple[os.stat_result | None, list[str] | None]


def _seen(path: str) -> _Seen:
    """The entry there, and its lines; None if they are too many, no text, or out of reach."""
    try:
        info = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None, []
    except OSError:
        return None, None
    if stat.S_ISLNK(info.st_mode):
        return info, [f"link to {os.readlink(path)!r}"]
    if not stat.S_ISREG(info.st_mode):
        return info, []
    try:
        with open(path, "rb") as file:
            data = file.read(_LARGEST)
    except OSError:
        return info, None
    if info.st_size > _LARGEST or b"\0" in data:
        return info, None
    text = data.decode("utf-8", "backslashreplace")
    return info, [line for line in re.split(r"(?<=\n)", text) if line]  # a CR ends no line


def _size(seen: _Seen) -> str:
    info, lines = seen
    if info is not None:
        return f"{info.st_size} bytes"
    return "nothing" if lines is not None else "something out of reach"
