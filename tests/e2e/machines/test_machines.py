"""Machines for tests are apart, can be cut off, and leave nothing: with git, Dask and sandboxes."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kits.machines.checking import lives, overlaps
from kits.machines.life import LifeLog
from kits.machines.network import (
    AGENT,
    ROOT,
    USER_HOME,
    Host,
    Machines,
    Process,
    UnableError,
    await_that,
    signalled,
)

DASK = (sys.executable, "-m")
# Dask notices a cut after so long, instead of 30 seconds; it takes no less.
SOON = {"DASK_DISTRIBUTED__COMM__TIMEOUTS__TCP": "11s"}
CLIENT = """
import subprocess, sys
from distributed import Client

address, *agent = sys.argv[1:]
client = Client(address, timeout=20)
client.wait_for_workers(2, timeout=20)
job = client.submit(lambda words: subprocess.run(words).returncode, [*agent, "Task T-1: try"])
print(job.result(timeout=60), flush=True)
"""


@pytest.fixture
def machines(tmp_path: Path) -> Iterator[Machines]:
    try:
        with Machines(tmp_path) as made:
            yield made
    except UnableError as error:
        pytest.skip(str(error))


@pytest.fixture
def life(machines: Machines) -> Iterator[LifeLog]:
    with LifeLog(machines.shared, machines.root / "life.log") as log:
        yield log


def pace(machines: Machines, seconds: float) -> None:
    (machines.shared / "pace").write_text(f"{seconds} {seconds}", "ascii")


def fails(host: Host, *argv: str) -> bool:
    return host.run(("timeout", "1", *argv)).wait() != 0


def test_each_has_a_name_an_address_and_a_home_of_its_own(machines: Machines) -> None:
    for number, host in enumerate(machines.hosts, 1):
        host.call("sh", "-c", "echo $(hostname) > mine; echo x > /tmp/theirs")
        assert (host.home / "mine").read_text() == f"host{number}\n"
        assert f"10.77.0.{number}/24" in host.call("ip", "-brief", "address")
        assert host.call("ls", "/tmp/theirs", "/home").split() == ["/tmp/theirs", "/home:", "dev"]
        assert fails(host, "ls", str(machines.root / "host2")), "it sees the others' files"
    assert os.uname().nodename not in ("host1", "switch")


def test_each_sees_its_own_processes_and_loses_them_with_its_plug(machines: Machines) -> None:
    first, second, _ = machines.hosts
    process = first.run(("sh", "-c", "setsid sleep 600 & exec sleep 600"))
    await_that(lambda: len(first.processes()) == 2, "both sleep")
    assert second.processes() == {}
    assert "600" not in second.call("sh", "-c", "cat /proc/[0-9]*/cmdline")
    process.kill()
    assert process.wait() == -signal.SIGKILL
    assert list(machines.left()) == ["host1"], "who has another session lives on"
    first.end()
    second.run(("sleep", "600"))
    assert list(machines.left()) == ["host2"]


@pytest.mark.slow
def test_a_cut_loses_everything_and_a_mend_brings_it_back(machines: Machines) -> None:
    url, host = machines.remote(), machines.hosts[2]
    host.call("git", "init", "--quiet", "project")
    host.call("git", "-C", "project", "commit", "-q", "--allow-empty", "-m", "Begin", env=WHO)
    push = ("git", "-C", "project", "push", "-q", url, "HEAD:refs/ralph/run/T-1/1")
    machines.cut(host)
    assert fails(host, *push)
    assert fails(host, "git", "ls-remote", f"git://{machines.hosts[0].address}/")
    assert not fails(machines.hosts[0], "git", "ls-remote", url), "the others are not cut"
    machines.mend(host)
    host.call(*push)
    assert "refs/ralph/run/T-1/1" in machines.hosts[0].call("git", "ls-remote", url)


WHO = {f"GIT_{r}_{f}": "dev@localhost" for r in ("AUTHOR", "COMMITTER") for f in ("NAME", "EMAIL")}


def test_nothing_is_left_of_a_test_that_was_killed(tmp_path: Path) -> None:
    """Its machines end with it, whoever ended it."""
    script = (
        "import pathlib, sys; from kits.machines.network import Machines\n"
        "with Machines(pathlib.Path(sys.argv[1])) as made:\n"
        "    one = made.hosts[0].run(('sleep', '600'))\n"
        "    print(made.switch.init, one.pid, flush=True); input()\n"
    )
    env = {**os.environ, "PYTHONPATH": str(ROOT / "tests")}
    with subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path)],
        env=env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as test:
        assert test.stdout is not None
        said = test.stdout.readline()
        test.kill()
        _, errors = test.communicate()
    if "UnableError" in errors:
        pytest.skip(errors.splitlines()[-1])
    for pid in map(int, said.split()):
        await_that(lambda pid=pid: not Path(f"/proc/{pid}").exists(), f"{pid} ends")  # type: ignore[misc]


# ------------------------------------------------------------------ who lives


def test_agents_are_heard_from_their_beginning_to_their_end(
    machines: Machines, life: LifeLog
) -> None:
    pace(machines, 0.2)
    for host, task in zip(machines.hosts, "ABC", strict=True):
        host.run((AGENT, f"Task {task}: try"), {"RALPH_RUN": f"run-{task}"})
    await_that(lambda: sum(each.gone for each in lives(life.lines())) == 3, "all end")
    found = {each.task: each for each in lives(life.lines())}
    assert {each.host for each in found.values()} == {"host1", "host2", "host3"}
    assert found["A"].attempt == "run-A"
    assert all(each.finished and each.last - each.began >= 0.2 for each in found.values())
    assert not overlaps([*found.values()])
    assert machines.hosts[0].call("cat", "done-A") == "A\n"


def test_a_killed_agent_is_gone_and_a_stopped_one_is_not(machines: Machines, life: LifeLog) -> None:
    """A stopped agent beats no more, and is alive: the next one of its task is one too many."""
    pace(machines, 600)
    first, second, third = machines.hosts
    begun(life, first.run((AGENT, "Task A: try")), 1).kill()
    await_that(lambda: lives(life.lines())[0].gone, "it is gone")
    stopped = begun(life, second.run((AGENT, "Task A: try")), 2)
    assert not overlaps(lives(life.lines()))
    stopped.send(signal.SIGSTOP)
    time.sleep(0.2)
    begun(life, third.run((AGENT, "Task A: try")), 3)
    ((one, other),) = overlaps(lives(life.lines()))
    assert (one.host, other.host) == ("host2", "host3")
    assert sorted(life.alive().values()) == ["A", "A"]


@pytest.mark.slow
def test_an_agent_in_a_sandbox_is_heard_too(machines: Machines, life: LifeLog) -> None:
    pace(machines, 0.2)
    host = machines.hosts[0]
    host.call("git", "init", "--quiet", "project")
    ralph = (sys.executable, "-m", "ralph", "sandbox", "run", "--discard", "--")
    host.call(*ralph, AGENT, "Task A: try", cwd=f"{USER_HOME}/project")
    await_that(lambda: lives(life.lines())[0].gone, "it is gone")
    (one,) = lives(life.lines())
    assert (one.host, one.finished) == ("host1", True)


@pytest.mark.slow
def test_a_stopped_program_goes_on_and_its_end_is_heard(machines: Machines) -> None:
    process = machines.hosts[0].run(("sleep", "0.3"))
    process.send(signal.SIGSTOP)
    time.sleep(0.5)
    assert not process.ended()
    process.send(signal.SIGCONT)
    assert process.wait() == 0


def begun(life: LifeLog, process: Process, count: int) -> Process:
    await_that(lambda: len(lives(life.lines())) == count, "the agent begins")
    return process


# ------------------------------------------------------------------ plain Dask


@pytest.mark.slow
def test_plain_dask_makes_two_agents_of_a_job_whose_worker_is_cut_off(
    machines: Machines, life: LifeLog
) -> None:
    """The trap that leases are for, and the proof that we would see it."""
    pace(machines, 60)
    first, *workers = machines.hosts
    address = f"tcp://{first.address}:8786"
    scheduler = ("distributed.cli.dask_scheduler", "--host", first.address, "--no-dashboard")
    first.run((*DASK, *scheduler), SOON)
    for host in workers:
        words = ("distributed.cli.dask_worker", address, "--nthreads", "1", "--no-dashboard")
        host.run((*DASK, *words, "--no-nanny", "--host", host.address), SOON)
    client = first.run(
        (sys.executable, "-c", CLIENT, address, AGENT),
        SOON,
        stdout=subprocess.PIPE,
    )
    await_that(lambda: lives(life.lines()), "Dask starts the agent", 60)
    (begun,) = lives(life.lines())
    (host,) = (each for each in workers if each.name == begun.host)
    machines.cut(host)
    await_that(lambda: len(lives(life.lines())) == 2, "Dask starts it again", 30)
    pids = [each.pid for each in lives(life.lines())]
    time.sleep(0.2)
    ((one, other),) = overlaps(lives(life.lines()))
    assert one.host == host.name != other.host
    machines.mend(host)
    for pid in pids:
        signalled(pid, signal.SIGTERM)
    out, _ = client.started.communicate(timeout=60)
    assert out == b"-15\n", "its result reaches the client"
