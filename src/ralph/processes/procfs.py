"""Readers of /proc; empty for processes that are gone or another user's, and without /proc."""

import os
from _collections_abc import Callable  # `ralph job` needs this before anything else, and quickly

_GONE = ("Z", "X")  # a process that has ended and is not reaped yet
_LARGEST = 64 * 1024


def is_there() -> bool:
    return os.path.exists("/proc/self/stat")


def pids() -> list[int]:
    """The processes that there are; none without /proc."""
    try:
        return [int(name) for name in os.listdir("/proc") if name.isdecimal()]
    except OSError:
        return []


def stat_fields(pid: int) -> list[str]:
    """The fields behind the name, which may hold blanks and brackets: state, parent, ..."""
    return _read(f"/proc/{pid}/stat").rpartition(b")")[2].decode("ascii", "replace").split()


def start_time(pid: int) -> str:
    """The start of a process, in the kernel's own ticks; empty where it has ended."""
    fields = stat_fields(pid)
    return "" if len(fields) < 20 or fields[0] in _GONE else fields[19]


def parent(pid: int) -> int:
    """The process right above this one; 0 where nobody is, or nobody knows."""
    return os.getppid() if pid == os.getpid() else _parent_there(pid)


def _parent_there(pid: int) -> int:
    fields = stat_fields(pid)
    return int(fields[1]) if len(fields) > 1 else 0


def number_inside(pid: int) -> int:
    """The number that a process has in its own PID namespace; 0 where nobody knows."""
    lines = _read(f"/proc/{pid}/status").splitlines()
    words = next((line.split() for line in lines if line.startswith(b"NSpid:")), [b"0"])
    return int(words[-1])


def line_of(pid: int, above: Callable[[int], int] = parent) -> list[int]:
    line: list[int] = []
    while pid > 0 and pid not in line:
        line.append(pid)
        pid = above(pid)
    return line


def line_above() -> list[int]:
    """This process and everybody above it, by the numbers that they have in this /proc, which may
    be another namespace's; nothing where it shows none of us."""
    try:
        return line_of(int(os.readlink("/proc/self")), _parent_there)
    except (OSError, ValueError):
        return []


def open_files(pid: int) -> list[str]:
    """Names of the files a process has open; ` (deleted)` follows those that are gone."""
    return [name for _, name in _open_files(pid)]


def locks_of(pid: int, name: str) -> list[str]:
    """Files of that name on which a process itself has taken a flock, and has it still. One that is
    gone is named as it was."""
    files = [(number, path.removesuffix(" (deleted)")) for number, path in _open_files(pid)]
    return [p for number, p in files if os.path.basename(p) == name and _is_locked(pid, number)]


def environment(pid: int) -> list[bytes]:
    """`NAME=value` of everything in the environment with which a process was started."""
    return _read(f"/proc/{pid}/environ", -1).split(b"\0")  # however long it is


def command_line(pid: int) -> list[str]:
    return _read(f"/proc/{pid}/cmdline").decode("utf-8", "replace").split("\0")


def holds_lock(pid: int, path: str) -> bool:
    """True if a process itself has taken a flock on the file at that path, and has it still.
    A link proves nothing: it may lead to a file that was locked for other reasons."""
    try:
        seen = os.lstat(path)
    except OSError:
        return False
    for number, _ in _open_files(pid) if seen.st_nlink == 1 else ():
        try:
            same = os.path.samestat(os.stat(f"/proc/{pid}/fd/{number}"), seen)
        except OSError:
            continue  # it was closed meanwhile
        if same and _is_locked(pid, number):
            return True
    return False


def _is_locked(pid: int, descriptor: str) -> bool:
    lines = _read(f"/proc/{pid}/fdinfo/{descriptor}").decode("utf-8", "replace").splitlines()
    # `lock: 1: FLOCK ADVISORY WRITE 4711 fe:00:123 0 EOF`; one that was inherited names another.
    words = [line.split() for line in lines if line.startswith("lock:")]
    return any(line[2:6] == ["FLOCK", "ADVISORY", "WRITE", str(pid)] for line in words)


def _open_files(pid: int) -> list[tuple[str, str]]:
    found = []
    try:
        for number in os.listdir(f"/proc/{pid}/fd"):
            try:
                found.append((number, os.readlink(f"/proc/{pid}/fd/{number}")))
            except OSError:
                continue  # it was closed meanwhile
    except OSError:
        pass  # the process is gone, or another's
    return found


def _read(path: str, most: int = _LARGEST) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read(most)
    except OSError:
        return b""
