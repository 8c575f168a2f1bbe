"""Answers of a worker about itself, asked through its scheduler: simple values only.

Another version of Ralph may be there, so each function takes and gives what it did before, or more.
"""

import os
import time
from typing import Any

from ralph.fleet.machine import relay

Told = dict[str, Any]


def about(dask_worker: Any = None) -> Told:  # noqa: ANN401  Dask gives its own, by that name
    """What this worker is, and what it is at."""
    now = time.time()
    attempts = [
        {**each, "seconds": round(max(0.0, now - each["since"]), 1)} for each in relay.under_way()
    ]
    return {**relay.about(dask_worker), "pid": os.getpid(), "time": now, "attempts": attempts}


def drain(dask_worker: Any = None) -> Told:  # noqa: ANN401
    """Take no new attempt from now on."""
    relay.drain(dask_worker)
    return about(dask_worker)


def draining() -> bool:
    """True once it takes no new attempt."""
    return bool(relay.about()["draining"])


def is_drained() -> bool:
    """True once it takes no new attempt, has none, and has told how the last ones ended."""
    return draining() and not relay.under_way() and not relay.is_awaited()
