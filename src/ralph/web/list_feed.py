"""The list of runs as it changes, for all who look: one looks for all of them."""

import asyncio
from collections import deque

from ralph.ui.status.known import KnownRuns
from ralph.web.listing import Told
from ralph.web.sse import event

_LOOK_EVERY = 1.0  # seconds
_SHOWN = 200
_GONE_KEPT = 1000


class ListFeed:
    """Tells what has changed since a version. Looks only while somebody waits for it."""

    def __init__(self, listing: KnownRuns[Told]) -> None:
        self._listing = listing
        self._version = 0
        self._told: dict[str, tuple[int, Told]] = {}  # each with the version that changed it
        self._gone: deque[tuple[int, str]] = deque(maxlen=_GONE_KEPT)
        self._changed = asyncio.Condition()
        self._waiting = 0
        self._looker: asyncio.Task[None] | None = None

    async def more(self, version: int) -> tuple[bytes, int]:
        """The events since that version; waits while there are none."""
        self._waiting += 1
        if self._looker is None or self._looker.done():
            self._looker = asyncio.create_task(self._look())
        try:
            async with self._changed:
                await self._changed.wait_for(lambda: self._version > version)
        finally:
            self._waiting -= 1
        data = b""
        if runs := [told for changed, told in self._told.values() if changed > version]:
            data += event("runs", {"runs": runs})
        if version and (gone := [run for changed, run in self._gone if changed > version]):
            data += event("gone", {"runs": gone})
        return data, self._version

    async def _look(self) -> None:
        while self._waiting:
            entries, _ = await asyncio.to_thread(self._listing.newest, _SHOWN)
            new = {told["run"]: told for told in entries}
            version = self._version + 1
            changed = {
                run: (version, told)
                for run, told in new.items()
                if run not in self._told or self._told[run][1] != told
            }
            gone = [run for run in self._told if run not in new]
            if changed or gone:
                self._told = {run: changed.get(run) or self._told[run] for run in new}
                self._gone.extend((version, run) for run in gone)
                async with self._changed:
                    self._version = version
                    self._changed.notify_all()
            await asyncio.sleep(_LOOK_EVERY)
