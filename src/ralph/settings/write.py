"""Writing a settings file, whole or not at all."""

import json
import os
import stat
from collections.abc import Mapping
from contextlib import suppress

from ralph.errors import ConfigError


def write(path: str, settings: Mapping[str, object]) -> None:
    """Replace the settings file at `path`. On a full disk or Ctrl+C the old one stands untouched.

    Its directory must exist. The file keeps its mode, because settings may hold secrets, and
    stays a link if it is one.
    """
    text = json.dumps(settings, indent=2, ensure_ascii=False) + "\n"
    try:
        _replace(os.path.realpath(path), text.encode())
    except OSError as error:
        raise ConfigError(
            f"{path}: cannot be written: {error.strerror}.",
            "Check the disk (df -h .) and who may write there (ls -ld .ralph).",
        ) from None


def _replace(path: str, data: bytes) -> None:
    temporary = f"{path}.{os.getpid()}.tmp"  # beside it: a rename must not cross file systems
    try:
        with open(temporary, "wb") as file:
            _keep_mode(file.fileno(), path)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise


def _keep_mode(descriptor: int, path: str) -> None:
    with suppress(FileNotFoundError):
        os.fchmod(descriptor, stat.S_IMODE(os.stat(path).st_mode))
