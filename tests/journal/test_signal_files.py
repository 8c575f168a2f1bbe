"""Requests of other terminals, by files in a run's `signals/` (ADR 7)."""

import os
from pathlib import Path

import pytest

from ralph.kernel.world import Signals
from ralph.processes.signals import SignalFiles


@pytest.fixture
def run_dir(tmp_path: Path) -> Path:
    (tmp_path / "signals").mkdir()
    return tmp_path


def test_nobody_asks_for_anything(run_dir: Path) -> None:
    assert SignalFiles(str(run_dir)).signals() == Signals()


def test_a_directory_that_is_gone_asks_for_nothing(tmp_path: Path) -> None:
    assert SignalFiles(str(tmp_path / "none")).signals() == Signals()


@pytest.mark.parametrize(
    ("names", "cancels", "paused"),
    [
        (["stop"], 1, False),
        (["stop-now"], 2, False),
        (["stop", "stop-now"], 2, False),
        (["pause"], 0, True),
        (["pause", "stop"], 1, True),
        (["something-else"], 0, False),
    ],
)
def test_what_the_files_mean(run_dir: Path, names: list[str], cancels: int, paused: bool) -> None:
    """`stop` is a first signal, `stop-now` a second."""
    files = SignalFiles(str(run_dir))
    for name in names:
        files.ask(name)
    asked = files.signals()
    assert (asked.cancels, asked.paused) == (cancels, paused)
    assert (asked.cancelled_at is not None) == bool(cancels)


def test_the_first_request_tells_the_time(run_dir: Path) -> None:
    """`--stop-grace` counts from the first, also when it is asked for again."""
    files = SignalFiles(str(run_dir))
    files.ask(SignalFiles.STOP)
    os.utime(run_dir / "signals" / "stop", (1000, 1000))
    files.ask(SignalFiles.STOP)
    files.ask(SignalFiles.NOW)
    assert files.signals().cancelled_at == 1000


def test_a_request_can_be_taken_back_once(run_dir: Path) -> None:
    files = SignalFiles(str(run_dir))
    files.ask(SignalFiles.PAUSE)
    assert files.take_back(SignalFiles.PAUSE)
    assert not files.signals().paused
    assert not files.take_back(SignalFiles.PAUSE)


def test_a_request_to_a_run_without_a_directory_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        SignalFiles(str(tmp_path / "none")).ask(SignalFiles.STOP)
