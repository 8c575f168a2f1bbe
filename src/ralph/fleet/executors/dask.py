"""Attempts on a fleet of Dask workers. Dask dispatches, and nothing more: who may begin and who is
lost follows from leases (ADR 49), and what a scheduler forgets is found again by asking everybody.
"""

import asyncio
import atexit
import threading
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from ralph import __version__
from ralph.errors import ConfigError
from ralph.fleet.cluster.dask_nodes import is_there, quieten
from ralph.fleet.executors.submitted import Submitted
from ralph.fleet.machine import relay
from ralph.fleet.messages import Message, message_of, result_of, text_of
from ralph.fleet.port import Event, Failed, Handle, Job
from ralph.fleet.security import address_of, unreached
from ralph.kernel.verdict import Cut

if TYPE_CHECKING:
    from distributed import Security

_PATIENCE = 8.0  # seconds for the scheduler to answer at all
_SOON = 0.05  # seconds between two looks where something has just happened
_LATE = 0.5  # the same at most: how late a cut, a pulse or the agent's words may be
_SEARCH = 3.0  # between two times that everybody is asked for one attempt
_SLOTS = 2.0  # between two looks at who is there
_LOOKS = 10  # for another incarnation, when an attempt has ended
_REMEMBERED = 600.0  # seconds for which a machine tells of an attempt that nobody has asked for
_REACHED = 1.0  # for a machine to say that it does not know a new attempt


