"""One run for all who look at it: one tail, one recap, and the same bytes for whoever is at the
same place."""

import asyncio
import os
import time
from collections.abc import Callable

from ralph.files.state_dir import stamp_of
from ralph.journal.runs import Run, workers_at
from ralph.kernel.value import replace, value
from ralph.ui.recap.gather import Gatherer
from ralph.ui.recap.values import Iteration, Recap
from ralph.web.chunks import chunk_after, is_aligned
from ralph.web.positions import Cursor, cursor_at, position_of
from ralph.web.replies import as_json
from ralph.web.sse import event
from ralph.web.tail import Tail

_RECAP_EVERY = 0.5  # seconds
_RESTS = 4  # times as long as a recap took, until the next
_LOOK_EVERY = 1.0  # seconds: whether the run lives, and what it was asked
_RENEWED = 10.0  # seconds: what changes beside the journal, such as the list of tasks
_KEPT = 8  # pieces, for those who come next to the same place
_GOES_ON = ("running", "waiting", "paused", "asking")
Piece = tuple[bytes, Cursor]


@value
class Told:
    """The place of one client."""

    cursor: Cursor
    recap: int = 0  # the number of the last
    ended: int = 0  # how many times it heard of an end


class RunFeed:
    """Tells of a run while somebody looks; `named` finds it anew, for it may have ended."""

    def __init__(
        self,
        run: Run,
        named: Callable[[str], Run | None],
        gatherer: Gatherer,
        tell: Callable[[str], None],
    ) -> None:
        self.users, self.left_at = 0, time.monotonic()
        self._run, self._named, self._gatherer, self._tell = run, named, gatherer, tell
        self._loop = asyncio.get_running_loop()
        self._changed = asyncio.Event()
        self._pieces: dict[Cursor, asyncio.Task[Piece]] = {}
        self._gathering = asyncio.Lock()
        self._number = 0  # of recaps
        self._recap, self._whole, self._news = Recap(run.id, "", ""), b"", b""
        self._stamp: object = None
        self._ends = 0
        self.tail = Tail(run, self._wake)
        self.tail.start()
        self._looker = asyncio.create_task(self._look())

    def close(self) -> None:
        self.tail.close()
        self._looker.cancel()

    async def more(self, told: Told | str) -> tuple[bytes, Told]:
        """The events behind what a client was told; waits while there are none. A position, or "",
        is told where it leads to."""
        if isinstance(told, str):
            return await self._begin(told)
        while True:
            changed, data, cursor = self._changed, b"", told.cursor
            if cursor.journal < self.tail.told or cursor.lines < self.tail.spool.total:
                data, cursor = await self._piece(cursor)
            recap, ended = self._number, self._ends
            if recap > told.recap:
                data += self._news if recap == told.recap + 1 else self._all()
            if ended > told.ended:
                data += event("ended", {"state": self._recap.state})
            if data:
                return data, Told(cursor, recap, ended)
            await changed.wait()

    async def recap(self) -> bytes:
        """The light recap as it is now, in JSON."""
        await self._renew()
        return self._whole

    async def iteration(self, number: int, worker: str) -> Iteration | None:
        """One iteration in full."""
        await self._renew()
        async with self._gathering:
            return await asyncio.to_thread(self._gatherer.iteration, number, worker, time.time())

    async def reached(self, lines: int, patience: float) -> None:
        """Wait until there are so many lines of the log, or all."""
        try:
            async with asyncio.timeout(patience):
                while not self.tail.caught_up.is_set() and self.tail.spool.total < lines:
                    await self._changed.wait()
        except TimeoutError:
            pass

    async def _begin(self, position: str) -> tuple[bytes, Told]:
        """Go on at a position, or at the end. A client has a position from the first moment on."""
        while not self.tail.caught_up.is_set():
            await self._changed.wait()
        spool, journal = self.tail.spool, self.tail.told
        cursor = await asyncio.to_thread(cursor_at, position, spool, journal)
        if cursor is None or not is_aligned(self._run.journal, cursor.journal):
            cursor = Cursor(journal, spool.total)
        here = event("lines", {"from": cursor.lines, "lines": []}, position_of(cursor, spool))
        return here, Told(cursor)

    async def _piece(self, cursor: Cursor) -> Piece:
        """The next events, made once for all who are at the same place."""
        if cursor not in self._pieces:
            work = asyncio.to_thread(chunk_after, cursor, self.tail)
            self._pieces[cursor] = asyncio.create_task(work)
            while len(self._pieces) > _KEPT:
                self._pieces.pop(next(iter(self._pieces)))
        data, after = await asyncio.shield(self._pieces[cursor])
        if not data:
            self._pieces.pop(cursor, None)
        return data, after

    def _all(self) -> bytes:
        return b"event: recap\ndata: " + self._whole + b"\n\n"

    async def _look(self) -> None:
        """Keep the recap up to date."""
        while True:
            began = time.monotonic()
            try:
                await self._renew()
            except Exception as error:  # noqa: BLE001  lines and facts are told without it too
                self._tell(f"The recap of {self._run.id}: {type(error).__name__}: {error}")
                await asyncio.sleep(_RENEWED)
            took = time.monotonic() - began
            try:
                async with asyncio.timeout(_LOOK_EVERY):
                    await self._changed.wait()
            except TimeoutError:
                pass
            await asyncio.sleep(max(_RECAP_EVERY, _RESTS * took))

    async def _renew(self) -> None:
        async with self._gathering:
            before = self._recap
            stamp = await asyncio.to_thread(self._seen)
            if stamp == self._stamp:
                return
            self._recap = await asyncio.to_thread(self._gathered)
            self._whole, self._stamp = as_json(self._recap), stamp
            known = {(each.worker, each.number): each for each in before.iterations}
            news = tuple(
                each
                for each in self._recap.iterations
                if known.get((each.worker, each.number)) != each
            )
            iterations = news or self._recap.iterations[-1:]
            self._news = event("recap", replace(self._recap, iterations=iterations))
            self._number += 1
            if self._recap.state not in _GOES_ON and (not self._ends or before.state in _GOES_ON):
                self._ends += 1
            self._set()

    def _seen(self) -> object:
        """Everything that a recap depends on; equal ones need no second look."""
        self._run = self._named(self._run.id) or self._run
        run, journal = self._run, self.tail.told
        crew = [worker.journal for worker, _ in workers_at(run, self.tail.state)]
        paths = [os.path.join(each.directory, "signals") for each in (run, run.lead or run)]
        files = [(path, stamp_of(path)) for path in (*paths, *crew)]
        beats = time.monotonic() // _RENEWED if run.live else 0
        return journal, run.owner, files, beats

    def _gathered(self) -> Recap:
        self._gatherer.run = self._run
        self._gatherer.read()
        return self._gatherer.recap(time.time())

    def _wake(self) -> None:
        try:
            self._loop.call_soon_threadsafe(self._set)
        except RuntimeError:
            pass  # the server has ended meanwhile

    def _set(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()
