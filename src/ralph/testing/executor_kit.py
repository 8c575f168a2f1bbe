"""The conformance kit for executors: what each must do that has attempts made somewhere.

`CHECKS` are functions of a `Bench`, by name; one raises AssertionError where the executor is wrong,
and `NotApplicable` where the bench cannot try it. So the kit needs no test runner:

    @pytest.mark.parametrize("check", CHECKS)
    def test_it_does_what_an_executor_must(check, tmp_path):
        with my_fleet(command=ATTEMPT) as fleet:
            CHECKS[check](Bench(lambda: MyExecutor(fleet), str(tmp_path)))

The machines must start `ATTEMPT` for an attempt, as `ralph.fleet.machine.relay.COMMAND` says, and
see the bench's folder; at least one slot is theirs.
"""

import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import count

from ralph import __version__
from ralph.fleet.port import (
    LAST,
    MOST_BYTES,
    Away,
    Beat,
    Done,
    Event,
    Executor,
    Failed,
    Handle,
    Job,
    Launched,
    Lost,
    Placed,
    Said,
)
from ralph.kernel.verdict import Cut

ATTEMPT = (sys.executable, "-m", "ralph.testing.scripted_attempt")
PATIENCE = 30.0  # seconds for what must come; machines are slow
CUT = Cut("that is enough", 1.0)
_ENDS = 10.0  # seconds beyond its grace in which a cut must have ended an attempt
_TELLS = 1.0  # and in which that must have been told
_NUMBERS = count(1)
Step = dict[str, object]
WORK: Step = {"work": 60.0}


class NotApplicable(Exception):  # noqa: N818  it is no error
    """The bench has nothing to try this with."""


@dataclass
class Bench:
    """`start` gives an executor of the same machines each time, as a process of the run would have
    it that goes on. `lose` makes the machine of an attempt unreachable, for as long as its lease;
    None if the bench cannot. Without `processes` no attempt is a process here."""

    start: Callable[[], Executor]
    folder: str
    lease: float = 10.0
    lose: Callable[[Job], object] | None = None
    processes: bool = True
    run: str = field(default_factory=lambda: f"kit-{os.getpid()}-{next(_NUMBERS)}")

    def job(self, *steps: Step, task: str = "T-001", attempt: int = 1) -> Job:
        """An attempt that plays these steps."""
        life = self.life(task, attempt)
        settings = json.dumps({"steps": steps, "life": life})
        ref = f"refs/ralph/{self.run}/{task}/{attempt}"
        order = f"{attempt:040x}"
        remote = os.path.join(self.folder, "remote.git")
        return Job(__version__, self.run, task, attempt, ref, order, remote, self.lease, settings)

    def life(self, task: str = "T-001", attempt: int = 1) -> str:
        """The file in which an attempt logs its life."""
        return os.path.join(self.folder, f"{self.run}.{task}.{attempt}.life")

    def begun(self, task: str = "T-001", attempt: int = 1) -> int:
        """How often it was begun."""
        return sum(word == "begin" for word, _ in self._log(task, attempt))

    def alive(self, task: str = "T-001", attempt: int = 1) -> list[int]:
        """The processes of it that live."""
        return [pid for word, pid in self._log(task, attempt) if word != "end" and _lives(pid)]

    @contextmanager
    def executor(self) -> Iterator[Executor]:
        executor = self.start()
        try:
            yield executor
        finally:
            executor.close()

    def _log(self, task: str, attempt: int) -> list[tuple[str, int]]:
        try:
            with open(self.life(task, attempt), encoding="utf-8") as file:
                lines = [line.split() for line in file]
        except FileNotFoundError:
            return []
        return [(word, int(pid)) for word, pid in lines]


def until(
    executor: Executor, handle: Handle, kind: type | tuple[type, ...], patience: float = PATIENCE
) -> list[Event]:
    """The events up to one of this kind, which must come."""
    seen: list[Event] = []
    deadline = time.monotonic() + patience
    while not any(isinstance(event, kind) for event in seen):
        assert time.monotonic() < deadline, f"no {kind} of {handle.key} has come: {seen}"
        seen += executor.events(handle, 0.5)
    return seen


def whole(executor: Executor, handle: Handle, patience: float = PATIENCE) -> list[Event]:
    """All events of an attempt. Its last one comes once, and is the last."""
    seen = until(executor, handle, LAST, patience)
    seen += executor.events(handle, 0.2)
    assert [isinstance(event, LAST) for event in seen].index(True) == len(seen) - 1, seen
    assert executor.lost(handle), "it is over, and may not be called lost"
    return seen


def said(events: Sequence[Event]) -> bytes:
    return b"".join(event.data for event in events if isinstance(event, Said))


