"""Between the coordinator and the attempts of this process: has each made once it is granted, and
answers for it. Its functions travel by reference and take and give text or JSON values, so they
must keep their names.

Threads call `job`, a loop of events calls the others: these only look and leave word.
"""

import base64
import os
import platform
import stat
import subprocess
import sys
import threading
import time
from contextlib import suppress
from functools import cache
from typing import Any

from ralph import __version__
from ralph.fleet.lease import Held
from ralph.fleet.machine.holding import hold
from ralph.fleet.messages import (
    MOST_STREAM,
    Message,
    failure,
    is_number,
    job_of,
    launched_of,
    message_of,
    pulse_of,
    text_of,
)
from ralph.fleet.port import SCHEMA, Job
from ralph.kernel.verdict import Cut
from ralph.processes.clock import boottime

COMMAND: tuple[str, ...] = (sys.executable, "-P", "-m", "ralph.fleet.machine.attempt")
_KEPT = 600.0  # seconds at least for which an end is told
_TICK = 1.0
_LOCK = threading.Lock()  # of the table, and of what each attempt of it says of itself
_ATTEMPTS: dict[str, "_Attempt"] = {}
_DRAINING = threading.Event()


def job(text: str) -> str:
    """Have an attempt made, if it is granted; returns when it is over. What becomes of it is told
    by `exchange`; the answer here only says why nothing was begun, where that is so."""
    try:
        message = message_of(text)
        if refused := _refusal(message):
            return text_of({"refused": refused})
        wanted = job_of(message)
    except ValueError as error:
        return text_of({"refused": failure(f"the job cannot be read: {error}")})
    with _LOCK:
        _tidy()
        attempt = _ATTEMPTS.get(wanted.key)
        first = attempt is None
        if attempt is None:
            attempt = _ATTEMPTS[wanted.key] = _Attempt(wanted)
    if first:
        attempt.make()
    else:
        attempt.over.wait()  # it was sent again: its slot is in use all the same
    return text_of({"host": platform.node()})


def exchange(text: str) -> str:
    """Hear what the coordinator says of one attempt, and tell how that goes: see ADR 49."""
    try:
        request = message_of(text)
    except ValueError as error:
        return text_of({"known": False, "stamp": boottime(), "why": str(error)})
    with _LOCK:
        _tidy()
        attempt = _ATTEMPTS.get(str(request.get("key")))
        if attempt is None:
            answer: Message = {"known": False, "stamp": boottime()}
        else:
            if request.get("incarnation") == attempt.incarnation:
                attempt.heed(request)
            answer = attempt.answer(request)
            if answer.get("forgotten"):
                _ATTEMPTS.pop(attempt.job.key).close()
    return text_of(answer)


def drain(dask_worker: Any = None) -> None:  # noqa: ANN401  Dask gives its own, by that name
    """Take no more attempts; those under way go on. The scheduler of Dask gives us none from now
    on; what it had given us before is refused."""
    _DRAINING.set()
    if dask_worker is None:
        return
    from distributed.core import Status

    if (memory := getattr(dask_worker, "memory_manager", None)) is not None:
        memory.memory_pause_fraction = False  # else it would go on as soon as it has memory
    dask_worker.status = Status.paused


def under_way() -> list[dict[str, Any]]:
    """The attempts that are under way here: `since` is Unix time by our own clock."""
    now = time.time()
    with _LOCK:
        return [
            {
                "run": one.job.run,
                "task": one.job.task,
                "attempt": one.job.attempt,
                "since": round(now - (boottime() - one.begun), 1),
            }
            for one in _ATTEMPTS.values()
            if one.state == "granted"
        ]


def is_idle() -> bool:
    """True once nobody has anything to do with this machine: no attempt waits or is under way, and
    the end of each was heard, or its lease is over and nobody asks for it."""
    now = boottime()
    with _LOCK:
        return all(one.state == "ended" and one.held.is_over(now) for one in _ATTEMPTS.values())


def about(dask_worker: Any = None) -> dict[str, Any]:  # noqa: ANN401  Dask gives its own
    """This machine as a member of the fleet."""
    state = getattr(dask_worker, "state", None)
    return {
        "version": __version__,
        "schema": SCHEMA,
        "hostname": platform.node(),
        "python": platform.python_version(),
        "git": _git(),
        "slots": getattr(state, "nthreads", 0),
        "under_way": len(under_way()),
        "draining": _DRAINING.is_set(),
    }


def reset() -> None:
    """Take attempts again, after `drain`."""
    _DRAINING.clear()


