"""Names and moments of runs. Light: `ralph job` needs them before anything else is imported."""

import os
import time


def new_run_id(now: float) -> str:
    """`<YYYYMMDD-HHMMSS-xxxx>`, in local time; later ones sort later, also within a second."""
    stamp = time.strftime("%Y%m%d-%H%M%S", time.localtime(now))
    return f"{stamp}-{int(now % 1 * 4096):03x}{os.urandom(1).hex()[0]}"


def timestamp(now: float) -> str:
    """A moment as RFC 3339 has it, in UTC, with microseconds."""
    millionths = round(now * 1_000_000)
    moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(millionths // 1_000_000))
    return f"{moment}.{millionths % 1_000_000:06d}Z"
