"""TaskSignals in a task's folder: what stands there now, and what stood there before (S)."""

import os
from pathlib import Path

import pytest

from ralph.loops.supervise.bus import Bus, new_message
from ralph.loops.supervise.folder import TaskFolder, folder_at
from ralph.loops.supervise.marks import SeenMarks, TaskSignals, seen_in


@pytest.fixture
def folder(tmp_path: Path) -> TaskFolder:
    (tmp_path / "shop" / "login").mkdir(parents=True)
    return folder_at(str(tmp_path / "shop" / "login"))


def post(folder: TaskFolder, kind: str, body: str) -> None:
    message = new_message(kind, body, project="shop", task="login", now=1000.0)
    Bus(folder.bus).post(message)


def test_done_is_seen_once_and_stands_as_long_as_the_file(folder: TaskFolder) -> None:
    marks = TaskSignals(folder, SeenMarks())
    assert marks().done_at is None
    Path(folder.done).touch()
    first = marks().done_at
    assert first is not None
    assert marks().done_at == first
    os.unlink(folder.done)
    assert marks().done_at is None


def test_a_done_directory_is_a_problem(folder: TaskFolder) -> None:
    os.mkdir(folder.done)
    signals = TaskSignals(folder, SeenMarks())()
    assert (signals.done_at, "is a directory" in (signals.problem or "")) == (None, True)


def test_a_done_that_cannot_be_looked_at_is_a_problem(folder: TaskFolder) -> None:
    os.symlink(folder.done, folder.done)
    assert "cannot look at" in (TaskSignals(folder, SeenMarks())().problem or "")


def test_a_folder_that_is_gone_asks_for_nothing(folder: TaskFolder) -> None:
    os.rmdir(folder.path)
    signals = TaskSignals(folder, SeenMarks())()
    assert (signals.done_at, signals.wait, signals.problem) == (None, None, None)


def test_a_marker_counts_unless_it_stood_there_before(folder: TaskFolder) -> None:
    marker = Path(folder.wait)
    marker.touch()
    seen = seen_in(folder)
    assert TaskSignals(folder, seen)().wait is None
    assert TaskSignals(folder, SeenMarks())().wait == "WAIT_WITHOUT_RESTART marker"
    os.utime(marker, ns=(1, 1))
    assert TaskSignals(folder, seen)().wait is not None, "also when it says that it is older"


def test_a_message_counts_unless_it_stood_there_before(folder: TaskFolder) -> None:
    post(folder, "wait_without_restart", "an old one")
    marks = TaskSignals(folder, seen_in(folder))
    assert marks().wait is None
    post(folder, "INFO", "wait_without_restart")
    assert marks().wait is None
    post(folder, "WAIT_WITHOUT_RESTART", "\nA key is needed\nfor the shop")
    assert marks().wait == "bus message: A key is needed"
    assert marks().wait == "bus message: A key is needed", "it stands"


def test_a_message_without_words(folder: TaskFolder) -> None:
    marks = TaskSignals(folder, seen_in(folder))
    post(folder, "wait_without_restart", "")
    assert marks().wait == "bus message"


def test_a_bus_that_cannot_be_read_asks_for_nothing(folder: TaskFolder) -> None:
    os.mkdir(folder.bus)
    assert TaskSignals(folder, SeenMarks())().wait is None
