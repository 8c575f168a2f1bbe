"""The runs that somebody looks at, each followed once; one that nobody looks at is left."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from ralph.journal.runs import Run
from ralph.ui.recap.gather import Gatherer
from ralph.ui.status.known import KnownRuns
from ralph.web.listing import Told
from ralph.web.replies import ApiError
from ralph.web.run_feed import RunFeed

_LINGERS = 60.0  # seconds after the last look: a client comes back
_MOST = 16  # runs at once


class Feeds:
    """The feeds of runs, by their ids."""

    def __init__(
        self,
        listing: KnownRuns[Told],
        gatherer_of: Callable[[Run], Gatherer],
        tell: Callable[[str], None],
    ) -> None:
        self._listing, self._gatherer_of, self._tell = listing, gatherer_of, tell
        self._feeds: dict[str, RunFeed] = {}
        self._reaper: asyncio.Task[None] | None = None

    async def run(self, name: str) -> Run:
        """The run of that id."""
        run = await asyncio.to_thread(self._listing.named, name)
        if run is None:
            raise ApiError(404, "there is no such run", "See all: ralph list")
        return run

    async def of(self, name: str) -> RunFeed:
        """The feed of that run; it lasts while it is used, and a while longer."""
        run = await self.run(name)
        feed = self._feeds.get(name)
        if feed is None:
            self._make_room()
            gatherer = await asyncio.to_thread(self._gatherer_of, run)
            feed = self._feeds.get(name) or RunFeed(run, self._listing.named, gatherer, self._tell)
            self._feeds[name] = feed
        if self._reaper is None:
            self._reaper = asyncio.create_task(self._reap())
        feed.left_at = time.monotonic()
        return feed

    @asynccontextmanager
    async def looking(self, name: str) -> AsyncIterator[RunFeed]:
        """The feed of that run, which stays during this."""
        feed = await self.of(name)
        feed.users += 1
        try:
            yield feed
        finally:
            self.left(feed)

    def left(self, feed: RunFeed) -> None:
        """A user of it is gone."""
        feed.users -= 1
        feed.left_at = time.monotonic()

    def close(self) -> None:
        for feed in self._feeds.values():
            feed.close()

    def _make_room(self) -> None:
        if len(self._feeds) < _MOST:
            return
        idle = [name for name, feed in self._feeds.items() if not feed.users]
        if not idle:
            raise ApiError(503, f"{_MOST} runs are looked at already", "Close some of them.")
        oldest = min(idle, key=lambda name: self._feeds[name].left_at)
        self._feeds.pop(oldest).close()

    async def _reap(self) -> None:
        while True:
            await asyncio.sleep(_LINGERS / 4)
            late = time.monotonic() - _LINGERS
            for name, feed in list(self._feeds.items()):
                if not feed.users and feed.left_at < late:
                    self._feeds.pop(name).close()
