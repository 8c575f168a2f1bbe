"""Streams that vanish: "stdout closed … never a traceback, and nothing already done is lost"."""

import errno
import io
import os
import subprocess
import sys
from pathlib import Path
from typing import TextIO

import pytest

from ralph.ui.safe_stream import Channel


def channel(stream: TextIO | None) -> tuple[Channel, list[str]]:
    losses: list[str] = []
    return Channel(stream, losses.append), losses


class Failing(io.StringIO):
    """A stream that fails in a way a test chooses, and counts the attempts."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error
        self.attempts = 0

    def write(self, text: str) -> int:
        self.attempts += 1
        raise self.error


def test_lines_are_written_and_flushed_at_once(tmp_path: Path) -> None:
    """`tail -f` must work."""
    path = tmp_path / "log"
    with path.open("w", encoding="utf-8") as stream:
        tell, losses = channel(stream)
        tell.write(["one", "two"])
        tell.write([])
        assert path.read_text("utf-8") == "one\ntwo\n"
    assert losses == []


def test_a_closed_pipe_is_reported_once_and_then_left_alone() -> None:
    reading, writing = os.pipe()
    with os.fdopen(writing, "w", encoding="utf-8") as stream:
        tell, losses = channel(stream)
        tell.write(["heard"])
        os.close(reading)
        tell.write(["lost"])
        tell.write(["also lost"])
        assert losses == ["is closed"]
    # Leaving the block flushed what was buffered: it went nowhere instead of raising.


def test_a_closed_file_object_is_a_closed_stream() -> None:
    stream = io.StringIO()
    stream.close()
    tell, losses = channel(stream)
    tell.write(["lost"])
    assert losses == ["is closed"]


def test_a_closed_descriptor_is_a_closed_stream(tmp_path: Path) -> None:
    stream = (tmp_path / "log").open("w", encoding="utf-8")
    os.close(stream.fileno())
    tell, losses = channel(stream)
    tell.write(["lost"])
    assert losses == ["is closed"]
    stream.close()


def test_a_stream_that_was_never_there_is_a_closed_stream() -> None:
    """Python sets `sys.stdout` to None when a program is started with `>&-`."""
    tell, losses = channel(None)
    tell.write(["lost"])
    assert losses == ["is closed"]


def test_a_full_disk_is_named() -> None:
    stream = Failing(OSError(errno.ENOSPC, "No space left on device"))
    tell, losses = channel(stream)
    tell.write(["lost"])
    tell.write(["lost"])
    assert losses == ["cannot be written (No space left on device)"]
    assert stream.attempts == 1


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_really_full_device_is_named() -> None:
    with open("/dev/full", "w", encoding="utf-8") as stream:
        tell, losses = channel(stream)
        tell.write(["lost"])
    assert losses == ["cannot be written (No space left on device)"]


def test_a_stream_that_is_busy_is_tried_again() -> None:
    stream = Failing(BlockingIOError(errno.EAGAIN, "busy"))
    tell, losses = channel(stream)
    tell.write(["one"])
    tell.write(["two"])
    assert (losses, stream.attempts) == ([], 2)


@pytest.mark.parametrize(
    ("encoding", "shown"), [("ascii", b"caf? ? ok\n"), ("cp1252", b"caf\xe9 ? ok\n")]
)
def test_what_a_locale_cannot_say_is_replaced(encoding: str, shown: bytes) -> None:
    raw = io.BytesIO()
    tell, losses = channel(io.TextIOWrapper(raw, encoding=encoding))
    tell.write(["café ✅ ok"])
    assert (raw.getvalue(), losses) == (shown, [])


def test_half_a_character_is_replaced() -> None:
    raw = io.BytesIO()
    tell, losses = channel(io.TextIOWrapper(raw, encoding="utf-8"))
    tell.write(["half \ud83d"])
    assert (raw.getvalue(), losses) == (b"half ?\n", [])


PROGRAM = """
import sys
from ralph.ui.safe_stream import Channel
channel = Channel(sys.stdout, lambda why: print("stdout", why, file=sys.stderr))
for _ in range(20_000):
    channel.write(["a line that nobody reads"])
"""


def test_a_program_whose_stdout_closes_ends_well() -> None:
    """The exit code is the run's own, and Python does not complain when it flushes at the end."""
    command = [sys.executable, "-c", PROGRAM]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as program:
        assert program.stdout is not None
        assert program.stderr is not None
        program.stdout.readline()
        program.stdout.close()
        complaints = program.stderr.read()
    assert (program.returncode, complaints) == (0, b"stdout is closed\n")
