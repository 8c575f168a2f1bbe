"""What Dask does when something is lost, and that no attempt is made twice by it."""

import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from kits.adapters import await_that
from kits.fleet.cluster import SCHEDULER, Cluster
from ralph import __version__
from ralph.errors import ConfigError
from ralph.fleet.executors.dask import DaskExecutor
from ralph.fleet.machine import relay
from ralph.fleet.messages import job_text
from ralph.fleet.port import Away, CameBack, Done, Failed, Launched, Lost, Placed, Said
from ralph.testing.executor_kit import CUT, WORK, Bench, Step, said, until, whole

pytestmark = pytest.mark.filterwarnings("ignore")  # what Dask itself warns of


@pytest.fixture(scope="module")
def machines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with Cluster(tmp_path_factory.mktemp("cluster"), workers=2) as cluster:
        yield cluster


@pytest.fixture
def cluster(machines: Cluster) -> Cluster:
    machines.mend()
    return machines


@pytest.fixture
def bench(cluster: Cluster, tmp_path: Path) -> Bench:
    return Bench(lambda: DaskExecutor(cluster.address), str(tmp_path), lease=2.0)


@pytest.mark.slow
def test_an_attempt_of_a_lost_worker_is_not_begun_again(cluster: Cluster, bench: Bench) -> None:
    steps: list[Step] = [{"deaf": True}, {"launch": "claude"}, {"sleep": 3.5}, {"done": "c1"}]
    with bench.executor() as executor:
        others = [executor.submit(bench.job(WORK, task="T-other"))]
        until(executor, others[0], Placed)  # so that we know who has the other
        handle = executor.submit(bench.job(*steps))
        until(executor, handle, Launched)
        for name in cluster.workers:
            cluster.kill(name)
        cluster.mend()
        assert isinstance(whole(executor, handle)[-1], Lost)
        assert isinstance(whole(executor, others[0])[-1], Lost)
        assert bench.begun() == 1, "another incarnation has begun it"
        for number in (2, 3):  # so the slots are free
            job = bench.job({"done": "c2"}, attempt=number)
            assert whole(executor, executor.submit(job))[-1] == Done("c2")


@pytest.mark.slow
def test_a_lost_worker_that_comes_back_is_heard(cluster: Cluster, bench: Bench) -> None:
    with bench.executor() as executor:
        handle = executor.submit(bench.job({"launch": "claude"}, WORK))
        until(executor, handle, Launched)
        cluster.stop_workers()
        until(executor, handle, Lost)
        cluster.mend()
        assert isinstance(until(executor, handle, CameBack)[-1], CameBack)
        assert executor.lost(handle)


@pytest.mark.slow
def test_it_goes_on_when_the_scheduler_comes_back(cluster: Cluster, tmp_path: Path) -> None:
    bench = Bench(lambda: DaskExecutor(cluster.address), str(tmp_path), lease=60.0)
    steps: list[Step] = [{"launch": "claude"}, {"say": "a"}, {"sleep": 7}, {"say": "b"}]
    with bench.executor() as executor:
        handle = executor.submit(bench.job(*steps, {"done": "c1"}))
        before = until(executor, handle, Said)
        cluster.kill(SCHEDULER)
        after = until(executor, handle, Away)
        late = executor.submit(bench.job({"done": "c2"}, task="T-002"))
        cluster.mend()
        after += whole(executor, handle)
        assert after[-1] == Done("c1"), after
        assert Away(0.0) in after, after
        assert said([*before, *after]) == b"ab"
        assert whole(executor, late)[-1] == Done("c2")
    assert bench.begun() == 1


@pytest.mark.slow
def test_what_no_scheduler_comes_back_for_is_lost(cluster: Cluster, bench: Bench) -> None:
    with bench.executor() as executor:
        handle = executor.submit(bench.job(WORK))
        until(executor, handle, Placed)
        cluster.kill(SCHEDULER)
        waiting = executor.submit(bench.job({"done": "c2"}, task="T-002"))
        assert isinstance(whole(executor, handle)[-1], Lost)
        assert not bench.alive()
        assert not executor.events(waiting, 0.0)
        executor.cancel(waiting, CUT)
        assert isinstance(whole(executor, waiting)[-1], Failed)


@pytest.mark.slow
def test_a_coordinator_that_is_killed_is_followed_by_another(
    cluster: Cluster, tmp_path: Path
) -> None:
    bench = Bench(lambda: DaskExecutor(cluster.address), str(tmp_path))
    job = bench.job({"launch": "claude"}, {"say": "x"}, WORK)
    program = (
        "import sys; from ralph.fleet.executors.dask import DaskExecutor\n"
        "from ralph.fleet.messages import job_of, message_of\n"
        "executor = DaskExecutor(sys.argv[1])\n"
        "handle = executor.submit(job_of(message_of(sys.argv[2])))\n"
        "while True: executor.events(handle, 1)\n"
    )
    words = [sys.executable, "-c", program, cluster.address, job_text(job)]
    first = subprocess.Popen(words)
    try:
        await_that(lambda: bench.begun() == 1)
    finally:
        first.kill()
        first.wait()
    with closing(DaskExecutor(cluster.address)) as executor:
        handle = executor.submit(job, again=True)
        assert said(until(executor, handle, Said)) == b"x"
        executor.cancel(handle, CUT)
        assert isinstance(whole(executor, handle)[-1], Failed)
    assert bench.begun() == 1
    assert not bench.alive()