def one_turn(bench: Bench) -> None:
    """An attempt is placed, launched, speaks, and ends, in that order."""
    steps: list[Step] = [{"launch": "claude"}, {"say": "hello\n"}, {"pulse": 1.5}, {"done": "c1"}]
    with bench.executor() as executor:
        seen = whole(executor, executor.submit(bench.job(*steps)))
    order = [type(event) for event in seen if not isinstance(event, (Said, Beat, Away))]
    assert order == [Placed, Launched, Done], seen
    assert isinstance(seen[0], Placed), seen
    assert seen[0].host, seen
    assert Launched("claude", "claude", "m1") in seen, seen
    assert said(seen) == b"hello\n", seen
    assert seen[-1] == Done("c1"), seen
    assert not bench.alive()


def stream_whole(bench: Bench) -> None:
    """A stream of 200 KB arrives whole, in order, before the end is told."""
    texts = [f"{number:04}" * 1250 for number in range(40)]
    names = ("a", "b", "c", "d")  # a job holds less than that
    with bench.executor() as executor:
        for name, part in zip(names, _parts(texts, 10), strict=True):
            steps: list[Step] = [{"say": text} for text in part]
            job = bench.job({"launch": "claude"}, *steps, {"done": name}, task=f"T-{name}")
            seen = whole(executor, executor.submit(job))
            assert said(seen) == "".join(part).encode(), f"{len(said(seen))} bytes of {name}"
            assert seen[-1] == Done(name), seen[-1]


def _parts(texts: list[str], size: int) -> Iterator[list[str]]:
    return (texts[at : at + size] for at in range(0, len(texts), size))


def nothing_left(bench: Bench) -> None:
    """One that is done has left nothing alive when that is told."""
    with bench.executor() as executor:
        handle = executor.submit(bench.job({"spawn": 60}, {"done": "c1"}))
        assert whole(executor, handle)[-1] == Done("c1")
        assert not bench.alive(), "something of it lives"


def failure_told(bench: Bench) -> None:
    """What the attempt says of its failure is told as it was said."""
    told = {"why": "no such agent", "remedy": "Install it", "passes": False}
    with bench.executor() as executor:
        seen = whole(executor, executor.submit(bench.job({"fail": told})))
    assert seen[-1] == Failed("no such agent", "Install it", passes=False), seen


def submitted_twice(bench: Bench) -> None:
    """One that is under way is not begun again."""
    job = bench.job(WORK)
    with bench.executor() as executor:
        first = executor.submit(job)
        until(executor, first, Placed)
        assert not executor.lost(first), "it is under way, and is called lost"
        again = executor.submit(job)
        assert again.key == first.key == job.key
        executor.cancel(again, CUT)
        until(executor, again, LAST)
    _begun_once(bench)


def next_attempt(bench: Bench) -> None:
    """Another attempt at the same task is another one."""
    with bench.executor() as executor:
        for number in (1, 2):
            job = bench.job({"done": f"c{number}"}, attempt=number)
            assert whole(executor, executor.submit(job))[-1] == Done(f"c{number}")
    _begun_once(bench)
    _begun_once(bench, attempt=2)


def taken_up(bench: Bench) -> None:
    """Whoever goes on takes up what is under way, with its stream from the beginning."""
    job = bench.job({"launch": "claude"}, {"say": "hello\n"}, WORK)
    with bench.executor() as executor:
        until(executor, executor.submit(job), Said)
    with bench.executor() as executor:
        handle = executor.submit(job, again=True)
        seen = until(executor, handle, Said)
        assert isinstance(seen[0], Placed), seen
        assert said(seen) == b"hello\n", seen
        executor.cancel(handle, CUT)
        assert seen + whole(executor, handle)
    _begun_once(bench)
    assert not bench.alive()


def end_taken_up(bench: Bench) -> None:
    """Whoever goes on is told the end of what has ended meanwhile."""
    job = bench.job({"launch": "claude"}, {"say": "x"}, {"sleep": 0.3}, {"done": "c1"})
    with bench.executor() as executor:
        until(executor, executor.submit(job), Placed)
    if bench.processes:
        _await(lambda: bench.begun() == 1 and not bench.alive(), "it never ended")
    with bench.executor() as executor:
        seen = whole(executor, executor.submit(job, again=True))
    assert seen[-1] == Done("c1"), seen
    _begun_once(bench)


def cut(bench: Bench) -> None:
    """A cut ends it, with the reason that was given."""
    with bench.executor() as executor:
        handle = executor.submit(bench.job({"launch": "claude"}, {"spawn": 60}, WORK))
        until(executor, handle, Launched)
        executor.cancel(handle, CUT)
        last = whole(executor, handle, CUT.grace + _ENDS + _TELLS)[-1]
    assert isinstance(last, Failed), last
    assert CUT.why in last.why, last
    assert not bench.alive(), "something of it lives"


