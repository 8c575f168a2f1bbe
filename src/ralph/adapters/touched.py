"""Whether files were changed since a moment, for when nobody knew that it would matter."""

import os

_NOT_WORK = frozenset({".git", ".ralph"})
_OURS = ".ralph"  # how the names of our own files begin


def touched(workspace: str, since: int) -> bool:
    """Whether a file of the workspace was made, changed or removed, or something committed, since
    then: a time in nanoseconds that a file was made at."""
    if _changed(os.path.join(workspace, ".git", "logs", "HEAD"), since):
        return True
    for folder, folders, names in os.walk(workspace):
        folders[:] = [name for name in folders if name not in _NOT_WORK]
        # Our own files were put there in the moment before, which the clock may call the same.
        if _changed(folder, since + 1):
            return True
        theirs = (os.path.join(folder, name) for name in names if not name.startswith(_OURS))
        if any(_changed(path, since) for path in theirs):
            return True
    return False


def _changed(path: str, since: int) -> bool:
    try:
        info = os.lstat(path)
    except OSError:  # it is gone, which its folder tells
        return False
    return max(info.st_mtime_ns, info.st_ctime_ns) >= since
