"""The pipe to whoever started an attempt: what it is told there, for how long it may work, and what
it says."""

import json
import math
import os
import re
import select
import sys
import time
from typing import Any

import msgspec

from ralph import __version__
from ralph.errors import ConfigError
from ralph.fleet.lease import Held
from ralph.fleet.port import MOST_BYTES, SCHEMA, Job
from ralph.journal.codec import encode
from ralph.kernel.turn import Pulse
from ralph.kernel.verdict import Cut
from ralph.processes.clock import boottime
from ralph.text.redact import redact

_ENDING = 10.0  # seconds before the end of a lease in which the agent is ended, at most
_LOOK = 0.25  # seconds between looks whether a signal has come
_SLEPT = 1.0  # seconds that the machine was suspended
_BEAT = 0.5  # seconds between two pulses, at least
_MOST_GRACE = 60.0  # seconds
_MOST_WORDS = 2000  # characters
_CHUNK = 65_536
_OVER = "the lease is over: nothing was heard of the run"
_ALONE = "nobody waits for this turn any more"
_REF = re.compile(r"refs/ralph/[\w.+-]+(?:/[\w.+-]+)+")
_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_NAME = re.compile(r"\w[\w.-]{0,200}")


class HopelessError(ConfigError):
    """What another attempt would meet as well, on any machine."""


class CutOffError(ConfigError):
    """We were told to leave off, or may not go on, before there was anything to tell."""

    def __init__(self, cut: Cut) -> None:
        super().__init__(cut.why)


def ending(held: Held, now: float, *, slept: bool = False) -> Cut | None:
    """How the agent is to be ended, if it is time: early enough to be gone when the lease is over.
    After a suspend there may be no time left to ask it."""
    left = math.inf if held.until is None else held.until - now
    early = min(held.seconds / 2, _ENDING)
    if left > early:
        return None
    # Killed at two thirds of that time; then comes the haste, in case the keeper was stopped.
    return Cut(_OVER, 0.0 if slept or left < early * 0.6 else early / 6)


class Leash:
    """What we are told while we work. Whoever wants to know asks often; that is when it is read."""

    def __init__(self, pipe: int) -> None:
        self._pipe = pipe
        self._rest = b""
        self._lines: list[bytes] = []
        self._held = Held()
        self._seconds = 0.0
        self._asked: Cut | None = None
        self._lost: Cut | None = None  # by which the agent was ended, for its lease
        self._alone = False
        self._apart = _suspended()

    def job(self) -> Job:
        """The first line."""
        while not self._lines and not self._alone:
            self._read(_LOOK)
        if not self._lines:
            raise HopelessError("there is no job, or it is larger than 64 KB")
        job = job_of(self._lines.pop(0))
        self._seconds = job.lease
        return job

    def is_granted(self) -> bool:
        """Wait until we may begin; False if we shall not."""
        while self._held.until is None and self._over() is None and self._asked is None:
            self._hear(_LOOK)
        return self._over() is None and self._asked is None

    def let_go(self, *_: object) -> None:
        """Leave off at once: nobody waits for us."""
        self._alone = True

    def agents(self) -> Cut | None:
        """How the agent is to be ended now, if it is."""
        self._hear(0.0)
        over = self._over()
        self._lost = self._lost or over
        return over or self._asked

    def before(self) -> Cut | None:
        """The same for what we do ourselves before the agent begins."""
        return self.after() or self._asked

    def after(self) -> Cut | None:
        """The same when it has ended: its result is sent off, also if it was cut; but not if that
        was for the lease, which says nothing about the turn."""
        self._hear(0.0)
        if self._alone:
            return Cut(_ALONE, 0.0)
        return self._lost or (Cut(_OVER, 0.0) if self._held.is_killing(boottime()) else None)

    def _over(self) -> Cut | None:
        if self._alone:
            return Cut(_ALONE, 0.0)
        before, self._apart = self._apart, _suspended()
        slept = self._apart - before > _SLEPT
        return ending(self._held, boottime(), slept=slept)

    def _hear(self, wait: float) -> None:
        self._read(wait)
        lines, self._lines = self._lines, []
        for line in lines:
            self._obey(line)

    def _obey(self, line: bytes) -> None:
        """What cannot be understood renews nothing."""
        try:
            told = json.loads(line)
            until, cut = told.get("until"), told.get("cut")
            if until is not None and math.isfinite(until):
                # Nobody may lend for longer than the job says.
                now = boottime()
                stamp = min(float(until) - self._seconds, now)
                self._held = self._held.renewed(stamp, self._seconds, now)
            if cut is not None:
                grace = min(max(float(cut["grace"]), 0.0), _MOST_GRACE)
                self._asked = Cut(str(cut["why"]), grace)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            return

    def _read(self, wait: float) -> None:
        """Take in what is there, after waiting for it for at most so many seconds."""
        poller = select.poll()
        poller.register(self._pipe, select.POLLIN)
        while not self._alone and poller.poll(wait * 1000):
            chunk = os.read(self._pipe, _CHUNK)
            *lines, self._rest = (self._rest + chunk).split(b"\n")
            self._lines += lines
            if not chunk or len(self._rest) > MOST_BYTES:
                self._alone = True
            wait = 0.0


