"""For workers that a deployer starts: `dask worker --preload ralph.fleet.cluster.preload`.

With it such a worker adopts what its attempts leave behind, and ends when it is drained.
"""

import asyncio
from typing import Any

from ralph.fleet.cluster import on_worker
from ralph.processes.keeper_main import become_subreaper

_LOOK = 0.5  # seconds
_WATCHING: set["asyncio.Task[None]"] = set()  # else nobody would hold them


async def dask_setup(worker: Any) -> None:  # noqa: ANN401  Dask's
    """Called by Dask when the worker starts."""
    become_subreaper()
    _WATCHING.add(asyncio.ensure_future(_leave_when_drained(worker)))


async def _leave_when_drained(worker: Any) -> None:  # noqa: ANN401
    while not on_worker.is_drained():
        await asyncio.sleep(_LOOK)
    await worker.close(reason="drained")
