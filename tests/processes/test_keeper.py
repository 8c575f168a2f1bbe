"""The keeper: nothing that it started outlives it, whatever becomes of anybody (ADR 23)."""

import fcntl
import os
import shutil
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from kits.adapters import await_that, is_alive, let_it_be, shell
from ralph.kernel.verdict import Cut
from ralph.processes import keeper_main
from ralph.processes.child import Command
from ralph.processes.keeper import Keeper
from ralph.runner.keeping import keeping

HOSTILE = Path(__file__).resolve().parent.parent / "e2e" / "faults" / "hostile.c"
SECONDS = "120"  # how long it would live, which is longer than any test waits for its end


@pytest.fixture(scope="session")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = shutil.which("cc", path=os.defpath)
    if compiler is None:
        pytest.skip("there is no C compiler")
    program = tmp_path_factory.mktemp("hostile") / "hostile-agent"
    subprocess.run([compiler, "-O2", "-o", str(program), str(HOSTILE)], check=True)
    return program


@pytest.fixture
def hostile(compiled: Path, tmp_path: Path) -> Iterator[str]:
    """An agent that does not want to end, but does when its file is deleted."""
    program = tmp_path / "hostile-agent"
    shutil.copy(compiled, program)
    yield str(program)
    program.unlink()


@pytest.fixture
def keeper() -> Iterator[Keeper]:
    keeper = Keeper()
    yield keeper
    keeper.close()


def running(program: str) -> bool:
    """Whether anybody runs this very program: each holds a lock on it, whatever its session, parent
    or environment, and however quickly it is followed by another."""
    with open(program, "rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def command(program: str) -> Command:
    return Command((program, SECONDS, "4"), "/", os.environ)


def test_a_hostile_agent_is_ended_with_everything_it_started(keeper: Keeper, hostile: str) -> None:
    for _ in range(5):
        said: list[bytes] = []
        child = keeper(command(hostile), said.append)
        ended = child.wait(lambda: Cut("enough", grace=0.05) if said else None)  # noqa: B023
        assert ended.code == 128 + signal.SIGKILL
        assert not running(hostile)


def test_what_follows_a_child_that_was_cut_is_let_work(keeper: Keeper) -> None:
    """It is of its own: the route on which the one before was ended is not gone on with."""
    said: list[bytes] = []
    child = keeper(shell("trap '' INT TERM; echo ready; sleep 60"), said.append)
    assert child.wait(lambda: Cut("enough", grace=0.05) if said else None).code == 137
    after = keeper(shell("sleep 0.3; exit 5")).wait(let_it_be)
    assert (after.code, after.cut) == (5, None)


def test_what_a_child_leaves_behind_ends_with_it(keeper: Keeper, tmp_path: Path) -> None:
    """It does not matter whether it was cut or came to its end by itself."""
    script = "setsid sh -c 'echo $$ > pid; exec sleep 60' & until [ -s pid ]; do :; done; exit 3"
    assert keeper(shell(script, tmp_path)).wait(let_it_be).code == 3
    assert not is_alive(int((tmp_path / "pid").read_text()))


HOLDER = """
    import os, sys
    from ralph.processes.keeper import Keeper
    from ralph.processes.child import Command
    from ralph.kernel.verdict import Cut
    keeper, said = Keeper(adopts=True), []
    child = keeper(Command((sys.argv[1], sys.argv[2], "4"), "/", os.environ), said.append)
    def watch():
        if said:
            print(keeper.pid, flush=True)
            said.clear()
    print("ended", child.wait(watch).code, flush=True)
    again = keeper(Command(("sh", "-c", "exit 5"), "/", os.environ)).wait(lambda: None).code
    print("again", again, flush=True)
    keeper.close()
"""


def hold(program: str) -> "subprocess.Popen[str]":
    """A program of its own that holds a hostile agent; its first line is its keeper's pid."""
    script = textwrap.dedent(HOLDER)
    return subprocess.Popen(
        [sys.executable, "-c", script, program, SECONDS], stdout=subprocess.PIPE, text=True
    )


def test_when_ralph_is_killed_everything_ends(hostile: str) -> None:
    """Its socket closing means "ralph died, even by kill -9"."""
    with hold(hostile) as holder:
        assert holder.stdout is not None
        keeper = int(holder.stdout.readline())
        holder.kill()
    await_that(lambda: not running(hostile) and not is_alive(keeper))


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV])
def test_when_the_keeper_is_killed_its_children_are_ended_and_another_takes_its_place(
    hostile: str, number: signal.Signals
) -> None:
    with hold(hostile) as holder:
        assert holder.stdout is not None
        os.kill(int(holder.stdout.readline()), number)
        assert holder.stdout.read().split() == ["ended", "137", "again", "5"]
        assert not running(hostile)
    assert holder.returncode == 0


