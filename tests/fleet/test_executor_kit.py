"""Every executor passes the conformance kit: local, Dask with machines of its own, and the fake."""

import os
import signal
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from kits.fleet.cluster import Cluster
from ralph import __version__
from ralph.fleet.executors.dask import DaskExecutor
from ralph.fleet.executors.local import LocalExecutor
from ralph.fleet.machine import holding, relay
from ralph.fleet.port import LAST, Event, Handle, Job
from ralph.kernel.value import replace
from ralph.testing.executor_kit import ATTEMPT, CHECKS, Bench, NotApplicable
from ralph.testing.fake_fleet import FakeExecutor, FakeFleet

SLOW = {
    "cut_of_the_deaf",
    "lost_to_another",
    "many_threads",
    "renewed",
    "slots",
}  # they wait for seconds
DEALT = [pytest.param(name, marks=[pytest.mark.slow] * (name in SLOW)) for name in CHECKS]


@pytest.mark.parametrize("check", DEALT)
def test_local(check: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(relay, "COMMAND", ATTEMPT)
    bench = Bench(lambda: LocalExecutor(2), str(tmp_path))
    if check in ("lost", "lost_to_another"):  # it is in this process: nothing can be lost
        with pytest.raises(NotApplicable):
            CHECKS[check](bench)
    else:
        CHECKS[check](bench)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with Cluster(tmp_path_factory.mktemp("cluster"), workers=2) as cluster:
        yield cluster


@pytest.mark.parametrize("check", DEALT)
def test_dask(check: str, tmp_path: Path, cluster: Cluster) -> None:
    cluster.mend()
    bench = Bench(
        lambda: DaskExecutor(cluster.address), str(tmp_path), lose=lambda _: cluster.stop_workers()
    )
    CHECKS[check](bench)


@pytest.mark.parametrize("check", CHECKS)
def test_fake(check: str, tmp_path: Path) -> None:
    fleet = FakeFleet()

    def lose(job: Job) -> None:
        fleet.lose(job)

    CHECKS[check](Bench(lambda: FakeExecutor(fleet), str(tmp_path), lose=lose, processes=False))


class CallsAllLost(FakeExecutor):
    def lost(self, handle: Handle) -> bool:
        return True


class EndsTwice(FakeExecutor):
    def events(self, handle: Handle, wait: float) -> Sequence[Event]:
        events = super().events(handle, wait)
        return (*events, *(event for event in events if isinstance(event, LAST)))


class TakesEveryVersion(FakeExecutor):
    def submit(self, job: Job, *, again: bool = False) -> Handle:
        return super().submit(replace(job, version=__version__), again=again)


class HasMoreSlots(FakeExecutor):
    def slots(self) -> int:
        return super().slots() - 1


@pytest.mark.parametrize(
    ("broken", "check"),
    [
        (CallsAllLost, "submitted_twice"),
        (EndsTwice, "one_turn"),
        (TakesEveryVersion, "another_version"),
        (HasMoreSlots, "slots"),
    ],
)
def test_an_executor_that_is_broken_fails(
    broken: type[FakeExecutor], check: str, tmp_path: Path
) -> None:
    fleet = FakeFleet()
    with pytest.raises(AssertionError):
        CHECKS[check](Bench(lambda: broken(fleet), str(tmp_path), processes=False))


def test_one_that_leaves_processes_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def leaves(*_: object) -> list[int]:
        return []

    monkeypatch.setattr(relay, "COMMAND", ATTEMPT)
    monkeypatch.setattr(holding, "settle", leaves)
    bench = Bench(lambda: LocalExecutor(1), str(tmp_path))
    try:
        with pytest.raises(AssertionError, match="something of it lives"):
            CHECKS["nothing_left"](bench)
    finally:
        for pid in bench.alive():
            os.kill(pid, signal.SIGKILL)
