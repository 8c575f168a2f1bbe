"""Resources that a tree of processes uses, read from /proc: two looks, since CPU is used over
time."""

import os
from collections.abc import Callable, Mapping
from typing import Any

from ralph.kernel.value import value

Look = Mapping[int, "ProcessStat"]

_MOMENT = 0.25  # between the two looks; the kernel counts in hundredths of a second


@value
class ProcessStat:
    """One process as /proc shows it now."""

    parent: int
    start: str  # in the kernel's ticks: with the pid it names a process for good
    seconds: float  # of CPU, up to now
    memory: int  # resident, in bytes


@value
class Load:
    """Resources that some processes use together. Memory they share is counted for each."""

    processes: int
    cpu_percent: float
    rss_bytes: int

    def as_dict(self) -> dict[str, Any]:
        names = ("processes", "cpu_percent", "rss_bytes")
        return {name: getattr(self, name) for name in names}


@value
class ProcessTree:
    """A run's process, and everything that descends from it."""

    own: Load
    below: Load

    def as_dict(self) -> dict[str, Any]:
        """The descendants, and ralph itself apart."""
        return {**self.below.as_dict(), "ralph": self.own.as_dict()}


def measure(roots: list[int], sleep: Callable[[float], None]) -> dict[int, ProcessTree]:
    """The trees of these processes; those that are gone, or all without /proc, are left out."""
    before = look() if roots else {}
    if not before:
        return {}
    sleep(_MOMENT)
    after = look()
    return {pid: tree_of(pid, before, after, _MOMENT) for pid in roots if pid in after}


def tree_of(root: int, before: Look, after: Look, seconds: float) -> ProcessTree:
    """The resources that a tree used between two looks, so many seconds apart."""
    own = _load([root], before, after, seconds)
    return ProcessTree(own, _load(descendants(root, after), before, after, seconds))


def descendants(root: int, seen: Look) -> list[int]:
    children: dict[int, list[int]] = {}
    for pid, process in seen.items():
        children.setdefault(process.parent, []).append(pid)
    found: list[int] = []
    waiting = [root]
    while waiting:
        new = children.pop(waiting.pop(), [])  # popped: even a circle would end
        found += new
        waiting += new
    return [pid for pid in found if pid != root]


def look(proc: str = "/proc") -> Look:
    """Every process there is now; none where there is no /proc."""
    try:
        names = os.listdir(proc)
    except OSError:
        return {}
    seen = ((int(name), _process(f"{proc}/{name}/stat")) for name in names if name.isdecimal())
    return {pid: process for pid, process in seen if process is not None}


def _process(path: str) -> ProcessStat | None:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            fields = file.read().rpartition(")")[2].split()  # a name may hold blanks and brackets
        ticks = int(fields[11]) + int(fields[12])
        return ProcessStat(
            parent=int(fields[1]),
            start=fields[19],
            seconds=ticks / os.sysconf("SC_CLK_TCK"),
            memory=int(fields[21]) * os.sysconf("SC_PAGE_SIZE"),
        )
    except (OSError, ValueError, IndexError):
        return None  # it ended meanwhile


def _load(pids: list[int], before: Look, after: Look, seconds: float) -> Load:
    used = 0.0
    for pid in pids:
        then, now = before.get(pid), after[pid]
        # Nothing for one that was born in between, also under a pid that was used before.
        earlier = then.seconds if then is not None and then.start == now.start else 0.0
        used += max(0.0, now.seconds - earlier)
    percent = round(100 * used / seconds, 1) if seconds > 0 else 0.0
    return Load(len(pids), percent, sum(after[pid].memory for pid in pids))
