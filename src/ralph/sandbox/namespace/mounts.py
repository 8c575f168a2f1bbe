"""Mounts of a sandbox, made by its first process: an overlay on the project, the rest of the host
to be read only, private places for temporary files, and nothing to see of Ralph's state.

Standard library only: this runs in `maker.py`.
"""

import os
from os.path import dirname, isdir, realpath

from ralph.sandbox.namespace import syscalls

TYPE_CHECKING = False  # as typing has it; importing that would cost more than all the rest
if TYPE_CHECKING:
    from collections.abc import Callable
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

    Step = Callable[[str, Callable[[], None]], None]

_PRIVATE = (b"/tmp", b"/var/tmp")
_SERVICES = b"/run"  # sockets in there lead out of every sandbox
_DEVICES = (b"null", b"zero", b"full", b"random", b"urandom", b"tty")
_DEVICE_LINKS = {
    b"fd": b"/proc/self/fd",
    b"stdin": b"/proc/self/fd/0",
    b"stdout": b"/proc/self/fd/1",
    b"stderr": b"/proc/self/fd/2",
    b"ptmx": b"pts/ptmx",
}
_PASSWORDS = (b"/etc/shadow", b"/etc/gshadow", b"/etc/shadow-", b"/etc/gshadow-")
# Through these root would reach the whole machine.
_KERNEL = (b"sys", b"sysrq-trigger", b"irq", b"bus", b"fs", b"acpi", b"scsi")
_RESOLVER = b"/etc/resolv.conf"
_NOTHING = b"/dev/nothing"  # a file for the moment, in a /dev of our own
_SAFELY = syscalls.MS_NOSUID | syscalls.MS_NODEV
_PRIVATELY = syscalls.MS_REC | syscalls.MS_PRIVATE


class Made:
    """Descriptors for Ralph: of the upper layer, and of the project as it looks."""

    def __init__(self, upper: int, merged: int, kept: str) -> None:
        self.upper = upper
        self.merged = merged
        self.kept = kept  # on disk, or in memory
        self.home = ""  # why the home directory has no layer, if one was wanted


def furnish(plan: "MountPlan", step: "Step") -> Made:
    """Do everything, in an order that never shows more than at the end."""
    step("keep mounts private", lambda: syscalls.mount(b"", b"/", flags=_PRIVATELY))
    made = _overlay(plan, step)
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
    fresh = _processes()
    step("make /dev", _devices)
    _arrange(plan, secret, seen, aliases, step)
    step("show the project", lambda: _show(plan["project"], made.merged))
    for place in _within(plan):  # which was not to be seen before, if the project was not
        _hide(place, step)
    if plan["root"]:
        step("hide what root could read or write", lambda: _shield(fresh=fresh))
    step(
        "make the host read only", lambda: _only_readable(writable, fresh=fresh or not plan["root"])
    )
    os.close(made.merged)  # it may be the mount that is hidden now
    made.merged = os.open(plan["project"], os.O_RDONLY | os.O_DIRECTORY)
    return made


_PRIVATELY = syscalls.MS_REC | syscalls.MS_PRIVATE


def _arrange(
    plan: "MountPlan",
    secret: "list[bytes]",
    seen: "dict[bytes, int]",
    aliases: "list[bytes]",
    step: "Step",
) -> None:
    """Hide what is not to be seen, and show what is, wherever one lies in the other."""
    outside = [place for place in plan["hidden"] if place not in _within(plan)]
    real = sorted(seen.keys() - set(aliases))  # the outer before the inner
    for places in ((*_PRIVATE, _SERVICES), outside, secret):
        for place in dict.fromkeys(map(realpath, places)):
            _hide(place, step)
        for path in real:
            step(f"show {os.fsdecode(path)}", lambda p=path: _show(p, seen[p]))  # type: ignore[misc]
    for path in sorted(aliases):  # links may lead there by now
        step(f"show {os.fsdecode(path)}", lambda p=path: _show(p, seen[p]))  # type: ignore[misc]
    for handle in seen.values():
        os.close(handle)


def _within(plan: "MountPlan") -> "list[bytes]":
    """Hidden directories in the project."""
    return [place for place in plan["hidden"] if _is_below(place, plan["project"])]