def cut_of_the_deaf(bench: Bench) -> None:
    """One that does not hear is ended all the same."""
    steps: list[Step] = [{"deaf": True}, {"spawn": 60}, {"launch": "claude"}, WORK]
    with bench.executor() as executor:
        handle = executor.submit(bench.job(*steps))
        until(executor, handle, Launched)
        executor.cancel(handle, replace(CUT, grace=0.1))
        last = whole(executor, handle, 0.1 + _ENDS + _TELLS)[-1]
    assert isinstance(last, Failed), last
    assert not bench.alive(), "something of it lives"


def cut_before_it_began(bench: Bench) -> None:
    """One for which there is no slot yet is not begun once it was cut."""
    with bench.executor() as executor:
        first = [executor.submit(bench.job(WORK, task=f"T-{n}")) for n in range(executor.slots())]
        for handle in first:
            until(executor, handle, Placed)
        late = executor.submit(bench.job({"done": "c"}, task="T-late"))
        executor.cancel(late, CUT)
        assert isinstance(whole(executor, late)[-1], Failed)
        for handle in first:
            executor.cancel(handle, CUT)
            until(executor, handle, LAST)
        after = executor.submit(bench.job({"done": "c2"}, task="T-after"))
        assert whole(executor, after)[-1] == Done("c2"), "its slot is not free"
    assert bench.begun("T-late") == 0


def cut_too_late(bench: Bench) -> None:
    """A cut of what is over changes nothing, and neither does a second one."""
    with bench.executor() as executor:
        handle = executor.submit(bench.job({"done": "c1"}))
        assert whole(executor, handle)[-1] == Done("c1")
        for _ in range(2):
            executor.cancel(handle, CUT)
        assert not executor.events(handle, 0.1)
        assert executor.lost(handle)


def killed(bench: Bench) -> None:
    """One that is killed has failed, and another may do better; nothing of it lives."""
    with bench.executor() as executor:
        handle = executor.submit(bench.job({"spawn": 60}, {"sleep": 1.2}, {"kill": 9}))
        last = whole(executor, handle)[-1]
    assert isinstance(last, Failed), last
    assert last.passes, last
    assert not bench.alive(), "something of it lives"


def wordless(bench: Bench) -> None:
    """One that ends without a last word has failed, whatever else it said."""
    steps: list[Step] = [{"raw": "{not JSON"}, {"raw": "[]"}, {"raw": '{"pulse": 3}'}]
    with bench.executor() as executor:
        last = whole(executor, executor.submit(bench.job(*steps)))[-1]
    assert isinstance(last, Failed), last


def renewed(bench: Bench) -> None:
    """One that is heard goes on beyond its lease."""
    bench = replace(bench, lease=1.5)
    with bench.executor() as executor:
        handle = executor.submit(bench.job({"sleep": 4.0}, {"done": "c1"}))
        assert whole(executor, handle)[-1] == Done("c1")
    _begun_once(bench)


def lost(bench: Bench) -> None:
    """One of which nothing is heard is lost once its lease is over, and not while it may live."""
    if bench.lose is None:
        raise NotApplicable("this bench cannot lose a machine")
    bench = replace(bench, lease=2.0)
    job = bench.job({"launch": "claude"}, WORK)
    with bench.executor() as executor:
        handle = executor.submit(job)
        until(executor, handle, Launched)
        assert bench.lose is not None
        bench.lose(job)
        deadline = time.monotonic() + PATIENCE
        while not executor.lost(handle):
            assert time.monotonic() < deadline, "it is never lost"
            time.sleep(0.01)
        assert not bench.alive(), "it is called lost, and lives"
        assert isinstance(whole(executor, handle)[-1], Lost)
    _begun_once(bench)


def lost_to_another(bench: Bench) -> None:
    """Whoever goes on begins nothing beside what may live at a machine that is not heard."""
    lose = bench.lose
    if lose is None:
        raise NotApplicable("this bench cannot lose a machine")
    bench = replace(bench, lease=2.0)
    job = bench.job({"launch": "claude"}, WORK)
    with bench.executor() as executor:
        until(executor, executor.submit(job), Launched)
        lose(job)
    with bench.executor() as another:
        handle = another.submit(job, again=True)
        deadline = time.monotonic() + 2 * bench.lease
        while time.monotonic() < deadline:
            assert len(bench.alive()) <= 1, "two of it live"
            time.sleep(0.01)
        another.cancel(handle, CUT)
        until(another, handle, LAST)


