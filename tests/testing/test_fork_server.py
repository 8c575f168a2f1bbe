"""A fork of the server does what a new Python does."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from kits.fork_server import run, server, started

LOOK = "import os, sys; print(__name__, sys.argv, os.getcwd(), sys.path[0], os.environ.get('X'))"
PROGRAMS = {
    "what it sees": LOOK,
    "an exit code": "import sys; sys.exit(3)",
    "an exit code of more than a byte": "raise SystemExit(258)",
    "words as it exits": "raise SystemExit('that is why')",
    "an exception": "1 / 0",
    "what runs at the exit": "import atexit; atexit.register(print, 'bye'); print('hello')",
    "a thread that goes on": (
        "import threading, time\n"
        "threading.Thread(target=lambda: (time.sleep(0.1), print(1))).start()"
    ),
    "signals": "import signal; print(*map(signal.getsignal, (2, 15, 17, 13)))",
    "descriptors": "import os; print(sorted(map(int, os.listdir('/proc/self/fd')))[:-1])",
    "killed": "import os; print('lost'); os.kill(os.getpid(), 9)",
}


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_it_is_as_a_new_python(workspace: Path, program: str) -> None:
    environ = {**os.environ, "X": "ä"}
    (workspace / "program.py").write_text(program)
    for words in ([sys.executable, "-c", program, "a"], [sys.executable, "./program.py", "a b"]):
        assert server(os.getpid()).can(words, environ)
        new = subprocess.run(words, env=environ, capture_output=True, check=False)
        code, out, err = run(words, environ)
        assert (code, out) == (new.returncode, new.stdout)
        assert err.splitlines()[-1:] == new.stderr.splitlines()[-1:]  # above are calls of ours


def test_what_cannot_be_written_is_told(workspace: Path) -> None:
    words = [sys.executable, "-c", "print('x')"]
    with open("/dev/full", "w") as full, (workspace / "err").open("w") as err:
        new = subprocess.run(words, stdout=full, stderr=subprocess.DEVNULL, check=False)
        assert started(words, full.fileno(), err.fileno()).wait(30) == new.returncode != 0
    assert "No space left on device" in (workspace / "err").read_text()


def test_it_hears_signals(workspace: Path) -> None:
    with (workspace / "out").open("w") as out:
        process = started([sys.executable, "-c", "import time; time.sleep(60)"], out.fileno(), 2)
    assert process.poll() is None
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.01)
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == -signal.SIGTERM
    assert process.poll() == -signal.SIGTERM
    process.kill()  # nobody is there


@pytest.mark.parametrize("name", ["PYTHONPATH", "LC_ALL", "COVERAGE_FILE"])
def test_what_python_reads_before_it_begins_needs_a_new_one(name: str) -> None:
    words = (sys.executable, "-m", "ralph")
    assert server(os.getpid()).can(words, os.environ)
    assert not server(os.getpid()).can(words, {**os.environ, name: "x"})
    assert not server(os.getpid()).can((*words[:2], "json.tool"), os.environ)
    assert not server(os.getpid()).can(("sh", "-c", "true"), os.environ)
