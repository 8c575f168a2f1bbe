"""The message bus on disk (S): whatever an agent does to it, a look takes a moment."""

import errno
import fcntl
import os
import resource
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from test_bus import BY_HAND, append, message, posted

from ralph.loops.supervise import bus as bus_module
from ralph.loops.supervise.bus import Bus, Follower
from ralph.loops.supervise.bus_format import Message, encode


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "TASK-MESSAGE-BUS.md"


@pytest.fixture
def bus(path: Path) -> Bus:
    return Bus(str(path))


# ------------------------------------------------------------------ holes


CLAIM = b"---\nmsg_id: a\nlength: 99999999999\n---\n"
TERABYTE = 1 << 40


@contextmanager
def little_memory() -> Iterator[None]:
    """Whoever keeps what is not there runs out of it."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + 256 * 1024 * 1024, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


@pytest.mark.parametrize("begun", [b"", CLAIM, BY_HAND.encode(), encode(message("x" * 99))[:-9]])
@pytest.mark.parametrize("most", [8 * 1024 * 1024, 1 << 60])
def test_a_hole_is_left_out_and_what_comes_behind_it_is_heard(
    bus: Bus, path: Path, begun: bytes, most: int
) -> None:
    """`truncate -s 8T` makes nobody read 8 TB, and nobody keep them."""
    first = posted(bus, "first")
    append(path, begun)
    os.truncate(path, 8 * TERABYTE)
    follower = Follower(str(path), most=most)
    with little_memory():
        assert follower.new() == first
        assert follower.new() == []
        second = posted(bus, "second")
        assert follower.new() == second
        assert bus.read() == first + second
        assert bus.has(second.__contains__)


@pytest.mark.parametrize("knows", [None, errno.EINVAL])
def test_a_system_that_knows_no_holes_reads_zeros(
    bus: Bus, path: Path, monkeypatch: pytest.MonkeyPatch, knows: int | None
) -> None:
    def refuse(file: int, offset: int, how: int) -> int:
        raise OSError(knows, "no holes here")

    if knows is None:
        monkeypatch.setattr(bus_module, "_SEEK_DATA", None)
    monkeypatch.setattr(os, "lseek", refuse)
    first = posted(bus, "first")
    os.truncate(path, 4 * 1024 * 1024)
    assert first + posted(bus, "second") == bus.read()


def test_a_body_of_zeros_that_were_written_comes_back(bus: Bus) -> None:
    assert posted(bus, "\0" * (3 * 1024 * 1024), "next") == bus.read()


# ------------------------------------------------------------------ looks


def test_one_look_reads_so_much_and_the_next_one_goes_on(
    bus: Bus, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bus_module, "_LOOK", 1000)
    messages = posted(bus, "x" * 2500, *map(str, range(20)), encode(message()).decode())
    append(path, BY_HAND.encode())
    read: list[int] = []
    pread = os.pread

    def counted(file: int, size: int, offset: int) -> bytes:
        read[-1] += size
        return pread(file, size, offset)

    monkeypatch.setattr(os, "pread", counted)
    follower, followed = Follower(str(path)), []
    for _ in range(path.stat().st_size // 1000 + 1):
        read.append(0)
        followed += follower.new()
    assert max(read) == 1000
    assert followed[:-1] == messages
    assert followed[-1].body == "by hand"


def test_a_look_that_takes_long_ends_and_the_next_one_goes_on(
    bus: Bus, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A few bytes can be a message, and very many of them take their time."""
    monkeypatch.setattr(bus_module, "_BLOCK", 100)
    monkeypatch.setattr(bus_module, "_LOOK_SECONDS", 0.0)
    messages = posted(bus, *map(str, range(5)))
    follower = Follower(str(path))
    looks = [follower.new() for _ in range(path.stat().st_size // 100 + 1)]
    assert max(map(len, looks)) == 1
    assert [m for look in looks for m in look] == messages


def test_a_follower_leaves_out_what_is_too_large(bus: Bus, path: Path) -> None:
    posted(bus, "x" * 1001)
    fits = posted(bus, "x" * 1000, "next")
    assert Follower(str(path), most=1000).new() == fits
    follower = Follower(str(path), most=1000)
    follower.new()
    path.write_bytes(b"")
    posted(bus, "x" * 1001)
    assert posted(bus, "new") == follower.new(), "also of a bus that begins anew"


# ------------------------------------------------------------------ lately


def test_a_message_that_was_posted_lately_is_found(bus: Bus, path: Path) -> None:
    assert not bus.has(lambda _: True)
    old, *_, new = posted(bus, "old", "x" * 5000, "new")
    assert bus.has(lambda m: m == old)
    assert bus.has(lambda m: m == new)
    size = len(encode(new))
    assert bus.has(lambda m: m == new, last=size)
    assert not bus.has(lambda m: m == new, last=size - 1)
    assert not bus.has(lambda m: m == old, last=5000)
    assert not bus.has(lambda m: m.body == "other")


def test_only_the_end_is_looked_at(bus: Bus, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However long the bus is, and also while others cut it down."""
    messages = posted(bus, *map(str, range(50)))
    monkeypatch.setattr(bus_module, "_BLOCK", 100)
    seen: list[Message] = []

    def note(found: Message) -> bool:
        seen.append(found)
        return False

    assert not bus.has(note, last=1000)
    assert 0 < len(seen) < 10
    assert seen == messages[-len(seen) :]
    seen.clear()
    sizes = iter([10_000_000, path.stat().st_size])
    monkeypatch.setattr(bus_module, "_size", lambda _: next(sizes))
    assert not bus.has(note, last=1000)
    assert len(seen) < 10


# ------------------------------------------------------------------ posting


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Someone keeps the bus locked, and never lets it go."""
    with path.open("ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def test_a_lock_that_is_never_let_go_is_an_error_and_no_hang(
    bus: Bus, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bus_module, "_READERS_PATIENCE", 0.01)
    first = posted(bus, "first")
    with locked(path):
        with pytest.raises(OSError, match="another process keeps it locked") as caught:
            bus.post(message("second"), patience=0.01)
        assert caught.value.errno == errno.EBUSY
        assert bus.read() == first, "readers go on"
    assert bus.read() == first


@pytest.mark.parametrize("patience", [0.0, 0.0004, 0.5, 3.0])
def test_a_writer_waits_for_a_lock_exactly_as_long_as_it_may(
    bus: Bus, path: Path, monkeypatch: pytest.MonkeyPatch, patience: float
) -> None:
    """By short pauses, between which signals are heard."""
    pauses: list[float] = []
    monkeypatch.setattr(time, "sleep", pauses.append)
    monkeypatch.setattr(time, "monotonic", lambda: sum(pauses))
    path.touch()
    with locked(path), pytest.raises(OSError, match="another process keeps it locked"):
        bus.post(message(), patience)
    assert sum(pauses) == pytest.approx(patience)
    assert max(pauses, default=0) <= 0.01
    bus.post(message(), patience)


def test_a_message_that_nobody_could_read_is_not_posted(
    bus: Bus, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bus_module, "LARGEST", 1000)
    with pytest.raises(OSError, match="the message is too large"):
        posted(bus, "x" * 1000)
    assert not path.exists()
