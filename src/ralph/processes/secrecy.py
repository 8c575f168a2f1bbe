"""Keeps what a process was told from those that may read what the system tells of it."""

import os
from collections.abc import Iterable
from contextlib import suppress

_BEGIN, _END = 47, 48  # of the environment, among the words after the name in /proc/self/stat


def forget(names: Iterable[str]) -> None:
    """Take variables out of our environment, and out of /proc/PID/environ: what is below us runs
    as the same user and could read it there."""
    given = [name for name in names if os.environ.pop(name, None) is not None]
    with suppress(OSError, IndexError):
        with open("/proc/self/stat", "rb") as file:
            words = file.read().rpartition(b")")[2].split()
        begin, end = int(words[_BEGIN]), int(words[_END])
        with open("/proc/self/mem", "r+b", buffering=0) as memory:
            memory.seek(begin)
            for entry in memory.read(end - begin).split(b"\0"):
                if entry.partition(b"=")[0] in map(os.fsencode, given):
                    memory.seek(begin)
                    memory.write(bytes(len(entry)))
                begin += len(entry) + 1
