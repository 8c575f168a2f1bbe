"""Tells afterwards whether files were changed since a moment."""

import os

from ralph.files.state_dir import lstat

_NOT_WORK = frozenset({".git", ".ralph"})


def touched(workspace: str, since: int) -> bool:
    """True if a file of the workspace was made, changed or removed, or something committed, since
    then: a time in nanoseconds that a file was made at."""
    if _changed(os.path.join(workspace, ".git", "logs", "HEAD"), since):
        return True
    for folder, folders, names in os.walk(workspace):
        folders[:] = [name for name in folders if name not in _NOT_WORK]
        # Our own files were put there in the moment before, which the clock may call the same.
        theirs = (os.path.join(folder, name) for name in names if not name.startswith(".ralph"))
        if _changed(folder, since + 1) or any(_changed(path, since) for path in theirs):
            return True
    return False


def _changed(path: str, since: int) -> bool:
    info = lstat(path)  # one that is gone, its folder tells
    return info is not None and max(info.st_mtime_ns, info.st_ctime_ns) >= since
