"""A fake of `ralph.fleet.port.Executor`: no process, no thread, no clock; what happens to an
attempt is a script of events."""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from ralph import __version__
from ralph.fleet.messages import job_text
from ralph.fleet.port import (
    LAST,
    Beat,
    Done,
    Event,
    Failed,
    Handle,
    Job,
    Launched,
    Lost,
    Placed,
    Said,
)
from ralph.kernel.turn import Pulse
from ralph.kernel.verdict import Cut

HOST = "fake"


def scripted(job: Job) -> Iterator[Event]:
    """The events of the script that a job's settings hold, as `scripted_attempt` plays it."""
    yield Placed(HOST)
    for step in json.loads(job.settings).get("steps", ()):
        [(word, value)] = step.items()
        if word == "launch":
            yield Launched(value, value, "m1")
        elif word == "say":
            yield Said(value.encode())
        elif word == "pulse":
            yield Beat(Pulse(value, 0.0))
        elif word == "work":
            return
        elif word == "done":
            yield Done(value)
            return
        elif word == "fail":
            yield Failed(value["why"], value["remedy"], passes=value["passes"])
            return
    yield Failed("the attempt ended with 0", passes=True)


def cut_short(_job: Job, cut: Cut) -> Sequence[Event]:
    """It ends when it is cut, without a result."""
    return (Failed(cut.why),)


@dataclass
class FakeFleet:
    """Machines that several executors have, one after the other: `FakeExecutor(fleet)`. An attempt
    whose script has no last event goes on until it is cut or its machine is lost."""

    script: Callable[[Job], Iterable[Event]] = scripted
    when_cut: Callable[[Job, Cut], Sequence[Event]] = cut_short
    slots: int = 2
    begun: list[Job] = field(default_factory=list)
    cuts: list[tuple[str, Cut]] = field(default_factory=list)  # key and cut, as they came
    attempts: dict[str, "FakeAttempt"] = field(default_factory=dict)  # that are not told to the end

    def lose(self, job: Job) -> None:
        """Its machine is gone, and its lease is over."""
        self.attempts[job.key].events.append(Lost(f"{HOST} was lost"))

    def begin(self) -> None:
        """Begin those for which there is a slot."""
        for one in self.attempts.values():
            if sum(a.begun and not a.is_over for a in self.attempts.values()) >= self.slots:
                return
            if not one.begun and not one.is_over:
                one.begun = True
                self.begun.append(one.job)
                one.events.extend(self.script(one.job))


@dataclass
class FakeAttempt:
    """An attempt, whoever asks for it."""

    job: Job
    events: list[Event] = field(default_factory=list)
    begun: bool = False

    @property
    def is_over(self) -> bool:
        return any(isinstance(event, LAST) for event in self.events)


@dataclass
class FakeHandle:
    """An attempt as one executor has it."""

    attempt: FakeAttempt
    told: int = 0

    @property
    def key(self) -> str:
        return self.attempt.job.key


@dataclass
class FakeExecutor:
    """An `Executor`. `during_wait` is what happens while somebody waits in vain for an event."""

    fleet: FakeFleet = field(default_factory=FakeFleet)
    during_wait: Callable[[float], None] = lambda _: None
    closed: bool = False
    handles: dict[str, FakeHandle] = field(default_factory=dict)

    def submit(self, job: Job, *, again: bool = False) -> Handle:
        known = self.fleet.attempts.get(job.key)
        if known is not None and job.key in self.handles:
            return self.handles[job.key]
        attempt = self.fleet.attempts[job.key] = known or FakeAttempt(job)
        handle = self.handles[job.key] = FakeHandle(attempt)
        if known is None and (refused := _refused(job)):
            attempt.events.append(refused)
        self.fleet.begin()
        return handle

    def events(self, handle: Handle, wait: float) -> Sequence[Event]:
        if not isinstance(handle, FakeHandle):
            return ()
        fresh = tuple(handle.attempt.events[handle.told :])
        handle.told += len(fresh)
        if any(isinstance(event, LAST) for event in fresh):
            self.fleet.attempts.pop(handle.key, None)
            self.handles.pop(handle.key, None)
            self.fleet.begin()
        if not fresh:
            self.during_wait(wait)
        return fresh

    def cancel(self, handle: Handle, cut: Cut) -> None:
        if not isinstance(handle, FakeHandle):
            return
        self.fleet.cuts.append((handle.key, cut))
        attempt = handle.attempt
        if not attempt.is_over:
            ends = self.fleet.when_cut(attempt.job, cut) if attempt.begun else (Failed(cut.why),)
            attempt.events.extend(ends)

    def lost(self, handle: Handle) -> bool:
        return isinstance(handle, FakeHandle) and handle.attempt.is_over

    def slots(self) -> int:
        return self.fleet.slots

    def close(self) -> None:
        self.closed = True


def _refused(job: Job) -> Failed | None:
    try:
        job_text(job)
    except ValueError as error:
        return Failed(f"the job cannot be sent: {error}")
    if job.version == __version__:
        return None
    remedy = f"Install ralph-engine[fleet]=={job.version} on {HOST} and start its worker again"
    return Failed(f"{HOST} has Ralph {__version__}, and the run has {job.version}", remedy)
