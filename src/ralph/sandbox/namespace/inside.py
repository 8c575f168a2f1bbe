"""The first process of a sandbox: it makes the mounts, and then is a keeper (ADR 23).

An overlay is on the project, the rest of the host can be read only, places for temporary files are
private, and nothing is to be seen of Ralph's state. Standard library only: this runs in `maker.py`.
"""

import errno
import fcntl
import os
import stat
from contextlib import contextmanager, suppress
from os.path import dirname, isdir, realpath

from ralph.processes.keeper_main import KeeperServer
from ralph.sandbox.namespace import syscalls

TYPE_CHECKING = False  # as typing has it; importing that would cost more than all the rest
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import TypedDict

    class MountPlan(TypedDict):
        """The sandbox to be made. Paths are real and absolute."""

        project: bytes
        place: bytes  # a directory with `upper` and `work` for the layer
        memory: int  # bytes; not 0: the layer is kept in memory, and is no larger
        network: str  # off, on or proxy
        ports: list[int]  # of the host's loopback, to be had on the sandbox's own
        root: bool
        home: bytes  # a directory for a layer that is thrown away; empty: none
        hidden: list[bytes]  # directories
        secret: list[bytes]  # files and directories
        visible: list[bytes]  # what is to be seen, read only, wherever it lies


_PRIVATE = (b"/tmp", b"/var/tmp")
_SERVICES = b"/run"  # sockets in there lead out of every sandbox
_STREAMS = (b"null", b"zero", b"full", b"random", b"urandom")  # what a stream of a command may be
_DEVICES = (*_STREAMS, b"tty")
_DEVICE_LINKS = {
    b"fd": b"/proc/self/fd",
    b"stdin": b"/proc/self/fd/0",
    b"stdout": b"/proc/self/fd/1",
    b"stderr": b"/proc/self/fd/2",
    b"ptmx": b"pts/ptmx",
}
_PASSWORDS = (b"/etc/shadow", b"/etc/gshadow", b"/etc/shadow-", b"/etc/gshadow-")
# Through these root would reach the whole machine.
_KERNEL = tuple(
    b"/proc/" + name for name in (b"sys", b"sysrq-trigger", b"irq", b"bus", b"fs", b"acpi", b"scsi")
)
_NOTHING = b"/dev/nothing"  # a file for the moment, in a /dev of our own
_SAFELY = syscalls.MS_NOSUID | syscalls.MS_NODEV


class StepError(Exception):
    """A step that failed: in words for people, and the kernel's number for the reason."""


@contextmanager
def doing(what: str) -> "Iterator[None]":
    """Name what an OSError in there was about."""
    try:
        yield
    except OSError as error:
        raise StepError(what, error.errno or errno.EINVAL) from error


class Made:
    """Descriptors for Ralph: of the upper layer, and of the project as it looks."""

    def __init__(self, upper: int, merged: int, kept: str) -> None:
        self.upper = upper
        self.merged = merged
        self.kept = kept  # on disk, or in memory
        self.home = ""  # why the home directory has no layer, if one was wanted
        self.memory: int | None = None  # that holds the layer


def make_mounts(plan: "MountPlan") -> Made:
    """Do everything, in an order that never shows more than at the end."""
    with doing("keep mounts private"):
        syscalls.mount(b"", b"/", flags=syscalls.MS_REC | syscalls.MS_PRIVATE)
    made = _overlay(plan)
    seen = {path: _handle(path) for path in _to_be_seen(plan)}
    aliases = [path for path in seen if path != realpath(path)]
    writable = [plan["project"], *filter(isdir, dict.fromkeys(map(realpath, _PRIVATE)))]
    secret = plan["secret"]
    if plan["home"]:
        made.home = _cover_home(plan)
        seen[plan["home"]] = _handle(plan["home"])
        if not made.home:
            secret = [path for path in secret if not _is_removed(path, plan["home"])]
            inside = [path for path in secret if isdir(path) and _is_below(path, plan["home"])]
            writable += [plan["home"], *inside]
    try:
        syscalls.mount(b"proc", b"/proc", b"proc", _SAFELY | syscalls.MS_NOEXEC)
        fresh = True
    except OSError:
        # Within some containers there can be none of our own: then the outer one stays, which is
        # harmless, since what it shows is not ours to touch.
        fresh = False
    with doing("make /dev"):
        _devices()
    _arrange(plan, secret, seen, aliases)
    _show(plan["project"], made.merged)
    for place in _within(plan):  # which was not to be seen before, if the project was not
        _hide(place)
    if plan["root"]:
        _shield(fresh=fresh)
    if made.memory is not None:  # Ralph sets modes in there, which nobody else reaches
        writable.append(_by(made.memory))
    _only_readable(writable, fresh=fresh or not plan["root"])
    if made.memory is not None:
        os.close(made.memory)
    os.close(made.merged)  # it may be the mount that is hidden now
    made.merged = os.open(plan["project"], os.O_RDONLY | os.O_DIRECTORY)
    return made


