"""Resources that a tree of processes uses, read from /proc: two looks, for CPU over time."""

import os
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

from ralph.kernel.value import value
from ralph.processes import procfs

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


@value
class ProcessTree:
    """A run's process, and everything that descends from it."""

    own: Load
    below: Load

    def as_dict(self) -> dict[str, Any]:
        """The descendants, and ralph itself apart."""
        return {**asdict(self.below), "ralph": asdict(self.own)}


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
    found, waiting = [], [root]
    while waiting:
        new = children.pop(waiting.pop(), [])  # popped: even a circle would end
        found += new
        waiting += new
    return [pid for pid in found if pid != root]


def look() -> Look:
    """Every process there is now; none where there is no /proc."""
    seen: dict[int, ProcessStat] = {}
    for pid in procfs.pids():
        try:
            fields = procfs.stat_fields(pid)
            seen[pid] = ProcessStat(
                parent=int(fields[1]),
                start=fields[19],
                seconds=(int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK"),
                memory=int(fields[21]) * os.sysconf("SC_PAGE_SIZE"),
            )
        except (ValueError, IndexError):
            continue  # it ended meanwhile
    return seen


def _load(pids: list[int], before: Look, after: Look, seconds: float) -> Load:
    used = 0.0
    for pid in pids:
        then, now = before.get(pid), after[pid]
        # Nothing for one that was born in between, also under a pid that was used before.
        earlier = then.seconds if then is not None and then.start == now.start else 0.0
        used += max(0.0, now.seconds - earlier)
    percent = round(100 * used / seconds, 1) if seconds > 0 else 0.0
    return Load(len(pids), percent, sum(after[pid].memory for pid in pids))
