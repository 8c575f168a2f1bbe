"""Answers of a worker about itself, asked through its scheduler: simple values only.

Another version of Ralph may be there, so each function takes and gives what it did before, or more.
"""

import importlib
import os
import socket
from typing import Any

import ralph

Told = dict[str, Any]


def about() -> Told:
    """What this worker is, and what it is at."""
    return {
        "ralph": ralph.__version__,
        "host": socket.gethostname(),
        "pid": os.getpid(),
        **_relay().about(),
        "draining": draining(),
        "attempts": under_way(),
    }


def under_way() -> list[Told]:
    """The attempts that this worker is at."""
    return list(_relay().under_way())


def drain() -> Told:
    """Take no new attempt from now on."""
    _relay().drain()
    return about()


def draining() -> bool:
    """True once it takes no new attempt."""
    return bool(_relay().about().get("draining"))


def is_drained() -> bool:
    """True once it takes no new attempt, and has none."""
    return draining() and not under_way()


def _relay() -> Any:  # noqa: ANN401
    return importlib.import_module("ralph.fleet.machine.relay")
