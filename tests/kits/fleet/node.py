"""The scheduler or a worker of a `Cluster`, as a program: ADDRESS NAME [bare | VERSION].

A worker goes on when its scheduler is gone, and its attempts with it; `bare` has no Ralph,
and one with a version has that.
"""

import asyncio
import sys
from contextlib import suppress

import dask
from distributed import Scheduler, Worker


async def main(address: str, name: str) -> None:
    said = False
    while name != "scheduler":
        with suppress(OSError):
            async with Worker(address, nthreads=1, memory_limit=0, name=name) as worker:
                said = said or print("ready", flush=True) is None
                await worker.finished()
        await asyncio.sleep(0.1)
    port = int(address.rpartition(":")[2])
    async with Scheduler(host="127.0.0.1", port=port, dashboard=False) as scheduler:
        print("ready", flush=True)
        await scheduler.finished()


def attempts_are_scripted(*versions: str) -> None:
    from ralph.fleet.machine import relay
    from ralph.processes.keeper_main import become_subreaper
    from ralph.testing.executor_kit import ATTEMPT

    relay.COMMAND = ATTEMPT
    for version in versions:
        relay.__version__ = version  # type: ignore[attr-defined]
    become_subreaper()


if __name__ == "__main__":
    if sys.argv[3:] == ["bare"]:
        sys.modules["ralph"] = None  # type: ignore[assignment]
    else:
        attempts_are_scripted(*sys.argv[3:])
    dask.config.set({"distributed.worker.profile.enabled": False})
    asyncio.run(main(*sys.argv[1:3]))
