"""An overlay's upper layer that is taken up again: only what is still to be kept stays in it."""

import os
import stat
from collections.abc import Iterable
from contextlib import suppress

from ralph.sandbox.changes.by_descriptor import WRITE, Reach
from ralph.sandbox.changes.commit import path_of
from ralph.sandbox.changes.compare import OPAQUE
from ralph.sandbox.interface import Change


def prune(upper: str, changes: Iterable[Change]) -> None:
    """Take everything out of an upper layer but these changes, so that the project shows. It must
    not be mounted."""
    changes = tuple(changes)
    left = {path_of(change) for change in changes}
    above = _above(left)
    opaque = _above(path_of(change) for change in changes if change.gone)
    with Reach(upper, needs=WRITE) as layer:
        waiting, directories = [b""], []
        while waiting:
            place = waiting.pop()
            if place:
                directories.append(place)
            if place and place not in opaque:
                with suppress(OSError):  # it hides nothing
                    os.removexattr(layer.directory(place), OPAQUE)
            for name, info in layer.entries(place):
                path = os.path.join(place, name)
                if stat.S_ISDIR(info.st_mode):
                    waiting.append(path)
                elif path not in left and path not in above:
                    os.unlink(name, dir_fd=layer.directory(place))
        for place in reversed(directories):  # the inner before the outer
            if place not in left:
                directory, name = layer.above(place)
                with suppress(OSError):  # something is left in it
                    os.rmdir(name, dir_fd=directory)


def _above(paths: Iterable[bytes]) -> set[bytes]:
    """The directories that lead to paths."""
    return {path[:end] for path in paths for end in range(len(path)) if path[end : end + 1] == b"/"}
