"""Requests to a run: SIGINT, SIGTERM and SIGHUP, counted, and files (ADR 7)."""

import json
import os
import re
import signal
import stat
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from math import isfinite
from types import FrameType
from typing import Self

from ralph.files.safe_open import regular, remove_file
from ralph.files.state_dir import lstat
from ralph.kernel.world import (
    ANSWER,
    NOTE,
    PAUSE,
    RESUME,
    STOP,
    STOP_NOW,
    Origin,
    Request,
    Signals,
)

_NOTICE = (
    b"[ralph] Received signal, shutting down after this turn. Press Ctrl+C again to stop now.\n"
)
LONGEST_NOTE = 64 << 10  # characters
_LONGEST = LONGEST_NOTE + 1000  # with the names of its task and itself
MOST_WAITING = 200  # notes that no turn has heard
_MOST_LOOKED_AT = 2000  # files of a kind: others than we may write there
_LARGEST = 1 << 20  # bytes of a request's file: each character may be written as an escape
_STANDING = (STOP, STOP_NOW, PAUSE)
_PASSING = re.compile(rf"(?:{RESUME}|{NOTE}|{ANSWER})\.[0-9a-f-]{{3,64}}")
_Stamp = tuple[float, int, int]  # when a file was changed, which it is, and its size
_Known = dict[str, tuple[_Stamp, Request | None]]  # by name