def _overlay(plan: "MountPlan", step: "Step") -> Made:
    """The project with a layer above it, on disk if the disk can hold one, else in memory."""
    if not plan["memory"]:
        try:
            return Made(*_layered(plan["project"], plan["place"]), "on disk")
        except OSError:
            pass  # another overlay holds the place, or a file system without what it takes
    size = b",size=%d" % plan["memory"] if plan["memory"] else b""
    step("mount memory for the layer", lambda: _memory(plan["place"], size))
    made: list[Made] = []
    step(
        "mount the overlay",
        lambda: made.append(Made(*_layered(plan["project"], plan["place"]), "in memory")),
    )
    return made[0]


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
            try:
                os.fchown(upper, info.st_uid, info.st_gid)
            except OSError:
                pass  # only root may, and only for whom this namespace knows
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
    """The paths that are there, of those to be seen; the resolver's file may lie among the
    services."""
    paths = [*plan["visible"], *([realpath(_RESOLVER)] if plan["network"] == "on" else [])]
    places = [*_PRIVATE, _SERVICES, *map(realpath, (*_PRIVATE, _SERVICES)), *plan["hidden"]]
    places += plan["secret"]
    places += [plan["home"]] if plan["home"] else []
    inside = [p for p in paths if any(_is_below(p, place) for place in places)]
    return [path for path in inside if os.path.exists(path)]


def _processes() -> bool:
    """Mount a /proc of our own. Within some containers there can be none: then the outer one stays,
    which is harmless, since what it shows is not ours to touch."""
    try:
        syscalls.mount(b"proc", b"/proc", b"proc", _SAFELY | syscalls.MS_NOEXEC)
    except OSError:
        return False
    return True


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
    """Take a file out of the layer over the home directory, where it can be made anew; False for a
    directory, and for what lies elsewhere."""
    if isdir(path) or not _is_below(path, home):
        return False
    try:
        os.unlink(path)
    except OSError:
        return False
    return True


def _hide(place: bytes, step: "Step") -> None:
    """Put an empty directory over one, and an empty file over another, unless it lies in one that
    is hidden already."""
    mode = b"mode=1777" if place in _PRIVATE else b"mode=755"

    def blank() -> None:
        _touch(_NOTHING)
        syscalls.mount(_NOTHING, place, flags=syscalls.MS_BIND)
        os.unlink(_NOTHING)

    def cover() -> None:
        syscalls.mount(b"tmpfs", place, b"tmpfs", _SAFELY, mode)

    if isdir(place) or os.path.isfile(place):
        step(f"hide {os.fsdecode(place)}", cover if isdir(place) else blank)


def _is_below(path: bytes, directory: bytes) -> bool:
    return path.startswith(directory + b"/")


def _show(path: bytes, handle: int) -> None:
    """Put something back where it was, if it is hidden."""
    there = os.fstat(handle)
    if os.path.exists(path) and os.path.samestat(os.stat(path), there):
        return
    if isdir(_by(handle)):
        os.makedirs(path, exist_ok=True)
    else:
        os.makedirs(dirname(path), exist_ok=True)
        _touch(path)
    syscalls.mount(_by(handle), path, flags=syscalls.MS_BIND | syscalls.MS_REC)


def _touch(path: bytes) -> None:
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600))


def _shield(*, fresh: bool) -> None:
    for path in filter(os.path.exists, _PASSWORDS):
        syscalls.mount(b"/dev/null", path, flags=syscalls.MS_BIND)
    for name in _KERNEL if fresh else ():
        path = b"/proc/" + name
        if os.path.exists(path):
            syscalls.mount(path, path, flags=syscalls.MS_BIND)


def _only_readable(writable: "list[bytes]", *, fresh: bool) -> None:
    """Make everything read only, then what is ours writable again."""
    shut = syscalls.ATTR_RDONLY | syscalls.ATTR_NODEV
    syscalls.set_mount(b"/", put=shut | syscalls.ATTR_NOSUID, recursive=True)
    for place in (b"/dev", b"/dev/pts", b"/dev/shm"):
        syscalls.set_mount(place, clear=shut)
    for path in (b"/dev/" + name for name in _DEVICES):
        if os.path.exists(path):  # they are the host's: they work, but nobody may chmod them
            syscalls.set_mount(path, clear=syscalls.ATTR_NODEV)
    for place in (*writable, *([b"/proc"] if fresh else [])):
        syscalls.set_mount(place, clear=syscalls.ATTR_RDONLY)
