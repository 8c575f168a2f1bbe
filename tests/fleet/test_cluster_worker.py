"""`ralph fleet worker`, `status`, `drain` and `doctor`, with real processes on loopback."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kits.fleet_up import Json, Started, Up, command_line, ralph, until
from ralph import __version__
from ralph.fleet.cluster.asking import Worker
from ralph.fleet.cluster.status_words import lines


@pytest.fixture(autouse=True)
def _ended() -> Iterator[None]:
    yield
    Started.end_all()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def workers(address: str) -> list[Json]:
    done = ralph("fleet", "status", "--fleet", address, "--json")
    found: list[Json] = json.loads(done.stdout)["workers"] if done.returncode == 0 else []
    return found


@pytest.mark.slow
def test_a_worker_waits_for_its_scheduler_and_comes_back(tmp_path: Path) -> None:
    port = free_port()
    address = f"tcp://127.0.0.1:{port}"
    worker = Started(
        tmp_path / "worker", "worker", "--scheduler", address, "--slots", "3", "--name", "w"
    )
    worker.has_said(f"w: waits for a scheduler at {address} (nobody listens there).")
    first = Up(tmp_path / "first", "--port", str(port), workers=0)
    worker.has_said(f"w: at {address}, 3 slots.")
    assert [(one["name"], one["slots"]) for one in workers(address)] == [("w", 3)]
    assert first.end() == 0
    worker.has_said("w: waits for a scheduler", times=2)
    Up(tmp_path / "second", "--port", str(port), workers=0)
    worker.has_said(f"w: at {address} again.")
    until(lambda: len(workers(address)) == 1)
    assert worker.end() == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_worker_that_still_waits_can_be_ended(tmp_path: Path, number: int) -> None:
    worker = Started(tmp_path / "worker", "worker", "--scheduler", f"tcp://127.0.0.1:{free_port()}")
    worker.has_said("waits for a scheduler")
    assert worker.end(number) == 0


@pytest.mark.slow
def test_a_worker_may_outlive_the_shell_that_started_it(tmp_path: Path) -> None:
    up = Up(tmp_path / "said", workers=0)
    words = (
        f"{sys.executable} -m ralph fleet worker --scheduler {up.address} >/dev/null 2>&1 & echo $!"
    )
    pid = int(subprocess.run(["sh", "-c", words], stdout=subprocess.PIPE, check=True).stdout)
    try:
        until(lambda: len(workers(up.address)) == 1)
        time.sleep(1)
        assert len(workers(up.address)) == 1
    finally:
        os.kill(pid, signal.SIGTERM)
        until(lambda: not command_line(pid))


@pytest.mark.slow
def test_drained_workers_leave_and_are_not_started_again(tmp_path: Path) -> None:
    up = Up(tmp_path / "said", workers=2)
    names = [one["name"] for one in workers(up.address)]
    strange = ralph("fleet", "drain", "nobody", "--fleet", up.address)
    assert strange.returncode == 2
    assert names[0] in strange.stderr
    one = ralph("fleet", "drain", names[0], "--fleet", up.address)
    assert (one.returncode, one.stdout) == (0, f"{names[0]}: has nothing to finish, and ends\n")
    until(lambda: [each["name"] for each in workers(up.address)] == names[1:])
    assert ralph("fleet", "drain", "--yes", "--fleet", up.address).returncode == 0
    up.has_said("No worker is left here.")
    again = ralph("fleet", "drain", "--yes", "--fleet", up.address)
    assert (again.returncode, again.stdout) == (0, "There are no workers.\n")
    told = ralph("fleet", "drain", "--yes", "--json", "--fleet", up.address)
    assert json.loads(told.stdout) == {"workers": []}


def test_a_worker_of_another_version_is_marked() -> None:
    def shown(version: str) -> str:
        told = {"hostname": "h", "version": version}
        return "".join(lines("tcp://x", [Worker("w", "tcp://y", 1, told)]))

    assert f"ralph 0.0.1 (gets nothing of runs from here: {__version__})" in shown("0.0.1")
    assert "from here" not in shown(__version__)


@pytest.mark.slow
def test_nobody_is_there_to_ask_whether_all_are_drained(tmp_path: Path) -> None:
    up = Up(tmp_path / "said")
    done = ralph("fleet", "drain", "--fleet", up.address, stdin="")
    assert done.returncode == 130
    assert "nothing was drained" in done.stderr
    assert "--yes" in done.stderr
    assert [one["draining"] for one in workers(up.address)] == [False]


def test_nobody_there(tmp_path: Path) -> None:
    address = f"tcp://127.0.0.1:{free_port()}"
    for words in (("status",), ("drain", "--yes")):
        done = ralph("fleet", *words, "--fleet", address)
        assert done.returncode == 2
        assert f"no fleet answers at {address}: nobody listens there" in done.stderr
        assert "ralph fleet up" in done.stderr
    unnamed = ralph("fleet", "status")
    assert (unnamed.returncode, "fleet.address" in unnamed.stderr) == (2, True)
    here = ralph("fleet", "status", "--fleet", "local")
    assert (here.returncode, "ralph status" in here.stderr) == (2, True)
    for name in ("local", "none"):
        worker = ralph("fleet", "worker", "--scheduler", name)
        assert (worker.returncode, "--scheduler ADDRESS" in worker.stderr) == (2, True)
    lost = ralph("fleet", "doctor")
    assert "Remote repository" not in lost.stdout, "nobody knows which fleet is meant"


@pytest.mark.parametrize(
    "words", [("status", "--fleet"), ("worker", "--scheduler"), ("drain", "--yes", "--fleet")]
)
def test_no_address_without_tls_but_this_machine(words: tuple[str, ...]) -> None:
    done = ralph("fleet", *words, "tcp://192.0.2.1:8786")
    assert done.returncode == 2
    assert "tls://192.0.2.1:8786" in done.stderr


@pytest.mark.slow
def test_a_fleet_on_ipv6(tmp_path: Path) -> None:
    if not Path("/proc/net/if_inet6").exists():
        pytest.skip("this machine has no IPv6")
    up = Up(tmp_path / "said", "--host", "::1")
    assert up.address.startswith("tcp://[::1]:")
    assert [one["address"][:12] for one in workers(up.address)] == ["tcp://[::1]:"]


def test_no_address_is_none_to_listen_at() -> None:
    done = ralph("fleet", "up", "--host", "")
    assert (done.returncode, "--host: name an address" in done.stderr) == (2, True)
    done = ralph("fleet", "up", "--workers", "99999")
    assert (done.returncode, "256 are the most" in done.stderr) == (2, True)


def test_no_scheduler_for_others_without_tls() -> None:
    done = ralph("fleet", "up", "--host", "0.0.0.0")
    assert done.returncode == 2
    assert f"there is no {os.environ['XDG_CONFIG_HOME']}/ralph/fleet/ca.pem" in done.stderr
    assert "--tls DIR" in done.stderr


@pytest.mark.slow
def test_a_doctor_looks_from_here_and_from_there(tmp_path: Path, repo: Path) -> None:
    up = Up(tmp_path / "said")
    (repo / ".ralph").mkdir()
    told = {"agent": {"command": "sh"}, "fleet": {"address": up.address}, "sandbox": "worktree"}
    (repo / ".ralph" / "settings.json").write_text(json.dumps(told))
    well = ralph("fleet", "doctor", "--json", "-C", str(repo))
    checks = {(c["area"].split()[0], c["name"]): c for c in json.loads(well.stdout)["checks"]}
    assert well.returncode == 0, well.stdout
    assert checks["Remote", "remote"]["state"] == checks["Worker", "remote"]["state"] == "ok"
    assert checks["Worker", "agent"]["found"] == f"sh at {shutil.which('sh')}"
    refs = subprocess.run(["git", "for-each-ref", "refs/ralph"], capture_output=True, check=True)
    assert refs.stdout == b"", "what it pushed is deleted"
    told["agent"] = {"command": "./agent.sh"}
    (repo / ".ralph" / "settings.json").write_text(json.dumps(told))
    missing = ralph("fleet", "doctor", "-C", str(repo))
    assert "./agent.sh is not in the project" in missing.stdout
    (repo / "agent.sh").touch()
    own = ralph("fleet", "doctor", "-C", str(repo))
    assert "./agent.sh, which comes with the project's files" in own.stdout
    assert own.returncode == 0, own.stdout
    told["agent"] = {"command": "no-such-agent"}
    (repo / ".ralph" / "settings.json").write_text(json.dumps(told))
    ill = ralph("fleet", "doctor", "--remote", str(tmp_path / "nowhere"), "-C", str(repo))
    assert ill.returncode == 1
    assert "no-such-agent is not on PATH" in ill.stdout
    assert ill.stdout.count("does not appear to be a git repository") == 2


def plain_worker(address: str, place: Path, *flags: str) -> "subprocess.Popen[str]":
    """A worker of Dask's own, started as the page about fleets has it."""
    usual = ("--no-nanny", "--nthreads", "2", "--memory-limit", "0", "--no-dashboard")
    ours = ("--preload", "ralph.fleet.cluster.preload", "--local-directory", str(place))
    return subprocess.Popen(
        [sys.executable, "-m", "distributed.cli.dask_worker", address, *usual, *ours, *flags],
        stderr=subprocess.PIPE,
        text=True,
        env=dict(os.environ),
    )


