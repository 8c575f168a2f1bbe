"""The message bus on disk (S): many writers, kills, full disks, and readers who follow."""

import errno
import fcntl
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from ralph.loops.supervise import bus as bus_module
from ralph.loops.supervise.bus import Bus, Follower, new_message
from ralph.loops.supervise.bus_format import Message, encode

BY_HAND = "---\nmsg_id: hand\ntype: FACT\n---\nby hand\n"
NOW = 1_794_751_200.123456


def message(body: str = "hello", kind: str = "FACT") -> Message:
    return new_message(kind, body, project="shop", task="checkout", run="r", now=NOW)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "TASK-MESSAGE-BUS.md"


@pytest.fixture
def bus(path: Path) -> Bus:
    return Bus(str(path))


def posted(bus: Bus, *bodies: str) -> list[Message]:
    messages = [message(body) for body in bodies]
    for one in messages:
        bus.post(one)
    return messages


def append(path: Path, data: bytes) -> None:
    with path.open("ab") as file:
        file.write(data)


# ------------------------------------------------------------------ ids


def test_a_message_says_when_and_who() -> None:
    made = message()
    assert made.ts == "2026-11-15T14:00:00.123456Z"
    assert made.msg_id.startswith(f"MSG-20261115-140000-123456-{os.getpid()}-")
    assert (made.type, made.project_id, made.task_id) == ("FACT", "shop", "checkout")
    assert (made.run_id, made.body) == ("r", "hello")


def test_ids_differ_and_sort_by_time() -> None:
    made = [
        new_message("T", "", project="p", task="t", now=NOW + second).msg_id
        for second in (0, 0, 0.5, 1, 60, 86_400)
    ]
    assert made == sorted(set(made))
    assert not any(character.isspace() for name in made for character in name)


def test_ids_of_many_threads_differ() -> None:
    made: list[str] = []
    threads = [
        threading.Thread(target=lambda: made.extend(message().msg_id for _ in range(200)))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(made)) == 1600


# ------------------------------------------------------------------ posting


def test_what_is_posted_is_read(bus: Bus, path: Path) -> None:
    messages = posted(bus, "one", "", "---\n", "\0\r\n😀", encode(message()).decode())
    assert bus.read() == messages
    assert path.read_bytes() == b"".join(map(encode, messages))
    assert bus.end() == path.stat().st_size


def test_a_bus_that_is_not_there_is_empty(bus: Bus, path: Path) -> None:
    assert (bus.read(), bus.end()) == ([], 0)
    assert not path.exists()


@pytest.mark.parametrize(("mask", "mode"), [(0o022, 0o644), (0o077, 0o600)])
def test_the_file_is_made_as_the_umask_allows(bus: Bus, path: Path, mask: int, mode: int) -> None:
    before = os.umask(mask)
    try:
        posted(bus, "x")
    finally:
        os.umask(before)
    assert path.stat().st_mode & 0o777 == mode


def test_behind_a_torn_entry_a_message_begins_on_a_line_of_its_own(bus: Bus, path: Path) -> None:
    """A kill can tear an entry, and others append afterwards."""
    first = posted(bus, "first")
    append(path, encode(message("x" * 5000))[:3000])
    last = posted(bus, "last")
    assert bus.read() == first + last
    assert b"x\n---\nmsg_id: " in path.read_bytes()


POST_ON_A_SMALL_DISK = """
import resource, sys
from ralph.loops.supervise.bus import Bus, new_message
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), resource.RLIM_INFINITY))
try:
    Bus(sys.argv[1]).post(new_message("T", "x" * 5000, project="p", task="t", now=1.0))
except OSError as error:
    print(error)
"""