def unknown(bench: Bench) -> None:
    """Of what was never submitted nothing is known."""

    @dataclass
    class Stranger:
        key: str = "refs/ralph/none/T-1/1@0"

    with bench.executor() as executor:
        assert not executor.events(Stranger(), 0.0)
        executor.cancel(Stranger(), CUT)
        assert not executor.lost(Stranger())


def too_large(bench: Bench) -> None:
    """A job that is larger than a message may be has failed, and was not begun."""
    job = bench.job({"say": "x" * MOST_BYTES}, {"done": "c1"})
    with bench.executor() as executor:
        last = whole(executor, executor.submit(job))[-1]
    assert isinstance(last, Failed), last
    assert not last.passes, last
    assert bench.begun() == 0


def another_version(bench: Bench) -> None:
    """A machine of another version refuses, and names both and what to install."""
    job = bench.job({"done": "c1"})
    job = _with(job, version="0.0.1")
    with bench.executor() as executor:
        last = whole(executor, executor.submit(job))[-1]
    assert isinstance(last, Failed), last
    assert "0.0.1" in last.why, last
    assert __version__ in last.why, last
    assert "==0.0.1" in last.remedy, last
    assert bench.begun() == 0


def _with(job: Job, *, version: str) -> Job:
    return Job(version, job.run, job.task, job.attempt, job.ref, job.order, job.remote, job.lease)


def slots(bench: Bench) -> None:
    """No more than `slots` are under way at once, and all are made."""
    with bench.executor() as executor:
        most = executor.slots()
        assert most >= 1
        handles = [
            executor.submit(bench.job(WORK, task=f"T-{number}")) for number in range(most + 2)
        ]
        under_way: list[Handle] = []
        for _ in handles:
            fresh = _placed(executor, [one for one in handles if one not in under_way], most)
            under_way += fresh
            assert len(under_way) <= most, "more are under way than there are slots"
            if not under_way:
                break
            one = under_way.pop()
            handles.remove(one)
            executor.cancel(one, CUT)
            until(executor, one, LAST)
        for one in handles:
            executor.cancel(one, CUT)
            until(executor, one, LAST)


def _placed(executor: Executor, handles: list[Handle], most: int) -> list[Handle]:
    """Those of them that are placed now, when at least one is."""
    placed: list[Handle] = []
    deadline = time.monotonic() + PATIENCE
    while handles and not placed:
        assert time.monotonic() < deadline, f"none is placed, and there are {most} slots"
        placed = [
            one
            for one in handles
            if any(isinstance(event, Placed) for event in executor.events(one, 0.1))
        ]
    return placed


def many_threads(bench: Bench) -> None:
    """Every method may be called by any thread."""
    ends: dict[str, Event] = {}

    def have_made(executor: Executor, name: str) -> None:
        handle = executor.submit(bench.job({"say": name}, {"done": name}, task=name))
        executor.slots()
        ends[name] = whole(executor, handle, 2 * PATIENCE)[-1]

    with bench.executor() as executor:
        names = [f"T-{number}" for number in range(12)]
        threads = [threading.Thread(target=have_made, args=(executor, name)) for name in names]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert ends == {name: Done(name) for name in names}


def closed(bench: Bench) -> None:
    """Closing lets go, also twice, also of what is under way and of whoever waits."""
    job = bench.job(WORK)
    executor = bench.start()
    handle = executor.submit(job)
    until(executor, handle, Placed)
    executor.close()
    executor.close()
    assert not any(isinstance(event, LAST) for event in executor.events(handle, 0.1))
    with bench.executor() as another:
        handle = another.submit(job, again=True)
        another.cancel(handle, CUT)  # before it can know who has it
        until(another, handle, LAST)
        assert not bench.alive(), "something of it lives"
    _begun_once(bench)


def _begun_once(bench: Bench, attempt: int = 1) -> None:
    if bench.processes:
        assert bench.begun(attempt=attempt) == 1, f"it was begun {bench.begun()} times"


def _await(happened: Callable[[], bool], otherwise: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while not happened():
        assert time.monotonic() < deadline, otherwise
        time.sleep(0.02)


def _lives(pid: int) -> bool:
    """True of a process that runs; one that has ended and is not reaped yet does not."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            return file.read().rpartition(")")[2].split()[0] not in ("Z", "X")
    except OSError:
        return False


CHECKS: dict[str, Callable[[Bench], None]] = {
    check.__name__: check
    for check in (
        *(one_turn, stream_whole, nothing_left, failure_told, submitted_twice, next_attempt),
        *(taken_up, end_taken_up, cut, cut_of_the_deaf, cut_before_it_began, cut_too_late),
        *(killed, wordless, renewed, lost, lost_to_another, unknown, too_large, another_version),
        *(slots, many_threads, closed),
    )
}