def test_a_keeper_that_was_stopped_is_given_up(tmp_path: Path) -> None:
    """An agent can SIGSTOP it; then ralph ends it, and everything that was below it."""
    script = textwrap.dedent(
        """
        import os, sys
        from ralph.processes.keeper import Keeper
        from ralph.processes.child import Command
        from ralph.kernel.verdict import Cut
        keeper, said = Keeper(adopts=True), []
        script = "sleep 0.3; kill -STOP $PPID; echo $$; trap '' INT TERM; while :; do :; done"
        child = keeper(Command(("sh", "-c", script), "/", os.environ), said.append)
        code = child.wait(lambda: Cut("enough", grace=0.05) if said else None).code
        print(code, b"".join(said).decode())
        """
    )
    said = subprocess.check_output([sys.executable, "-c", script], text=True).split()
    assert said[0] == "137"
    assert not is_alive(int(said[1]))


def test_the_tree_can_be_walked_without_the_kernels_lists(keeper: Keeper, tmp_path: Path) -> None:
    script = "(sleep 60 & echo $! > grandchild; wait) & echo $! > child; wait"
    process = subprocess.Popen(["sh", "-c", script], cwd=tmp_path)
    try:
        files = [tmp_path / name for name in ("child", "grandchild")]
        await_that(lambda: all(file.exists() and file.read_text() for file in files))
        child, grandchild = (int(file.read_text()) for file in files)
        children = keeper_main._scanned()
        assert children(process.pid) == [child]
        assert grandchild in children(child)
        assert set(keeper_main.descendants(process.pid)) == {child, grandchild}
        assert keeper_main.descendants(process.pid, spared=[child]) == []
    finally:
        keeper_main.signal_all(keeper_main.descendants(process.pid), signal.SIGKILL)
        process.kill()
        process.wait()


def test_where_a_keeper_cannot_work_none_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    """A container may forbid pidfd_open, and old kernels have none."""
    assert keeper_main.is_possible()

    def forbidden(_: int) -> int:
        raise PermissionError

    monkeypatch.setattr(os, "pidfd_open", forbidden)
    assert not keeper_main.is_possible()
    with keeping(None) as starter:
        assert not isinstance(starter, Keeper)


@pytest.mark.slow
def test_a_stopped_keeper_is_noticed_when_its_child_has_ended() -> None:
    """Also without anybody asking to end it: `kill -STOP $PPID; exit`."""
    script = textwrap.dedent(
        """
        import os
        from ralph.processes.keeper import Keeper
        from ralph.processes.child import Command
        keeper = Keeper(adopts=True)
        child = keeper(Command(("sh", "-c", "sleep 0.3; kill -STOP $PPID"), "/", os.environ))
        print(child.wait(lambda: None).code)
        keeper.begin()
        os.kill(keeper.pid, 19)
        keeper.close()
        print("closed")
        """
    )
    said = subprocess.check_output([sys.executable, "-c", script], text=True, timeout=60)
    assert said.split() == ["137", "closed"]


def test_what_was_there_before_us_is_not_ours_to_end(hostile: str) -> None:
    """`sleep 60 & exec ralph run`: the sleep is the user's, also when the keeper is killed."""
    script = textwrap.dedent(
        """
        import os, subprocess
        stranger = subprocess.Popen(["sleep", "60"])
        from ralph.processes.keeper import Keeper
        from ralph.processes.child import Command
        keeper = Keeper(adopts=True)
        child = keeper(Command(("sh", "-c", "sleep 0.3; kill -9 $PPID; sleep 60"), "/", os.environ))
        print(child.wait(lambda: None).code, stranger.poll())
        stranger.kill()
        stranger.wait()
        """
    )
    said = subprocess.check_output([sys.executable, "-c", script], text=True, timeout=60)
    assert said.split() == ["137", "None"]


def test_what_tidies_up_when_asked_may_do_so(keeper: Keeper, tmp_path: Path) -> None:
    """A git that packs in the background holds locks, which a kill would leave behind."""
    tidy = "trap 'rm lock; exit' TERM; touch lock; while :; do sleep 0.01; done"
    script = f"setsid sh -c '{tidy.replace(chr(39), chr(34))}' & until [ -e lock ]; do :; done"
    assert keeper(shell(script, tmp_path)).wait(let_it_be).code == 0
    assert not (tmp_path / "lock").exists()
