"""`python -m ralph.fleet.cluster.begin`: the scheduler and the workers of `ralph fleet up`, below a
keeper. Dask is imported once, and each of them is a fork of that; one that dies is forked again.

Its standard input is the plan as JSON. The address is the first line that it prints.
"""

import asyncio
import json
import os
import select
import signal
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from ralph.errors import RalphError
from ralph.fleet.cluster.dask_nodes import FleetScheduler, configure, interface_of, plainly
from ralph.fleet.cluster.plan import Plan
from ralph.fleet.cluster.scratch import scratch
from ralph.fleet.cluster.worker import PATIENCE, Post, work
from ralph.fleet.security import (
    Address,
    address_of,
    certificates_in,
    is_loopback,
    security_from,
    tls_directory,
)
from ralph.processes import keeper_main
from ralph.text.words import counted

if TYPE_CHECKING:
    from distributed import Security

_LOOK = 0.1  # seconds between looks at the children
_PAUSES = (0.0, 1.0, 2.0, 5.0, 10.0, 30.0)  # seconds until one that died is started again
_STEADY = 60.0  # seconds after which one that died had been well
_ORPHANS = 3.0  # seconds for attempts of a worker that died, to end by themselves
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_SCHEDULER = "the scheduler"
_FAILED = 2


class Member:
    """A scheduler or a worker: a child that is to live."""

    def __init__(self, name: str, body: Callable[[], int]) -> None:
        self.name, self.body = name, body
        self.pid = 0
        self.deaths = 0
        self.since = self.due = 0.0
        self.left = False  # it has ended as it should

    def start(self) -> None:
        self.pid, self.since = _forked(self.body), time.monotonic()

    def died(self, status: int) -> str:
        """Note its end; in how many seconds it is started again, as words, or ""."""
        well = time.monotonic() - self.since > _STEADY
        self.pid, self.deaths = 0, 1 if well else self.deaths + 1
        if status == 0:
            self.left = True
            return ""
        pause = _PAUSES[min(self.deaths, len(_PAUSES)) - 1]
        self.due = time.monotonic() + pause
        when = f"in {pause:g} s" if pause else "at once"
        ended = os.waitstatus_to_exitcode(status)
        how = f"killed by signal {-ended}" if ended < 0 else f"exit code {ended}"
        return f"{self.name} has died ({how}); it is started again {when}."