class Voice:
    """Says on a pipe what becomes of an attempt. Nothing but the last word may wait for room in it:
    whoever does not read must not keep us from ending the agent."""

    def __init__(self, pipe: int) -> None:
        self._pipe = pipe
        self._next = 0.0

    def say(self, **told: object) -> None:
        """Say it, if there is room."""
        poller = select.poll()
        poller.register(self._pipe, select.POLLOUT)
        line = json.dumps(told).encode() + b"\n"
        if len(line) <= select.PIPE_BUF and poller.poll(0):
            self._write(line)

    def beat(self, pulse: Pulse) -> None:
        """Tell how the turn looks, twice a second."""
        now = time.monotonic()
        if now >= self._next:
            self._next = now + _BEAT
            self.say(pulse=encode(pulse))

    def done(self, commit: str) -> None:
        self._write(json.dumps({"done": {"commit": commit}}).encode() + b"\n")

    def failed(self, why: str, remedy: str = "", *, passes: bool) -> None:
        why, remedy = redact(why)[-_MOST_WORDS:], redact(remedy)[:_MOST_WORDS]
        told = {"failed": {"why": why, "remedy": remedy, "passes": passes}}
        self._write(json.dumps(told).encode() + b"\n")

    def _write(self, line: bytes) -> None:
        try:
            while line:
                line = line[os.write(self._pipe, line) :]
        except OSError:
            return  # whoever has gone has closed the other pipe, too


def tell(words: str) -> None:
    """Say something to whoever looks at the machine."""
    print(redact(words), file=sys.stderr, flush=True)


def job_of(line: bytes) -> Job:
    """The job that a line tells. HopelessError if there is none that can be done."""
    try:
        told: Any = json.loads(line)["job"]
        version, schema = told.get("version"), told.get("schema")
        if (version, schema) == (__version__, SCHEMA):
            return _checked(msgspec.convert(told, Job))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise HopelessError(f"this is no job: {str(error)[:200]}") from error
    if not isinstance(version, str) or not re.fullmatch(r"[\w.+-]{1,40}", version):
        raise HopelessError("this is no job: it names no version of ralph")
    # Another machine may have the one that is wanted.
    raise ConfigError(
        f"it has ralph {__version__} (jobs of kind {SCHEMA}), and the run has {version} ({schema})",
        f"On that machine: pip install 'ralph-engine[fleet]=={version}'",
    )


def _checked(job: Job) -> Job:
    """A job whose names can be paths, refs and arguments."""
    fits = _REF.fullmatch(job.ref) and ".." not in job.ref and _COMMIT.fullmatch(job.order)
    if not fits or not _NAME.fullmatch(job.run):
        raise ValueError("its run, its ref or its order is none")
    if not job.remote.strip() or job.remote.startswith("-") or "\0" in job.remote:
        raise ValueError("its remote is none")
    if not 0 < job.lease < 1e6 or job.attempt < 1:
        raise ValueError("its lease or its number is none")
    return job


def _suspended() -> float:
    """For how long this machine was suspended since it was started, and a little more."""
    return boottime() - time.monotonic()
