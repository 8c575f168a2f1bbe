"""The first process of a sandbox, once that is furnished: a keeper (ADR 23) that hands out nothing
of the host's.

Standard library only: this runs in `maker.py`.
"""

import fcntl
import os
import stat

from ralph.processes import keeper_main

_DEVICES = (b"null", b"zero", b"full", b"random", b"urandom")


class First(keeper_main.KeeperServer):
    """Starts commands on streams from outside, but on devices of the sandbox's own."""

    def _spawn(self, descriptors: list[int]) -> None:
        super()._spawn([descriptors[0], *map(_own, descriptors[1:])])


def _own(descriptor: int) -> int:
    """The same device as the sandbox has it: by the host's /dev/null root could chmod that."""
    info = os.fstat(descriptor)
    if not stat.S_ISCHR(info.st_mode):
        return descriptor
    for name in _DEVICES:
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
