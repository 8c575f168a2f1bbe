"""Starting, reading and ending children (ADR 7): the same for every starter there is."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from kits.adapters import await_that, has_ended, is_alive, let_it_be, shell
from ralph.kernel.verdict import Cut
from ralph.processes import child as process
from ralph.processes.child import Child, Command, Exit, run_and_hear, start
from ralph.processes.keeper import Keeper

IGNORES_INT = "trap '' INT; echo ready; while :; do sleep 0.05; done"
IGNORES_BOTH = "trap '' INT TERM; echo ready; while :; do sleep 0.05; done"


class Heard:
    """What a child prints, on both pipes."""

    def __init__(self) -> None:
        self.output = bytearray()
        self.errors = bytearray()

    def start(self, command: Command) -> Child:
        return start(command, self.output.extend, self.errors.extend)

    def run(self, command: Command) -> Exit:
        return self.start(command).wait(let_it_be)

    def cut_when_ready(self, cut: Cut) -> Cut | None:
        """A watch that lets the child say its first word before it cuts."""
        return cut if self.output else None


def daemon_of(command: str, directory: Path) -> str:
    """A script that leaves a daemon behind; its pid is in the file `pid` by then."""
    pid = directory / "pid"
    return f"setsid sh -c 'echo $$ > {pid}; exec {command}' & until [ -s {pid} ]; do :; done"


@pytest.fixture(params=[False, True], ids=["directly", "kept"], autouse=True)
def kept(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[bool]:
    """Every test here runs with both starters."""
    if not request.param:
        yield False
        return
    keeper = Keeper()
    keeper.begin()
    monkeypatch.setattr(sys.modules[__name__], "start", keeper)
    yield True
    keeper.close()


@pytest.fixture
def quick_ticks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "_TICK", 0.02)


@pytest.mark.parametrize("code", [0, 1, 3, 42, 255])
def test_the_exit_code_is_the_childs(code: int) -> None:
    ended = Heard().run(shell(f"exit {code}"))
    assert (ended.code, ended.cut) == (code, None)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL, signal.SIGSEGV])
def test_a_signal_is_128_and_its_number_as_shells_have_it(number: signal.Signals) -> None:
    assert Heard().run(shell(f"ulimit -c 0; kill -{number.value} $$")).code == 128 + number


def test_both_pipes_are_read() -> None:
    heard = Heard()
    heard.run(shell("echo out; echo err >&2; printf last"))
    assert (bytes(heard.output), bytes(heard.errors)) == (b"out\nlast", b"err\n")


def test_output_that_nobody_asked_for_does_not_fill_the_pipe() -> None:
    child = start(shell("head -c 1000000 /dev/zero; head -c 1000000 /dev/zero >&2; exit 7"))
    assert child.wait(let_it_be).code == 7


def test_ten_megabytes_on_both_pipes_arrive_whole() -> None:
    heard = Heard()
    size = 10_000_000
    heard.run(shell(f"head -c {size} /dev/zero >&2 & head -c {size} /dev/zero; wait"))
    assert (len(heard.output), len(heard.errors)) == (size, size)


def test_one_reader_of_both_hears_everything_in_order() -> None:
    said = run_and_hear(
        start, shell("echo out; echo err >&2; echo end; exit 3"), lambda _: None, 99
    )
    assert (said[0].code, said[1]) == (3, "out\nerr\nend")


def test_of_much_output_the_last_is_kept() -> None:
    assert run_and_hear(start, shell("echo 1234; echo 5678"), lambda _: None, 4)[1] == "678"


def test_a_child_that_closes_its_output_early_is_waited_for() -> None:
    heard = Heard()
    ended = heard.run(shell("echo bye; exec >&- 2>&-; sleep 0.2; exit 5"))
    assert (ended.code, bytes(heard.output)) == (5, b"bye\n")


def test_what_a_child_says_last_is_not_lost() -> None:
    heard = Heard()
    assert heard.run(shell("head -c 60000 /dev/zero; exit 1")).code == 1
    assert len(heard.output) == 60000


def test_all_of_a_full_pipe_is_read_after_the_end() -> None:
    """A pipe may hold 1 MB, more than one read takes."""
    script = (
        "import fcntl, os; size = fcntl.fcntl(1, fcntl.F_SETPIPE_SZ, 2**20); "
        "os.write(1, b'x' * size)"
    )
    heard = Heard()
    child = heard.start(Command((sys.executable, "-I", "-S", "-c", script), ".", os.environ))
    await_that(lambda: not is_alive(child.handle.pid))
    assert child.wait(let_it_be).code == 0
    assert len(heard.output) == 2**20


def test_a_grandchild_that_keeps_stdout_open_does_not_hold_up_the_turn(
    tmp_path: Path, kept: bool
) -> None:
    """ADR 7: "A child that keeps stdout open after the result never blocks the loop"."""
    heard = Heard()
    assert heard.run(shell(f"{daemon_of('sleep 60', tmp_path)}; echo done")).code == 0
    assert bytes(heard.output) == b"done\n"
    daemon = int((tmp_path / "pid").read_text())
    assert is_alive(daemon) is not kept, "nothing leaves the keeper, everything else does"
    if not kept:
        os.kill(daemon, signal.SIGKILL)


def test_a_grandchild_that_writes_without_end_does_not_hold_up_the_turn(tmp_path: Path) -> None:
    heard = Heard()
    assert heard.run(shell(daemon_of("yes", tmp_path))).code == 0
    assert has_ended(int((tmp_path / "pid").read_text())), "SIGPIPE ends it once nobody reads"


def test_what_is_left_of_the_group_is_killed(tmp_path: Path) -> None:
    script = f"(trap '' INT TERM; sleep 60) & echo $! > {tmp_path}/pid; exit 0"
    assert Heard().run(shell(script)).code == 0
    assert has_ended(int((tmp_path / "pid").read_text()))


def test_the_first_signal_is_int_which_lets_an_agent_tidy_up(quick_ticks: None) -> None:
    """docs/facts.md §2: claude still says its result after SIGINT, not after SIGTERM."""
    heard = Heard()
    child = heard.start(
        shell("trap 'echo tidy; exit 9' INT; echo ready; while :; do sleep 1; done")
    )
    ended = child.wait(lambda: heard.cut_when_ready(Cut("enough", grace=60)))
    assert (ended.code, bytes(heard.output)) == (9, b"ready\ntidy\n")
    assert ended.cut == Cut("enough", grace=60)


@pytest.mark.parametrize(
    ("script", "code"), [(IGNORES_INT, 128 + signal.SIGTERM), (IGNORES_BOTH, 128 + signal.SIGKILL)]
)
def test_who_ignores_a_signal_gets_the_next(quick_ticks: None, script: str, code: int) -> None:
    """ADR 7: "A tree is ended by INT, 5 s, TERM, 5 s, KILL of everything left"."""
    heard = Heard()
    ended = heard.start(shell(script)).wait(lambda: heard.cut_when_ready(Cut("enough", grace=0.05)))
    assert ended.code == code


def test_a_more_urgent_request_hastens_the_end(quick_ticks: None) -> None:
    """ADR 7: the second signal ends the tree now; the reason stays the first one."""
    heard = Heard()
    answers = iter([Cut("slow", grace=5), Cut("slow", grace=5)])
    ended = heard.start(shell(IGNORES_BOTH)).wait(
        lambda: next(answers, Cut("now", grace=0.05)) if heard.output else None
    )
    assert (ended.code, ended.cut) == (128 + signal.SIGKILL, Cut("slow", grace=0.05))


def test_a_less_urgent_request_changes_nothing(quick_ticks: None) -> None:
    heard = Heard()
    answers = iter([Cut("now", grace=0.05)])
    ended = heard.start(shell(IGNORES_BOTH)).wait(
        lambda: next(answers, Cut("slow", grace=5)) if heard.output else None
    )
    assert (ended.code, ended.cut) == (128 + signal.SIGKILL, Cut("now", grace=0.05))


@pytest.mark.parametrize(("most", "tidied"), [(0.05, False), (60.0, True)])
def test_each_step_is_as_long_as_was_said_at_most(
    quick_ticks: None, kept: bool, most: float, tidied: bool
) -> None:
    """`endGrace`: "Seconds between INT, TERM and KILL", however patient a rule may be."""
    heard, keeper = Heard(), Keeper(most_grace=most) if kept else None
    starter = keeper or partial(process.start, most_grace=most)
    tidies = shell("trap 'sleep 1; exit 9' INT; echo ready; while :; do sleep 0.05; done")
    child = starter(tidies, heard.output.extend)
    ended = child.wait(lambda: heard.cut_when_ready(Cut("enough", grace=30)))
    assert (ended.code == 9, ended.cut) == (tidied, Cut("enough", grace=min(most, 30)))
    if keeper is not None:
        keeper.close()


def test_an_error_while_watching_leaves_no_process_behind(quick_ticks: None) -> None:
    heard = Heard()
    child = heard.start(shell(IGNORES_BOTH))

    def stumble() -> Cut | None:
        raise RuntimeError("a bug in a rule")

    with pytest.raises(RuntimeError):
        child.wait(stumble)
    assert not is_alive(child.handle.pid)


@pytest.mark.parametrize("size", [0, 1, 300_000])
def test_standard_input_comes_from_memory(size: int) -> None:
    """A prompt of 300 KB passes, and is followed by the end of input."""
    heard = Heard()
    heard.run(shell("wc -c", stdin=b"x" * size))
    assert int(heard.output) == size


def test_a_child_that_does_not_read_its_input_ends_all_the_same() -> None:
    assert Heard().run(shell("exit 3", stdin=b"x" * 300_000)).code == 3


def test_without_input_there_is_nothing_to_read() -> None:
    heard = Heard()
    heard.run(shell("cat; readlink /proc/self/fd/0"))
    assert bytes(heard.output) == b"/dev/null\n"


def test_a_child_leads_a_session_of_its_own() -> None:
    """Ctrl+C at the terminal reaches ralph alone; ralph decides what the agent gets."""
    heard = Heard()
    script = "import os; print(os.getsid(0) == os.getpid())"
    heard.run(Command((sys.executable, "-I", "-S", "-c", script), ".", os.environ))
    assert bytes(heard.output) == b"True\n"


def test_a_child_gets_this_environment_and_directory_and_no_other(tmp_path: Path) -> None:
    heard = Heard()
    heard.run(Command(("/bin/sh", "-c", "pwd; echo $ONLY $HOME"), str(tmp_path), {"ONLY": "this"}))
    assert bytes(heard.output).decode() == f"{tmp_path}\nthis\n"


def test_a_child_inherits_no_open_file(tmp_path: Path) -> None:
    """The journal and the lock are ralph's; an agent's daemon must not hold them."""
    heard = Heard()
    with (tmp_path / "held").open("w"):
        heard.run(shell("ls -l /proc/self/fd", stdin=b"prompt"))
    assert b"held" not in heard.output
    assert b"socket" not in heard.output


@pytest.mark.parametrize(
    ("argv", "error"),
    [
        (("/no/such/program",), FileNotFoundError),
        (("/tmp",), PermissionError),
        (("sh", "-c", "nul\0"), ValueError),
        (("true", "x" * 200_000), OSError),
    ],
)
def test_what_cannot_start_raises(argv: tuple[str, ...], error: type[Exception]) -> None:
    with pytest.raises(error):
        start(Command(argv, ".", os.environ, stdin=b"prompt"))


def test_nothing_stays_open_after_a_child_or_a_failed_start() -> None:
    before = len(os.listdir("/proc/self/fd"))
    Heard().run(shell("echo x", stdin=b"prompt"))
    with pytest.raises(FileNotFoundError):
        start(Command(("/no/such/program",), ".", os.environ, stdin=b"prompt"))
    assert len(os.listdir("/proc/self/fd")) == before


def test_without_pidfd_the_end_is_noticed_by_asking(monkeypatch: pytest.MonkeyPatch) -> None:
    """macOS and old kernels."""
    monkeypatch.delattr(os, "pidfd_open", raising=False)
    heard = Heard()
    assert heard.run(shell("exec >&- 2>&-; sleep 0.05; exit 4")).code == 4


def test_without_memfd_the_input_is_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "memfd_create", raising=False)
    heard = Heard()
    heard.run(shell("cat", stdin=b"prompt"))
    assert bytes(heard.output) == b"prompt"


def test_a_zombie_counts_as_ended() -> None:
    """The check that other tests rely on."""
    child = subprocess.Popen(["true"])
    await_that(lambda: not is_alive(child.pid))
    child.wait()
