"""Three machines on a switch that can be cut, without touching this machine's network.

All of it lives in one user, network, mount and process namespace: when its first process ends,
everything ends, also where the test itself was killed. Each host in it has a process space, a
network, a hostname, an address, a home and temporary files of its own, and sees nobody else's.
"""

import fcntl
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Self

ROOT = Path(__file__).resolve().parents[3]
PATIENCE = 20.0  # seconds
SHARED = "/mnt/shared"  # what every host and every sandbox on it sees; only sockets can be written
AGENT = f"{SHARED}/agent"  # agent.py, as a program
USER_HOME = "/home/dev"
_NETWORK = "10.77.0"
_SWITCH = 254
_PARENT = 0xB702  # ioctl NS_GET_PARENT
_SPACES = ("--user", "--mount", "--uts", "--ipc", "--net", "--pid")
_KINDS = ("--mount", "--uts", "--ipc", "--net", "--pid", "--fork", "--kill-child")
# `cat` ends when whoever holds its standard input is gone, and reaps what it adopts.
_STAY = """
trap '' CHLD
echo ready
exec cat > /dev/null
"""
_SWITCH_BEGINS = """
set -e
shared=$1; shift
mount -t proc proc /proc
mount -t tmpfs tmpfs /mnt
mkdir /mnt/shared
mount --bind "$shared" /mnt/shared
number=0
for path; do  # programs that a host's own directories will cover
    mkdir -p /mnt/kept/$number
    mount --rbind "$path" /mnt/kept/$number
    number=$((number + 1))
done
ip link set lo up
# An address of its own: else it takes the lowest of its ports', which changes with each cut and
# mend, and hosts that are not cut send to the old one until they ask again.
ip link add bridge address 02:00:00:00:00:fe type bridge
ip address add {switch}/24 dev bridge
ip link set bridge up
"""
_HOST_BEGINS = """
set -e
name=$1 own=$2 root=$3 home=$4; shift 4
mount -t proc proc /proc
hostname "$name"
mount --bind "$root/hosts" /etc/hosts
mkdir -p /mnt/own
mount --bind "$own" /mnt/own
for place in tmp var/tmp home; do
    mkdir -p "/mnt/own/$place"
    chmod 1777 "/mnt/own/$place"
    mount --bind "/mnt/own/$place" "/$place"
done
mkdir -p {user_home}
mount -t tmpfs tmpfs /run
for place in "$home" "$root"; do
    if [ -d "$place" ] && [ "$place" != / ]; then mount -t tmpfs tmpfs "$place"; fi
done
number=0
for path; do
    mkdir -p "$path"
    mount --rbind /mnt/kept/$number "$path"
    number=$((number + 1))
done
ip link set lo up
"""


class UnableError(Exception):
    """Why there can be no machines here, in words."""


class Process:
    """A program on a machine. Its number is that of the test's own process space."""

    def __init__(self, started: "subprocess.Popen[bytes]", pid: int | None) -> None:
        self.started = started
        self.pid = pid  # None if it had ended before anybody could look

    def send(self, number: int) -> None:
        """Send a signal to it alone."""
        if self.pid is not None and self.started.poll() is None:
            signalled(self.pid, number)
            if number == signal.SIGCONT:  # `nsenter` stops with whom it waits for
                self.started.send_signal(number)

    def kill(self) -> None:
        """Kill it, and nothing that it started."""
        self.send(signal.SIGKILL)

    def wait(self, timeout: float = PATIENCE) -> int:
        """Its exit code; negative for a signal."""
        return self.started.wait(timeout)

    def ended(self) -> bool:
        """True once it is gone."""
        return self.started.poll() is not None

    def close(self) -> None:
        """Let go of its streams; it must have ended."""
        for stream in (self.started.stdin, self.started.stdout, self.started.stderr):
            if stream is not None:
                stream.close()


