"""What a sandbox shall be, from a policy: ports of this machine, and what commands find."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest
from sandbox_support import needs_overlay, policy, tree

from ralph.errors import ConfigError
from ralph.kernel.value import replace
from ralph.sandbox.backends import overlay
from ralph.sandbox.interface import OFF, ON, Network, SandboxPolicy
from ralph.sandbox.network import network_of
from ralph.sandbox.policy import (
    MOST_PORTS,
    environment_of,
    local_ports,
    repository_outside,
)


@pytest.mark.parametrize(
    ("hosts", "ports"),
    [
        ((), {}),
        (("localhost", "127.0.0.1"), {}),  # all of them, by the proxy
        (("example.org:8080", "*.localhost:1"), {}),
        (("localhost:8080",), {8080: "localhost"}),
        (("127.0.0.1:1", "LOCALHOST:65535"), {1: "127.0.0.1", 65535: "localhost"}),
        (("127.0.0.1:80", "localhost:80"), {80: "127.0.0.1"}),
    ],
)
def test_ports_of_this_machine(hosts: tuple[str, ...], ports: dict[int, str]) -> None:
    assert local_ports(Network(hosts=hosts)) == ports
    assert local_ports(Network(everybody=True, hosts=hosts)) == {}


@pytest.mark.parametrize("port", ["0", "65536", "http", "-1", "1:2", "¹"])
def test_what_is_no_port_is_refused(port: str) -> None:
    with pytest.raises(ValueError, match=r"is no port|is no host|IPv6"):
        network_of(f"localhost:{port}")


def test_too_many_ports_are_refused() -> None:
    hosts = tuple(f"localhost:{port}" for port in range(1, MOST_PORTS + 2))
    with pytest.raises(ConfigError, match="more than 64"):
        local_ports(Network(hosts=hosts))


@pytest.mark.parametrize(
    ("network", "port", "proxy", "direct"),
    [
        (OFF, 0, None, None),
        (ON, 0, "http://corporate:1", "intranet"),
        (Network(hosts=("example.org",)), 7, "http://127.0.0.1:7", "localhost,127.0.0.1,::1"),
        (Network(hosts=("localhost:80",)), 7, "http://127.0.0.1:7", "localhost,127.0.0.1,::1"),
        (Network(hosts=("Localhost",)), 7, "http://127.0.0.1:7", "127.0.0.1,::1"),
    ],
)
def test_which_proxy_a_command_finds(
    network: Network, port: int, proxy: str | None, direct: str | None
) -> None:
    environ = {"HTTPS_PROXY": "http://corporate:1", "NO_PROXY": "intranet", "KEPT": "x"}
    found = environment_of(SandboxPolicy(environ, "/state", network=network), "overlay", port)
    assert (found.get("HTTPS_PROXY"), found.get("NO_PROXY")) == (proxy, direct)
    assert found["KEPT"] == "x"


# ------------------------------------------------------------------ where the project lies


@pytest.mark.parametrize("above", ["", "inner"], ids=["the same", "above it"])
def test_a_project_in_the_state_directory_is_refused(tmp_path: Path, above: str) -> None:
    """It would be hidden, and work in it lost."""
    project = tree(tmp_path / above, a="1\n")
    wish = replace(policy(), state=str(tmp_path))
    with pytest.raises(ConfigError, match="state directory") as caught:
        overlay.open(str(project), wish)
    assert "RALPH_STATE_DIR" in caught.value.remedy
    can = overlay.probe(str(project), wish)
    assert not can.usable
    assert "state directory" in can.why


def test_the_whole_system_is_not_usable() -> None:
    can = overlay.probe("/", policy())
    assert (can.usable, can.contain) == (False, False)
    assert "the whole system" in can.why


MOUNT = """
import os, sys
from ralph.sandbox.backends import overlay
from ralph.sandbox.interface import SandboxPolicy
from ralph.errors import ConfigError
policy = SandboxPolicy(dict(os.environ), sys.argv[2])
print(overlay.probe(sys.argv[1], policy))
try:
    overlay.open(sys.argv[1], policy)
except ConfigError as error:
    print(error.message, error.remedy)
