"""The machine a figure was taken on, and how busy it was."""

import os
import platform
from collections.abc import Iterator
from dataclasses import dataclass

_STEAL = 7  # the column of /proc/stat's first line, after its name


@dataclass(frozen=True)
class Moment:
    """The load and the processors' time, at one moment."""

    load: float
    ticks: tuple[int, ...]

    @classmethod
    def now(cls) -> "Moment":
        """This moment."""
        with open("/proc/stat", encoding="ascii") as file:
            ticks = tuple(map(int, file.readline().split()[1:]))
        return cls(round(os.getloadavg()[0], 2), ticks)


@dataclass(frozen=True)
class Machine:
    """What a reader must know to compare figures."""

    cores: int
    processor: str
    system: str
    load_before: float
    load_after: float
    steal_percent: float

    @classmethod
    def between(cls, before: Moment, after: Moment) -> "Machine":
        """The machine as it was between two moments."""
        system = f"{platform.system()} {platform.release()}"
        steal = round(_steal(before, after), 2)
        return cls(cores(), _processor(), system, before.load, after.load, steal)

    def words(self) -> str:
        """One line for people."""
        return (
            f"{self.cores} cores ({self.processor}), {self.system}, load {self.load_before} before "
            f"and {self.load_after} after, {self.steal_percent} % stolen"
        )


def cores() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0))


def too_busy(moment: Moment) -> str:
    """A warning, if others were using the machine already; else nothing."""
    allowed = 0.5 * cores()
    if moment.load <= allowed:
        return ""
    return f"warning: the load is {moment.load}, more than {allowed:g}: figures will be too high"


def file_system(path: str) -> str:
    """The type of the file system that holds a path: `ext4`, `tmpfs`."""
    return max(_mounts_above(os.path.realpath(path)), default=(0, "unknown"))[1]


def _mounts_above(path: str) -> Iterator[tuple[int, str]]:
    with open("/proc/self/mounts", encoding="utf-8") as file:
        for line in file:
            _, point, kind = line.split()[:3]
            if os.path.commonpath((point, path)) == point:
                yield len(point), kind


def _processor() -> str:
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        names = [line.partition(":")[2].strip() for line in file if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _steal(before: Moment, after: Moment) -> float:
    spent = [b - a for a, b in zip(before.ticks, after.ticks, strict=True)]
    return 100 * spent[_STEAL] / max(1, sum(spent)) if len(spent) > _STEAL else 0.0
