"""Files of an agent's host that Ralph writes into: all of a change, or nothing of it."""

import errno
import os
import stat
from collections.abc import Iterable
from contextlib import suppress

from ralph.errors import ConfigError
from ralph.files.safe_open import open_regular
from ralph.files.state_dir import write_atomically
from ralph.kernel.value import value

_LARGEST = 10 * 1024 * 1024


@value
class FileEdit:
    """The text of a file before and after a change; None for no file."""

    path: str
    before: str | None
    after: str | None

    @property
    def is_one(self) -> bool:
        """True if it changes anything."""
        return self.before != self.after


def read_text(path: str) -> str | None:
    """A file's text, byte order mark and line ends included; None if there is none. A ConfigError
    for what is not text, or not a file."""
    try:
        with open_regular(path) as file:
            raw = file.read(_LARGEST + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ConfigError(
            f"{path} cannot be read: {error.strerror}", f"See what it is: ls -la {path}"
        ) from error
    if len(raw) > _LARGEST:
        raise ConfigError(f"{path} is larger than 10 MB", "Is it really a settings file?")
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        message = f"{path} is not UTF-8 (byte {error.start + 1})"
        raise ConfigError(message, "Save it as UTF-8.") from None


def carry_out(changes: Iterable[FileEdit]) -> None:
    """Write and remove files; where one cannot be, those before it are put back: ConfigError."""
    wanted = [change for change in changes if change.is_one]
    for change in wanted:
        _refuse_read_only(change.path)
    done: list[FileEdit] = []
    made: list[str] = []
    try:
        for change in wanted:
            folder, missing = os.path.dirname(change.path), []
            while not os.path.isdir(folder):
                missing.append(folder)
                folder = os.path.dirname(folder)
            for path in reversed(missing):
                os.mkdir(path)
                made.append(path)
            done.append(change)
            _put(change.path, change.after)
    except OSError as error:
        _undo(done, made)
        where = error.filename or done[-1].path if done else error.filename
        remedy = "Free some space." if error.errno == errno.ENOSPC else f"Try: ls -la {where}"
        raise ConfigError(f"cannot write {where}: {error.strerror}", remedy) from error
    for change in wanted:
        if change.after is None:
            _remove_empty(os.path.dirname(change.path))


def _refuse_read_only(path: str) -> None:
    """A rename would replace it all the same, but whoever made it so has said what is wanted."""
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return
    if not mode & (stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH) or not os.access(path, os.W_OK):
        raise ConfigError(f"{path} is read only", f"Try: chmod u+w {path}")


def _undo(done: list[FileEdit], made: list[str]) -> None:
    for change in reversed(done):
        with suppress(OSError, ConfigError):  # the first failure is the one to tell
            if read_text(change.path) != change.before:
                _put(change.path, change.before)
    for folder in reversed(made):
        _remove_empty(folder)


def _put(path: str, text: str | None) -> None:
    if text is None:
        os.unlink(path)
    else:
        write_atomically(path, text)


def _remove_empty(folder: str) -> None:
    """A folder in which nothing is left, and one above it: `.claude/commands`, then `.claude`."""
    for path in (folder, os.path.dirname(folder)):
        if not os.path.basename(path).startswith(".") and os.path.basename(path) != "commands":
            return
        try:
            os.rmdir(path)
        except OSError:
            return
