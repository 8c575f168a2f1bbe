"""Where the contenders run: a directory of their own on a real disk, gone afterwards."""

import fcntl
import os
import shutil
import struct
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from bench.machine import file_system

HERE = os.path.dirname(os.path.abspath(__file__))
_GET_FLAGS, _SET_FLAGS, _TOP_OF_A_HIERARCHY = 0x80086601, 0x40086602, 0x20000
_IN_MEMORY = ("tmpfs", "ramfs")
_CANDIDATES = ("/var/tmp", "/tmp", os.path.dirname(HERE))  # noqa: S108  only tried in turn


class BenchError(Exception):
    """Why nothing could be measured, in words."""


@dataclass
class Place:
    """The fake agent, and for each run a workspace, a home and a state directory.

    Nothing is removed between runs that make many files, see `_spread`.
    """

    root: str
    file_system: str
    _runs: int = 0

    @property
    def agent(self) -> str:
        """The agent under a name that no CLI has: it speaks text."""
        return os.path.join(self.root, "bin", "agent")

    @property
    def claude(self) -> str:
        """The same agent under the name whose stream Ralph knows."""
        return os.path.join(self.root, "bin", "claude")

    @property
    def run(self) -> str:
        """The directory of the current run."""
        return os.path.join(self.root, str(self._runs))

    @property
    def times(self) -> str:
        """Where the agent writes when it started."""
        return os.path.join(self.run, "times")

    def environment(self) -> dict[str, str]:
        """A small environment, the same for every contender; nothing of the caller's but PATH."""
        return {
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": os.path.join(self.run, "home"),
            "RALPH_STATE_DIR": os.path.join(self.run, "state"),
            "LANG": "C.UTF-8",
            "BENCH_TIMES": self.times,
        }

    def renew(self, *, git: bool = False) -> None:
        """Begin the next run, as if nothing had run here yet; in a git project, if that matters."""
        self._runs += 1
        for name in ("home", "state", "workspace"):
            os.makedirs(os.path.join(self.run, name))
        os.chdir(os.path.join(self.run, "workspace"))
        if git:
            subprocess.run(["git", "init", "-q"], env=self.environment(), check=True)
            os.mkdir(".ralph")  # without settings ralph would look for checks, and commit
            with open(".ralph/settings.json", "w", encoding="ascii") as file:
                file.write("{}")

    def forget(self) -> None:
        """Remove what the current run wrote: little in number, but much in size."""
        os.chdir(self.root)
        shutil.rmtree(self.run, ignore_errors=True)

    def started(self) -> list[int]:
        """When each agent started, in nanoseconds of the monotonic clock."""
        if not os.path.exists(self.times):
            return []
        with open(self.times, encoding="ascii") as file:
            return [int(line) for line in file]


@contextmanager
def make_place(parent: str | None = None) -> Iterator[Place]:
    """A place for the time being, and the current directory."""
    before = os.getcwd()
    root = os.path.realpath(tempfile.mkdtemp(prefix="ralph-bench-", dir=parent or _disk()))
    try:
        place = Place(root, file_system(root))
        _compile(place)
        _spread(root)
        place.renew()
        yield place
    finally:
        os.chdir(before)
        shutil.rmtree(root, ignore_errors=True)


def _spread(root: str) -> None:
    """Have ext4 give each run's directory a block group of its own, where it can (`chattr +T`).

    It does not reuse an inode for minutes after its file was deleted. Where thousands were, by an
    earlier run or by anyone's tests, every new file costs a millisecond for looking past them.
    """
    descriptor = os.open(root, os.O_RDONLY)
    try:
        flags = struct.unpack("l", fcntl.ioctl(descriptor, _GET_FLAGS, struct.pack("l", 0)))[0]
        fcntl.ioctl(descriptor, _SET_FLAGS, struct.pack("l", flags | _TOP_OF_A_HIERARCHY))
    except OSError:
        pass  # another file system, or not allowed: it only evens the figures
    finally:
        os.close(descriptor)


def _disk() -> str:
    """A directory on a real disk: in memory, saving would look cheaper than it is."""
    usable = [path for path in _CANDIDATES if os.access(path, os.W_OK | os.X_OK)]
    for path in usable:
        if file_system(path) not in _IN_MEMORY:
            return path
    if not usable:
        raise BenchError("no directory can be written; name one with --dir")
    return usable[0]


def _compile(place: Place) -> None:
    os.makedirs(os.path.dirname(place.agent))
    source = os.path.join(HERE, "agent.c")
    try:
        done = subprocess.run(
            ["cc", "-O2", "-o", place.agent, source], capture_output=True, text=True, check=False
        )
    except OSError as error:
        raise BenchError("no C compiler. Install one, on Debian: apt-get install gcc") from error
    if done.returncode:
        raise BenchError(f"the fake agent does not compile:\n{done.stderr}")
    os.link(place.agent, place.claude)
