"""Nothing of an attempt outlives its lease, its starter, or whoever kills parts of it."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kits.attempts import Attempted, Site, gone, naming
from ralph.fleet.lease import Held
from ralph.fleet.machine import holding
from ralph.fleet.machine.holding import end_from_below
from ralph.processes import keeper_main
from ralph.processes.clock import boottime
from ralph.processes.keeper_main import descendants

MARK = f"86{os.getpid():07d}"  # seconds that its hostile children sleep


def hostile(tmp_path: Path) -> str:
    """Leaves a process of another session, without environment, that ignores what it can."""
    inner = f"trap '' INT TERM HUP; touch {tmp_path}/hostile; sleep {MARK} & while :; do wait; done"
    (tmp_path / "hostile.sh").write_text(f"{inner}\n")
    return f"(env -i setsid sh {tmp_path}/hostile.sh < /dev/null > /dev/null 2>&1 &) &"


@pytest.fixture
def site(tmp_path: Path) -> Site:
    turn = {"ignore": ["INT", "TERM"], "spawn": [hostile(tmp_path)], "hang": "before"}
    return Site(tmp_path, [turn])


def begun(site: Site, attempt: Attempted) -> float:
    """Have its agent at work, and its hostile child; until when it is lent."""
    while not ((site.root / "hostile").exists() and naming(f"sleep\0{MARK}")):
        assert attempt.process.poll() is None, attempt.messages
        until = attempt.lend()
        attempt._hear(0.1)
    return until


def ended(attempt: Attempted) -> float:
    """When nothing of the agent was left; then it ends as well."""
    while naming(MARK):
        time.sleep(0.02)
    when = boottime()
    assert attempt.result()
    return when


def is_over(site: Site) -> bool:
    return gone(MARK) and gone(str(site.home))


@pytest.mark.slow
def test_the_end_of_the_lease_is_the_end_of_all(site: Site) -> None:
    """Issue: "a worker that cannot renew its lease ends its own tree before it expires"."""
    with site.started(site.job(lease=6.0)) as attempt:
        until = begun(site, attempt)
        assert ended(attempt) < until
    assert is_over(site)


@pytest.mark.slow
def test_a_lease_that_is_renewed_goes_on(site: Site) -> None:
    with site.started(site.job(lease=5.0)) as attempt:
        until = begun(site, attempt)
        while boottime() < until + 1:
            attempt.lend()
            attempt._hear(0.3)
        assert naming(MARK)
        assert attempt.process.poll() is None


def test_the_end_of_the_pipe_is_the_end_of_all(site: Site) -> None:
    with site.started(site.job()) as attempt:
        begun(site, attempt)
        attempt.let_go()
        before = time.monotonic()
        assert "nobody waits" in attempt.result()["failed"]["why"]
        assert not naming(MARK)
        assert time.monotonic() - before < 10
    assert is_over(site)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_is_the_end_of_all(site: Site, number: signal.Signals) -> None:
    with site.started(site.job()) as attempt:
        begun(site, attempt)
        attempt.process.send_signal(number)
        assert "failed" in attempt.result()
        assert attempt.process.returncode == 0
    assert is_over(site)


def test_a_cut_is_over_within_ten_seconds(site: Site) -> None:
    with site.started(site.job()) as attempt:
        begun(site, attempt)
        attempt.tell(cut={"why": "cancelled", "grace": 0.3})
        before = time.monotonic()
        assert "done" in attempt.result()
        assert not naming(MARK)
        assert time.monotonic() - before < 10
    assert is_over(site)


def test_a_killed_attempt_leaves_nothing(site: Site) -> None:
    with site.started(site.job()) as attempt:
        begun(site, attempt)
        attempt.process.kill()
        attempt.process.wait()
        assert is_over(site)


def test_a_killed_keeper_leaves_nothing(site: Site) -> None:
    with site.started(site.job()) as attempt:
        begun(site, attempt)
        keepers = [
            pid
            for pid in descendants(attempt.process.pid)
            if b"keeper_main" in Path(f"/proc/{pid}/cmdline").read_bytes()
        ]
        assert keepers
        for pid in keepers:
            os.kill(pid, signal.SIGKILL)
        attempt.result()
        assert not naming(MARK)
    assert is_over(site)


@pytest.mark.slow
def test_a_stopped_keeper_does_not_outlast_the_lease(site: Site) -> None:
    with site.started(site.job(lease=6.0)) as attempt:
        until = begun(site, attempt)
        for pid in descendants(attempt.process.pid):
            if b"keeper_main" in Path(f"/proc/{pid}/cmdline").read_bytes():
                os.kill(pid, signal.SIGSTOP)
        assert ended(attempt) < until
    assert is_over(site)


@pytest.mark.slow
def test_one_that_was_stopped_kills_at_once_when_it_goes_on(site: Site) -> None:
    """Who starts it kills it at the end of the lease; it may have been stopped as well."""
    with site.started(site.job(lease=5.0)) as attempt:
        until = begun(site, attempt)
        attempt.process.send_signal(signal.SIGSTOP)
        while boottime() < until:
            time.sleep(0.1)
        attempt.lend()
        attempt.process.send_signal(signal.SIGCONT)
        before = boottime()
        assert "lease is over" in attempt.result()["failed"]["why"]
        assert boottime() - before < 3
    assert is_over(site)


@pytest.mark.slow
def test_a_push_ends_with_the_lease(site: Site) -> None:
    """A result that arrives later would be of an attempt that counts as lost."""
    hook = Path(site.remote.url) / "hooks" / "pre-receive"
    hook.write_text(f"#!/bin/sh\ntouch {site.root}/pushing\nsleep {MARK}\n")
    hook.chmod(0o755)
    site.again({"text": "ok"})
    hook.chmod(0o644)  # the order arrives
    job = site.job(lease=5.0)
    hook.chmod(0o755)
    with site.started(job) as attempt:
        while not (site.root / "pushing").exists():
            until = attempt.lend()
            attempt._hear(0.1)
        assert ended(attempt) < until
        told = attempt.result()
    assert "failed" in told
    assert list(site.remote.at(job.ref).values()) == [job.order]


@pytest.mark.slow
def test_a_remote_that_does_not_answer_does_not_keep_it(site: Site) -> None:
    wrapper = site.root / "slow"
    wrapper.write_text(f"#!/bin/sh\nexec sleep {MARK}\n")
    wrapper.chmod(0o755)
    site.environ["GIT_SSH_COMMAND"] = str(wrapper)
    job = site.job(lease=5.0, remote="ssh://localhost/x")
    with site.started(job) as attempt:
        while not naming(MARK):
            until = attempt.lend()
            attempt._hear(0.1)
        assert ended(attempt) < until
        assert "failed" in attempt.result()


KEEPER = """
import os, signal, sys, time
sys.path.insert(0, sys.argv[1])
import keeper_main
keeper_main.become_subreaper()
if os.fork():
    time.sleep(0.3)
    os.kill(os.getpid(), signal.SIGSTOP)