class DaskExecutor:
    """An `Executor`. `security` is a `distributed.Security`. ConfigError if there is no such
    fleet."""

    def __init__(self, address: str, security: "Security | None" = None) -> None:
        self._lock = threading.Lock()
        self._known: dict[str, _Sent] = {}
        self._fleet = _Fleet(address, security)
        self._loop = asyncio.new_event_loop()
        self._loop.set_exception_handler(lambda *_: None)  # the terminal is the user's
        self._thread = threading.Thread(target=self._serve, name="ralph-fleet", daemon=True)
        self._thread.start()
        atexit.register(self.close)
        try:
            self._await(self._fleet.connect())
        except ConfigError:
            self.close()
            raise

    def submit(self, job: Job, *, again: bool = False) -> Handle:
        """`again`: if no machine that can be asked has it, it is begun only when the lease must be
        over that an earlier process may have given it."""
        with self._lock:
            self._known = {key: one for key, one in self._known.items() if not one.is_told}
            if (known := self._known.get(job.key)) is not None:
                return known
            one = _Sent(job, again=again, loop=self._loop)
            if not one.ended.is_set():
                self._known[job.key] = one
                asyncio.run_coroutine_threadsafe(self._fleet.follow(one), self._loop)
        return one

    def events(self, handle: Handle, wait: float) -> Sequence[Event]:
        return handle.take(wait) if isinstance(handle, _Sent) else ()

    def cancel(self, handle: Handle, cut: Cut) -> None:
        if isinstance(handle, _Sent):
            handle.cut(cut)

    def lost(self, handle: Handle) -> bool:
        return isinstance(handle, _Sent) and handle.is_over()

    def slots(self) -> int:
        return self._fleet.slots

    def close(self) -> None:
        atexit.unregister(self.close)
        if self._thread.is_alive():
            with suppress(ConfigError):
                self._await(self._fleet.close())
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(_PATIENCE)

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()
        left = asyncio.all_tasks(self._loop)
        for task in left:
            task.cancel()
        self._loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
        self._loop.close()

    def _await(self, doing: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(doing, self._loop).result()


class _Sent(Submitted):
    """An attempt that Dask has, or is to have."""

    def __init__(self, job: Job, *, again: bool, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._stirring = asyncio.Event()
        self.again = again
        self.future: Any = None
        self.times = 0  # that it was given to Dask
        self.place = ""  # the worker that has it
        self.next_search = 0.0
        super().__init__(job, stir=self._stir_loop)

    async def rest(self, seconds: float) -> None:
        """Wait so long, or until there is something to say."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._stirring.wait()
        self._stirring.clear()

    def stir(self) -> None:
        """Called in the loop of events."""
        self._stirring.set()

    def _stir_loop(self) -> None:
        with suppress(RuntimeError):  # we were closed
            self._loop.call_soon_threadsafe(self.stir)


class _Fleet:
    """The cluster, seen from the loop of events."""

    def __init__(self, address: str, security: "Security | None") -> None:
        self.slots = 0
        self._place, self._security = address_of(address), security
        self._client: Any = None
        self._workers: tuple[str, ...] = ()
        self._has: dict[str, str] = {}  # the Ralph of each worker that has told; "": none
        self._where: dict[str, str] = {}  # the worker of each job of ours, as the scheduler has it
        self._followed: set[_Sent] = set()
        self._stirred = asyncio.Event()
        self._next_count = 0.0
        self._tasks: set[asyncio.Task[None]] = set()
        self._closed = False

    async def connect(self) -> None:
        """Reach the scheduler; ConfigError if that cannot be."""
        quieten()
        try:
            async with asyncio.timeout(_PATIENCE + 1):
                if why := await is_there(self._place, self._security):
                    raise ConnectionError(why)  # Dask would try again and again
                self._client = await self._new_client()
                await self._client.run_on_scheduler(relay.about)
                await self._count()
        except Exception as error:  # whatever it is, people must hear of it
            raise self._unreachable(error) from error
        self._begin(self._watch())

    async def close(self) -> None:
        """Let go of it: nobody renews any lease."""
        self._closed = True
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=_PATIENCE / 4)
        if self._client is not None:
            with suppress(Exception):
                async with asyncio.timeout(_PATIENCE / 4):
                    await self._client.close()

    def _begin(self, doing: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(doing)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def follow(self, one: _Sent) -> None:
        """Have an attempt made, and hear of it until it is over."""
        if not self._closed:
            self._begin(self._follow(one))

    async def _follow(self, one: _Sent) -> None:
        pause = _SOON
        self._followed.add(one)
        try:
            one.place = await self._found(one)
            if not one.place and not one.again:
                one.clear()
            while not (one.ended.is_set() or self._closed):
                was_found = one.is_found
                try:
                    news = await self._step(one)
                except Exception:  # noqa: BLE001  whatever Dask has met, nothing was heard
                    news = False
                    one.silent()
                if one.is_found != was_found:
                    continue  # it is waiting to be granted
                pause = _SOON if news else min(_LATE, one.job.lease / 6, 2 * pause)
                if not one.ended.is_set():
                    await one.rest(0.0 if one.hurry else pause)
            if one.ended.is_set():
                await self._let_go(one)
        finally:
            self._followed.discard(one)
            _forget(one)
        await self._hear_again(one)

    async def _step(self, one: _Sent) -> bool:
        """One look at an attempt; True if there was news."""
        where = self._where.get(_name(one), "")
        if one.is_found and where not in ("", one.place):
            await self._refuse(one, where)
        if not one.place and not one.is_found:
            if one.may_begin():
                await self._dispatch(one)
            else:
                one.place = await self._found(one)
        place = one.place or where
        wait = min(_PATIENCE / 2, max(1.0, one.job.lease / 5))
        answer = await self._say(place, one.request(), wait) if place else None
        if answer is None or answer.get("known") is not True:
            one.heard(answer or {})
            one.place = (await self._found(one) or one.place) if one.is_found else ""
            return False
        news = one.heard(answer)
        if one.is_found and one.place != place:
            one.place = place
        if one.is_found and answer.get("state") != "ended" and _is_unknown(one.future):
            self._give(one, workers=[place])  # so that its slot counts
        return news

    async def _dispatch(self, one: _Sent) -> None:
        """Give it to Dask, unless Dask has it; hear why it cannot be made."""
        status = "" if one.future is None else one.future.status
        if status == "error":
            one.refused(_broken(await one.future.exception()))
        elif status == "finished":
            answer = message_of(await one.future.result())
            if "refused" in answer:
                refused = result_of(answer["refused"])
                one.refused(refused if isinstance(refused, Failed) else Failed("it was refused"))
            _forget(one)  # else it waited too long for us
        if status != "pending" and not one.ended.is_set():
            self._give(one)

    def _give(self, one: _Sent, **only: list[str]) -> None:
        _forget(one)
        able = [place for place in self._workers if self._is_able(place)]
        if self._workers and not able:
            has = ((place, self._has[place]) for place in self._workers)
            where = ", ".join(f"{place} (it has {one})" if one else place for place, one in has)
            why = f"no worker of the fleet has Ralph {__version__} to take attempts: {where}"
            one.refused(Failed(why, f"Install ralph-engine[fleet]=={__version__} there"))
            return
        if len(able) < len(self._workers):
            only = {"workers": able, **only}
        if self._client.status == "running":
            one.times += 1
            self._stirred.set()
            one.future = self._client.submit(
                relay.job, one.text, key=_name(one), pure=False, retries=0, **only
            )

    async def _let_go(self, one: _Sent) -> None:
        """It is over; no worker is to wait for its grant."""
        for _ in range(_LOOKS):
            for place in {one.place, self._where.get(_name(one), "")}:
                await self._refuse(one, place)
            if one.future is None or one.future.status != "pending":
                return
            self._stirred.set()
            await asyncio.sleep(2 * _SOON)

    async def _hear_again(self, one: _Sent) -> None:
        """Hear of it once more if it was lost and comes back: where it was, or as a new worker."""
        end, known = self._now() + _REMEMBERED, {*self._workers} - {one.place}
        look = text_of({"key": one.key, "since": 0})
        while one.may_come_back and self._now() < end and not self._closed:
            places = {one.place, *self._workers} - known - {""}
            for answer in await asyncio.gather(*(self._say(at, look, _REACHED) for at in places)):
                one.heard(answer or {})
            await asyncio.sleep(_SEARCH)

    async def _judge(self, place: str) -> None:
        """Which Ralph a worker has. One without ends when it is given an attempt; one with another
        refuses, and would end the run while others could go on."""
        asked = self._client.run(relay.about, workers=[place], on_error="return")
        with suppress(OSError, TimeoutError):
            async with asyncio.timeout(_REACHED):
                told = (await asked).get(place)
                self._has[place] = str(told.get("version")) if isinstance(told, dict) else ""

    def _is_able(self, place: str) -> bool:
        """True unless it is known that it cannot take attempts of ours."""
        return self._has.get(place, __version__) == __version__

    async def _refuse(self, one: _Sent, place: str) -> None:
        """Have another incarnation end, if there is one at that place."""
        if not place:
            return
        answer = await self._say(place, text_of({"key": one.key, "since": 0}))
        if answer is not None and (refusal := one.refusal(answer)) is not None:
            await self._say(place, refusal)

    async def _found(self, one: _Sent) -> str:
        """The worker that has it; "" if none says so, or it is not yet time to ask all again."""
        now = self._now()
        if now < one.next_search:
            return ""
        one.next_search = now + _SEARCH
        look = text_of({"key": one.key, "since": 0})
        places = self._workers
        answers = await asyncio.gather(*(self._say(at, look, _REACHED) for at in places))
        held = [
            (answer.get("state") != "waiting", place)
            for place, answer in zip(places, answers, strict=True)
            if answer is not None and answer.get("known") is True
        ]
        return max(held)[1] if held else ""

    async def _say(self, place: str, text: str, wait: float | None = None) -> Message | None:
        """The answer of a worker; None if there is none."""
        answer = await self._run(place, relay.exchange, text, wait=wait)
        try:
            return message_of(answer) if isinstance(answer, str) else None
        except ValueError:
            return None

    async def _run(
        self,
        place: str,
        function: Callable[..., object],
        *arguments: str,
        wait: float | None = None,
    ) -> object:
        asked = self._client.run(function, *arguments, workers=[place], on_error="return")
        try:
            async with asyncio.timeout(wait or _PATIENCE / 2):
                answer = (await asked).get(place)
        except Exception:  # noqa: BLE001  whatever it is, nothing was heard
            return None
        return None if isinstance(answer, BaseException) else answer

    async def _watch(self) -> None:
        """Keep the connection, and know where the scheduler has our jobs."""
        pause = _SOON
        while not self._closed:
            try:
                if self._client.status == "closed":
                    self._client = await self._new_client()
                self._where = {
                    name: place
                    for place, names in (await self._in_time(self._client.processing())).items()
                    for name in names
                }
                if self._now() >= self._next_count:
                    self._begin(self._count_again())  # a worker that hangs keeps nobody waiting
            except Exception:  # noqa: BLE001  it is away, and comes back or not
                self._where, self.slots, self._next_count = {}, 0, 0.0
            sought = [one for one in self._followed if not one.is_found]
            for one in sought:
                if _name(one) in self._where:
                    one.stir()
            pause = _SOON if self._stirred.is_set() else min(_LATE, 2 * pause)
            self._stirred.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(pause / 2 if sought else _LATE):
                    await self._stirred.wait()

    async def _count_again(self) -> None:
        with suppress(Exception):  # whatever it is, the next look tells
            await self._count()

    async def _count(self) -> None:
        self._next_count = self._now() + _SLOTS
        workers = (await self._in_time(self._client.scheduler.identity(n_workers=-1)))["workers"]
        self._has = {place: one for place, one in self._has.items() if place in workers}
        # One that could not may have been started again at its port, with another.
        new = (at for at in workers if at not in self._has or not self._is_able(at))
        await asyncio.gather(*map(self._judge, new))
        self._workers = tuple(workers)
        self.slots = sum(
            one["nthreads"]
            for place, one in workers.items()
            if one.get("status") == "running" and self._is_able(place)
        )

    async def _in_time(self, asked: Any) -> Any:  # noqa: ANN401
        async with asyncio.timeout(_PATIENCE / 2):
            return await asked

    async def _new_client(self) -> Any:  # noqa: ANN401  Dask has no types
        import distributed

        kind: Any = distributed.Client
        client = kind(
            str(self._place),
            asynchronous=True,
            security=self._security,
            timeout=_PATIENCE,
            set_as_default=False,
            name="ralph",
        )
        try:
            return await client
        except BaseException:
            with suppress(Exception):
                await client.close()
            raise

    def _unreachable(self, error: Exception) -> ConfigError:
        said = str(error).strip().partition("\n")[0] or (
            "no answer" if isinstance(error, TimeoutError) else type(error).__name__
        )
        if isinstance(error, (ImportError, AttributeError)):
            remedy = f"Install ralph-engine[fleet]=={__version__} where the scheduler runs"
            return ConfigError(f"the scheduler at {self._place} has no Ralph: {said}", remedy)
        return unreached(self._place, said)

    @staticmethod
    def _now() -> float:
        return asyncio.get_running_loop().time()


def _forget(one: _Sent) -> None:
    """Let Dask forget a job; who works for it is not ended by that."""
    if one.future is not None:
        one.future.release()
        one.future = None


def _broken(error: BaseException) -> Failed:
    """What to say of a job that Dask could not run."""
    if type(error).__name__ == "KilledWorker":
        why = "every worker that was given the attempt ended"
        return Failed(why, "See that each of them has Ralph: ralph fleet doctor", passes=True)
    return Failed(f"the fleet could not run the attempt: {error or type(error).__name__}")


def _is_unknown(future: Any) -> bool:  # noqa: ANN401  Dask has no types
    """True of a job that no scheduler has, or has any more."""
    return future is None or future.status in ("cancelled", "lost")


def _name(one: _Sent) -> str:
    """The name of its job at Dask: the same after us, so that a worker that has it knows it."""
    return f"ralph:{one.key}" + (f"~{one.times}" if one.times > 1 else "")
