"""Whether files of a project changed, by git: evidence of work where no tool call is seen."""

import os
import subprocess
from collections.abc import Mapping

_STATUS = ("status", "--porcelain=v2", "--branch", "--untracked-files=all", "-z")
_PATIENCE = 20.0  # seconds
_MOST = 2000  # changed files whose times are looked at


def fingerprint(project: str, environ: Mapping[str, str]) -> str:
    """The same as long as no commit is made and no file changes; empty where git cannot say."""
    from _blake2 import blake2b

    command = ("git", "-C", project or os.curdir, "-c", "core.fsmonitor=false", *_STATUS)
    try:
        done = subprocess.run(
            command,
            env={**environ, "GIT_OPTIONAL_LOCKS": "0"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_PATIENCE,
            check=False,
        )
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return ""
    if done.returncode:
        return ""
    entries = [entry for entry in done.stdout.split(b"\0") if entry]
    digest = blake2b(digest_size=16)
    for entry in sorted(entries):
        digest.update(entry + b"\0")
    for entry in sorted(entries)[:_MOST]:
        digest.update(_moment(project, entry))
    return digest.hexdigest()


def _moment(project: str, entry: bytes) -> bytes:
    """When a changed file was changed: its line in the status stays the same. Of a path with
    blanks only untracked files are looked at, which is enough for evidence."""
    path = entry[2:] if entry[:2] == b"? " else entry.rpartition(b" ")[2]
    try:
        found = os.lstat(os.path.join(os.fsencode(project), path))
    except (OSError, ValueError):
        return b"-"
    return b"%d %d" % (found.st_mtime_ns, found.st_size)