os.setsid()
end = time.monotonic() + 20
while time.monotonic() < end:
    open(sys.argv[2], "w").write("x")
    if os.fork():
        os._exit(0)
    time.sleep(0.002)
"""


def test_who_forks_all_the_time_does_not_outlive_a_stopped_keeper(tmp_path: Path) -> None:
    """One that is killed before what it holds would leave it to somebody who cannot end it."""
    beat = tmp_path / "beat"
    directory = os.path.dirname(keeper_main.__file__)
    keeper = subprocess.Popen([sys.executable, "-c", KEEPER, directory, str(beat)])
    os.waitid(os.P_PID, keeper.pid, os.WSTOPPED)
    end_from_below(keeper.pid)
    keeper.wait()
    beat.unlink(missing_ok=True)
    time.sleep(0.3)
    assert not beat.exists()


def test_nothing_begins_beside_what_would_not_die(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else two agents of one attempt would be alive."""
    desk: Any = SimpleNamespace(job=site.job(), held=Held())
    earlier = subprocess.Popen(["sleep", "60"], env={"RALPH_RUN": holding.mark(desk.job)})
    monkeypatch.setattr(holding, "_PATIENCE", -1.0)
    try:
        result = holding.hold((sys.executable, "-c", "raise SystemExit('it began')"), desk)
    finally:
        earlier.kill()
        earlier.wait()
    assert "would not die" in result["why"]
    assert result["passes"] is True