class Nest:
    """The fleet of one `ralph fleet up`."""

    def __init__(self, plan: Plan, directory: str) -> None:
        self._plan, self._directory = plan, directory
        self._place = Address(plan.scheme, plan.host, plan.port)
        self._security: Security | None = None
        if plan.directory:
            self._security = security_from(certificates_in(plan.directory))
        self._hears, self._says = os.pipe()
        self._asked = 0
        self._up = False  # it has been
        self._orphans_due = 0.0
        self._ready: set[str] = set()
        self._members = [Member(_SCHEDULER, self._schedule)]
        self._parent = os.getppid()

    def run(self) -> int:
        for number in _SIGNALS:
            signal.signal(number, self._ask)
        try:
            return self._live()
        finally:
            self._end()

    def _ask(self, *_: object) -> None:
        self._asked += 1

    def _live(self) -> int:
        while not self._asked and os.getppid() == self._parent:
            for member in self._members:
                if not member.pid and not member.left and time.monotonic() >= member.due:
                    member.start()
            if select.select([self._hears], [], [], _LOOK)[0]:
                for line in os.read(self._hears, 65536).decode().splitlines():
                    if not self._heard(*line.partition(" ")[::2]):
                        return _FAILED
            self._reap()
        return 0

    def _heard(self, word: str, more: str) -> bool:
        """What a member has said; False when there can be no fleet."""
        if word == "failed" and self._up:
            self._tell(f"[ralph] the scheduler cannot listen at {self._place}: {more}")
        elif word == "failed":
            self._tell(f"[ralph] cannot listen at {self._place}: {more}")
            self._tell("[ralph] Take another port: --port 0 is any that is free")
            return False
        elif word == "up" and not self._up:
            self._up = True
            self._place = address_of(more)
            os.write(1, f"{self._place}\n".encode())
            self._tell(f"[ralph] {self._next()}")
            if not is_loopback(host := self._plan.host) and is_loopback(
                found := interface_of(host)
            ):
                told = f"{host} is {found} on this machine, which no other reaches"
                self._tell(f"[ralph] {told}. Give another: --host ADDRESS")
            for number in range(1, self._plan.workers + 1):
                name = f"{self._plan.name}-{number}"
                self._members.append(Member(name, partial(self._work, name)))
        elif word == "ready":
            before = len(self._ready)
            self._ready.add(more)
            if before < len(self._ready) == self._plan.workers:
                is_one = self._plan.workers == 1
                ready = "The worker is" if is_one else f"All {self._plan.workers} workers are"
                self._tell(f"[ralph] {ready} ready.")
        return True

    def _next(self) -> str:
        """What people type next."""
        usual = self._plan.directory in ("", tls_directory(None, os.environ))
        tls = "" if usual else f" --tls {self._plan.directory}"
        workers, slots = self._plan.workers, self._plan.workers * self._plan.slots
        joins = f"ralph fleet worker --scheduler {self._place}{tls}"
        if not workers:
            return f"Next, on each machine: {joins}\n[ralph] Ctrl+C ends the scheduler."
        run = f"ralph tasks run --parallel {slots} --fleet {self._place}"
        told = "" if usual else f", whose settings have fleet.tls: {self._plan.directory}"
        ends = f"[ralph] Ctrl+C ends {counted(workers, 'worker')}."
        return f"Next, in a project{told}: {run}\n{ends}"

    def _reap(self) -> None:
        """Take leave of children; one that died leaves orphans, which come to us."""

        def ended(pid: int, status: int) -> None:
            for member in self._members:
                if member.pid == pid and not self._asked:
                    if words := member.died(status):
                        self._tell(f"[ralph] {words}")
                    self._say_if_empty()
                    self._orphans_due = time.monotonic() + _ORPHANS
                elif member.pid == pid:
                    member.pid = 0

        keeper_main.reap(ended)
        if self._orphans_due and time.monotonic() > self._orphans_due:
            spared = [member.pid for member in self._members if member.pid]
            orphans = keeper_main.descendants(os.getpid(), spared)
            keeper_main.signal_all(orphans, signal.SIGKILL)
            self._orphans_due = time.monotonic() + _LOOK if orphans else 0.0

    def _say_if_empty(self) -> None:
        workers = self._members[1:]
        if workers and all(worker.left for worker in workers):
            self._tell("[ralph] No worker is left here. Ctrl+C ends the scheduler.")

    def _end(self) -> None:
        """Workers first: what they are at is ended, and whoever waits for it hears so."""
        for members in (self._members[1:], self._members[:1]):
            self._signal(members, signal.SIGTERM)
            end = time.monotonic() + PATIENCE + 1
            # Asked twice, or by a keeper that has no time.
            while any(m.pid for m in members) and time.monotonic() < end and self._asked < 2:
                self._asked = max(self._asked, 1)
                time.sleep(_LOOK / 10)
                self._reap()
            self._signal(members, signal.SIGKILL)
        keeper_main.sweep()

    @staticmethod
    def _signal(members: list[Member], number: int) -> None:
        keeper_main.signal_all([member.pid for member in members if member.pid], number)

    @staticmethod
    def _tell(words: str) -> None:
        with suppress(OSError):
            os.write(2, f"{words}\n".encode())

    def _say(self, words: str) -> None:
        os.write(self._says, f"{words}\n".encode())

    # ------------------------------------------------------------ in a child

    def _schedule(self) -> int:
        configure(self._directory)
        return asyncio.run(_serve(self._place, self._security, self._say))

    def _work(self, name: str) -> int:
        scratch_of_it = os.path.join(self._directory, name)
        os.makedirs(scratch_of_it, mode=0o700, exist_ok=True)
        post = Post(self._place, self._plan.slots, name, scratch_of_it, parent=os.getppid())

        def tell(words: str) -> None:
            if name in self._ready or "drained" in words:
                self._tell(f"[ralph] {words}")

        def ready(name: str) -> None:
            self._ready.add(name)
            self._say(f"ready {name}")

        return work(post, self._security, tell, ready)


async def _serve(place: Address, security: "Security | None", say: Callable[[str], None]) -> int:
    """The scheduler, until SIGTERM."""
    ended = asyncio.Event()
    for number in _SIGNALS:
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    try:
        scheduler = await FleetScheduler.at(place, security)
    except (OSError, ValueError, RuntimeError) as error:
        say(f"failed {plainly(error)}")
        return 1
    found = address_of(scheduler.address)
    anywhere = place.host in ("0.0.0.0", "::")  # noqa: S104  it is compared
    say(f"up {Address(found.scheme, found.host if anywhere else place.host, found.port)}")
    born = os.getppid()
    while os.getppid() == born:
        with suppress(asyncio.TimeoutError):
            await asyncio.wait_for(ended.wait(), 1)
            break
    await scheduler.close()
    return 0


def _forked(body: Callable[[], int]) -> int:
    """A child that does this, and nothing else; in a session of its own."""
    pid = os.fork()
    if pid:
        return pid
    code = 70
    try:
        os.setsid()
        for number in _SIGNALS:
            signal.signal(number, signal.SIG_DFL)
        code = body()
    except RalphError as error:
        Nest._tell(f"[ralph] {error.words}")  # noqa: SLF001
    except BaseException:  # noqa: BLE001  it is told, and our parent starts another
        traceback.print_exc()
    finally:
        os._exit(code)


def main() -> int:
    """Have the fleet of standard input, until we are asked to end."""
    plan = Plan(**json.load(sys.stdin))
    keeper_main.become_subreaper()
    with scratch(os.environ) as directory:
        return Nest(plan, directory).run()
