"""The state directory: it can be written and locked, there is room, nobody else can read it."""

import errno
import fcntl
import os
import re
import shlex
import shutil
import stat
import tempfile
from contextlib import suppress
from itertools import islice

from ralph.doctor.checks import Check, ok, problem, warning
from ralph.errors import StateError
from ralph.files.disk_use import size_words
from ralph.files.state_dir import ensure_state_root, is_inside
from ralph.text.words import counted

_LITTLE = 1_000_000_000  # bytes free
_TOO_LITTLE = 50_000_000
_MOST_FILES = 100_000
_ELSEWHERE = "export RALPH_STATE_DIR=/some/where"
# File systems whose locks do not always hold between machines, or at all.
_REMOTE = frozenset(
    {"9p", "afs", "beegfs", "ceph", "cifs", "fuse.ceph", "fuse.glusterfs", "fuse.sshfs"}
    | {"glusterfs", "lustre", "ncpfs", "nfs", "nfs4", "smb3", "smbfs"}
)


def state_writable(root: str) -> Check:
    """Really write, lock, sync and remove a file, as a run will."""
    try:
        ensure_state_root(root)
        descriptor, path = tempfile.mkstemp(prefix="doctor-", dir=root)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.write(descriptor, b"x" * 4096)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
            os.unlink(path)
    except StateError as error:
        return problem("writable", error.message, error.remedy)
    except OSError as error:
        room = "Make room, or choose another place: "
        remedy = room if error.errno in (errno.ENOSPC, errno.EDQUOT) else "Choose another place: "
        return problem("writable", f"{root}: {error.strerror}", remedy + _ELSEWHERE)
    return ok("writable", root)


def state_place(root: str, workspace: str) -> Check | None:
    """An agent must not reach Ralph's records of its run."""
    if not is_inside(root, workspace):
        return None
    text = "it is in the workspace, where an agent can change it"
    return warning("place", text, f"Choose another place: {_ELSEWHERE}")


def state_room(root: str) -> Check | None:
    try:
        total, _, free = shutil.disk_usage(_existing(root))
    except OSError:
        return None
    if not total:  # no disk at all, such as /proc
        return None
    found = f"{size_words(free)} free"
    remedy = f"See what takes it: du -sh {shlex.quote(root)}/* or choose another: {_ELSEWHERE}"
    if free < _TOO_LITTLE:
        return problem("room", f"{found}: too little for a run", remedy)
    if free < _LITTLE:
        return warning("room", f"{found}: a long run may fill it", remedy)
    return ok("room", found)


def state_privacy(root: str) -> Check | None:
    """Prompts and streams are for this user only."""
    try:
        mode = stat.S_IMODE(os.stat(root).st_mode)
    except OSError:
        return None
    if mode & 0o077:
        text = f"mode {mode:04o}: others may look into it, and prompts and answers are there"
        return warning("permissions", text, f"chmod 700 {shlex.quote(root)}")
    return ok("permissions", f"mode {mode:04o}: only you can read it")


def state_content(root: str) -> Check | None:
    """The runs, and their size, that earlier ones have left there."""
    runs = files = bytes_there = 0
    try:
        for project in os.listdir(root):
            with suppress(OSError):
                runs += len(os.listdir(os.path.join(root, project, "runs")))
    except OSError:
        return None
    paths = (os.path.join(folder, name) for folder, _, names in os.walk(root) for name in names)
    for path in islice(paths, _MOST_FILES):
        files += 1
        with suppress(OSError):
            bytes_there += os.lstat(path).st_size
    more = "more than " if files >= _MOST_FILES else ""
    return ok("content", f"{counted(runs, 'run')}, {more}{size_words(bytes_there)}")


def state_file_system(root: str) -> Check | None:
    """Locks keep two runs out of one workspace; over a network they may not."""
    kind = file_system_of(os.path.realpath(_existing(root)))
    if not kind:
        return None
    if kind in _REMOTE:
        text = f"{kind}: two runs in one workspace may not see each other's lock"
        return warning("file system", text, f"Choose a local disk: {_ELSEWHERE}")
    return ok("file system", f"{kind}, gone after a restart" if kind == "tmpfs" else kind)


def file_system_of(path: str, mounts: str = "/proc/self/mountinfo") -> str:
    """The type of the file system that holds a path; "" where it cannot be known."""
    best, kind = "", ""
    with suppress(OSError), open(mounts, encoding="utf-8", errors="surrogateescape") as file:
        for line in file:
            before, _, after = line.partition(" - ")
            # The kernel writes a blank as \040.
            point = re.sub(r"\\([0-7]{3})", lambda it: chr(int(it[1], 8)), before.split(" ")[4])
            below = path == point or path.startswith(point.rstrip("/") + "/")
            # Of several on one point the last hides the others.
            if len(point) >= len(best) and below:
                best, kind = point, after.split(" ")[0]
    return kind


def _existing(path: str) -> str:
    """The path, or the nearest directory above it that is there."""
    while not os.path.exists(path) and os.path.dirname(path) != path:
        path = os.path.dirname(path)
    return path


STATE = (state_writable, state_room, state_privacy, state_content, state_file_system)
