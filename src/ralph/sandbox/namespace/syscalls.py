"""The system calls that namespaces and mounts need, and Python 3.11 does not have.

Standard library only and quick to import: not by ctypes, which costs every start milliseconds.
"""

import _ctypes
import os
from contextlib import suppress
from sys import byteorder as _ORDER  # noqa: N812

CLONE_NEWNS = 0x00020000
CLONE_NEWIPC = 0x08000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000

MS_NOSUID, MS_NODEV, MS_NOEXEC = 2, 4, 8
MS_BIND, MS_REC, MS_PRIVATE = 4096, 16384, 1 << 18

ATTR_RDONLY, ATTR_NOSUID, ATTR_NODEV = 1, 2, 4
_AT_RECURSIVE = 0x8000
_AT_FDCWD = -100
_MOUNT_SETATTR = 442  # the same number on every architecture

_PR_SET_PDEATHSIG = 1
_PR_SET_DUMPABLE = 4
_PR_SET_SECCOMP = 22
_PR_CAPBSET_DROP = 24
_PR_SET_NO_NEW_PRIVS = 38
_LAST_CAPABILITY = 63
_CAPABILITY_VERSION = 0x20080522
# What a root user needs for work on files, and to become somebody else: CHOWN, DAC_OVERRIDE,
# FOWNER, FSETID, KILL, SETGID, SETUID, NET_BIND_SERVICE, and SETFCAP for a sandbox within. None of
# them leads out.
OF_ROOT = frozenset({0, 1, 3, 4, 5, 6, 7, 10, 31})

# A filter of system calls: what stands in a call, and the few instructions that we need.
_FILTER = 2
_NUMBER, _ARCHITECTURE = 0, 4
_LOAD, _AND, _IF_EQUAL, _IF_AT_LEAST, _IF_MORE, _RETURN = 0x20, 0x54, 0x15, 0x35, 0x25, 0x06
_ALLOW, _NO_SUCH_CALL = 0x7FFF0000, 0x00050000 | 38  # ENOSYS
_BUT_FOR_X32 = 0xBFFFFFFF
# The number of add_key, which request_key and keyctl follow, for each architecture.
_KEYS = {
    0xC000003E: 248,  # x86_64, and x32
    0x40000003: 286,  # i386
    0xC00000B7: 217,  # aarch64
    0x40000028: 309,  # arm
    0xC00000F3: 217,  # riscv64
    0xC0000015: 269,  # ppc64le
    0x80000016: 278,  # s390x
}

_Simple = _ctypes._SimpleCData  # noqa: SLF001  ctypes does so too


class _Int(_Simple):  # type: ignore[type-arg]  # what ctypes calls c_int
    _type_ = "i"


class _Byte(_Simple):  # type: ignore[type-arg]
    _type_ = "B"


class _Function(_ctypes.CFuncPtr):
    _flags_ = _ctypes.FUNCFLAG_CDECL | _ctypes.FUNCFLAG_USE_ERRNO
    _restype_ = _Int


_LIBC = _ctypes.dlopen(None, 0)  # type: ignore[arg-type]  # None: this very program


def _call(name: str, *arguments: int | bytes | None) -> None:
    function = _Function(_ctypes.dlsym(_LIBC, name))
    if function(*arguments) < 0:
        number = _ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def unshare(flags: int) -> None:
    _call("unshare", flags)


def mount(
    source: bytes, target: bytes, kind: bytes = b"", flags: int = 0, data: bytes = b""
) -> None:
    """Mount a file system, or with MS_BIND what is mounted elsewhere."""
    _call("mount", source or b"none", target, kind or None, flags, data or None)


def set_mount(target: bytes, *, put: int = 0, clear: int = 0, recursive: bool = False) -> None:
    """Change what may be done through a mount, or through all that are mounted below it."""
    attributes = b"".join(word.to_bytes(8, "little") for word in (put, clear, 0, 0))
    flags = _AT_RECURSIVE if recursive else 0
    _call("syscall", _MOUNT_SETATTR, _AT_FDCWD, target, flags, attributes, len(attributes))


def die_with_parent(number: int) -> None:
    """Get this signal when our parent, which must have one thread only, ends."""
    _call("prctl", _PR_SET_PDEATHSIG, number, 0, 0, 0)


def keep_capabilities(kept: frozenset[int]) -> None:
    """Give up all other capabilities, also those that a program could bring."""
    for number in range(_LAST_CAPABILITY + 1):
        if number not in kept:
            try:
                _call("prctl", _PR_CAPBSET_DROP, number, 0, 0, 0)
            except OSError:
                break  # the kernel has no more
    _call("prctl", _PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    mask = sum(1 << number for number in kept).to_bytes(4, "little")
    header = _CAPABILITY_VERSION.to_bytes(4, "little") + bytes(4)
    _call("capset", header, mask + mask + bytes(4) + bytes(12))


def be_untouchable() -> None:
    """Let no process without capabilities trace us, or take our descriptors."""
    _call("prctl", _PR_SET_DUMPABLE, 0, 0, 0, 0)


def forbid_keys() -> None:
    """Have no system call for keys, from now on and below us: the kernel's keyrings belong to a
    user or a session, and no namespace holds them off. A kernel without filters stays as it is."""
    # Each an instruction, what it is done with, and how many to skip if so, and if not.
    rows = [(_LOAD, _ARCHITECTURE, 0, 0)]
    for architecture, first in _KEYS.items():
        rows += [
            (_IF_EQUAL, architecture, 0, 6),
            (_LOAD, _NUMBER, 0, 0),
            (_AND, _BUT_FOR_X32, 0, 0),
            (_IF_AT_LEAST, first, 0, 2),
            (_IF_MORE, first + 2, 1, 0),
            (_RETURN, _NO_SUCH_CALL, 0, 0),
            (_RETURN, _ALLOW, 0, 0),
        ]
    rows.append((_RETURN, _ALLOW, 0, 0))
    program = b"".join(
        code.to_bytes(2, _ORDER) + bytes((then, otherwise)) + operand.to_bytes(4, _ORDER)
        for code, operand, then, otherwise in rows
    )

    class Program(_ctypes.Array[_Byte]):
        _type_ = _Byte
        _length_ = len(program)

    held = Program.from_buffer_copy(program)
    size, at = len(program) // 8, _ctypes.addressof(held)
    with suppress(OSError):
        _call("prctl", _PR_SET_SECCOMP, _FILTER, size.to_bytes(8, _ORDER) + at.to_bytes(8, _ORDER))
