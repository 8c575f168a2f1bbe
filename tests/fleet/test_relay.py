"""What stands between the coordinator and an attempt, with attempts of every kind."""

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kits.adapters import await_that, has_ended, is_alive
from ralph import __version__
from ralph.fleet.lease import Held
from ralph.fleet.machine import relay
from ralph.fleet.machine.holding import mark, settle
from ralph.fleet.messages import job_text, message_of, plain
from ralph.fleet.port import MOST_BYTES, Job
from ralph.processes.clock import boottime
from ralph.processes.keeper import orphans
from ralph.testing.executor_kit import ATTEMPT, WORK, Bench, Step


class Machine:
    """The coordinator's side of the messages, by hand."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.answers: list[str] = []

    def begin(self, *steps: Step, grant: bool = True, attempt: int = 1, lease: float = 60.0) -> Job:
        """Have an attempt made; returns when it waits, or was granted."""
        self.bench.lease = lease
        job = self.bench.job(*steps, attempt=attempt)
        threading.Thread(target=self._make, args=(job,), daemon=True).start()
        await_that(lambda: self.ask(job)["known"])
        if grant:
            assert self.lend(job)["state"] == "granted"
        return job

    def ask(self, job: Job, **more: object) -> dict[str, Any]:
        return message_of(relay.exchange(json.dumps({"key": job.key, **more})))

    def lend(self, job: Job, **more: object) -> dict[str, Any]:
        """Renew by the stamp of a fresh answer."""
        seen = self.ask(job)
        named = {"incarnation": seen["incarnation"], "renew": seen["stamp"], "lease": job.lease}
        return self.ask(job, **{"grant": True, **named, **more})

    def end(self, job: Job) -> dict[str, Any]:
        """The last answer."""
        await_that(lambda: self.ask(job).get("state") == "ended")
        return self.ask(job)

    def _make(self, job: Job) -> None:
        self.answers.append(relay.job(job_text(job)))


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    monkeypatch.setattr(relay, "COMMAND", ATTEMPT)
    made = Machine(Bench(lambda: pytest.fail("by hand"), str(tmp_path)))
    yield made
    relay.reset()
    settle({}, f"{made.bench.run}-T-001.1", Held())


def test_nothing_begins_before_it_is_granted(machine: Machine) -> None:
    job = machine.begin({"done": "c1"}, grant=False)
    seen = machine.ask(job)
    assert (seen["state"], seen["left"], seen["result"]) == ("waiting", None, None)
    assert not relay.under_way()
    machine.lend(job, incarnation="another")
    machine.lend(job, grant=False)
    machine.lend(job, renew=boottime() + 5)
    machine.lend(job, renew=boottime() - job.lease)
    machine.lend(job, renew="soon")
    assert machine.ask(job)["state"] == "waiting"
    assert machine.bench.begun() == 0
    assert machine.lend(job)["state"] == "granted"
    assert machine.end(job)["result"] == {"commit": "c1"}
    assert machine.bench.begun() == 1


def test_one_that_is_refused_ends_and_frees_its_slot(machine: Machine) -> None:
    job = machine.begin({"done": "c1"}, grant=False)
    seen = machine.ask(job)
    machine.ask(job, incarnation=seen["incarnation"], cut={"why": "another", "grace": 0})
    await_that(lambda: not machine.ask(job)["known"])
    await_that(lambda: bool(machine.answers))
    assert machine.bench.begun() == 0


def test_one_for_which_nobody_asks_gives_up(machine: Machine) -> None:
    machine.bench.lease = 0.2
    job = machine.bench.job({"done": "c1"})
    assert json.loads(relay.job(job_text(job)))["host"]
    assert not machine.ask(job)["known"]
    assert machine.bench.begun() == 0


def test_its_end_is_told_until_it_is_forgotten(machine: Machine) -> None:
    job = machine.begin({"launch": "claude"}, {"say": "hello"}, {"done": "c1"})
    for _ in range(2):
        assert machine.end(job)["result"] == {"commit": "c1"}
    named = machine.ask(job)["incarnation"]
    assert not machine.ask(job, forget=True, since=0, incarnation=named)["forgotten"], (
        "not all read"
    )
    assert machine.ask(job, forget=True, since=5, incarnation=named)["forgotten"]
    assert not machine.ask(job)["known"]


def test_an_old_end_is_forgotten(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    job = machine.begin({"done": "c1"}, lease=1.0)
    machine.end(job)
    monkeypatch.setattr(relay, "boottime", lambda: boottime() + 700)
    assert not machine.ask(job)["known"]


def test_the_stream_is_read_when_its_file_is_gone(machine: Machine, tmp_path: Path) -> None:
    job = machine.begin({"launch": "claude"}, {"say": "x" * 40_000}, {"sleep": 1}, {"done": "c1"})
    await_that(lambda: machine.ask(job)["size"] == 40_000)
    for path in tmp_path.glob("tmp*"):
        path.unlink()
    seen = machine.ask(job, since=32_768)
    assert (seen["since"], len(seen["stream"])) == (32_768, -(-(40_000 - 32_768) // 3) * 4)
    assert machine.end(job)["size"] == 40_000
    assert len(relay.exchange(json.dumps({"key": job.key}))) < MOST_BYTES


@pytest.mark.slow
def test_one_that_ignores_the_end_of_its_lease_is_killed_in_time(machine: Machine) -> None:
    job = machine.begin({"deaf": True}, {"spawn": 60}, {"launch": "x"}, WORK, lease=3.0)
    await_that(lambda: bool(machine.ask(job)["launched"]))
    until = machine.lend(job)["left"] + boottime()
    pids = machine.bench.alive()
    assert len(pids) == 2
    while boottime() < until:
        time.sleep(0.01)
    assert not [pid for pid in pids if is_alive(pid)]
    end = machine.end(job)["result"]
    assert "lease" in end["why"]
    assert end["passes"]


def test_one_that_is_stopped_is_killed_all_the_same(machine: Machine) -> None:
    job = machine.begin({"launch": "x"}, {"kill": int(signal.SIGSTOP)}, WORK, lease=1.5)
    until = boottime() + job.lease
    await_that(lambda: machine.bench.begun() == 1)
    assert "lease" in machine.end(job)["result"]["why"]
    assert not machine.bench.alive()
    assert boottime() < until + 15


def test_who_names_it_and_left_its_tree_is_ended(machine: Machine) -> None:
    """A process whose parent is gone is found by RALPH_RUN, in its environment."""
    job = machine.begin({"spawn": 60}, {"done": "c1"})
    machine.end(job)
    assert not machine.bench.alive()
    assert mark(job) == f"{machine.bench.run}-T-001.1"


def test_what_an_earlier_process_of_ours_left_is_ended_first(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = machine.begin({"done": "c1"}, grant=False)
    pid = os.posix_spawn("/bin/sleep", ["sleep", "60"], {"RALPH_RUN": mark(job)}, setsid=True)
    state = f"open('/proc/{pid}/stat').read().rpartition(')')[2].split()[0]"
    program = f"import json; print(json.dumps({{'done': {{'commit': {state}}}}}))"
    monkeypatch.setattr(relay, "COMMAND", (sys.executable, "-c", program))
    machine.lend(job)
    assert machine.end(job)["result"] == {"commit": "Z"}, "it lived beside the next"
    os.waitpid(pid, 0)


HOSTILE = {
    "floods its pipe": "import os\nwhile True: os.write(1, b'x' * 65536)",
    "speaks in one endless line": "print('{' * 300_000, flush=True); import time; time.sleep(60)",
    "closes its pipes": "import os, time; os.close(1); os.close(2); os.close(0); time.sleep(60)",
    "says its last and stays": "print('{\"done\": 3}', flush=True); import time; time.sleep(60)",
}


@pytest.mark.parametrize("how", HOSTILE)
def test_a_cut_ends_what_does_not_hear(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    monkeypatch.setattr(relay, "COMMAND", (sys.executable, "-c", HOSTILE[how]))
    monkeypatch.setattr("ralph.fleet.machine.holding._AFTER_CUT", 0.2)
    job = machine.begin(lease=60.0)
    named = machine.ask(job)["incarnation"]
    machine.ask(job, incarnation=named, cut={"why": "that is enough", "grace": 0.1})
    assert "that is enough" in machine.end(job)["result"]["why"]


def test_one_that_cannot_be_started_has_failed(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(relay, "COMMAND", ("/no/such/program",))
    end = machine.end(machine.begin())["result"]
    assert "cannot be started" in end["why"]
    assert end["passes"]


def test_what_it_says_to_nobody_is_told_when_it_fails(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(relay, "COMMAND", (sys.executable, "-c", "raise SystemExit('no git')"))
    assert machine.end(machine.begin())["result"]["why"] == "the attempt ended with 1: no git"


def test_a_second_job_of_a_key_waits_for_the_first(machine: Machine) -> None:
    job = machine.begin({"sleep": 0.5}, {"done": "c1"})
    relay.job(job_text(job))
    assert machine.ask(job)["state"] == "ended"
    assert machine.bench.begun() == 1


def test_another_version_is_refused_with_what_to_install(machine: Machine) -> None:
    job = plain(machine.bench.job())
    answer = json.loads(relay.job(json.dumps({**job, "version": "9.9.9", "more": 1})))
    assert "9.9.9" in answer["refused"]["why"]
    assert __version__ in answer["refused"]["why"]
    assert "ralph-engine[fleet]==9.9.9" in answer["refused"]["remedy"]
    assert not answer["refused"]["passes"]
    answer = json.loads(relay.job(json.dumps({**job, "schema": 9})))
    assert "of kind 9 and not 1" in answer["refused"]["why"]


@pytest.mark.parametrize("text", ["", "[]", "{", "[" * 70_000, '{"version": 3}'])
def test_what_is_no_message_does_no_harm(text: str) -> None:
    assert "refused" in json.loads(relay.job(text))
    assert json.loads(relay.exchange(text))["known"] is False


def test_a_job_with_a_part_missing_is_refused(machine: Machine) -> None:
    job = plain(machine.bench.job())
    for name in ("ref", "lease", "attempt"):
        answer = json.loads(relay.job(json.dumps({**job, name: None})))
        assert f"{name} is missing" in answer["refused"]["why"]


def test_a_machine_that_is_drained_takes_no_more(machine: Machine) -> None:
    job = machine.begin(WORK)
    relay.drain()
    assert relay.about()["draining"]
    assert [one["task"] for one in relay.under_way()] == ["T-001"]
    answer = json.loads(relay.job(job_text(machine.bench.job(attempt=2))))
    assert answer["refused"]["passes"]
    named = machine.ask(job)["incarnation"]
    machine.ask(job, incarnation=named, cut={"why": "enough", "grace": 1})
    assert machine.end(job)["result"]["why"] == "enough"
    assert not relay.under_way()


def test_a_machine_is_idle_once_the_end_of_all_is_known(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A drained worker that left earlier would have its run wait until the lease is over."""
    monkeypatch.setattr(relay, "_ATTEMPTS", {})
    job = machine.begin({"done": "c1"}, grant=False)
    assert not relay.is_idle(), "it may still be granted"
    named = machine.lend(job)["incarnation"]
    size = machine.end(job)["size"]
    assert not relay.under_way()
    assert not relay.is_idle(), "nobody has heard its end"
    machine.ask(job, incarnation=named, since=size, forget=True)
    assert relay.is_idle()
    machine.end(machine.begin({"done": "c2"}, attempt=2, lease=1.0))
    await_that(relay.is_idle)


def test_attempts_of_tasks_with_like_names_are_kept_apart() -> None:
    def named(task: str, number: int) -> str:
        ref = f"refs/ralph/r/{task}/{number}"
        return mark(Job("", "r", task, number, ref, "", "", 1.0))

    child = os.posix_spawn("/bin/sleep", ["sleep", "60"], {"RALPH_RUN": named("T-1", 2)})
    try:
        await_that(lambda: child in orphans(named("T-1", 2)))  # its environment can be read
        settle({}, named("T", 1), Held())
        assert is_alive(child)
    finally:
        settle({}, named("T-1", 2), Held())
        assert has_ended(child)
        os.waitpid(child, 0)
