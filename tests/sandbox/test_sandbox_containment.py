"""What a command in an overlay tries in order to get out, and does not reach."""

import os
from pathlib import Path

import pytest
from sandbox_support import needs_overlay, policy, tree

from ralph.kernel.value import replace
from ralph.sandbox.backends import overlay

pytestmark = needs_overlay
TRACE = """
import ctypes, sys
sys.exit(0 if ctypes.CDLL(None).ptrace(16, 1, 0, 0) == 0 else 1)  # PTRACE_ATTACH
"""

# A key for the user, and a look for the session's keyring.
NUMBERS = 'import ctypes, os, sys; n = 248 if os.uname().machine == "x86_64" else 217; '
KEY = f'{NUMBERS} sys.exit(ctypes.CDLL(None).syscall(n, b"user", b"ralph", b"x", 1, -4) < 0)'
SESSION = f"{NUMBERS} sys.exit(ctypes.CDLL(None).syscall(n + 2, 0, -3, 1) < 0)"


@pytest.mark.parametrize(
    "script",
    [
        "mount -o remount,bind,rw /",
        "mount -t tmpfs none /mnt",
        "unshare -Urm mount -o remount,bind,rw /",
        "unshare -Urm sh -c 'mount -o remount,rw,bind / ; touch /usr/x'",
        "unshare -Urm umount {state}",
        "umount {state}",
        "mknod /tmp/disk b 254 0",
        "ls /proc/1/root/",
        "echo 1 > /proc/sys/kernel/pid_max",
        "echo h > /proc/sysrq-trigger",
        "mkdir /sys/fs/cgroup/x",
        "cat /etc/shadow",
        "test -e /dev/mem -o -e /dev/vda -o -e /dev/sda",
        "ls {state}/* 2> /dev/null",
        "touch {beside}",
        "ls /run/* 2> /dev/null",
        f"python3 -c '{TRACE}'",
        "chmod 600 /dev/null",  # root's, of the host
        "chmod 600 /proc/self/fd/0",
        f"python3 -c '{KEY}'",
        f"python3 -c '{SESSION}'",
    ],
)
def test_what_fails_in_a_sandbox(tmp_path: Path, script: str) -> None:
    """Backends: "host read-only, private /tmp, state directory hidden"."""
    project = tree(tmp_path / "project", a="1\n")
    state = os.environ["RALPH_STATE_DIR"]
    tree(Path(state), secret="x")
    beside = f"/usr/{tmp_path.name}"
    with overlay.open(str(project), policy()) as sandbox:
        done = sandbox.bash(script.format(state=state, beside=beside))
    assert done.code != 0, done
    assert not os.path.exists(beside)


def test_devices_work(tmp_path: Path) -> None:
    project = tree(tmp_path / "project", a="1\n")
    script = "echo x > /dev/null; head -c 2 /dev/zero | wc -c; echo x > /dev/full || echo full"
    before = os.stat(os.devnull).st_mode
    with overlay.open(str(project), policy()) as sandbox:
        assert sandbox.bash(f"{script}; cat < /dev/null").output.split() == [b"2", b"full"]
    assert os.stat(os.devnull).st_mode == before


def test_its_first_process_cannot_be_killed_from_inside(tmp_path: Path) -> None:
    project = tree(tmp_path / "project", a="1\n")
    with overlay.open(str(project), policy()) as sandbox:
        assert sandbox.bash("kill -9 1; kill -STOP 1; echo still here").output == b"still here\n"
        assert sandbox.bash("echo and here").output == b"and here\n"


def test_a_sandbox_within_a_sandbox(tmp_path: Path) -> None:
    """Backends: "Works … nested"."""
    project = tree(tmp_path / "project", a="1\n")
    code = (
        "import os, ralph.sandbox.backends.overlay as o\n"
        "from ralph.sandbox.interface import SandboxPolicy\n"
        "os.mkdir('/tmp/state')\n"
        "with o.open('.', SandboxPolicy(dict(os.environ), '/tmp/state')) as inner:\n"
        "    inner.bash('echo 2 > a; echo 2 > b; rm b')\n"
        "    print([c.path for c in inner.changes()], open('a').read().strip())\n"
        "    inner.commit()\n"
    )
    with overlay.open(str(project), policy()) as sandbox:
        done = sandbox.eval(code)
        assert done.output == b"['a'] 1\n", done
        assert sandbox.fs.read("a") == b"2\n"
    assert (project / "a").read_text() == "1\n"


@pytest.mark.parametrize("memory", [0, 1024 * 1024], ids=["disk", "memory"])
def test_a_state_directory_in_the_project_is_hidden_too(tmp_path: Path, memory: int) -> None:
    project = tree(tmp_path / "project", a="1\n", state__secret="x")
    inside = replace(policy(memory), state=str(project / "state"))
    with overlay.open(str(project), inside) as sandbox:
        assert sandbox.bash("ls -A state; echo 2 > a").output == b""
        assert [change.path for change in sandbox.changes()] == ["a"]
        assert not sandbox.commit().spared
    assert (project / "a").read_text() == "2\n"
    assert (project / "state" / "secret").read_text() == "x"
