"""Who descends from a run (ADR 10): only what the kernel tells of the processes above counts."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

import ralph
from ralph.journal import lock
from ralph.journal.lock import Lock
from ralph.processes import ancestry
from ralph.processes.child import Command, Starter
from ralph.processes.child import start as directly
from ralph.processes.keeper import Keeper
from ralph.processes.procfs import open_files

# By this very tree, whatever is cleared from the environment.
SCRIPT = f"""
import sys; sys.path.insert(0, {os.path.dirname(ralph.__path__[0])!r})
from ralph.processes.ancestry import runs_above; print(runs_above())
"""
LOOK = (sys.executable, "-c", SCRIPT)
LOCK = "state/x-01234567/run.lock"

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="there is no /proc")


@pytest.fixture
def held() -> Iterator[ExitStack]:
    """What is let go of at the end."""
    with ExitStack() as stack:
        yield stack


def locked(tmp_path: Path, held: ExitStack) -> str:
    """Be a run; where it keeps its things."""
    path = tmp_path / LOCK
    taken = Lock(str(path))
    taken.acquire("a-run", time.time())
    held.callback(taken.release)
    return str(path.parent)


def seen(start: Starter, *before: str) -> object:
    """What someone sees of the runs above who was started so."""
    said = bytearray()
    command = Command((*before, *LOOK), "/", {"PATH": os.environ["PATH"]})
    assert start(command, said.extend).wait(lambda: None).code == 0
    return eval(said.decode())


def test_the_lock_is_known_by_its_name() -> None:
    assert ancestry._LOCK == lock.NAME


def test_nobody_is_above_a_person() -> None:
    assert ancestry.runs_above() == ()
    assert seen(directly) == ()


def test_what_a_keeper_starts_is_of_the_run(tmp_path: Path, held: ExitStack) -> None:
    place, keeper = locked(tmp_path, held), Keeper()
    held.callback(keeper.close)
    assert seen(keeper) == (place,)
    assert seen(keeper, "env", "-i") == (place,)
    assert seen(keeper, "setsid", "-w") == (place,)
    assert seen(directly) == (), "a library's host has children of its own"


def test_the_run_is_known_by_what_it_holds_not_by_what_is_written(
    tmp_path: Path, held: ExitStack
) -> None:
    """An agent can write in the state directory; it cannot hold a lock in Ralph's name."""
    place, keeper = locked(tmp_path, held), Keeper()
    held.callback(keeper.close)
    (tmp_path / LOCK).write_text("{}")
    assert seen(keeper) == (place,)
    (tmp_path / LOCK).unlink()
    assert seen(keeper) == (place,)


def test_a_keeper_of_nobody_is_of_a_run_that_is_not_to_be_seen(held: ExitStack) -> None:
    """Ralph was killed, or its keeper is the first process of a sandbox."""
    keeper = Keeper()
    held.callback(keeper.close)
    assert seen(keeper) == (ancestry.UNKNOWN,)


def test_what_a_keeper_starts_for_a_person_is_not_of_the_run(
    tmp_path: Path, held: ExitStack
) -> None:
    locked(tmp_path, held)
    keeper = Keeper()
    held.callback(keeper.close)
    assert seen(keeper.beside) == ()
    os.kill(keeper._beside.pid, 9)  # type: ignore[union-attr]
    assert seen(keeper.beside) == (), "another takes its place"


def test_all_that_is_below_a_process_which_adopts_is_of_its_run(
    tmp_path: Path, held: ExitStack
) -> None:
    place = locked(tmp_path, held)
    stranger = subprocess.Popen(("sleep", "600"))
    held.callback(stranger.wait)
    held.callback(stranger.kill)
    signs = [*ancestry.adopts(), *ancestry.spares(stranger.pid)]
    assert seen(directly) == (place,)
    shown = f"/memfd:{ancestry._SPARES}{stranger.pid} (deleted)"
    assert shown in open_files(os.getpid())
    for sign in signs:
        os.close(sign)
    assert seen(directly) == ()


def test_without_proc_nobody_can_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ralph.processes.ancestry.line_above", list)
    assert ancestry.runs_above() == (ancestry.UNKNOWN,), "on Linux someone has hidden it"
    monkeypatch.setattr("ralph.processes.ancestry.sys.platform", "darwin")
    assert ancestry.runs_above() == ()
    monkeypatch.delattr(os, "memfd_create")
    assert ancestry.adopts() == []


def test_a_lock_is_held_or_not(tmp_path: Path, held: ExitStack) -> None:
    path = str(tmp_path / LOCK)
    assert not lock.is_held(path)
    locked(tmp_path, held)
    assert lock.is_held(path)
    held.close()
    assert not lock.is_held(path)
