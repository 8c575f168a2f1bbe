"""The report of a run, written by a process of its own: what it takes is given back at its end."""

import asyncio
import sys
from collections.abc import Mapping
from subprocess import DEVNULL, PIPE

from ralph.text.plain import plain
from ralph.web.replies import ApiError

_PATIENCE = 60.0  # seconds


async def report_of(run: str, environ: Mapping[str, str]) -> bytes:
    """The page that `ralph report` prints."""
    words = (sys.executable, "-P", "-m", "ralph", "report", "-o", "-", "--", run)
    child = await asyncio.create_subprocess_exec(
        *words, stdin=DEVNULL, stdout=PIPE, stderr=PIPE, cwd="/", env=environ
    )
    try:
        async with asyncio.timeout(_PATIENCE):
            page, said = await child.communicate()
    except BaseException as error:
        child.kill()
        await child.wait()
        if isinstance(error, TimeoutError):
            raise ApiError(503, "the report takes too long", f"ralph report {run}") from error
        raise
    if child.returncode:
        why = plain(said.decode("utf-8", "replace"))
        raise ApiError(409, f"there is no report: {why}", f"Try: ralph report {run}")
    return page
