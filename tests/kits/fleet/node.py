"""The scheduler or a worker of a `Cluster`, as a program: ADDRESS NAME."""

import asyncio
import sys

import dask
from distributed import Scheduler, Worker

from ralph.fleet.machine import relay
from ralph.processes.keeper_main import become_subreaper
from ralph.testing.executor_kit import ATTEMPT


async def main(address: str, name: str) -> None:
    relay.COMMAND = ATTEMPT
    port = int(address.rpartition(":")[2])
    if name == "scheduler":
        node = Scheduler(host="127.0.0.1", port=port, dashboard=False, dashboard_address=None)
    else:
        become_subreaper()
        node = Worker(address, nthreads=1, memory_limit=0, name=name, dashboard=False)
    async with node:
        print("ready", flush=True)
        await node.finished()


if __name__ == "__main__":
    dask.config.set({"distributed.worker.profile.enabled": False})
    asyncio.run(main(*sys.argv[1:3]))