def _arrange(
    plan: "MountPlan", secret: "list[bytes]", seen: "dict[bytes, int]", aliases: "list[bytes]"
) -> None:
    """Hide what is not to be seen, and show what is, wherever one lies in the other."""
    outside = [place for place in plan["hidden"] if place not in _within(plan)]
    real = sorted(seen.keys() - set(aliases))  # the outer before the inner
    for places in ((*_PRIVATE, _SERVICES), outside, secret):
        for place in dict.fromkeys(map(realpath, places)):
            _hide(place)
        for path in real:
            _show(path, seen[path])
    for path in sorted(aliases):  # links may lead there by now
        _show(path, seen[path])
    for handle in seen.values():
        os.close(handle)


def _within(plan: "MountPlan") -> "list[bytes]":
    """Hidden directories in the project."""
    return [place for place in plan["hidden"] if _is_below(place, plan["project"])]


def _overlay(plan: "MountPlan") -> Made:
    """The project with a layer above it, on disk if the disk can hold one, else in memory."""
    if not plan["memory"]:
        # Not where another overlay holds the place, or a file system without what it takes.
        with suppress(OSError):
            return Made(*_layered(plan["project"], plan["place"]), "on disk")
    size = b",size=%d" % plan["memory"] if plan["memory"] else b""
    with doing("mount memory for the layer"):
        _memory(plan["place"], size)
    memory = _handle(plan["place"])  # before the overlay, which may cover that
    with doing("mount the overlay"):
        made = Made(*_layered(plan["project"], plan["place"]), "in memory")
    made.memory = memory
    return made


def _cover_home(plan: "MountPlan") -> str:
    """Put a layer in memory over the home directory; "", or why there can be none."""
    try:
        _memory(plan["place"])  # over the project's layer, which has been mounted by now
        for descriptor in _layered(plan["home"], plan["place"]):
            os.close(descriptor)
    except OSError as error:
        with open("/proc/self/mountinfo", "rb") as file:
            places = [line.split(b" ")[4].replace(b"\\040", b" ") for line in file]
        for own in (plan["project"], plan["place"]):  # one mount of ours at each
            if own in places:
                places.remove(own)
        if any(_is_below(place, plan["home"]) for place in places):
            return "other file systems are mounted in it"
        return os.strerror(error.errno or 0)
    return ""


def _memory(place: bytes, size: bytes = b"") -> None:
    """Mount a place for a layer in memory."""
    syscalls.mount(b"tmpfs", place, b"tmpfs", _SAFELY, b"mode=700" + size)
    for name in (b"upper", b"work"):
        os.mkdir(os.path.join(place, name), 0o700)


def _layered(directory: bytes, place: bytes) -> "tuple[int, int]":
    """Mount an overlay on a directory; descriptors of its upper layer, and of how it looks now."""
    lower = _handle(directory)
    upper = os.open(os.path.join(place, b"upper"), os.O_RDONLY | os.O_DIRECTORY)
    work = _handle(os.path.join(place, b"work"))
    try:
        # The top of an overlay has the owner and the rights of its upper layer.
        info = os.stat(directory)
        if info.st_uid != os.geteuid() or info.st_gid != os.getegid():
            with suppress(OSError):  # only root may, and only for whom this namespace knows
                os.fchown(upper, info.st_uid, info.st_gid)
        os.fchmod(upper, info.st_mode & 0o7777)
        # By descriptors, since names may hold commas and colons. Volatile: nothing is synced at
        # the end, which would wait for the whole disk.
        places = (_by(lower), _by(upper), _by(work))
        data = b"lowerdir=%b,upperdir=%b,workdir=%b,userxattr,volatile" % places
        syscalls.mount(b"overlay", directory, b"overlay", _SAFELY, data)
    except OSError:
        os.close(upper)
        raise
    finally:
        os.close(lower)
        os.close(work)
    return upper, os.open(directory, os.O_RDONLY | os.O_DIRECTORY)


def _handle(path: bytes) -> int:
    return os.open(path, os.O_PATH)


def _by(descriptor: int) -> bytes:
    return b"/proc/self/fd/%d" % descriptor


def _to_be_seen(plan: "MountPlan") -> "list[bytes]":
    """The paths that are there, of those to be seen; the resolver's file may be a service's."""
    paths = [*plan["visible"]]
    if plan["network"] == "on":
        paths.append(realpath(b"/etc/resolv.conf"))
    places = [*_PRIVATE, _SERVICES, *map(realpath, (*_PRIVATE, _SERVICES))]
    places += [*plan["hidden"], *plan["secret"], *filter(None, [plan["home"]])]
    inside = [p for p in paths if any(_is_below(p, place) for place in places)]
    return [path for path in inside if os.path.exists(path)]


