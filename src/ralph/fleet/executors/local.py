"""Attempts at this machine, below this process: no network, no Dask. `fleet.address: local`."""

import threading
from collections import deque
from collections.abc import Sequence

from ralph.fleet.executors.submitted import Submitted
from ralph.fleet.machine import relay
from ralph.fleet.messages import Message, message_of, result_of, text_of
from ralph.fleet.port import Event, Failed, Handle, Job
from ralph.kernel.verdict import Cut

_SOON = 0.002  # seconds between two looks at an attempt of which there is news
_LATE = 0.1  # the same at most


class LocalExecutor:
    """An `Executor`. What it has begun ends with this process."""

    def __init__(self, slots: int) -> None:
        self._slots = slots
        self._lock = threading.Lock()
        self._known: dict[str, Submitted] = {}
        self._waiting: deque[Submitted] = deque()  # for a slot
        self._making: set[Submitted] = set()
        self._stirred = threading.Event()
        self._closed = False
        self._thread = threading.Thread(target=self._follow, name="ralph-fleet", daemon=True)
        self._thread.start()

    def submit(self, job: Job, *, again: bool = False) -> Handle:
        """`again` changes nothing: what is left of an earlier process is ended before it begins."""
        with self._lock:
            if (known := self._known.get(job.key)) is not None:
                return known
            submitted = Submitted(job, stir=self._stirred.set)
            if not submitted.ended.is_set():
                if not _look(submitted)["known"]:
                    submitted.clear()
                self._known[job.key] = submitted
                self._waiting.append(submitted)
        self._stirred.set()
        return submitted

    def events(self, handle: Handle, wait: float) -> Sequence[Event]:
        return handle.take(wait) if isinstance(handle, Submitted) else ()

    def cancel(self, handle: Handle, cut: Cut) -> None:
        if isinstance(handle, Submitted):
            handle.cut(cut)

    def lost(self, handle: Handle) -> bool:
        return isinstance(handle, Submitted) and handle.is_over()

    def slots(self) -> int:
        return self._slots

    def close(self) -> None:
        self._closed = True
        self._stirred.set()
        self._thread.join()

    def _follow(self) -> None:
        pause = _SOON
        while not self._closed:
            self._stirred.wait(pause)
            stirred = self._stirred.is_set()
            self._stirred.clear()
            self._begin()
            with self._lock:
                self._known = {key: one for key, one in self._known.items() if not one.is_told}
                live = [one for one in self._known.values() if not one.ended.is_set()]
                unwanted = [one for one in self._making if one.ended.is_set()]
            news = [self._ask(one) for one in live]
            for one in unwanted:
                self._refuse(one)
            pause = _SOON if stirred or any(news) else min(_LATE, 2 * pause)

    def _begin(self) -> None:
        """Have those made for which there is a slot."""
        with self._lock:
            while self._waiting and len(self._making) < self._slots:
                one = self._waiting.popleft()
                if not one.ended.is_set():
                    self._making.add(one)
                    threading.Thread(target=self._make, args=(one,), daemon=True).start()

    def _make(self, one: Submitted) -> None:
        try:
            answer = message_of(relay.job(one.text))
            if "refused" in answer:
                refused = result_of(answer["refused"])
                one.refused(refused if isinstance(refused, Failed) else Failed("it was refused"))
        finally:
            with self._lock:
                self._making.discard(one)
            self._stirred.set()

    @staticmethod
    def _ask(one: Submitted) -> bool:
        return one.heard(message_of(relay.exchange(one.request()))) or one.hurry

    @staticmethod
    def _refuse(one: Submitted) -> None:
        """Let go of one that was cut when it waited to be granted."""
        if refusal := one.refusal(_look(one)):
            relay.exchange(refusal)


def _look(one: Submitted) -> Message:
    """What we have of it already."""
    return message_of(relay.exchange(text_of({"key": one.key, "since": 0})))
