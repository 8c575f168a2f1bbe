"""For workers that a deployer starts: `dask worker --preload ralph.fleet.cluster.preload`.

With it such a worker adopts what its attempts leave behind, ends when it is drained, and refuses to
be open for everybody: a port of Dask's that has no TLS runs what it is sent.
"""

import asyncio
import os
import sys
from collections.abc import Iterator
from typing import Any

from ralph.fleet.cluster import on_worker
from ralph.fleet.security import PAGE, is_loopback
from ralph.processes.keeper_main import become_subreaper

_LOOK = 0.5  # seconds
_REFUSED = 2
_WATCHING: set["asyncio.Task[None]"] = set()  # else nobody would hold them


async def dask_setup(worker: Any) -> None:  # noqa: ANN401  Dask's
    """Called by Dask when the worker listens, before its scheduler knows of it."""
    if ways := ", ".join(open_ways(worker)):
        print(f"[ralph] This worker would be open for everybody: {ways}", file=sys.stderr)
        print(f"[ralph] The flags that it needs: {PAGE}", file=sys.stderr, flush=True)
        os._exit(_REFUSED)  # Dask would go on after an exception
    become_subreaper()
    _WATCHING.add(asyncio.ensure_future(_leave_when_drained(worker)))


def open_ways(worker: Any) -> Iterator[str]:  # noqa: ANN401
    """The ports by which others than this machine get in without a certificate."""
    for listener in worker.listeners:
        scheme, _, rest = str(listener.listen_address).partition("://")
        if scheme != "tls" and not is_loopback(rest.rpartition(":")[0].strip("[]")):
            yield f"{listener.listen_address} (--host, or the three of TLS)"
    page = getattr(worker, "http_server", None)
    if page is not None and not is_loopback(str(getattr(page, "address", ""))):
        yield f"http://{page.address}:{page.port} (--dashboard-address 127.0.0.1:0)"


async def _leave_when_drained(worker: Any) -> None:  # noqa: ANN401
    while not on_worker.is_drained():
        await asyncio.sleep(_LOOK)
    await worker.close(reason="drained")