@contextmanager
def ending_by(handler: Callable[[int, FrameType | None], object]) -> Iterator[None]:
    """Handle the signals that would end us. Under nohup a hangup does not: the terminal may go."""
    numbers = [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        numbers.append(signal.SIGHUP)
    before = [signal.signal(number, handler) for number in numbers]
    try:
        yield
    finally:
        for number, old in zip(numbers, before, strict=True):
            signal.signal(number, old)


class SignalCounter:
    """Counts requests to end. The first lets the current operation finish, the second does not.
    SIGHUP counts as both: the terminal is gone and nobody will ask again."""

    def __init__(self) -> None:
        self._cancels = 0
        self._cancelled_at: float | None = None
        self._handled = ending_by(self._handle)

    def __enter__(self) -> Self:
        self._handled.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._handled.__exit__(None, None, None)

    def signals(self) -> Signals:
        return Signals(self._cancels, self._cancelled_at)

    def _handle(self, number: int, _: FrameType | None) -> None:
        if self._cancelled_at is None:
            self._cancelled_at = time.time()
            with suppress(OSError):  # nobody is there to read it
                os.write(2, _NOTICE)
        self._cancels += 2 if number == signal.SIGHUP else 1


class SignalFiles:
    """Requests of people, as files in a run's `signals/` (ADR 7, 38).

    A request that stands until it is taken back has its own name (`stop`, `pause`): `touch` makes
    one too. Of others there may be several, until they are heard (`note.ID`).
    """

    STOP, NOW, PAUSE = _STANDING

    def __init__(self, run_dir: str) -> None:
        self._directory = os.path.join(run_dir, "signals")
        self._known: _Known = {}

    def signals(self) -> Signals:
        """The requests now, oldest first. A directory that is gone asks for nothing."""
        try:
            names = os.listdir(self._directory)
        except OSError:
            names = []
        if not names:
            return Signals()
        known, waiting = _Known(), Counter[str]()
        for name in (*(name for name in _STANDING if name in names), *_passing(names)):
            kind = name.partition(".")[0]
            if waiting[kind] < MOST_WAITING and (found := self._stands(name)) is not None:
                stamp = (found.st_mtime, found.st_ino, found.st_size)
                old = self._known.get(name)
                is_old = old is not None and old[0] == stamp
                known[name] = old if old and is_old else (stamp, _read(self.path(name), found))
                waiting[kind] += known[name][1] is not None
        self._known = known
        stops = [known[name][0][0] for name in (self.STOP, self.NOW) if name in known]
        requests = [request for _, request in known.values() if request is not None]
        return Signals(
            cancels=2 if self.NOW in known else len(stops),
            cancelled_at=stops[0] if stops else None,
            paused=self.PAUSE in known,
            requests=tuple(sorted(requests, key=lambda each: (each.time, each.id))),
        )

    def ask(
        self, request: str, origin: Origin = Origin.CLI, *, text: str = "", task: str = ""
    ) -> None:
        """Leave a request, whole or not at all. One that stands already is left as it is."""
        now = time.time()
        number = f"{int(now * 1000):011x}-{os.urandom(4).hex()}"
        if request in _STANDING and self._stands(request) is not None:
            return
        words = {"id": number, "origin": origin, "time": now, "text": text, "task": task}
        temporary = self.path(f".{number}")
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with os.fdopen(descriptor, "w", encoding="ascii") as file:
                json.dump({name: said for name, said in words.items() if said}, file)
            name = request if request in _STANDING else f"{request}.{number}"
            os.rename(temporary, self.path(name))
        except BaseException:
            remove_file(temporary)
            raise

    def take_back(self, name: str) -> bool:
        """Remove a request that stands; False if there was none."""
        stood = self._stands(name) is not None
        if stood:
            remove_file(self.path(name))
        return stood

    def take(self, request: Request, holder: "SignalFiles") -> bool:
        """Move a note to whoever tells it, unless it is there; False if another was faster."""
        path = holder.path(_name(request))
        try:
            os.rename(self.path(_name(request)), path)
        except OSError:
            return os.path.lexists(path)
        return True

    def drop(self, request: Request) -> None:
        """Remove a request that is journaled, unless it stands."""
        if request.request not in _STANDING:
            with suppress(OSError):
                os.unlink(self.path(_name(request)))

    def forget(self, heard: Collection[str] = ()) -> None:
        """Remove every request but notes and answers that are not `heard` yet: a run that goes on
        is not asked to stop any more."""
        for name in _STANDING:
            self.take_back(name)
        for request in self.signals().requests:
            if request.request not in (NOTE, ANSWER) or request.id in heard:
                self.drop(request)

    def _stands(self, name: str) -> os.stat_result | None:
        """A request's file as it is; None if there is none. A directory asks for nothing."""
        found = lstat(self.path(name))
        return None if found is None or stat.S_ISDIR(found.st_mode) else found

    def path(self, name: str) -> str:
        """The file of that name."""
        return os.path.join(self._directory, name)


def _passing(names: Collection[str]) -> Iterator[str]:
    """The files of requests that pass. Those of one kind keep no other from being heard."""
    found = sorted(filter(_PASSING.fullmatch, names))
    for kind in (RESUME, ANSWER, NOTE):
        yield from [name for name in found if name.startswith(kind)][:_MOST_LOOKED_AT]


def _name(request: Request) -> str:
    return f"{request.request}.{request.id}"


def _read(path: str, found: os.stat_result) -> Request | None:
    """The request in a file. One that stands needs no words; any other without is not ours."""
    name, _, number = os.path.basename(path).partition(".")
    request = _written(path, name, number) if stat.S_ISREG(found.st_mode) else None
    if request is not None or name not in _STANDING:
        return request
    return Request(f"{found.st_mtime_ns:x}-{found.st_ino:x}", name, time=found.st_mtime)


def _written(path: str, name: str, number: str) -> Request | None:
    """The request that `ask` has written; None for anything else that may stand there."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(regular(descriptor, path), "rb") as file:
            data = file.read(_LARGEST + 1)
        said = json.loads(data) if len(data) <= _LARGEST else {}
        text, task = said.get("text", ""), said.get("task", "")
        origin, at, number = Origin(said["origin"]), float(said["time"]), number or said["id"]
        words = number + text + task
        words.encode()  # ValueError: one half of a pair of surrogates
        is_fit = isfinite(at) and len(words) <= _LONGEST and "\0" not in words
        if not is_fit or (name == NOTE and not text.strip()):
            return None
        return Request(number, name, origin, at, text, task)
    except Exception:  # noqa: BLE001  an agent may have written it, and it must not end a run
        return None
