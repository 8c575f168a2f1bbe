"""Questions to a fleet, by one short visit each."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, TypeVar

from ralph.errors import ConfigError
from ralph.fleet.cluster import on_worker
from ralph.fleet.cluster.on_worker import Told
from ralph.fleet.place import LOCAL, NONE
from ralph.fleet.security import Address, address_of, security_of, unreached
from ralph.kernel.value import replace, value

if TYPE_CHECKING:
    from distributed import Client

_T = TypeVar("_T")
_CONNECT = 8.0  # seconds
_ANSWER = 8.0


@value
class Worker:
    """A worker as its scheduler and it itself tell of it."""

    name: str
    address: str
    slots: int
    told: Told  # `on_worker.about`, or {} where it gave no answer
    trouble: str = ""  # why it gave none
    closed: bool = False  # the scheduler sends it nothing new

    @property
    def draining(self) -> bool:
        return self.closed or bool(self.told.get("draining"))

    @property
    def names(self) -> frozenset[str]:
        """All that people may call it by."""
        return frozenset((self.name, self.address, str(self.told.get("hostname", self.name))))

    def heard(self, answer: "Told | Exception") -> "Worker":
        """The same after one more answer."""
        failed = isinstance(answer, Exception)
        trouble = f"{type(answer).__name__}: {answer}" if failed else ""
        return replace(self, told={} if isinstance(answer, Exception) else answer, trouble=trouble)

    @property
    def attempts(self) -> list[Told]:
        return list(self.told.get("attempts", ()))

    def as_dict(self) -> Told:
        return {
            "name": self.name,
            "host": self.told.get("hostname"),
            "address": self.address,
            "slots": self.slots,
            "version": self.told.get("version"),
            "draining": self.draining,
            "attempts": self.attempts,
            "trouble": self.trouble or None,
        }


@value
class Fleet:
    """An open visit."""

    place: Address
    client: "Client"

    async def addresses(self) -> dict[str, Told]:
        """What the scheduler knows of each worker, by its address."""
        known = await self.client.scheduler.identity(n_workers=-1)
        return dict(known["workers"])

    async def ask(
        self, workers: list[str], question: Callable[..., _T], *given: object, wait: float = _ANSWER
    ) -> "list[_T | Exception]":
        """The answer of each; an exception is told, not raised."""
        return await asyncio.gather(*(self._one(w, question, given, wait) for w in workers))

    async def _one(
        self, worker: str, question: Callable[..., _T], given: tuple[object, ...], wait: float
    ) -> "_T | Exception":
        asked = self.client.run(question, *given, workers=[worker], on_error="return")
        try:
            said = await asyncio.wait_for(asked, wait)
        except TimeoutError:
            return TimeoutError(f"no answer within {wait:g} s")
        except Exception as error:  # noqa: BLE001  what a strange worker may have us unpickle
            return error
        answer: _T | Exception = said.get(worker, LookupError("it has left"))
        return answer

    async def workers(self) -> list[Worker]:
        """Every worker with its own answer, by name."""
        known = await self.addresses()
        begun = time.time()
        answers = await self.ask(list(known), on_worker.about)
        middle = (begun + time.time()) / 2
        for answer in answers:  # how far its clock is from ours
            if not isinstance(answer, Exception):
                answer["apart"] = float(answer.get("time", middle)) - middle
        found = [
            Worker(
                name=str(told.get("name", "")),
                address=address,
                slots=int(told.get("nthreads", 0)),
                told={},
                closed=told.get("status") not in ("running", None),
            ).heard(answer)
            for (address, told), answer in zip(known.items(), answers, strict=True)
        ]
        return sorted(found, key=lambda worker: (worker.name, worker.address))


def visit(
    address: str | None,
    tls: str | None,
    environ: Mapping[str, str],
    act: Callable[[Fleet], Awaitable[_T]],
) -> _T:
    """Do something with the fleet at that address; ConfigError if none answers."""
    if address == LOCAL:
        raise ConfigError(
            "local is no fleet to visit: its turns are processes of the run itself",
            "Look at the run: ralph status. Or name a fleet: --fleet ADDRESS",
        )
    if not address or address == NONE:
        raise ConfigError(
            "no fleet is named",
            "Name it: --fleet ADDRESS, or the setting fleet.address. Start one: ralph fleet up",
        )
    place, security = address_of(address), security_of(address, tls, environ)
    from distributed import Client

    from ralph.fleet.cluster.dask_nodes import is_there, quieten

    quieten()

    async def go() -> _T:
        if why := await is_there(place, security):
            raise unreached(place, why)
        client = Client(
            str(place),
            security=security,
            timeout=_CONNECT,
            asynchronous=True,
            set_as_default=False,
        )
        try:
            async with client:
                return await act(Fleet(place, client))
        except (TimeoutError, OSError) as error:
            from ralph.fleet.cluster.dask_nodes import plainly

            raise unreached(place, plainly(error)) from error

    return asyncio.run(go())
