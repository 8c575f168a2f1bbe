"""Dask's scheduler and worker as a fleet has them: one port each, no pages, no limits of memory."""

import asyncio
import logging
import socket
import ssl
import warnings
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import dask
import distributed
from distributed import Scheduler, Worker

from ralph.fleet.security import SPEAKS_NO_TLS, Address, tls_trouble

if TYPE_CHECKING:
    from distributed import Security

_PATIENCE = 8.0  # seconds
_MEMORY = ("target", "spill", "pause", "terminate")  # an attempt is no data of Dask's


def quieten() -> None:
    """Keep Dask, and Tornado below it, out of the terminal: we say what people need. What knocks at
    a port of ours, such as a browser or TLS where there is none, would be a traceback there."""
    names = [*logging.root.manager.loggerDict]
    for name in ("distributed", "tornado", *names):
        if name.partition(".")[0] in ("distributed", "tornado"):
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    warnings.filterwarnings("ignore", module=rf"{distributed.__name__}(\..*)?")


def configure(scratch: str) -> None:
    """Dask's own settings, for this process."""
    quieten()
    dask.config.set(
        {
            "temporary-directory": scratch,
            **{f"distributed.worker.memory.{name}": False for name in _MEMORY},
            "distributed.worker.use-file-locking": False,
            "distributed.worker.profile.enabled": False,
            "distributed.worker.http.routes": [],
            "distributed.scheduler.http.routes": [],
            "distributed.diagnostics.nvml": False,
            "distributed.admin.system-monitor.gil.enabled": False,
        }
    )


class FleetScheduler(Scheduler):  # type: ignore[misc]  # Dask has no types
    """A scheduler whose only port is that of its workers and clients."""

    def start_http_server(self, *_: object, **__: object) -> None:
        """None: its pages would be for everybody, without TLS."""

    @staticmethod
    def at(place: Address, security: "Security | None") -> "FleetScheduler":
        """One that listens there, on that interface only."""
        return FleetScheduler(
            host=interface_of(place.host),
            port=place.port,
            protocol=f"{place.scheme}://",
            security=security,
            dashboard=False,
        )


class FleetWorker(Worker):  # type: ignore[misc]
    """A worker whose attempts outlive its connection: they live as long as their leases."""

    def start_http_server(self, *_: object, **__: object) -> None:
        """None, as with the scheduler."""

    async def close(self, timeout: float = 1, *_: object, **more: Any) -> str | None:  # noqa: ANN401
        """Leave the scheduler, and wait for no attempt."""
        told: str | None = await super().close(timeout, **{**more, "executor_wait": False})
        return told

    @staticmethod
    def of(
        place: Address,
        security: "Security | None",
        *,
        slots: int,
        name: str,
        scratch: str,
        port: int = 0,
    ) -> "FleetWorker":
        """One that belongs to the scheduler there, and listens where that reaches it."""
        return FleetWorker(
            str(place),
            nthreads=slots,
            name=name,
            security=security,
            host=address_towards(place),
            port=port,
            protocol=f"{place.scheme}://",
            local_directory=scratch,
            memory_limit=0,
            dashboard=False,
        )


def interface_of(host: str) -> str:
    """The address behind a name, as Dask takes it."""
    return _bracketed(str(socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)[0][4][0]))


def address_towards(place: Address) -> str:
    """This machine's own address on the way there."""
    family, kind, number, _, there = socket.getaddrinfo(
        place.host, place.port, type=socket.SOCK_DGRAM
    )[0]
    with socket.socket(family, kind, number) as probe:
        probe.connect(there)  # sends nothing
        return _bracketed(str(probe.getsockname()[0]))


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


async def is_there(place: Address, security: "Security | None") -> str:
    """The reason why no scheduler can be spoken to there; "" if one can."""
    from distributed.comm import connect

    given = security.get_connection_args("worker") if security else {}
    try:
        knocks = asyncio.open_connection(place.host, place.port)
        _, there = await asyncio.wait_for(knocks, _PATIENCE)  # Dask would try again and again
        there.close()
        comm = await connect(str(place), timeout=_PATIENCE, **given)
    except (TimeoutError, OSError) as error:
        return plainly(error)
    except ValueError:
        if not security:
            raise
        return SPEAKS_NO_TLS  # it spoke first, in plain text; Tornado has no other word for that
    with suppress(Exception):
        await comm.close()
    return ""


def plainly(error: BaseException) -> str:
    """What Dask's errors have at their bottom."""
    seen: BaseException = error
    while seen.__cause__ is not None or seen.__context__ is not None:
        seen = seen.__cause__ or seen.__context__ or seen
    if isinstance(seen, ConnectionRefusedError):
        return "nobody listens there"
    if isinstance(seen, (asyncio.CancelledError, TimeoutError, asyncio.TimeoutError)):
        return "no answer"
    if isinstance(seen, ssl.SSLError):
        return tls_trouble(seen)
    return getattr(seen, "strerror", None) or str(seen) or type(seen).__name__