def _devices() -> None:
    """Make a /dev with the few devices that programs need; the others are the host's hardware."""
    handles = {n: _handle(b"/dev/" + n) for n in _DEVICES if os.path.exists(b"/dev/" + n)}
    syscalls.mount(b"tmpfs", b"/dev", b"tmpfs", syscalls.MS_NOSUID, b"mode=755,size=64k")
    for name, handle in handles.items():
        _touch(b"/dev/" + name)
        syscalls.mount(_by(handle), b"/dev/" + name, flags=syscalls.MS_BIND)
        os.close(handle)
    for name, target in _DEVICE_LINKS.items():
        os.symlink(target, b"/dev/" + name)
    os.mkdir(b"/dev/pts")
    os.mkdir(b"/dev/shm")
    options = b"newinstance,ptmxmode=0666,mode=620"
    syscalls.mount(b"devpts", b"/dev/pts", b"devpts", syscalls.MS_NOSUID, options)
    syscalls.mount(b"tmpfs", b"/dev/shm", b"tmpfs", _SAFELY, b"mode=1777")


def _is_removed(path: bytes, home: bytes) -> bool:
    """Take a file out of the layer over the home directory, where it can be made anew."""
    if isdir(path) or not _is_below(path, home):
        return False
    try:
        os.unlink(path)
    except OSError:
        return False
    return True


def _hide(place: bytes) -> None:
    """Put an empty directory or file over one, unless that is hidden already."""
    with doing(f"hide {os.fsdecode(place)}"):
        if isdir(place):
            mode = b"mode=1777" if place in _PRIVATE else b"mode=755"
            syscalls.mount(b"tmpfs", place, b"tmpfs", _SAFELY, mode)
        elif os.path.isfile(place):
            _touch(_NOTHING)
            syscalls.mount(_NOTHING, place, flags=syscalls.MS_BIND)
            os.unlink(_NOTHING)


def _is_below(path: bytes, directory: bytes) -> bool:
    return path.startswith(directory + b"/")


def _show(path: bytes, handle: int) -> None:
    """Put something back where it was, if it is hidden."""
    if os.path.exists(path) and os.path.samestat(os.stat(path), os.fstat(handle)):
        return
    with doing(f"show {os.fsdecode(path)}"):
        if isdir(_by(handle)):
            os.makedirs(path, exist_ok=True)
        else:
            os.makedirs(dirname(path), exist_ok=True)
            _touch(path)
        syscalls.mount(_by(handle), path, flags=syscalls.MS_BIND | syscalls.MS_REC)


def _touch(path: bytes) -> None:
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600))


def _shield(*, fresh: bool) -> None:
    with doing("hide what root could read or write"):
        for path in filter(os.path.exists, _PASSWORDS):
            syscalls.mount(b"/dev/null", path, flags=syscalls.MS_BIND)
        for path in filter(os.path.exists, _KERNEL if fresh else ()):
            syscalls.mount(path, path, flags=syscalls.MS_BIND)


def _only_readable(writable: "list[bytes]", *, fresh: bool) -> None:
    """Make everything read only, then what is ours writable again."""
    shut = syscalls.ATTR_RDONLY | syscalls.ATTR_NODEV
    with doing("make the host read only"):
        syscalls.set_mount(b"/", put=shut | syscalls.ATTR_NOSUID, recursive=True)
        for place in (b"/dev", b"/dev/pts", b"/dev/shm"):
            syscalls.set_mount(place, clear=shut)
        # The devices are the host's: they work, but nobody may chmod them.
        for path in filter(os.path.exists, (b"/dev/" + name for name in _DEVICES)):
            syscalls.set_mount(path, clear=syscalls.ATTR_NODEV)
        for place in (*writable, *([b"/proc"] if fresh else [])):
            syscalls.set_mount(place, clear=syscalls.ATTR_RDONLY)


class First(KeeperServer):
    """Starts commands on streams from outside, but on devices of the sandbox's own."""

    def _spawn(self, descriptors: list[int]) -> None:
        super()._spawn([descriptors[0], *map(_own, descriptors[1:])])


def _own(descriptor: int) -> int:
    """The same device as the sandbox has it: by the host's /dev/null root could chmod that."""
    info = os.fstat(descriptor)
    if not stat.S_ISCHR(info.st_mode):
        return descriptor
    for name in _STREAMS:
        path = b"/dev/" + name
        try:
            if os.stat(path).st_rdev == info.st_rdev:
                mode = fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_ACCMODE
                fresh = os.open(path, mode)
                os.close(descriptor)
                return fresh
        except OSError:
            continue  # a container may have fewer of them
    return descriptor
