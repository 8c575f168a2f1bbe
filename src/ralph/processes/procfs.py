"""Readers of /proc. Of a process that is gone, or is another user's, they tell nothing, and so on a
system without /proc."""

import os

TYPE_CHECKING = False  # `ralph job` needs this before anything else, and quickly
if TYPE_CHECKING:
    from collections.abc import Callable

_GONE = ("Z", "X")  # a process that has ended and is not reaped yet
_LARGEST = 64 * 1024


def is_there() -> bool:
    return os.path.exists("/proc/self/stat")


def start_time(pid: int) -> str:
    """The start of a process, in the kernel's own ticks; empty where it has ended."""
    fields = _fields(pid)
    return "" if len(fields) < 20 or fields[0] in _GONE else fields[19]


def parent(pid: int) -> int:
    """The process right above this one; 0 where nobody is, or nobody knows."""
    return os.getppid() if pid == os.getpid() else _parent_there(pid)


def _parent_there(pid: int) -> int:
    fields = _fields(pid)
    return int(fields[1]) if len(fields) > 1 else 0


def number_inside(pid: int) -> int:
    """The number that a process has in its own PID namespace; 0 where nobody knows."""
    lines = _read(f"/proc/{pid}/status", -1).splitlines()
    words = next((line.split() for line in lines if line.startswith(b"NSpid:")), [b"0"])
    return int(words[-1])


def line_of(pid: int, above: "Callable[[int], int]" = parent) -> list[int]:
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
    """Names of files that a process has open; that of a file which is gone ends with `
    (deleted)`."""
    return [name for _, name in _open_files(pid)]


def locks_of(pid: int, name: str) -> list[str]:
    """Files of that name on which a process itself has taken a flock, and has it still. One that is
    gone is named as it was."""
    files = [(number, path.removesuffix(" (deleted)")) for number, path in _open_files(pid)]
    named = [(number, path) for number, path in files if os.path.basename(path) == name]
    return [path for number, path in named if _is_locked(pid, number)]


def environment(pid: int) -> list[bytes]:
    """`NAME=value` of everything in the environment with which a process was started."""
    return _read(f"/proc/{pid}/environ", -1).split(b"\0")


def command_line(pid: int) -> list[str]:
    return _read(f"/proc/{pid}/cmdline").decode("utf-8", "replace").split("\0")


def holds_lock(pid: int, path: str) -> bool:
    """True if a process itself has taken a flock on the file at that path, and has it still.

    It is the kernel that says so, whatever stands in the file. A link proves nothing: it may
    lead to a file that someone else has locked for reasons of their own.
    """
    try:
        seen = os.lstat(path)
        descriptors = os.listdir(f"/proc/{pid}/fd")
    except OSError:
        return False
    for number in descriptors if seen.st_nlink == 1 else ():
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


def _fields(pid: int) -> list[str]:
    """The fields behind the name, which may hold blanks and brackets: state, parent, ..."""
    return _read(f"/proc/{pid}/stat").rpartition(b")")[2].decode("ascii", "replace").split()


def _read(path: str, most: int = _LARGEST) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read(most)
    except OSError:
        return b""