@pytest.mark.parametrize("room", [0, 1, 100, 5000])
@pytest.mark.parametrize("torn", ["", "no newline"])
def test_a_message_for_which_there_is_no_room_leaves_nothing(
    bus: Bus, path: Path, room: int, torn: str
) -> None:
    """ "a short write (full disk) is undone by ftruncate to the old size and raises OSError"."""
    first = posted(bus, "first")
    append(path, torn.encode())
    before = path.read_bytes()
    done = python(POST_ON_A_SMALL_DISK, str(path), str(len(before) + room))
    assert ("No space left" in done) if room else ("File too large" in done)
    assert path.read_bytes() == before
    assert bus.read() == first


def python(code: str, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, check=True, timeout=60
    )
    return done.stdout.decode()


def test_what_others_wrote_without_a_lock_is_not_cut_off(
    bus: Bus, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    posted(bus, "first")
    write = os.write

    def write_half(file: int, data: bytes) -> int:
        done = write(file, data[: len(data) // 2])
        append(path, b"a note\n")
        return done

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", write_half)
        with pytest.raises(OSError, match="No space left"):
            posted(bus, "second")
    assert path.read_bytes().endswith(b"a note\n")


# ------------------------------------------------------------------ what is no file


def make_fifo(path: Path) -> None:
    os.mkfifo(path)


def make_directory(path: Path) -> None:
    path.mkdir()


def make_device(path: Path) -> None:
    path.symlink_to("/dev/zero")


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (make_fifo, "not a regular file"),
        (make_directory, "Is a directory"),
        (make_device, "not a regular file"),
    ],
)
def test_nobody_hangs_on_what_is_no_file(
    bus: Bus, path: Path, make: Callable[[Path], None], why: str
) -> None:
    make(path)
    calls: list[Callable[[], object]] = [bus.read, Follower(str(path)).new]
    calls.append(lambda: posted(bus, "x"))
    for call in calls:
        with pytest.raises(OSError, match=why) as caught:
            call()
        assert caught.value.filename == str(path)
    assert bus.end() == 0


def test_a_directory_that_is_missing_is_an_error(tmp_path: Path) -> None:
    bus = Bus(str(tmp_path / "missing" / "BUS.md"))
    with pytest.raises(FileNotFoundError):
        posted(bus, "x")
    assert bus.read() == []


def test_a_place_that_cannot_be_looked_at_has_no_end(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert Bus(str(tmp_path / "file" / "BUS.md")).end() == 0


# ------------------------------------------------------------------ many at once


POST_MANY = """
import sys, time
from ralph.loops.supervise.bus import Bus, new_message
for number in range(int(sys.argv[3])):
    body = f"{sys.argv[2]} {number}\\n---\\n" + "x" * (number * 37)
    Bus(sys.argv[1]).post(new_message("FACT", body, project="p", task="t", now=time.time()))
"""


def test_ten_processes_post_a_hundred_messages_each(bus: Bus, path: Path) -> None:
    """ "10 processes × 100 messages: 1,000 distinct, none torn"; a follower misses none."""
    writers = [
        subprocess.Popen([sys.executable, "-c", POST_MANY, str(path), str(writer), "100"])
        for writer in range(10)
    ]
    follower, followed = Follower(str(path)), []
    while any(writer.poll() is None for writer in writers):
        followed += follower.new()
    assert [writer.returncode for writer in writers] == [0] * 10
    found = bus.read()
    assert followed + list(follower.each()) == found
    assert len({m.msg_id for m in found}) == 1000
    for writer in range(10):
        bodies = [m.body for m in found if m.body.startswith(f"{writer} ")]
        assert bodies == [f"{writer} {n}\n---\n" + "x" * (n * 37) for n in range(100)]


def test_threads_of_one_process_take_turns_too(bus: Bus) -> None:
    threads = [threading.Thread(target=lambda: posted(bus, *map(str, range(30)))) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({m.msg_id for m in bus.read()}) == 180


def test_a_file_system_without_locks_can_be_read(bus: Bus, monkeypatch: pytest.MonkeyPatch) -> None:
    first = posted(bus, "first")

    def no_locks(file: int, how: int) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", no_locks)
    assert bus.read() == first


# ------------------------------------------------------------------ following


def test_a_follower_gives_each_message_once(bus: Bus, path: Path) -> None:
    follower = Follower(str(path))
    assert follower.new() == []
    first = posted(bus, "one", "two")
    assert follower.new() == first
    assert follower.new() == []
    assert follower.new() == []
    second = posted(bus, encode(message()).decode(), "four")
    assert follower.new() == second


def test_a_follower_may_begin_at_the_end(bus: Bus, path: Path) -> None:
    posted(bus, "old")
    follower = Follower(str(path), bus.end())
    assert follower.new() == []
    assert posted(bus, "new") == follower.new()


def test_a_follower_that_begins_behind_a_torn_entry(bus: Bus, path: Path) -> None:
    posted(bus, "old")
    append(path, encode(message("torn"))[:-4])
    follower = Follower(str(path), bus.end())
    assert posted(bus, "new") == follower.new()


def test_where_nothing_came_the_file_is_not_opened(
    bus: Bus, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ "stat first, parse only what was added"."""
    posted(bus, "one")
    follower = Follower(str(path))
    follower.new()
    monkeypatch.setattr(bus_module, "_opened", None)
    assert follower.new() == []


def test_an_entry_that_comes_in_pieces(bus: Bus, path: Path) -> None:
    """Others may write without a lock."""
    whole = message("x\n---\ny")
    follower = Follower(str(path))
    for byte in encode(whole)[:-1]:
        append(path, bytes([byte]))
        assert follower.new() == []
    append(path, b"\n")
    assert follower.new() == [whole]


def test_messages_behind_a_torn_one_come_at_once(bus: Bus, path: Path) -> None:
    follower = Follower(str(path))
    append(path, encode(message("x" * 9000))[:500])
    assert follower.new() == []
    assert posted(bus, "next") == follower.new()
    assert posted(bus, "and next") == follower.new()


def test_an_entry_by_hand_comes_at_once_and_once(bus: Bus, path: Path) -> None:
    """S §Wait-Without-Restart: the agent may write its last message by hand, and exit."""
    follower = Follower(str(path))
    append(path, BY_HAND.encode())
    assert [m.body for m in follower.new()] == ["by hand"]
    assert posted(bus, "next") == follower.new()
    assert [m.body for m in bus.read()] == ["by hand", "next"]


@pytest.mark.parametrize("gone", [True, False])
def test_a_bus_that_begins_anew_is_read_from_its_beginning(
    bus: Bus, path: Path, gone: bool
) -> None:
    follower = Follower(str(path))
    posted(bus, "old", "older")
    assert len(follower.new()) == 2
    if gone:
        path.unlink()
        assert follower.new() == []
    else:
        path.write_bytes(b"")
    assert posted(bus, "new") == follower.new()


def test_a_bus_that_vanishes_while_it_is_opened_is_empty(
    bus: Bus, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    posted(bus, "x")
    monkeypatch.setattr(bus_module, "_size", lambda _: 999)
    path.unlink()
    assert bus.read() == []


def test_a_large_body_in_small_blocks(
    bus: Bus, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Memory: what is read is decoded block by block, whatever the body holds."""
    monkeypatch.setattr(bus_module, "_BLOCK", 1000)
    fake = encode(message("evil")).decode()
    messages = posted(bus, fake * 500, "x" * 100_000, fake[:-1], "last")
    assert bus.read() == messages
    assert list(Follower(str(path)).each()) == messages


POST_AND_READ_MUCH = """
import sys
from ralph.loops.supervise.bus import Bus, new_message
bus, body = Bus(sys.argv[1]), "0123456789abcde\\n" * (100 * 1024 * 1024 // 16)
bus.post(new_message("T", body, project="p", task="t", now=1.0))
bus.post(new_message("T", "last", project="p", task="t", now=1.0))
first, last = bus.read()
print(first.body == body, last.body)
"""


def test_a_body_of_100_mb(path: Path) -> None:
    assert python(POST_AND_READ_MUCH, str(path)) == "True last\n"
