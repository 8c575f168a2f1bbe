"""`ralph sandbox run` at a terminal: how commands end there, and what a person answers."""

import signal
import sys
from pathlib import Path

import pexpect
import pytest
from run_support import RALPH

from kits.sandbox.stage import overlay_is_usable
from kits.thorough import dealt

# Python 3.12 warns that forking a process with threads may hang; the child executes at once.
pytestmark = [
    pytest.mark.filterwarnings("ignore:This process .* is multi-threaded"),
    pytest.mark.skipif(not overlay_is_usable(), reason="this machine allows no namespaces"),
]
# A shell could miss a signal while it starts something.
SLEEPER = """
import signal, time
signal.signal(signal.SIGINT, signal.SIG_DFL)
open("half", "w").close()
print("re" + "ady", flush=True)
time.sleep(1000)
"""
BACKENDS = ("overlay", "direct")  # a sandbox's keeper, and the usual one


def started(*arguments: str) -> "pexpect.spawn[bytes]":
    return pexpect.spawn(RALPH[0], [*RALPH[1:], "sandbox", "run", *arguments], timeout=30)


def ended(shell: "pexpect.spawn[bytes]") -> tuple[int, str]:
    """Its exit code, and what it said to the end."""
    shell.expect(pexpect.EOF)
    said = (shell.before or b"").decode("utf-8", "replace")
    shell.close()
    assert shell.exitstatus is not None, shell.signalstatus
    return shell.exitstatus, said


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    ("command", "code", "words"),
    [
        (("sh", "-c", "kill -9 $$"), 137, ""),
        (("sh", "-c", "kill -TERM $$"), 143, ""),
        (("sh", "-c", "exit 7"), 7, ""),
        (("nosuch",), 127, "[ralph] nosuch: not found"),
        (("/etc/passwd",), 126, "[ralph] /etc/passwd: Permission denied"),
        (("sh", "-c", "exec 3< /dev/tty && test -t 3"), 0, ""),  # it is the command's own
    ],
)
def test_exit_codes(
    workspace: Path, backend: str, command: tuple[str, ...], code: int, words: str
) -> None:
    """Settled: "the command's exit code passes through; command not found 127"."""
    shell = started("--backend", backend, "--keep", "--", *command)
    found, said = ended(shell)
    assert found == code, said
    assert "setsid" not in said
    assert words in said


@pytest.mark.parametrize(("key", "code"), [("c", 130), ("\\", 131)])
@pytest.mark.parametrize("flags", [("--keep",), ()], ids=["keep", "ask"])
def test_work_that_is_interrupted_is_not_kept(
    workspace: Path, key: str, code: int, flags: tuple[str, ...]
) -> None:
    """As without a terminal: half of the work is no work."""
    shell = started(*flags, "--", sys.executable, "-c", SLEEPER)
    shell.expect("ready")
    shell.sendcontrol(key)
    found, said = ended(shell)
    assert "[ralph] Interrupted: nothing is kept." in said
    assert found == code
    assert not (workspace / "half").exists()


def test_ctrl_c_is_the_commands_own(workspace: Path) -> None:
    """An editor has other uses for it, and a shell goes on: also one that says 130 in the end."""
    shell = started("--keep", "--", "sh", "-i")
    shell.sendline("sh -c 'echo r''eady; exec sleep 1000'")
    shell.expect("ready")
    shell.sendcontrol("c")
    shell.sendline("echo x > whole; exit 130")
    found, said = ended(shell)
    assert (found, "Kept 1 change." in said) == (130, True), said
    assert (workspace / "whole").exists()


# ------------------------------------------------------------------ the question


def asked() -> "pexpect.spawn[bytes]":
    shell = started("--", "sh", "-c", "echo x > new; exit 5")
    shell.expect("Keep these changes")
    return shell


def test_ctrl_c_is_an_answer(workspace: Path) -> None:
    shell = asked()
    shell.sendcontrol("c")
    found, said = ended(shell)
    assert found == 130
    assert "[ralph] Interrupted: nothing is kept." in said
    assert not (workspace / "new").exists()


def test_so_is_a_signal(workspace: Path) -> None:
    shell = asked()
    shell.kill(signal.SIGTERM)
    assert ended(shell)[0] == 130
    assert not (workspace / "new").exists()


@pytest.mark.parametrize(
    ("answer", "kept"),
    dealt(
        [("y", True), ("YES", True), ("n", False), ("no", False), ("", False), ("\x04", False)], 2
    ),
)
def test_what_is_no_answer_is_asked_again(workspace: Path, answer: str, kept: bool) -> None:
    """Enter and the end of the input are a no."""
    shell = asked()
    for wrong in ("maybe", "yo", "keep", "\xff"):
        shell.sendline(wrong)
        shell.expect("Say y, n or d")
        shell.expect("Keep these changes")
    shell.send(answer if answer == "\x04" else f"{answer}\n")
    found, said = ended(shell)
    assert found == 5
    assert ("Kept 1 change." in said, "Discarded." in said) == (kept, not kept)
    assert (workspace / "new").exists() == kept
