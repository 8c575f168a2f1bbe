"""A worker of a fleet, in this process: it waits for its scheduler, serves it, and leaves when it
is drained or asked to. Attempts are processes of their own, below it."""

import asyncio
import errno
import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from ralph.errors import ConfigError
from ralph.fleet.cluster import on_worker
from ralph.fleet.cluster.dask_nodes import FleetWorker, configure, is_there, plainly
from ralph.fleet.machine import relay
from ralph.fleet.security import Address, to_trust
from ralph.kernel.value import value
from ralph.processes import keeper_main

if TYPE_CHECKING:
    from distributed import Security

PATIENCE = 12.0  # seconds in which attempts end by themselves; a cancel takes 10 at most
_HEARD = 1.0  # seconds at most in which whoever waits for an attempt hears that it has ended
_TICK = 0.05
_LOOK = 0.3  # seconds between looks whether it is drained
_PAUSES = (0.1, 0.2, 0.5, 1.0, 2.0)  # seconds between looks for a scheduler
_TAKEN = "name taken"
_NAMESAKE = 15.0  # seconds in which a scheduler sees that a worker of that name is gone
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
Tell = Callable[[str], object]


@value
class Post:
    """A worker's place."""

    place: Address
    slots: int
    name: str
    scratch: str
    port: int = 0
    parent: int = 0  # a process that it does not outlive; 0: it may outlive who started it


def work(post: Post, security: "Security | None", tell: Tell, ready: Tell = lambda _: None) -> int:
    """Serve until a signal, or until it is drained; the exit code. Nothing is left of it then."""
    configure(post.scratch)
    keeper_main.become_subreaper()
    os.chdir(post.scratch)  # no module of a project is taken for one of ours
    return asyncio.run(_Worker(post, security, tell, ready).serve())


class _Worker:
    """One worker, whatever becomes of its connection."""

    def __init__(self, post: Post, security: "Security | None", tell: Tell, ready: Tell) -> None:
        self._post, self._security, self._tell, self._ready = post, security, tell, ready
        self._ended = asyncio.Event()
        self._hurry = False
        self._worker: FleetWorker | None = None  # Dask's, while its scheduler knows it

    async def serve(self) -> int:
        loop = asyncio.get_running_loop()
        for number in _SIGNALS:
            if signal.getsignal(number) is not signal.SIG_IGN:
                loop.add_signal_handler(number, self._end)
        serving = asyncio.ensure_future(self._stay())
        try:
            await self._first(serving)
            if self._ended.is_set():
                await self._end_attempts()
        finally:
            serving.cancel()
            try:
                with suppress(asyncio.CancelledError):
                    await serving
            finally:
                keeper_main.sweep(patience=PATIENCE)
        return 0

    def _end(self) -> None:
        self._hurry = self._ended.is_set()  # asked twice
        self._ended.set()

    async def _first(self, work: "asyncio.Future[None]") -> None:
        """Until the work is done, or somebody asks us to end."""
        asked = asyncio.ensure_future(self._ended.wait())
        try:
            await asyncio.wait((work, asked), return_when=asyncio.FIRST_COMPLETED)
        finally:
            asked.cancel()

    async def _stay(self) -> None:
        """One of Dask's workers after the other, for each has but one connection."""
        known = False
        while not on_worker.is_drained():
            await self._reach(back=known)
            if (worker := await self._joined(back=known)) is None:
                continue
            at = f"{self._post.name}: at {self._post.place}"
            slots = "1 slot" if self._post.slots == 1 else f"{self._post.slots} slots"
            self._tell(f"{at} again." if known else f"{at}, {slots}.")
            if not known:
                self._ready(self._post.name)
            known = True
            if on_worker.draining():  # while it was away
                on_worker.drain(worker)
            self._worker = worker
            try:
                await self._until_over(worker)
            finally:
                self._worker = None
                await worker.close(nanny=False)
        self._tell(f"{self._post.name}: drained, and leaves.")

    async def _reach(self, *, back: bool) -> None:
        """Wait until a scheduler is there."""
        told, pauses = "", iter(_PAUSES)
        place, pause = self._post.place, 0.0
        while why := await is_there(place, self._security):
            if not back and (remedy := to_trust(why)):
                raise ConfigError(f"{place} cannot be trusted: {why}", remedy)
            if why != told:
                more = (
                    " What is under way goes on while its lease holds." if relay.under_way() else ""
                )
                self._tell(f"{self._post.name}: waits for a scheduler at {place} ({why}).{more}")
                told = why
            pause = next(pauses, _PAUSES[-1])
            await asyncio.sleep(pause)

    async def _joined(self, *, back: bool) -> FleetWorker | None:
        """Dask's worker, known to its scheduler; None if that is to be waited for again."""
        post, told = self._post, ""
        end = time.monotonic() + _NAMESAKE
        while True:
            worker = FleetWorker.of(
                post.place,
                self._security,
                slots=post.slots,
                name=post.name,
                scratch=post.scratch,
                port=post.port,
            )
            try:
                return await worker  # type: ignore[no-any-return]
            except Exception as error:
                await worker.close(nanny=False)
                why = plainly(error)
                if _TAKEN not in why and (back or _is_passing(error)):
                    await asyncio.sleep(_PAUSES[-1])
                    return None
                if _TAKEN not in why:
                    raise ConfigError(
                        f"no worker can be at {post.place}: {why}", "See: ralph fleet doctor"
                    ) from error
                if time.monotonic() > end and not back:
                    remedy = "Give another: --name NAME"
                    words = f"{post.place} has a worker called {post.name} already"
                    raise ConfigError(words, remedy) from error
                if not told:
                    told = f"{post.place} has a worker of that name: waits whether it goes"
                    self._tell(f"{post.name}: {told}")
            await asyncio.sleep(1.0)

    async def _until_over(self, worker: FleetWorker) -> None:
        """Until Dask's worker is closed, or ours is drained and has nothing to do."""
        over = asyncio.ensure_future(worker.finished())
        try:
            while not over.done():
                await asyncio.wait((over,), timeout=_LOOK)
                if self._post.parent not in (0, os.getppid()):
                    self._end()
                if on_worker.is_drained() and not self._ended.is_set():  # else somebody may ask
                    return
        finally:
            over.cancel()

    async def _end_attempts(self) -> None:
        """End every attempt, in its own way first, and begin none."""
        on_worker.drain(self._worker)
        if not relay.under_way():
            return
        self._tell(f"{self._post.name}: ends what is under way. Ctrl+C again: at once.")
        end = time.monotonic() + PATIENCE
        while relay.under_way() and time.monotonic() < end and not self._hurry:
            keeper_main.signal_all(_children(), signal.SIGTERM)  # also one that begins only now
            await asyncio.sleep(_TICK)
        end = time.monotonic() + _HEARD
        while not relay.is_idle() and time.monotonic() < end and not self._hurry:
            await asyncio.sleep(_TICK)


def _is_passing(error: BaseException) -> bool:
    """True of a connection that broke, not of a port that cannot be had."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, OSError):
            return cause.errno not in (errno.EADDRINUSE, errno.EACCES, errno.EADDRNOTAVAIL)
        cause = cause.__cause__ or cause.__context__
    return False


def _children() -> list[int]:
    """Our own children, of all that is below us."""
    below = keeper_main.descendants(os.getpid())
    grand = {pid for child in below for pid in keeper_main.descendants(child)}
    return [pid for pid in below if pid not in grand]