class _Attempt:
    """One attempt at this machine: a `Desk`."""

    def __init__(self, wanted: Job) -> None:
        self.job = wanted
        self.incarnation = f"{platform.node()}-{os.getpid()}-{os.urandom(4).hex()}"
        self.held = Held()
        self.cut: tuple[Cut, float] | None = None
        self.state = "waiting"  # then granted, then ended
        self.begun = self._asked = boottime()
        self.over = threading.Event()
        self._launched: Message | None = None
        self._pulse: Message | None = None
        self._result: Message | None = None
        self._stream_path = ""
        self._stream: int | None = None  # open, so that it can be read when its file is gone
        self.wake, self._waker = os.pipe()
        for end in (self.wake, self._waker):
            os.set_blocking(end, False)
        self._stirred = threading.Condition(_LOCK)

    def make(self) -> None:
        """Wait for the grant, and have it made."""
        result = failure("it was not granted", passes=True)
        try:
            if self._is_granted():
                result = hold(COMMAND, self)
        finally:
            with _LOCK:
                self._result = result
                self.state, self.begun = "ended" if self.held.until else "refused", boottime()
                if self.state == "refused":  # nobody will ask for it
                    del _ATTEMPTS[self.job.key]
                    self.close()
            self.over.set()

    def heed(self, request: Message) -> None:
        """What the coordinator wants of it."""
        now = self._asked = boottime()
        stamp, lease = request.get("renew"), request.get("lease")
        granted = self.state == "granted" or (
            self.state == "waiting" and request.get("grant") is True and self.cut is None
        )
        if granted and is_number(stamp) and is_number(lease):
            self.held = self.held.renewed(stamp, lease, now)
            if self.state == "waiting" and self.held.until is not None:
                self.state, self.begun = "granted", now
        if isinstance(cut := request.get("cut"), dict):
            why, grace = cut.get("why"), cut.get("grace")
            grace = max(0.0, float(grace)) if is_number(grace) else 0.0
            if self.cut is None or grace < self.cut[0].grace:
                self.cut = (Cut(str(why), grace), now)
        self._stirred.notify_all()
        with suppress(BlockingIOError):
            os.write(self._waker, b".")

    def answer(self, request: Message) -> Message:
        """How it goes, and the next bytes of its stream."""
        since = request.get("since")
        since = since if isinstance(since, int) and since >= 0 else 0
        said, size = self._read(since)
        now = boottime()
        ended = self.state == "ended"
        return {
            "known": True,
            "host": platform.node(),
            "incarnation": self.incarnation,
            "stamp": now,
            "state": self.state,
            "left": None if self.held.until is None else max(0.0, self.held.until - now),
            "launched": self._launched,
            "pulse": self._pulse,
            "since": since,
            "stream": base64.b64encode(said).decode("ascii"),
            "size": size,
            "result": self._result if ended else None,
            "forgotten": ended and since >= size and request.get("forget") is True,
        }

    def hear(self, message: Message) -> None:
        """Called in the thread of the attempt."""
        launched, pulse = message.get("launched"), message.get("pulse")
        with _LOCK:
            if pulse_of(pulse) is not None:
                self._pulse = pulse
            if launched_of(launched) is not None and self._launched is None:
                assert launched is not None
                self._launched = {k: launched.get(k, "") for k in ("dialect", "agent", "model")}
                self._stream_path = str(launched.get("stream") or "")

    def close(self) -> None:
        for end in (self.wake, self._waker, self._stream):
            if end is not None:
                os.close(end)

    def is_old(self) -> bool:
        """True of an end that nobody has asked for, for long."""
        now = boottime()
        return self.state == "ended" and now > max(self.begun, self._asked) + max(
            _KEPT, 2 * self.job.lease
        )

    def _is_granted(self) -> bool:
        """Wait for the grant, as long as somebody asks."""
        with _LOCK:
            while self.state == "waiting" and self.cut is None:
                if boottime() > self._asked + self.job.lease:
                    break
                self._stirred.wait(_TICK)
            return self.state == "granted"

    def _read(self, since: int) -> tuple[bytes, int]:
        """Bytes of the stream, and how many there are."""
        try:
            if self._stream is None and self._stream_path:
                self._stream = os.open(self._stream_path, os.O_RDONLY | os.O_NONBLOCK)
            if self._stream is None or not stat.S_ISREG((seen := os.fstat(self._stream)).st_mode):
                return b"", 0
            return os.pread(self._stream, MOST_STREAM, since), seen.st_size
        except OSError:
            return b"", 0  # it is not there yet


def _refusal(message: Message) -> Message | None:
    """Why a job is none for this machine."""
    host, theirs = platform.node(), str(message.get("version"))[:40]
    if theirs != __version__ or message.get("schema") != SCHEMA:
        kind = str(message.get("schema"))[:40]
        other = f", whose jobs are of kind {kind} and not {SCHEMA}" if theirs == __version__ else ""
        return failure(
            f"{host} has Ralph {__version__}, and the run has {theirs}{other}",
            f"Install ralph-engine[fleet]=={theirs} on {host} and start its worker again",
        )
    return failure(f"{host} takes no more attempts", passes=True) if _DRAINING.is_set() else None


def _tidy() -> None:
    for key in [key for key, one in _ATTEMPTS.items() if one.is_old()]:
        _ATTEMPTS.pop(key).close()


@cache
def _git() -> str:
    """The version of git here."""
    try:
        said = subprocess.run(["git", "--version"], capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return said.stdout.removeprefix("git version").strip()