@pytest.mark.slow
def test_what_nobody_has_any_more_waits_for_the_lease(cluster: Cluster, bench: Bench) -> None:
    """An earlier process may have lent it to a machine that cannot be asked."""
    with closing(DaskExecutor(cluster.address)) as executor:
        begun = time.monotonic()
        handle = executor.submit(bench.job({"done": "c1"}), again=True)
        fresh = executor.submit(bench.job({"done": "c2"}, task="T-002"))
        assert whole(executor, fresh)[-1] == Done("c2")
        assert whole(executor, handle)[-1] == Done("c1")
        assert time.monotonic() - begun > bench.lease


@pytest.mark.slow
def test_a_machine_that_hangs_does_not_keep_others_waiting(cluster: Cluster, bench: Bench) -> None:
    cluster.signal(cluster.workers[0], signal.SIGSTOP)
    with bench.executor() as executor:
        jobs = [bench.job({"done": "c"}, task=f"T-{n}", attempt=n) for n in range(1, 3)]
        seen = [executor.submit(job) for job in jobs]
        await_that(lambda: any(Done("c") in executor.events(one, 0.1) for one in seen))


def a_client(cluster: Cluster) -> Any:  # noqa: ANN401  Dask has no types
    """As `ralph fleet` asks workers."""
    import distributed

    kind: Any = distributed.Client
    return kind(cluster.address, set_as_default=False)


@pytest.mark.slow
def test_a_drained_worker_is_given_nothing(cluster: Cluster, bench: Bench) -> None:
    with bench.executor() as executor, a_client(cluster) as client:
        await_that(lambda: executor.slots() == 2)  # one of them may have hung just now
        first, second = client.scheduler_info(n_workers=-1)["workers"]
        client.run(relay.drain, workers=[first])
        assert client.run(relay.about)[first]["draining"]
        assert not client.run(relay.about)[second]["draining"]
        for number in range(1, 4):
            job = bench.job({"done": "c"}, attempt=number)
            assert whole(executor, executor.submit(job))[-1] == Done("c")
        await_that(lambda: executor.slots() == 1)
        client.run(relay.drain, workers=[second])
        waiting = executor.submit(bench.job({"done": "c"}, task="T-002"))
        assert not executor.events(waiting, 0.5)
        for name in cluster.workers:
            cluster.kill(name)
        cluster.mend()
        assert whole(executor, waiting)[-1] == Done("c")


def test_a_scheduler_without_ralph_is_refused(tmp_path: Path) -> None:
    with Cluster(tmp_path, workers=0) as cluster:
        cluster.kill(SCHEDULER)
        cluster.start(SCHEDULER, "bare")
        with pytest.raises(ConfigError, match="has no Ralph") as refused:
            DaskExecutor(cluster.address)
    assert f"ralph-engine[fleet]=={__version__}" in refused.value.remedy


def test_a_worker_without_ralph_is_named(tmp_path: Path) -> None:
    with Cluster(tmp_path, workers=0) as cluster:
        cluster.start("bare", "bare")
        bench = Bench(lambda: DaskExecutor(cluster.address), str(tmp_path))
        with bench.executor() as executor:
            last = whole(executor, executor.submit(bench.job({"done": "c"})))[-1]
    assert isinstance(last, Failed)
    assert "tcp://127.0.0.1:" in last.why, last
    assert f"no worker of the fleet has Ralph {__version__}" in last.why, last
    assert f"ralph-engine[fleet]=={__version__}" in last.remedy, last
    assert not last.passes


@pytest.mark.slow
def test_a_worker_with_another_ralph_is_given_nothing(tmp_path: Path) -> None:
    """It would refuse, and that ends a run which others could go on with."""
    with Cluster(tmp_path, workers=0) as cluster:
        cluster.start("old", "0.0.1")
        bench = Bench(lambda: DaskExecutor(cluster.address), str(tmp_path))
        with bench.executor() as executor:
            assert executor.slots() == 0
            alone = whole(executor, executor.submit(bench.job({"done": "c"})))[-1]
            assert isinstance(alone, Failed)
            assert "(it has 0.0.1)" in alone.why
            cluster.start("new")
            await_that(lambda: executor.slots() == 1)
            for number in range(2, 5):
                job = bench.job({"done": "c"}, attempt=number)
                assert whole(executor, executor.submit(job))[-1] == Done("c")


@pytest.mark.parametrize("address", ["nonsense", "http://127.0.0.1:1", "tls://127.0.0.1:1"])
def test_what_is_no_fleet_is_refused(address: str) -> None:
    wrong = r"no fleet answers at|no whole address|has no http"
    with pytest.raises(ConfigError, match=wrong) as refused:
        DaskExecutor(address)
    assert refused.value.remedy


@pytest.mark.slow
def test_a_port_that_nobody_serves_is_refused() -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{silent.getsockname()[1]}"
        silent.listen()  # somebody is there, and says nothing
        with pytest.raises(ConfigError, match=address):
            DaskExecutor(address)


@pytest.mark.slow
def test_nothing_is_said_on_the_users_terminal(cluster: Cluster, bench: Bench) -> None:
    program = (
        "import sys, time; from ralph.fleet.executors.dask import DaskExecutor\n"
        "from ralph.fleet.messages import job_of, message_of\n"
        "executor = DaskExecutor(sys.argv[1])\n"
        "handle = executor.submit(job_of(message_of(sys.argv[2])))\n"
        "while not executor.lost(handle): time.sleep(0.1)\n"
    )
    words = [sys.executable, "-c", program, cluster.address, job_text(bench.job(WORK))]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        await_that(lambda: bench.begun() == 1)
        cluster.kill(SCHEDULER)
        out, _ = process.communicate()
    assert (out, process.returncode) == (b"", 0), out.decode()