def test_a_worker_of_a_deployer(tmp_path: Path) -> None:
    up = Up(tmp_path / "said", workers=0)
    closed = ("--host", "127.0.0.1", "--dashboard-address", "127.0.0.1:0", "--name", "d")
    with plain_worker(up.address, tmp_path, *closed) as plain:
        try:
            until(lambda: [one["slots"] for one in workers(up.address)] == [2])
            assert ralph("fleet", "drain", "d", "--fleet", up.address).returncode == 0
            assert plain.wait(120) == 0
        finally:
            plain.kill()


@pytest.mark.parametrize(
    ("flags", "way"),
    [
        (("--dashboard-address", "127.0.0.1:0"), "tcp://"),
        (("--host", "127.0.0.1"), "http://0.0.0.0"),
    ],
)
@pytest.mark.slow
def test_a_deployers_worker_that_is_open_for_all(
    tmp_path: Path, flags: tuple[str, ...], way: str
) -> None:
    up = Up(tmp_path / "said", workers=0)
    with plain_worker(up.address, tmp_path, *flags) as plain:
        try:
            _, said = plain.communicate(timeout=120)
        finally:
            plain.kill()
    assert plain.returncode == 2
    assert f"open for everybody: {way}" in said
    assert workers(up.address) == []


def test_without_the_extra(tmp_path: Path) -> None:
    """As where Dask is not installed."""
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    (hidden / "sitecustomize.py").write_text(
        "import importlib.util as u\nfind = u.find_spec\n"
        "u.find_spec = lambda name, *more: None if name == 'distributed' else find(name, *more)\n"
    )
    for words in (
        ("up",),
        ("worker", "--scheduler", "tcp://127.0.0.1:1"),
        ("status", "--fleet", "tcp://127.0.0.1:1"),
    ):
        done = subprocess.run(
            [sys.executable, "-m", "ralph", "fleet", *words],
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONPATH": str(hidden)},
            check=False,
        )
        assert done.returncode == 2
        assert "pip install 'ralph-engine[fleet]'" in done.stderr