"""


@needs_overlay
def test_a_mount_in_the_project_is_named(tmp_path: Path) -> None:
    """`auto` by a live probe, which is true for the project: then it takes another."""
    inner = tmp_path / "project" / "with blank" / "mounted"
    inner.mkdir(parents=True)
    (tmp_path / "state").mkdir()
    script = 'mount -t tmpfs none "$1" && shift && exec "$@"'
    words = (sys.executable, "-c", MOUNT, str(tmp_path / "project"), str(tmp_path / "state"))
    done = subprocess.run(
        ["unshare", "-Urm", "sh", "-c", script, "sh", str(inner), *words],
        capture_output=True,
        text=True,
        check=False,
    )
    probed, opened = done.stdout.splitlines()
    for said in (probed, opened):
        assert f"{inner} is mounted in the project" in said
        assert "worktree" in said
        assert "sysctl" not in said
    assert "usable=False" in probed


GIT = ("git", "-c", "user.name=x", "-c", "user.email=x@y")


def repository(directory: Path) -> Path:
    tree(directory, sub__a="1\n", b="1\n")
    for words in (("init", "-q"), ("add", "-A"), ("commit", "-qm", "Begin")):
        subprocess.run([*GIT, *words], cwd=directory, check=True)
    return directory


@needs_overlay
@pytest.mark.parametrize("home", [True, False], ids=["at home", "elsewhere"])
@pytest.mark.parametrize("kind", ["directory", "worktree"])
def test_a_repository_outside_can_be_read(tmp_path: Path, kind: str, home: bool) -> None:
    """And nothing is committed that would be lost; which is told."""
    above = repository(tmp_path / "above")
    project = above / "sub"
    if kind == "worktree":
        project = tmp_path / "linked"
        subprocess.run([*GIT, "worktree", "add", "-q", str(project)], cwd=above, check=True)
    wish = replace(policy(), home=str(tmp_path) if home else "")
    with overlay.open(str(project), wish) as sandbox:
        assert f"in {above}/.git: nothing can be committed" in sandbox.capabilities.lacks
        assert sandbox.git("log", "--format=%s").output == b"Begin\n"
        assert sandbox.git("status", "--porcelain").output == b""
        assert b"a | 1 +" in sandbox.bash("echo >> $(find . -name a); git diff --stat").output
        assert sandbox.run(*GIT, "commit", "-qam", "x").code != 0
        assert sandbox.bash(f"echo x > {above}/.git/config").code != 0
    assert subprocess.check_output(["git", "log", "--format=%s"], cwd=above) == b"Begin\n"


def test_a_repository_in_the_project_is_its_own(tmp_path: Path) -> None:
    assert repository_outside(str(repository(tmp_path / "project")), os.environ) == []


CALL_ALL = """
import socket, sys
print(len([socket.create_connection(("127.0.0.1", int(port)), 5) for port in sys.argv[1:]]))
"""


@needs_overlay
def test_as_many_ports_as_there_can_be(tmp_path: Path) -> None:
    """Also with so many descriptors open that their numbers get in each other's way."""
    project = tree(tmp_path / "project", a="1\n")
    with ExitStack() as opened:
        servers = [opened.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(64)]
        ports = [server.getsockname()[1] for server in servers]
        network = Network(hosts=tuple(f"127.0.0.1:{port}" for port in ports))
        before = len(os.listdir("/proc/self/fd"))
        with overlay.open(str(project), replace(policy(), network=network)) as sandbox:
            done = sandbox.run("python3", "-c", CALL_ALL, *map(str, ports))
            assert done.output == b"64\n", done
        assert len(os.listdir("/proc/self/fd")) <= before + 1  # the link to the launcher


WAITING = """
import os, sys
from ralph.sandbox.backends import overlay
from ralph.sandbox.interface import Network, SandboxPolicy
network = Network(hosts=("ralph.invalid", sys.argv[3]))
policy = SandboxPolicy(dict(os.environ), sys.argv[2], network=network)
with overlay.open(sys.argv[1], policy) as sandbox:
    print("up", flush=True)
    sandbox.bash("sleep 1000")
"""


@needs_overlay
def test_the_proxy_ends_with_a_ralph_that_is_killed(tmp_path: Path) -> None:
    """Settled: "no process or mount outlives the run"."""
    project = tree(tmp_path / "project", a="1\n")
    mark = f"localhost:{10_000 + os.getpid() % 50_000}"
    words = (WAITING, str(project), os.environ["RALPH_STATE_DIR"], mark)
    with subprocess.Popen([sys.executable, "-c", *words], stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"up\n"
            await_that(lambda: bool(proxies(mark)))
        finally:
            process.send_signal(signal.SIGKILL)
    await_that(lambda: not proxies(mark))


def await_that(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def proxies(mark: str) -> list[str]:
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            line = Path(f"/proc/{pid}/cmdline").read_bytes()
        except OSError:
            continue
        found += [pid] if b"proxy.py" in line and mark.encode() in line else []
    return found