class Host:
    """One machine; or the switch, which is on the network too and cannot be cut off."""

    def __init__(self, name: str, number: int, own: Path) -> None:
        self.name, self.address, self.own = name, f"{_NETWORK}.{number}", own
        self.number = number
        self.init: int = 0  # the first process, as the test knows it
        self._line: subprocess.Popen[bytes] | None = None
        self._runs: list[Process] = []

    @property
    def home(self) -> Path:
        """Where a program of the test's finds the machine's home directory."""
        return self.own / USER_HOME.lstrip("/")

    def begin(self, argv: Sequence[str]) -> None:
        """Start the first process, and wait until it has made what is needed."""
        self._line = subprocess.Popen(
            argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        out, errors = self._line.stdout, self._line.stderr
        assert out is not None
        assert errors is not None
        if out.readline() != b"ready\n":
            said = errors.read().decode("utf-8", "replace").strip()
            raise UnableError(f"{self.name} cannot be made: {said}")
        self.init = _last_descendant(self._line.pid)

    def environment(self, **more: str) -> dict[str, str]:
        """A small environment: the machine's own home, and nothing of the caller's but programs."""
        paths = (os.path.dirname(sys.executable), os.defpath, "/usr/sbin", "/sbin")
        return {
            "PATH": os.pathsep.join(paths),
            "HOME": USER_HOME,
            "XDG_CONFIG_HOME": f"{USER_HOME}/.config",
            "XDG_CACHE_HOME": f"{USER_HOME}/.cache",
            "XDG_DATA_HOME": f"{USER_HOME}/.local/share",
            "XDG_STATE_HOME": f"{USER_HOME}/.local/state",
            "USER": "dev",
            "LANG": "C.UTF-8",
            "GIT_TERMINAL_PROMPT": "0",
            "PYTHONDONTWRITEBYTECODE": "1",
            **more,
        }

    def run(
        self,
        argv: Sequence[str],
        env: Mapping[str, str] = {},
        *,
        cwd: str = "",
        stdin: int | None = subprocess.DEVNULL,
        stdout: int | IO[bytes] = subprocess.DEVNULL,
        stderr: int | IO[bytes] = subprocess.DEVNULL,
    ) -> Process:
        """Start a program there, in a session of its own."""
        place = cwd or (USER_HOME if self.number != _SWITCH else "/")
        words = (*entering(self.init), "sh", "-c", 'cd "$0" && exec "$@"', place, *argv)
        started = subprocess.Popen(
            words,
            env=self.environment(**env),
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            start_new_session=True,
        )
        process = Process(started, _child(started))
        self._runs.append(process)
        return process

    def call(self, *argv: str, cwd: str = "", env: Mapping[str, str] = {}) -> str:
        """Run a program to its end; what it said. An exit code but 0 raises."""
        process = self.run(argv, env, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        out, errors = process.started.communicate(timeout=PATIENCE * 3)
        if process.started.returncode:
            said = (out + errors).decode("utf-8", "replace")
            raise AssertionError(f"{self.name}: {argv}: {process.started.returncode}: {said}")
        return out.decode("utf-8", "replace")

    def processes(self) -> dict[int, list[str]]:
        """Who is there but the first process: the words of each, by the test's own numbers."""
        found = dict(_within(self.init))
        found.pop(self.init, None)
        return found

    def end(self) -> None:
        """Pull the plug: everything on it is killed."""
        if self._line is not None:
            line, self._line = self._line, None
            for stream in (line.stdin, line.stdout, line.stderr):
                if stream is not None:
                    stream.close()
            line.kill()
            line.wait()
        for process in self._runs:
            process.started.kill()
            process.started.wait()
            process.close()
        self._runs.clear()
        # The kernel kills a process space after its first process is gone, not with it.
        await_that(lambda: not self.processes(), f"everything on {self.name} is gone")


class Machines:
    """So many machines on a switch, for the time of a `with`."""

    def __init__(self, root: Path, count: int = 3, programs: Sequence[Path] = ()) -> None:
        """`root` is an empty directory for what the machines keep on disk; `programs` are more
        directories that all of them see, where they are."""
        self.root = root
        self._programs = (ROOT, sys.prefix, sys.base_prefix, *programs)
        self.shared = root / "shared"
        self.switch = Host("switch", _SWITCH, root / "switch")
        self.hosts = [Host(f"host{n}", n, root / f"host{n}") for n in range(1, count + 1)]
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        _look_for_tools()
        self.shared.mkdir()
        shutil.copy(Path(__file__).with_name("agent.py"), self.shared)
        agent = self.shared / "agent"
        agent.write_text(f'#!/bin/sh\nexec {sys.executable} -I -S {AGENT}.py "$@"\n', "utf-8")
        agent.chmod(0o755)
        names = (f"{host.address} {host.name}\n" for host in (*self.hosts, self.switch))
        (self.root / "hosts").write_text("127.0.0.1 localhost\n" + "".join(names), "utf-8")
        try:
            self._begin()
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def _begin(self) -> None:
        home = os.path.realpath(os.path.expanduser("~"))
        covered = [*map(os.path.realpath, ("/tmp", "/var/tmp", "/home", "/run")), home]
        programs = dict.fromkeys(map(str, self._programs))
        kept = [p for p in programs if any(Path(p).is_relative_to(c) for c in covered)]
        self._stack.callback(self.switch.end)
        script = _SWITCH_BEGINS.format(switch=self.switch.address) + _STAY
        new: tuple[str, ...] = ("unshare", "--user", "--map-root-user", *_KINDS)
        self.switch.begin((*new, "sh", "-c", script, "sh", str(self.shared), *kept))
        for host in self.hosts:
            host.own.mkdir()
            self._stack.callback(host.end)
            script = _HOST_BEGINS.format(user_home=USER_HOME) + _STAY
            given = (host.name, str(host.own), str(self.root), home, *kept)
            new = (*entering(self.switch.init), "unshare", *_KINDS)
            host.begin((*new, "sh", "-c", script, "sh", *given))
            self._plug(host)

    def _plug(self, host: Host) -> None:
        port = f"port{host.number}"
        peer = ("peer", "name", "eth0", "netns", str(host.init))
        self._ip(self.switch, "link", "add", port, "type", "veth", *peer)
        self._ip(self.switch, "link", "set", port, "master", "bridge", "up")
        self._ip(host, "address", "add", f"{host.address}/24", "dev", "eth0")
        self._ip(host, "link", "set", "eth0", "up")

    def cut(self, host: Host) -> None:
        """Cut a host off: whatever is sent to it or by it is lost, and nobody is told."""
        self._ip(self.switch, "link", "set", f"port{host.number}", "nomaster")

    def mend(self, host: Host) -> None:
        """Connect it again."""
        self._ip(self.switch, "link", "set", f"port{host.number}", "master", "bridge")

    def remote(self, name: str = "project.git") -> str:
        """Serve an empty repository on the switch, by git's own protocol; its URL."""
        place = self.root / "served"
        place.mkdir(exist_ok=True)
        git = ("git", "-c", "init.defaultBranch=main", "init", "--quiet", "--bare")
        subprocess.run([*git, str(place / name)], check=True)
        words = ("--reuseaddr", "--export-all", "--enable=receive-pack", f"--base-path={place}")
        daemon = ("git", "daemon", f"--listen={self.switch.address}", *words, str(place))
        self.switch.run(daemon, {"HOME": str(self.root)})
        url = f"git://{self.switch.address}/{name}"
        await_that(lambda: _answers(self.switch, url), "the remote answers")
        return url

    def left(self) -> dict[str, dict[int, list[str]]]:
        """Who is there on each host, but for the first processes."""
        return {host.name: found for host in self.hosts if (found := host.processes())}

    @staticmethod
    def _ip(host: Host, *words: str) -> None:
        # In the test's own process space, where the numbers are known.
        enter = ("nsenter", f"--target={host.init}", "--user", "--net", "--preserve-credentials")
        done = subprocess.run([*enter, "ip", *words], capture_output=True, text=True, check=False)
        if done.returncode:
            raise UnableError(f"ip {' '.join(words)}: {done.stderr.strip()}")


def await_that(happened: Callable[[], object], what: str, patience: float = PATIENCE) -> None:
    """Wait for something that must come."""
    end = time.monotonic() + patience
    while not happened():
        if time.monotonic() > end:
            raise AssertionError(f"{what}: that did not happen within {patience:g} s")
        time.sleep(0.02)


def signalled(pid: int, number: int) -> bool:
    """Send a signal; False if nobody is there any more."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return False
    return True


def entering(init: int) -> tuple[str, ...]:
    """The words before a command that is to run where this process is the first."""
    return ("nsenter", f"--target={init}", *_SPACES, "--preserve-credentials", "--")


def _look_for_tools() -> None:
    if sys.platform != "linux":
        raise UnableError("there are namespaces on Linux only")
    packages = {"ip": "iproute2", "unshare": "util-linux", "nsenter": "util-linux", "git": "git"}
    for program, package in packages.items():
        if shutil.which(program) is None:
            raise UnableError(f"{program} is missing; on Debian: apt-get install {package}")


def _answers(host: Host, url: str) -> bool:
    process = host.run(("git", "ls-remote", url))
    return process.wait() == 0


def _child(started: "subprocess.Popen[bytes]") -> int | None:
    """The process behind `nsenter`, which waits for it."""
    while True:
        if found := _children(started.pid):
            return found[0]
        if started.poll() is not None:
            return None
        time.sleep(0.001)


def _last_descendant(pid: int) -> int:
    while found := _children(pid):
        pid = found[0]
    return pid


def _children(pid: int) -> list[int]:
    return [int(word) for word in _read(f"/proc/{pid}/task/{pid}/children").split()]


def _within(init: int) -> Iterator[tuple[int, list[str]]]:
    """Everybody whose process space is that of the first process, or was made in it."""
    try:
        wanted = os.stat(f"/proc/{init}/ns/pid").st_ino
    except FileNotFoundError:
        return  # its plug was pulled
    for name in filter(str.isdigit, os.listdir("/proc")):
        words = _read(f"/proc/{name}/cmdline")
        if words and _is_made_in(name, wanted):  # one that has ended has none
            yield int(name), words.decode("utf-8", "replace").rstrip("\0").split("\0")


def _is_made_in(pid: str, wanted: int) -> bool:
    try:
        space = os.open(f"/proc/{pid}/ns/pid", os.O_RDONLY)
    except OSError:
        return False  # it is gone, or another user's
    while True:
        try:
            if os.fstat(space).st_ino == wanted:
                return True
            above = fcntl.ioctl(space, _PARENT)
        except OSError:
            return False  # that is all that we may see
        finally:
            os.close(space)
        space = above


def _read(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError:
        return b""
