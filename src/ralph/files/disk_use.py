"""The size of what Ralph keeps on this machine.

To walk over gigabytes takes long, so a run does it once a day at most, when it has ended, and gives
up after half a second; the next ones read what it found.
"""

import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import suppress

from ralph.errors import ConfigError
from ralph.files.safe_open import open_regular, remove_file
from ralph.files.state_dir import write_atomically

_FILE = "size.json"  # in the state directory
_OFTEN = 24 * 3600.0  # seconds
_PATIENCE = 0.5  # seconds
_LARGE = 1_000_000_000  # bytes
_BLOCK = 512  # bytes, of which `st_blocks` counts
_UNITS = ((10**12, "TB"), (10**9, "GB"), (10**6, "MB"), (10**3, "kB"))


def size_of(path: str, enough: Callable[[], bool] = lambda: False) -> int:
    """The bytes that a tree takes on the disk, or those found until it is `enough`."""
    found = 0
    with suppress(OSError):
        found = os.lstat(path).st_blocks * _BLOCK
    for taken in _sizes(path):
        found += taken
        if enough():
            break
    return found


def _sizes(path: str) -> Iterator[int]:
    """What each file and directory below takes; whatever cannot be read takes nothing."""
    left = [path]
    while left:
        try:
            with os.scandir(left.pop()) as entries:
                for entry in entries:
                    with suppress(OSError):
                        yield entry.stat(follow_symlinks=False).st_blocks * _BLOCK
                        if entry.is_dir(follow_symlinks=False):
                            left.append(entry.path)
        except OSError:
            continue


def measure(root: str, now: float) -> None:
    """Note how much there is, unless that was done today."""
    known = _known(root)
    if known is not None and 0 <= now - known[0] < _OFTEN:
        return
    give_up = time.monotonic() + _PATIENCE
    found = size_of(root, lambda: time.monotonic() > give_up)
    more = time.monotonic() > give_up
    with suppress(OSError, ConfigError):  # a full disk is told by whoever needs it
        text = json.dumps({"time": now, "bytes": found, "more": more})
        write_atomically(os.path.join(root, _FILE), text, mode=0o600)


def forget_size(root: str) -> None:
    """Have it measured again."""
    with suppress(OSError):
        remove_file(os.path.join(root, _FILE))


def size_note(root: str) -> str:
    """What is to be said of much; "" while it is little, or nobody knows."""
    known = _known(root)
    if known is None or known[1] <= _LARGE:
        return ""
    more = "more than " if known[2] else ""
    words = f"Runs and sandboxes hold {more}{size_words(known[1])} in {root}"
    return f"{words}. See what could go: ralph clean --dry-run"


def size_words(number: int) -> str:
    """12 GB, 3.4 MB, 512 bytes."""
    for unit, name in _UNITS:
        if number >= unit:
            scaled = number / unit
            return f"{scaled:.1f} {name}" if scaled < 9.95 else f"{scaled:.0f} {name}"
    return f"{number} byte{'' if number == 1 else 's'}"


def _known(root: str) -> tuple[float, int, bool] | None:
    try:
        with open_regular(os.path.join(root, _FILE)) as file:
            kept = json.loads(file.read(1024))
        return float(kept["time"]), int(kept["bytes"]), bool(kept["more"])
    except (OSError, ValueError, KeyError, TypeError, OverflowError):
        return None
