"""Reads and writes files of the workspace for a model, which may name any path."""

import os
import stat
from collections.abc import Sequence
from contextlib import suppress

from ralph.files.safe_open import open_regular, refuse_irregular

_READ = 8 * 1024 * 1024  # bytes of a file that are looked at
_LINES = 2000
_CHARACTERS = 60_000
_ENTRIES = 500


class Denied(Exception):  # noqa: N818
    """What cannot be done, in words for the model."""


def inside(workspace: str, path: str) -> str:
    """The real path of a file of the workspace; Denied for one elsewhere, also behind a link."""
    if not path or "\0" in path:
        raise Denied("give the path of a file in the workspace")
    root = os.path.realpath(workspace)
    real = os.path.realpath(os.path.join(root, path))
    if real != root and not real.startswith(f"{root.rstrip('/')}/"):
        raise Denied(f"{path} is outside of the workspace {root}")
    return real


def read(workspace: str, path: str, lines: tuple[int, int] | None = None) -> str:
    """A file's text, or some lines of it, or the names in a directory."""
    real = inside(workspace, path)
    with _told(path):
        if os.path.isdir(real):
            return _names(real)
        with open_regular(real) as file:
            data = file.read(_READ + 1)
    if b"\0" in data[:8192]:
        return f"{path} is binary"
    all_lines = data[:_READ].decode("utf-8", "replace").split("\n")
    if all_lines[-1] == "":
        all_lines.pop()
    first, last = lines or (1, _LINES)
    if first > max(1, len(all_lines)):
        raise Denied(f"{path} has {len(all_lines)} lines")
    text = "\n".join(all_lines[first - 1 : last])
    shown, end = text[:_CHARACTERS], min(last, len(all_lines))
    if len(shown) < len(text):
        end = first + shown.count("\n")
    if (first, end) == (1, len(all_lines)) and len(shown) == len(text) and len(data) <= _READ:
        return shown or "[empty]"
    more = f" of the first {_READ} bytes" if len(data) > _READ else ""
    return f"{shown}\n[lines {first} to {end} of {len(all_lines)}{more}]"


def _names(directory: str) -> str:
    found = sorted(os.scandir(directory), key=lambda entry: entry.name)
    names = [f"{entry.name}/" if entry.is_dir() else entry.name for entry in found]
    if len(names) > _ENTRIES:
        names[_ENTRIES:] = [f"[and {len(names) - _ENTRIES} more]"]
    return "\n".join(names) or "[empty]"


def write(workspace: str, path: str, content: str) -> str:
    """Give a file this content; directories on the way are made."""
    real = _writable(workspace, path)
    with _told(path):
        _store(real, content.encode("utf-8", "surrogateescape"))
    return f"{path} is written"


def replace(workspace: str, path: str, old: str, new: str, *, everywhere: bool = False) -> str:
    """Replace a text that stands in a file exactly once, or everywhere."""
    real = _writable(workspace, path)
    with _told(path):
        with open_regular(real) as file:
            before = file.read().decode("utf-8", "surrogateescape")
        count = before.count(old) if old else 0
        if count == 0:
            raise Denied(f"{path} does not have the old text. Read it, and give it exactly.")
        if count > 1 and not everywhere:
            raise Denied(
                f"{path} has the old text {count} times. Give more of it, or set all to true."
            )
        _store(real, before.replace(old, new).encode("utf-8", "surrogateescape"))
    return f"{path} is written" if count == 1 else f"{path} is written, {count} times"


def _writable(workspace: str, path: str) -> str:
    real = inside(workspace, path)
    root = os.path.realpath(workspace)
    if ".git" in os.path.relpath(real, root).casefold().split("/"):  # macOS takes both for one
        raise Denied(f"{path} is git's own: use the action git")
    return real


def _store(real: str, data: bytes) -> None:
    """In place, so that its mode and its other names stay."""
    os.makedirs(os.path.dirname(real), exist_ok=True)
    with suppress(FileNotFoundError):
        refuse_irregular(os.lstat(real), real)
    flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK
    descriptor = os.open(real, flags, 0o666)
    with os.fdopen(descriptor, "wb") as file:
        assert stat.S_ISREG(os.fstat(descriptor).st_mode)
        os.ftruncate(descriptor, 0)
        file.write(data)


class _told:  # noqa: N801  reads as a word
    """Turns an error of the system into words for the model."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, OSError):
            raise Denied(f"{self._path}: {error.strerror or error}") from error


def line_range(given: object) -> tuple[int, int] | None:
    """Lines as models write them: "10-20", "10", 10 or [10, 20]; Denied for anything else."""
    if given in (None, "", []):
        return None
    words: Sequence[object] = given if isinstance(given, list) else str(given).split("-")
    try:
        first, last = (int(str(word)) for word in (words[0], words[-1]))
    except ValueError:
        raise Denied(f"lines: {given!r} is no range such as 10-20") from None
    if not 1 <= first <= last or len(words) > 2:
        raise Denied(f"lines: {given!r} is no range such as 10-20")
    return first, last
