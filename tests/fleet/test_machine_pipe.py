"""What an attempt is told on its pipe, how long it may work by that, and what it says."""

import json
import os
import select
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from ralph import __version__
from ralph.errors import ConfigError
from ralph.fleet.lease import Held
from ralph.fleet.machine.pipe import HopelessError, Leash, Voice, ending, job_of
from ralph.fleet.port import MOST_BYTES, Job
from ralph.kernel.turn import Pulse
from ralph.processes.clock import boottime

JOB = Job(
    __version__, "20261119-120000-abcd", "T 1", 1, "refs/ralph/r/T/1", "0" * 40, "/remote", 5.0
)


def line(**how: object) -> bytes:
    return json.dumps({"job": {**asdict(JOB), **how}}).encode()


def until_of(teller: "Teller") -> float:
    assert teller.leash._held.until is not None
    return teller.leash._held.until


class Teller:
    """Who started the attempt."""

    def __init__(self) -> None:
        theirs, self.pipe = os.pipe()
        self.leash = Leash(theirs)
        self.theirs = theirs
        self.write(line() + b"\n")
        assert self.leash.job() == JOB

    def write(self, data: bytes) -> None:
        os.write(self.pipe, data)

    def tell(self, **told: object) -> None:
        self.write(json.dumps(told).encode() + b"\n")

    def close(self) -> None:
        for one in (self.pipe, self.theirs):
            with suppress(OSError):
                os.close(one)


@pytest.fixture
def teller() -> Iterator[Teller]:
    teller = Teller()
    yield teller
    teller.close()


def test_a_job_is_understood() -> None:
    assert job_of(line()) == JOB


@pytest.mark.parametrize("how", [{"version": "0.0.1"}, {"schema": 99}])
def test_another_ralph_says_what_to_install(how: dict[str, object]) -> None:
    """Issue: "a worker that differs refuses with what to install"; another may have it."""
    with pytest.raises(ConfigError) as caught:
        job_of(line(**how))
    version = how.get("version", __version__)
    assert f"pip install 'ralph-engine[fleet]=={version}'" in caught.value.remedy
    assert not isinstance(caught.value, HopelessError)


@pytest.mark.parametrize(
    "data",
    [
        *(b"", b"\xff\xfe", b"[]", b"{}", b'{"job": 1}', b'{"job": {}}', b"[" * 60_000),
        *(line(version=1), line(version="1; rm -rf /")),
        *(line(ref="refs/heads/main"), line(ref="refs/ralph/../../x/1"), line(ref=3)),
        *(line(order="HEAD"), line(order="0" * 41), line(run="../x"), line(run="")),
        *(line(remote="--upload-pack=x"), line(remote=" "), line(remote="a\0b")),
        *(line(lease=0), line(lease=-1), line(lease="5"), line(lease=1e9), line(attempt=0)),
    ],
)
def test_what_is_no_job_is_refused(data: bytes) -> None:
    with pytest.raises(HopelessError):
        job_of(data)


def test_the_first_line_may_be_endless(tmp_path: Path) -> None:
    (tmp_path / "pipe").write_bytes(b"x" * 3 * MOST_BYTES)
    with (tmp_path / "pipe").open("rb", 0) as pipe, pytest.raises(HopelessError, match="64 KB"):
        Leash(pipe.fileno()).job()


def test_a_lease_ends_the_agent_before_it_is_over() -> None:
    lease = Held(100.0, 60.0)
    assert ending(lease, 89.9) is None
    first = ending(lease, 90.1)
    assert first
    assert first.grace > 0
    assert 90 + 2 * first.grace < 98, "it is killed before whoever started us kills us"
    last = ending(lease, 97.0)
    assert last
    assert last.grace == 0
    assert [lease.is_killing(at) for at in (97.9, 98.1)] == [False, True]


def test_a_short_lease_leaves_half_of_it_for_the_end() -> None:
    lease = Held(100.0, 5.0)
    assert ending(lease, 97.4) is None
    cut = ending(lease, 97.6)
    assert cut
    assert 97.5 + 2 * cut.grace < 99
    assert [lease.is_killing(at) for at in (98.9, 99.1)] == [False, True]


