"""What /proc tells of a process, and that it tells nothing of one that is gone."""

import fcntl
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kits.adapters import await_that, is_alive
from ralph.processes import procfs

HOLDS = """
import fcntl, os, subprocess, sys
file = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
{take}
child = subprocess.Popen(["sleep", "60"], pass_fds=[file], stdin=subprocess.DEVNULL)
print(child.pid, flush=True)
sys.stdin.read()
child.kill()
child.wait()
"""
NOBODY = (0, -1, 2**22 + 1, 2**31, 9_999_999_999)


@pytest.fixture
def process() -> Iterator["subprocess.Popen[bytes]"]:
    words = ["sh", "-c", "sleep 60 & wait", "a word", "ü\nb"]
    env = {"PATH": os.environ["PATH"], "ONE": "1", "TWO": "a=b\nc"}
    with subprocess.Popen(words, env=env) as process:
        await_that(lambda: procfs.command_line(process.pid)[:1] == ["sh"])
        yield process
        process.kill()


def test_a_process_as_it_is(process: "subprocess.Popen[bytes]") -> None:
    pid = process.pid
    assert procfs.is_there()
    assert procfs.command_line(pid)[3:5] == ["a word", "ü\nb"]
    assert {b"ONE=1", b"TWO=a=b\nc"} <= set(procfs.environment(pid))
    assert procfs.parent(pid) == os.getpid()
    assert int(procfs.start_time(pid)) >= int(procfs.start_time(os.getpid()))
    assert procfs.line_of(pid)[:3] == [pid, os.getpid(), os.getppid()]
    assert procfs.line_of(pid)[-1] == procfs.line_of(os.getpid())[-1]


@pytest.mark.parametrize("pid", NOBODY)
def test_nobody_is_nothing(pid: int) -> None:
    assert procfs.start_time(pid) == ""
    assert procfs.parent(pid) == 0
    assert procfs.line_of(pid) == ([pid] if pid > 0 else [])
    assert [*procfs.environment(pid), *procfs.command_line(pid)] == [b"", ""]
    assert not procfs.holds_lock(pid, "/dev/null")


def test_a_zombie_has_ended(process: "subprocess.Popen[bytes]") -> None:
    process.kill()
    await_that(lambda: not is_alive(process.pid))
    assert procfs.start_time(process.pid) == ""
    assert procfs.parent(process.pid) == os.getpid()
    assert procfs.environment(process.pid) == [b""]


def test_a_name_may_hold_blanks_and_brackets(tmp_path: Path) -> None:
    program = tmp_path / "a) Z 1 (b"
    program.symlink_to("/bin/sleep")
    with subprocess.Popen([str(program), "60"]) as process:
        await_that(lambda: procfs.command_line(process.pid)[0] == str(program))
        assert procfs.parent(process.pid) == os.getpid()
        assert procfs.start_time(process.pid).isdecimal()
        process.kill()


# ------------------------------------------------------------------ locks


@pytest.mark.parametrize(
    ("take", "expected"),
    [
        ("fcntl.flock(file, fcntl.LOCK_EX)", True),
        ("fcntl.flock(file, fcntl.LOCK_SH)", False),
        ("fcntl.lockf(file, fcntl.LOCK_EX)", False),
        ("pass", False),
        ("fcntl.flock(file, fcntl.LOCK_EX); fcntl.flock(file, fcntl.LOCK_UN)", False),
    ],
    ids=["exclusive", "shared", "of another kind", "only open", "given back"],
)
def test_the_kernel_tells_who_holds_a_lock(tmp_path: Path, take: str, expected: bool) -> None:
    path, other = str(tmp_path / "run.lock"), tmp_path / "other"
    other.touch()
    words = [sys.executable, "-c", HOLDS.format(take=take), path]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        inherits = int(process.stdout.readline())
        assert procfs.holds_lock(process.pid, path) is expected
        assert not procfs.holds_lock(inherits, path), "it has not taken it"
        assert not procfs.holds_lock(process.pid, str(other))
        assert not procfs.holds_lock(process.pid, str(tmp_path / "none"))
        assert not procfs.holds_lock(os.getpid(), path)
        process.communicate(b"")
    assert not procfs.holds_lock(process.pid, path)


def test_a_link_to_a_lock_proves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "run.lock"
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    assert procfs.holds_lock(os.getpid(), str(path))
    (tmp_path / "link").symlink_to(path)
    assert not procfs.holds_lock(os.getpid(), str(tmp_path / "link"))
    os.link(path, tmp_path / "name")
    assert not procfs.holds_lock(os.getpid(), str(tmp_path / "name"))
    os.close(descriptor)
