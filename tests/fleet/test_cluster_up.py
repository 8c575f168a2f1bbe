"""`ralph fleet up`: real processes on loopback, and nothing of them afterwards."""

import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from distributed import Client

from kits.fleet_up import Started, Up, command_line, ralph, until
from kits.thorough import dealt
from ralph.fleet.security import address_of

pytestmark = pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="needs /proc")


@pytest.fixture(autouse=True)
def _ended() -> Iterator[None]:
    yield
    Started.end_all()


# A process, and one in a session of its own that hears no signal but the last.
LEAVES = """sleep 1000 >/dev/null 2>&1 & echo $!
setsid sh -c 'trap "" INT TERM HUP; while :; do sleep 1; done' >/dev/null 2>&1 & echo $!"""


def left_by(up: Up) -> set[int]:
    """Have every worker leave something, and remember it."""
    with Client(up.address, set_as_default=False) as client:
        said = client.run(subprocess.check_output, ["sh", "-c", LEAVES])
    left = {int(pid) for pids in said.values() for pid in pids.split()}
    up.seen |= left
    return left


def workers(address: str) -> list[dict[str, object]]:
    done = ralph("fleet", "status", "--fleet", address, "--json")
    assert done.returncode == 0, done.stderr
    found: list[dict[str, object]] = json.loads(done.stdout)["workers"]
    return found


def scratch() -> list[Path]:
    return [*Path(os.environ["RALPH_STATE_DIR"], "fleet").iterdir()]


def test_ctrl_c_ends_everything(tmp_path: Path) -> None:
    up = Up(tmp_path / "said", workers=2)
    assert [(one["slots"], one["draining"], one["attempts"]) for one in workers(up.address)] == [
        (1, False, []),
        (1, False, []),
    ]
    left_by(up)
    assert len(scratch()) == 1
    assert up.end() == 0
    assert up.is_gone()
    assert scratch() == []


@pytest.mark.parametrize("whom", dealt(["up", "nest", "keeper"], 1))
def test_nothing_outlives_a_kill(tmp_path: Path, whom: str) -> None:
    up = Up(tmp_path / "said")
    left_by(up)
    up.below()
    os.kill({"up": up.process.pid, "nest": up.nest(), "keeper": up.keeper()}[whom], signal.SIGKILL)
    assert up.process.wait(120) != 0
    until(up.is_gone)
    again = Up(tmp_path / "again", workers=0)
    assert len(scratch()) == 1, "what a killed fleet left is removed by the next"
    assert again.end() == 0


@pytest.mark.slow
def test_a_scheduler_that_dies_is_back_at_its_port(tmp_path: Path) -> None:
    up = Up(tmp_path / "said")
    scheduler, *others = up.members()
    os.kill(scheduler, signal.SIGKILL)
    up.has_said("the scheduler has died (killed by signal 9)")
    up.has_said("again.")
    assert len(workers(up.address)) == 1
    assert up.members()[:1] == others, "the worker is the same process"


@pytest.mark.slow
def test_a_worker_that_dies_is_started_again(tmp_path: Path) -> None:
    up = Up(tmp_path / "said")
    left = left_by(up)
    os.kill(up.members()[1], signal.SIGKILL)
    up.has_said("has died (killed by signal 9); it is started again at once.")
    until(lambda: not any(map(command_line, left)))
    until(lambda: len(workers(up.address)) == 1)


def test_only_one_port_each_and_only_on_loopback(tmp_path: Path) -> None:
    up = Up(tmp_path / "said")
    inodes = {
        os.readlink(f"/proc/{pid}/fd/{name}")
        for pid in up.below()
        for name in os.listdir(f"/proc/{pid}/fd")
        if os.path.islink(f"/proc/{pid}/fd/{name}")
    }
    listening = [
        fields[1]
        for table in ("tcp", "tcp6")
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]
        for fields in [line.split()]
        if fields[3] == "0A" and f"socket:[{fields[9]}]" in inodes
    ]
    assert len(listening) == 2
    assert {place.partition(":")[0] for place in listening} == {"0100007F"}


def test_whatever_knocks_at_its_port_leaves_no_traceback(tmp_path: Path) -> None:
    """A browser, a scanner of ports, or a client with TLS where there is none."""
    up = Up(tmp_path / "said")
    place = address_of(up.address)
    for said in (b"GET / HTTP/1.1\r\n\r\n", bytes(64), b"\x16\x03\x01" + b"\xff" * 200):
        with socket.create_connection((place.host, place.port)) as line:
            line.sendall(said)
            line.shutdown(socket.SHUT_WR)
            while line.recv(4096):
                pass
    assert up.end() == 0
    assert "Traceback" not in up.said.read_text()


def test_a_port_that_is_taken_is_refused(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        done = ralph("fleet", "up", "--port", str(port))
    assert (done.returncode, done.stdout) == (2, "")
    assert f"cannot listen at 127.0.0.1, port {port}: Address already in use" in done.stderr
    assert "--port 0" in done.stderr


@pytest.mark.parametrize("late", dealt([0.1, 0.3, 0.5], 1))
def test_asked_to_end_while_it_starts(tmp_path: Path, late: float) -> None:
    starting = Started(tmp_path / "said", "up")
    time.sleep(late)
    # The last of these while Python itself starts.
    assert starting.end(signal.SIGTERM) in (0, 130, -signal.SIGTERM)
    assert starting.is_gone()
    assert "Traceback" not in starting.said.read_text()
