"""One run a workspace (ADR 10): a live owner is named, a dead one is taken over."""

import json
import math
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ralph.errors import LockedError, StateError
from ralph.journal.lock import Lock, read_owner
from ralph.processes.procfs import start_time

HOLDER = """
import sys
from ralph.journal.lock import Lock
lock = Lock(sys.argv[1])
lock.acquire("20260101-000000-abcd", 0.0)
print("held", flush=True)
sys.stdin.read()
"""


FOREVER = '{"pid": Infinity, "start": "1", "run": "one", "since": 1}'


@contextmanager
def no_room() -> Iterator[None]:
    """No file may grow, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    heard = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, heard)


@pytest.fixture(autouse=True)
def let_go(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No lock outlives its test: this process would be taken for a run above those of others."""
    taken, acquire = list[Lock](), Lock.acquire

    def acquire_and_remember(lock: Lock, run: str, since: float) -> object:
        taken.append(lock)
        return acquire(lock, run, since)

    monkeypatch.setattr(Lock, "acquire", acquire_and_remember)
    yield
    for lock in taken:
        lock.release()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "project" / "run.lock"


@pytest.fixture
def holder(path: Path) -> Iterator["subprocess.Popen[str]"]:
    """Another process that holds the lock until its input ends."""
    arguments = [sys.executable, "-c", HOLDER, str(path)]
    with subprocess.Popen(
        arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process


def test_a_lock_says_who_holds_it(path: Path) -> None:
    """ "flock + pid and start time"."""
    lock = Lock(str(path))
    lock.acquire("run", 12.5)
    owner = json.loads(path.read_text())
    assert owner["pid"] == os.getpid()
    assert owner["start"] == start_time(os.getpid()) != ""
    assert (owner["run"], owner["since"]) == ("run", 12.5)
    lock.release()
    assert path.read_text() == ""


def test_a_second_holder_is_refused_and_told_whom_to_wait_for(
    path: Path, holder: "subprocess.Popen[str]"
) -> None:
    """ "A live owner is named and refused (2)"."""
    with pytest.raises(LockedError) as caught:
        Lock(str(path)).acquire("mine", 1.0)
    assert f"pid {holder.pid}, run 20260101-000000-abcd" in caught.value.message
    remedy = f"Wait for it, or end it: ralph stop (or kill -INT {holder.pid})"
    assert caught.value.remedy == remedy
    assert caught.value.reason == "config"
    assert json.loads(path.read_text())["pid"] == holder.pid, "the refusal changes nothing"


def test_a_dead_owner_is_taken_over(path: Path, holder: "subprocess.Popen[str]") -> None:
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    assert json.loads(path.read_text())["pid"] == holder.pid
    lock = Lock(str(path))
    lock.acquire("mine", 1.0)
    assert json.loads(path.read_text())["pid"] == os.getpid()
    lock.release()


def test_the_end_of_a_process_releases_its_lock(
    path: Path, holder: "subprocess.Popen[str]"
) -> None:
    holder.communicate("")
    Lock(str(path)).acquire("mine", 1.0)


def test_a_released_lock_can_be_taken_again(path: Path) -> None:
    first, second = Lock(str(path)), Lock(str(path))
    first.acquire("one", 1.0)
    with pytest.raises(LockedError):
        second.acquire("two", 2.0)
    first.release()
    first.release()  # twice is once
    second.acquire("two", 2.0)
    second.release()


@pytest.mark.parametrize("content", ["", "{", "[]", '{"pid": 1}', "\xff", "[" * 100_000, FOREVER])
def test_an_owner_that_has_not_written_its_name_yet_is_refused_too(
    path: Path, content: str
) -> None:
    owner = Lock(str(path))
    owner.acquire("one", 1.0)
    path.write_text(content, "latin-1")
    with pytest.raises(LockedError, match="just starting or ending") as caught:
        Lock(str(path)).acquire("two", 2.0)
    assert caught.value.remedy == "Try again in a moment."
    owner.release()


@pytest.mark.parametrize("since", [math.inf, math.nan, 1e300])
def test_an_owner_since_no_moment_at_all_is_named_without_it(path: Path, since: float) -> None:
    owner = Lock(str(path))
    owner.acquire("one", since)
    with pytest.raises(LockedError, match=rf"\(pid {os.getpid()}, run one\)"):
        Lock(str(path)).acquire("two", 2.0)
    owner.release()


def test_an_agent_does_not_inherit_the_lock(path: Path) -> None:
    """A daemon that an agent leaves behind must not hold the workspace."""
    lock = Lock(str(path))
    lock.acquire("one", 1.0)
    done = subprocess.run(["ls", "-l", "/proc/self/fd"], check=True, capture_output=True)
    assert b"run.lock" not in done.stdout
    lock.release()


def test_a_state_directory_that_cannot_be_made_is_named_with_the_remedy(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file in the way")
    with pytest.raises(StateError, match="cannot write the state directory") as caught:
        Lock(str(tmp_path / "state" / "project" / "run.lock")).acquire("run", 1.0)
    assert "RALPH_STATE_DIR" in caught.value.remedy


def test_a_lock_elsewhere_has_its_own_remedy(tmp_path: Path) -> None:
    (tmp_path / "run.lock").mkdir()
    with pytest.raises(StateError, match=r"cannot write the task's folder: .*direct") as caught:
        Lock(str(tmp_path / "run.lock"), "the task's folder", "Choose another.").acquire("run", 1.0)
    assert caught.value.remedy == "Choose another."


def test_a_full_disk_is_named_and_nothing_stays_open(path: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    with no_room(), pytest.raises(StateError, match="cannot write the state directory"):
        Lock(str(path)).acquire("run", 1.0)
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.parametrize(
    ("kind", "why"),
    [
        ("pipe", "not a regular file"),
        ("device", "Too many levels of symbolic links"),
        ("link", "Too many levels of symbolic links"),
        ("directory", "Is a directory"),
    ],
)
def test_what_stands_in_a_locks_place_is_named_and_not_waited_for(
    path: Path, kind: str, why: str
) -> None:
    path.parent.mkdir(parents=True)
    other = path.parent / "other"
    other.write_text("precious")
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "directory":
        path.mkdir()
    else:
        path.symlink_to("/dev/full" if kind == "device" else other)
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(StateError, match=why):
        Lock(str(path)).acquire("run", 1.0)
    assert read_owner(str(path)) is None
    assert other.read_text() == "precious"
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_huge_lock_names_nobody(tmp_path: Path) -> None:
    with (tmp_path / "run.lock").open("wb") as file:
        file.truncate(10**12)
    assert read_owner(str(tmp_path / "run.lock")) is None