def test_after_a_suspend_nobody_is_asked() -> None:
    lease = Held(100.0, 60.0)
    cut = ending(lease, 91.0, slept=True)
    assert cut
    assert cut.grace == 0
    assert ending(lease, 50.0, slept=True) is None, "the lease holds"


def test_nothing_begins_before_it_is_lent(teller: Teller) -> None:
    teller.tell(until=boottime() + 5)
    assert teller.leash.is_granted()
    assert teller.leash.agents() is None
    assert teller.leash.after() is None


@pytest.mark.parametrize("until", ["soon", None, float("nan"), float("inf"), [], {}])
def test_what_cannot_be_understood_renews_nothing(teller: Teller, until: object) -> None:
    teller.tell(until=until)
    teller.write(b"nonsense\n\n[]\n")
    teller.tell(cut={"why": "enough", "grace": 0.5})
    assert not teller.leash.is_granted()


def test_nobody_lends_for_longer_than_the_job_says(teller: Teller) -> None:
    teller.tell(until=boottime() + 1e6)
    assert teller.leash.is_granted()
    assert until_of(teller) <= boottime() + JOB.lease


def test_a_lease_does_not_become_shorter_and_one_that_is_over_stays_over(teller: Teller) -> None:
    teller.tell(until=boottime() + 0.8)
    teller.tell(until=boottime() + 0.1)
    teller.leash.agents()
    assert until_of(teller) > boottime() + 0.3
    while boottime() < until_of(teller):
        time.sleep(0.05)
    teller.tell(until=boottime() + 5)
    cut = teller.leash.agents()
    assert cut
    assert cut.grace == 0


def test_a_cut_is_for_the_agent_and_its_result_is_still_sent(teller: Teller) -> None:
    teller.tell(until=boottime() + 5)
    assert teller.leash.is_granted()
    teller.tell(cut={"why": "enough", "grace": 1.5})
    cut = teller.leash.agents()
    assert cut
    assert (cut.why, cut.grace, cut.finished) == ("enough", 1.5, False)
    assert teller.leash.before() == cut
    assert teller.leash.after() is None


def test_the_end_of_the_pipe_is_the_end(teller: Teller) -> None:
    teller.tell(until=boottime() + 5)
    assert teller.leash.is_granted()
    os.close(teller.pipe)
    for leash in (teller.leash.agents, teller.leash.before, teller.leash.after):
        cut = leash()
        assert cut
        assert cut.grace == 0


def test_an_endless_line_is_the_end(teller: Teller) -> None:
    teller.tell(until=boottime() + 5)
    assert teller.leash.is_granted()
    for _ in range(MOST_BYTES // 4096 + 2):
        teller.write(b"x" * 4096)
        teller.leash.agents()
    assert teller.leash.agents()


def said(pipe: int) -> list[dict[str, Any]]:
    return [json.loads(each) for each in os.read(pipe, 1 << 20).splitlines()]


def test_a_voice_that_nobody_hears_does_not_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    write, (ours, theirs) = os.write, os.pipe()

    def never_waits(pipe: int, data: bytes) -> int:
        assert select.select([], [pipe], [], 0)[1], "it would wait"
        return write(pipe, data)

    monkeypatch.setattr(os, "write", never_waits)
    voice = Voice(theirs)
    for number in range(100_000 // 50):
        voice.say(pulse={"number": number, "more": "x" * 50})
    assert select.select([ours], [], [], 0)[0]
    assert said(ours)[0] == {"pulse": {"number": 0, "more": "x" * 50}}
    for one in (ours, theirs):
        os.close(one)


def test_a_pulse_is_told_twice_a_second() -> None:
    ours, theirs = os.pipe()
    voice = Voice(theirs)
    for number in range(10):
        voice.beat(Pulse(float(number), 0.0))
    assert [message["pulse"]["seconds"] for message in said(ours)] == [0.0]
    voice.failed("x" * 5000, "y", passes=True)
    (last,) = said(ours)
    assert len(last["failed"]["why"]) == 2000
    os.close(ours)
    voice.done("0" * 40)  # nobody is there
    os.close(theirs)
